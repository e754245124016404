// Names of files: the library's are UTF-8, those of std::filesystem what the system has.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace rosin::platform {

/// The path that a UTF-8 name means. (Of a plain string std::filesystem would take the code page on Windows.)
inline std::filesystem::path path_of(std::string_view name) {
  return std::u8string_view(reinterpret_cast<const char8_t*>(name.data()), name.size());
}

/// The name of a path in UTF-8.
inline std::string name_of(const std::filesystem::path& path) {
  const std::u8string name = path.u8string();
  return {reinterpret_cast<const char*>(name.data()), name.size()};
}

/// Whether the name begins at a root: "/tmp", on Windows "C:\Users" too.
inline bool is_absolute(std::string_view name) { return path_of(name).is_absolute(); }

/// Whether there is anything of that name, as far as this process may know.
inline bool is_there(std::string_view name) {
  std::error_code ignored;
  return std::filesystem::exists(path_of(name), ignored);
}

}  // namespace rosin::platform
