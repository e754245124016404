// environment.hpp on POSIX. Whether a process has more rights than its user has, POSIX does not say: see
// environment_linux.cpp, environment_darwin.cpp.
#include "platform/environment.hpp"

#include <cstdlib>
#include <string_view>

extern char** environ;

namespace rosin::platform {
namespace {

/// The value of a variable, if it is an absolute path, with `below` behind it.
std::optional<std::string> folder_of(const char* name, const char* below) {
  if (has_more_rights_than_its_user()) return std::nullopt;
  const char* value = std::getenv(name);
  if (!value || *value != '/') return std::nullopt;
  return std::string(value) + below;
}

}  // namespace

const char path_list_separator = ':';

std::optional<std::string> environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

std::vector<std::string> environment_names() {
  std::vector<std::string> names;
  for (char** variable = environ; variable && *variable; ++variable) {
    const std::string_view text(*variable);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

std::optional<std::string> settings_folder() {
  if (auto folder = folder_of("XDG_CONFIG_HOME", "")) return folder;
  return folder_of("HOME", "/.config");
}

std::optional<std::string> remade_files_folder() {
  if (auto folder = folder_of("XDG_CACHE_HOME", "")) return folder;
  return folder_of("HOME", "/.cache");
}

}  // namespace rosin::platform
