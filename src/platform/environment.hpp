// What the system tells a process about itself and its user beside its arguments.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rosin::platform {

/// What parts the folders in a variable that lists some: `:`, on Windows `;`.
extern const char path_list_separator;

/// The value of an environment variable, in UTF-8; nothing where it is unset.
std::optional<std::string> environment_value(const char* name);

/// The names of all variables.
std::vector<std::string> environment_names();

/// Whether the process has rights that whoever set its environment lacks (a set-user-id program, for one).
bool has_more_rights_than_its_user();

/// The user's folders of settings and of what can be made again, both without a folder of rosin's own in them: on POSIX
/// XDG_CONFIG_HOME and XDG_CACHE_HOME, else .config and .cache in HOME; on Windows APPDATA and LOCALAPPDATA. Nothing
/// where these are no absolute paths, or in a process with more rights than its user has.
std::optional<std::string> settings_folder();
std::optional<std::string> remade_files_folder();

}  // namespace rosin::platform
