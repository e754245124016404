// See words.hpp.
#include "dist/words.hpp"

#include <cstring>

#include "base/hash.hpp"
#include "graph/node.hpp"

namespace rosin::distributed {

uint64_t hash_of(std::string_view text) {
  uint64_t hash = text.size();
  for (const char c : text) hash = mix(hash, static_cast<uint8_t>(c));
  return hash;
}

uint64_t hash_of(const Array& x) {
  if (x.is_nothing()) return 1;
  uint64_t hash = static_cast<uint64_t>(x.dtype()) + 2;
  for (int i = 0; i < x.rank(); ++i) hash = mix(hash, static_cast<uint64_t>(x.size(i)));
  return hash;
}

uint64_t hash_of_elements(const Array& host) {
  const size_t bytes = static_cast<size_t>(host.count()) * size_of(host.dtype()), whole = bytes / sizeof(uint64_t);
  if (bytes == 0) return 0;
  const auto* const words = static_cast<const uint64_t*>(host.node()->data());
  uint64_t rest = 0;
  std::memcpy(&rest, words + whole, bytes % sizeof rest);
  return mix(hash_words(words, whole), rest);
}

std::string described(std::string_view name, const Array& x) {
  return "\"" + std::string(name) + "\" " +
         (x.is_nothing() ? "nothing" : to_string(x.shape()) + " " + to_string(x.dtype()));
}

}  // namespace rosin::distributed
