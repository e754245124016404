// See plugin_record.hpp.
#include "runtime/plugin_record.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>

#include <rosin/diagnostics.hpp>
#include <rosin/error.hpp>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "runtime/cache_folder.hpp"

namespace rosin {
namespace {

/// Probes that this process noted, which count where the cache folder cannot be written: path to how they ended.
struct Noted {
  std::mutex lock;
  std::map<std::string, bool> crashed;
};

Noted& noted() {
  static auto* record = new Noted;
  return *record;
}

/// The file that stands for "this plug-in, as it is now, crashed".
std::optional<std::string> mark_of(const std::string& path) {
  struct stat facts {};
  const std::optional<std::string> folder = cache_folder();
  if (!folder || stat(path.c_str(), &facts) != 0) return std::nullopt;
  uint64_t hash = hash_text(path);
  hash = mix(hash, static_cast<uint64_t>(facts.st_size));
  hash = mix(hash, static_cast<uint64_t>(facts.st_mtim.tv_sec));
  hash = mix(hash, static_cast<uint64_t>(facts.st_mtim.tv_nsec));
  return *folder + "/crashed-" + hex_text(hash);
}

}  // namespace

bool crashed_in_last_probe(const std::string& path) {
  {
    std::lock_guard guard(noted().lock);
    const auto found = noted().crashed.find(path);
    if (found != noted().crashed.end()) return found->second;
  }
  const std::optional<std::string> mark = mark_of(path);
  return mark && access(mark->c_str(), F_OK) == 0;
}

void note_probe(const std::string& path, bool crashed) {
  {
    std::lock_guard guard(noted().lock);
    noted().crashed[path] = crashed;
  }
  const std::optional<std::string> mark = mark_of(path);
  if (!mark) return;
  if (!crashed) {
    unlink(mark->c_str());
    return;
  }
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(*mark).parent_path(), ignored);
  try {
    write_file_atomically(*mark, path + "\n");
  } catch (const Error&) {
    // Without the note later processes try the file again: a convenience is lost, nothing else.
  }
}

}  // namespace rosin
