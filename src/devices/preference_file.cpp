// Places, a lock on the folder (it leaves no file behind, and the file itself is replaced), and the rewriting.
#include "devices/preference_file.hpp"

#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include <rosin/error.hpp>
#include <rosin/log.hpp>

#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/input_file.hpp"
#include "devices/toml_bounds.hpp"
#include "devices/toml_text.hpp"
#include "platform/environment.hpp"
#include "platform/files.hpp"
#include "platform/paths.hpp"

namespace rosin {
namespace {

namespace fs = std::filesystem;
using platform::name_of;
using platform::path_of;

constexpr const char* file_name = "LocalPreferences.toml";

[[noreturn]] void fail_writing(const fs::path& path, const std::string& why) {
  throw Error(ErrorKind::io, "preferences: cannot write '" + name_of(path) + "'; " + why);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::optional<std::string> first_usual_place() {
  std::vector<std::string> places = {file_name};
  if (const std::optional<std::string> folder = platform::settings_folder())
    places.push_back(*folder + "/rosin/" + file_name);
  for (std::string& place : places) {
    if (is_there(path_of(place))) return place;
  }
  return std::nullopt;
}

/// Where links lead, so that a linked file stays linked. A file that is not there yet gets its folder.
fs::path target_of(const fs::path& path) {
  std::error_code error;
  if (is_there(path)) {
    const fs::path target = fs::canonical(path, error);
    if (error) fail_writing(path, error.message());
    return target;
  }
  if (fs::is_symlink(path, error)) fail_writing(path, "it is a symbolic link that leads nowhere; remove or mend it");
  const fs::path folder = fs::absolute(path, error).parent_path();
  if (!error) fs::create_directories(folder, error);
  if (error) fail_writing(path, "its folder cannot be made: " + error.message());
  const fs::path target = fs::canonical(folder, error) / path.filename();
  if (error) fail_writing(path, error.message());
  return target;
}

/// Holds the folder for one writer; others wait up to ten seconds.
platform::OpenFile hold_folder_of(const fs::path& file) {
  platform::OpenFile lock;
  for (int tries = 0;; ++tries) {
    const std::error_code error = platform::try_to_hold_folder(name_of(file.parent_path()), lock);
    if (!error) return lock;
    if (error != std::errc::operation_would_block || tries == 2000) {
      fail_writing(file, "its folder cannot be locked: " + error.message());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

std::optional<std::string> preference_file() {
  const std::optional<std::string> named = environment(Setting::preferences);
  if (named && is_there(path_of(*named))) return named;
  std::optional<std::string> usual = first_usual_place();
  if (named) {
    warn_once("no-preference-file",
              "preferences: ROSIN_PREFERENCES must name a file; " + *named + " does not exist; " +
                  (usual ? *usual + " is read" : "no file is read"),
              *named);
  }
  return usual;
}

std::string preference_text(const std::string& path) {
  const std::vector<uint8_t> bytes = read_whole_file(path, most_toml_bytes);
  return {bytes.begin(), bytes.end()};
}

void write_preference(const std::string& key, std::optional<TomlValue> value) {
  const std::optional<std::string> named = environment(Setting::preferences);
  const fs::path path = path_of(named ? *named : first_usual_place().value_or(file_name));
  if (!value && !is_there(path)) return;
  const fs::path target = target_of(path);
  const platform::OpenFile lock = hold_folder_of(target);
  const std::string text = is_there(target) ? preference_text(name_of(target)) : std::string();
  const std::string changed = with_toml_value(name_of(path), text, "rosin", key, value);
  if (changed == text) return;
  write_file_atomically(name_of(target), changed);
}

}  // namespace rosin
