// See cache_folder.hpp.
#include "run/cache_folder.hpp"

#include "base/environment.hpp"
#include "base/hash.hpp"

namespace rosin {

std::optional<std::string> cache_folder() {
  if (std::optional<std::string> stated = cache_dir_setting()) return stated;
  return user_cache_folder();
}

uint64_t hash_text(std::string_view text) {
  uint64_t hash = text.size(), word = 0;
  int bytes = 0;
  for (const char c : text) {
    word = word << 8 | static_cast<unsigned char>(c);
    if (++bytes < 8) continue;
    hash = mix(hash, word);
    word = 0;
    bytes = 0;
  }
  return mix(hash, word);
}

std::string hex_text(uint64_t value) {
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4) text[static_cast<size_t>(i)] = "0123456789abcdef"[value & 15];
  return text;
}

}  // namespace rosin
