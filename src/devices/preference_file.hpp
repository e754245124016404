// The preference file: which one it is, its text, and a change of one key that no other writer can undo unseen.
// Read next: preference_file.cpp, toml_text.hpp (what is changed), preferences.hpp (what the keys mean).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "devices/toml_text.hpp"

namespace rosin {

/// The file that is read: the first that exists of ROSIN_PREFERENCES, LocalPreferences.toml in the working folder, and
/// rosin/LocalPreferences.toml in the user's folder of settings. A ROSIN_PREFERENCES that names nothing is warned
/// about.
std::optional<std::string> preference_file();

/// The whole text of a file. Error (io): it cannot be read, or is far larger than a preference file.
std::string preference_text(const std::string& path);

/// Sets a key of table [rosin], or removes it, in the file that ROSIN_PREFERENCES names, else in the one that is read,
/// else in a new one in the working folder. All other bytes stay; readers see the old file or the new one. Writers on
/// this machine wait for each other. Errors (io): the file or its folder cannot be written; (argument): it is malformed
/// or its form allows no such change. Then nothing has changed.
void write_preference(const std::string& key, std::optional<TomlValue> value);

}  // namespace rosin
