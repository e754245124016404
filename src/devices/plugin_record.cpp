// See plugin_record.hpp.
#include "devices/plugin_record.hpp"

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include <rosin/diagnostics.hpp>
#include <rosin/error.hpp>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "platform/files.hpp"
#include "platform/paths.hpp"
#include "run/cache_folder.hpp"

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

/// A file that stands for "this plug-in, as it is now, crashed", in a folder that counts if it is ours alone.
struct Mark {
  std::string folder, path;
};

std::optional<Mark> mark_of(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file = platform::path_of(path);
  const uint64_t bytes = std::filesystem::file_size(file, error);
  if (error) return std::nullopt;
  const std::filesystem::file_time_type changed = std::filesystem::last_write_time(file, error);
  if (error) return std::nullopt;
  const std::optional<std::string> cache = cache_folder();
  if (!cache) return std::nullopt;
  uint64_t hash = hash_text(path);
  hash = mix(hash, bytes);
  hash = mix(hash, static_cast<uint64_t>(changed.time_since_epoch().count()));
  const std::string folder = *cache + "/probes";
  return Mark{folder, folder + "/crashed-" + hex_text(hash)};
}

}  // namespace

bool crashed_in_last_probe(const std::string& path) {
  {
    std::lock_guard guard(noted().lock);
    const auto found = noted().crashed.find(path);
    if (found != noted().crashed.end()) return found->second;
  }
  const std::optional<Mark> mark = mark_of(path);
  return mark && trouble_with_private_folder(mark->folder).empty() && platform::is_there(mark->path);
}

void detail::note_probe(const std::string& path, bool crashed) {
  {
    std::lock_guard guard(noted().lock);
    noted().crashed[path] = crashed;
  }
  const std::optional<Mark> mark = mark_of(path);
  if (!mark) return;
  if (!crashed) {
    if (trouble_with_private_folder(mark->folder).empty()) platform::remove_file(mark->path);
    return;
  }
  if (!make_private_folder(mark->folder).empty()) return;
  try {
    write_file_atomically(mark->path, path + "\n", FileAccess::owner_only);
  } catch (const Error&) {
    // Without the note later processes try the file again: a convenience is lost, nothing else.
  }
}

}  // namespace rosin
