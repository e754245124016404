// environment.hpp on Windows.
#include "platform/environment.hpp"

#include <windows.h>

#include "platform/paths.hpp"
#include "platform/windows.hpp"

namespace rosin::platform {
namespace {

std::optional<std::string> folder_of(const char* name) {
  std::optional<std::string> value = environment_value(name);
  return value && is_absolute(*value) ? value : std::nullopt;
}

}  // namespace

const char path_list_separator = ';';

std::optional<std::string> environment_value(const char* name) {
  const std::wstring wide = wide_text(name);
  SetLastError(ERROR_SUCCESS);
  const DWORD room = GetEnvironmentVariableW(wide.c_str(), nullptr, 0);
  if (room == 0) return GetLastError() == ERROR_SUCCESS ? std::optional<std::string>("") : std::nullopt;
  std::wstring value(room, L'\0');
  value.resize(GetEnvironmentVariableW(wide.c_str(), value.data(), room));
  return utf8_text(value);
}

std::vector<std::string> environment_names() {
  std::vector<std::string> names;
  wchar_t* const all = GetEnvironmentStringsW();
  for (const wchar_t* next = all; next && *next;) {
    const std::wstring_view variable(next);
    names.push_back(utf8_text(variable.substr(0, variable.find(L'='))));
    next += variable.size() + 1;
  }
  if (all) FreeEnvironmentStringsW(all);
  return names;
}

/// Windows has no programs that run with the rights of their owner.
bool has_more_rights_than_its_user() { return false; }

std::optional<std::string> settings_folder() { return folder_of("APPDATA"); }
std::optional<std::string> remade_files_folder() { return folder_of("LOCALAPPDATA"); }

}  // namespace rosin::platform
