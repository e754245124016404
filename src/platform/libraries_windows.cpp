// libraries.hpp on Windows.
#include "platform/libraries.hpp"

#include <windows.h>

#include "platform/windows.hpp"

namespace rosin::platform {

const std::string_view library_suffix = ".dll";

/// What the library itself needs is looked for in its own folder and in the system's, never in the current one.
void* open_library(const std::string& path, std::string& reason) {
  const std::wstring file = path_of(path).make_preferred().wstring();
  const HMODULE library =
      LoadLibraryExW(file.c_str(), nullptr, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
  if (!library) reason = windows_error().message();
  return reinterpret_cast<void*>(library);
}

void* library_function(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name));
}

std::string file_of_this_library() {
  constexpr DWORD by_address = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  HMODULE self = nullptr;
  if (!GetModuleHandleExW(by_address, reinterpret_cast<const wchar_t*>(&file_of_this_library), &self)) return {};
  std::wstring name(32768, L'\0');  // the longest path that Windows has
  name.resize(GetModuleFileNameW(self, name.data(), static_cast<DWORD>(name.size())));
  return utf8_text(name);
}

}  // namespace rosin::platform
