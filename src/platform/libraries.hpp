// Shared libraries that are opened at run time.
#pragma once

#include <string>
#include <string_view>

namespace rosin::platform {

/// How files of such libraries end: ".so", also on macOS, where plug-ins are built as modules; ".dll" on Windows.
extern const std::string_view library_suffix;

/// Opens a library, which stays open. Null with `reason` where that fails.
void* open_library(const std::string& path, std::string& reason);

/// A function of an open library; null where it has none of that name.
void* library_function(void* library, const char* name);

/// The file of the library (or program) that holds this code, as the system names it; empty where it does not say.
std::string file_of_this_library();

}  // namespace rosin::platform
