// files.hpp on Windows: what it takes to replace a file. A file that is being written is held by being open: nobody can
// open it for himself alone meanwhile.
#include <aclapi.h>
#include <sddl.h>
#include <windows.h>

#include <cstring>
#include <vector>

#include "platform/files.hpp"
#include "platform/windows.hpp"

namespace rosin::platform {
namespace {

/// Where links lead.
std::error_code final_name(const OpenFile& file, std::string& name) {
  std::wstring final(32768, L'\0');  // the longest path that Windows has
  final.resize(GetFinalPathNameByHandleW(handle_of(file), final.data(), static_cast<DWORD>(final.size()), 0));
  if (final.empty()) return windows_error();
  name = utf8_text(final);
  return {};
}

/// Renames as POSIX does: whoever has the old file open keeps it. Windows 10 and later, on NTFS.
bool rename_like_posix(HANDLE file, const std::wstring& to) {
  constexpr DWORD replace_like_posix = 0x1 | 0x2;  // FILE_RENAME_FLAG_REPLACE_IF_EXISTS, ..._POSIX_SEMANTICS
  constexpr auto rename_with_flags = static_cast<FILE_INFO_BY_HANDLE_CLASS>(22);  // FileRenameInfoEx
  std::vector<unsigned char> memory(sizeof(FILE_RENAME_INFO) + to.size() * sizeof(wchar_t));
  auto* const info = reinterpret_cast<FILE_RENAME_INFO*>(memory.data());
  std::memcpy(memory.data(), &replace_like_posix, sizeof replace_like_posix);
  info->FileNameLength = static_cast<DWORD>(to.size() * sizeof(wchar_t));
  std::memcpy(info->FileName, to.data(), info->FileNameLength);
  return SetFileInformationByHandle(file, rename_with_flags, info, static_cast<DWORD>(memory.size()));
}

}  // namespace

OwnersRights::OwnersRights() {
  if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(L"D:P(A;OICI;FA;;;OW)", SDDL_REVISION_1, &security_,
                                                            nullptr)) {
    security_ = nullptr;
  }
}

Refusal look_at_old_file(const std::string& name, OldFile& old) {
  old.name = name;
  const DWORD attributes = GetFileAttributesW(wide_text(name).c_str());
  if (attributes == INVALID_FILE_ATTRIBUTES) {
    const std::error_code error = windows_error();
    if (error.value() == ERROR_FILE_NOT_FOUND || error.value() == ERROR_PATH_NOT_FOUND) return {};
    return {"its name cannot be used", error};
  }
  old.is_there = true;
  OpenFile file;
  FileFacts facts;
  const Opening look{FILE_READ_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, OPEN_EXISTING,
                     FILE_FLAG_BACKUP_SEMANTICS};
  const bool is_link = attributes & FILE_ATTRIBUTE_REPARSE_POINT;
  if (const std::error_code error = open_file(name, look, file)) {
    return {is_link ? "it is a symbolic link that leads nowhere; remove or mend it" : "it cannot be looked at", error};
  }
  if (const std::error_code error = facts_of(file, facts)) return {"it cannot be looked at", error};
  if (facts.kind == FileKind::folder) return {"it is a directory"};
  if (facts.kind != FileKind::regular) return {"it is not a regular file"};
  if (attributes & FILE_ATTRIBUTE_READONLY) return {"it is read-only; allow writing or choose another name"};
  if (!is_link) return {};
  const std::error_code error = final_name(file, old.name);
  return error ? Refusal{"the file that it leads to cannot be looked at", error} : Refusal{};
}

std::error_code make_file(const std::string& name, NewFileAccess access, OpenFile& file) {
  const OwnersRights rights;
  const bool alone = access == NewFileAccess::owner_only;
  if (alone && !rights.security()) return std::make_error_code(std::errc::not_supported);
  return open_file(name,
                   {GENERIC_WRITE | DELETE | WRITE_DAC, FILE_SHARE_READ | FILE_SHARE_DELETE, CREATE_NEW,
                    FILE_ATTRIBUTE_NORMAL, alone ? rights.security() : nullptr},
                   file);
}

Refusal take_over_rights(const OpenFile& file, const OldFile& old) {
  ACL* list = nullptr;
  PSECURITY_DESCRIPTOR holder = nullptr;
  SECURITY_DESCRIPTOR_CONTROL control = 0;
  DWORD revision = 0;
  DWORD status = GetNamedSecurityInfoW(wide_text(old.name).c_str(), SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, nullptr,
                                       nullptr, &list, nullptr, &holder);
  if (status == ERROR_SUCCESS && GetSecurityDescriptorControl(holder, &control, &revision)) {
    const DWORD inherits =
        control & SE_DACL_PROTECTED ? PROTECTED_DACL_SECURITY_INFORMATION : UNPROTECTED_DACL_SECURITY_INFORMATION;
    status = SetSecurityInfo(handle_of(file), SE_FILE_OBJECT, DACL_SECURITY_INFORMATION | inherits, nullptr, nullptr,
                             list, nullptr);
  }
  LocalFree(holder);
  if (status == ERROR_SUCCESS) return {};
  return {"its permissions cannot be kept", {static_cast<int>(status), std::system_category()}};
}

std::error_code write_all(const OpenFile& file, const void* bytes, size_t count) {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    DWORD written = 0;
    if (!WriteFile(handle_of(file), next, portion(count), &written, nullptr)) return windows_error();
    next += written;
    count -= written;
  }
  return {};
}

std::error_code flush(const OpenFile& file) {
  return FlushFileBuffers(handle_of(file)) ? std::error_code() : windows_error();
}

/// Where renaming is not POSIX's, a file that somebody has open is not replaced: who reads it is soon done with it.
std::error_code rename_open_file(const OpenFile& file, const std::string& from, const std::string& to) {
  constexpr int most_tries = 200;
  constexpr DWORD pause = 5;  // ms
  const std::wstring old_name = wide_text(from), name = path_of(to).make_preferred().wstring();
  for (int tries = 1;; ++tries) {
    if (rename_like_posix(handle_of(file), name)) return {};
    if (MoveFileExW(old_name.c_str(), name.c_str(), MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH)) return {};
    const std::error_code error = windows_error();
    const bool is_open = error.value() == ERROR_ACCESS_DENIED || error.value() == ERROR_SHARING_VIOLATION;
    if (!is_open || tries == most_tries) return error;
    Sleep(pause);
  }
}

/// (NTFS keeps a journal of names; a folder cannot be flushed.)
std::error_code flush_folder(const std::string&) { return {}; }

void remove_if_abandoned(const std::string& name) {
  OpenFile alone;
  static_cast<void>(
      open_file(name, {DELETE, 0, OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT | FILE_FLAG_DELETE_ON_CLOSE}, alone));
}

void remove_file(const std::string& name) noexcept { DeleteFileW(wide_text(name).c_str()); }

}  // namespace rosin::platform
