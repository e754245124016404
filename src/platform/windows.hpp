// What the files for Windows share: texts, which its functions take as UTF-16, its errors and handles. Only they
// include this.
#pragma once

#include <windows.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>

#include "platform/files.hpp"
#include "platform/paths.hpp"

namespace rosin::platform {

inline std::wstring wide_text(std::string_view utf8) { return path_of(utf8).wstring(); }

inline std::string utf8_text(std::wstring_view wide) { return name_of(wide); }

/// The last error of this thread's calls of the system.
std::error_code windows_error();

inline HANDLE handle_of(const OpenFile& file) { return reinterpret_cast<HANDLE>(file.handle()); }

/// What CreateFileW is told.
struct Opening {
  DWORD access, shared, creation, flags;
  void* security = nullptr;
};
std::error_code open_file(const std::string& name, const Opening& how, OpenFile& file);

/// What one call reads or writes of so many bytes.
inline DWORD portion(size_t count) { return static_cast<DWORD>(std::min<size_t>(count, size_t{1} << 30)); }

/// The rights of a file or folder that its owner alone may use.
class OwnersRights {
 public:
  OwnersRights();
  OwnersRights(const OwnersRights&) = delete;
  OwnersRights& operator=(const OwnersRights&) = delete;
  ~OwnersRights() { LocalFree(security_); }
  /// Null where the system does not have such rights.
  void* security() const { return security_; }

 private:
  void* security_ = nullptr;
};

}  // namespace rosin::platform
