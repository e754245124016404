// files.hpp on Windows: opening, reading, mapping, folders. Read next: replacing_windows.cpp.
#include <windows.h>

#include <algorithm>

#include "platform/files.hpp"
#include "platform/windows.hpp"

namespace rosin::platform {
namespace {

constexpr DWORD shared_with_all = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

}  // namespace

std::error_code windows_error() { return {static_cast<int>(GetLastError()), std::system_category()}; }

std::error_code open_file(const std::string& name, const Opening& how, OpenFile& file) {
  SECURITY_ATTRIBUTES attributes{sizeof attributes, how.security, FALSE};
  const HANDLE opened =
      CreateFileW(wide_text(name).c_str(), how.access, how.shared, &attributes, how.creation, how.flags, nullptr);
  if (opened == INVALID_HANDLE_VALUE) return windows_error();
  file = OpenFile(reinterpret_cast<intptr_t>(opened));
  return {};
}

void OpenFile::close() noexcept {
  if (handle_ != none) CloseHandle(reinterpret_cast<HANDLE>(handle_));
  handle_ = none;
}

/// (A folder can be opened with the rights to back it up alone: so that the caller can say what it is.)
std::error_code open_to_read(const std::string& name, OpenFile& file) {
  return open_file(name, {GENERIC_READ, shared_with_all, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS}, file);
}

std::error_code facts_of(const OpenFile& file, FileFacts& facts) {
  facts = {};
  if (GetFileType(handle_of(file)) != FILE_TYPE_DISK) return {};
  BY_HANDLE_FILE_INFORMATION info;
  if (!GetFileInformationByHandle(handle_of(file), &info)) return windows_error();
  facts.kind = info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY ? FileKind::folder : FileKind::regular;
  facts.size = uint64_t{info.nFileSizeHigh} << 32 | info.nFileSizeLow;
  return {};
}

std::error_code read_at(const OpenFile& file, uint64_t offset, void* target, size_t count, size_t& got) {
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(offset);
  place.OffsetHigh = static_cast<DWORD>(offset >> 32);
  DWORD read = 0;
  const bool done = ReadFile(handle_of(file), target, portion(count), &read, &place);
  got = done ? read : 0;
  return done || GetLastError() == ERROR_HANDLE_EOF ? std::error_code() : windows_error();
}

std::error_code map_to_read(const OpenFile& file, uint64_t size, const unsigned char*& data) {
  const HANDLE mapping = CreateFileMappingW(handle_of(file), nullptr, PAGE_READONLY, 0, 0, nullptr);
  if (!mapping) return windows_error();
  void* const mapped = MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, static_cast<size_t>(size));
  const std::error_code error = mapped ? std::error_code() : windows_error();
  CloseHandle(mapping);  // the view holds it
  data = static_cast<const unsigned char*>(mapped);
  return error;
}

void unmap(const unsigned char* data, uint64_t) noexcept { UnmapViewOfFile(data); }

std::string trouble_with_private_folder(const std::string&) {
  return "whether a folder is closed to others is not asked on Windows";
}

std::error_code make_folder_for_user(const std::string& name) {
  const OwnersRights rights;
  SECURITY_ATTRIBUTES attributes{sizeof attributes, rights.security(), FALSE};
  const bool made = CreateDirectoryW(wide_text(name).c_str(), &attributes);
  return made || GetLastError() == ERROR_ALREADY_EXISTS ? std::error_code() : windows_error();
}

/// A file that the system removes when it is closed, in a process that ends too.
std::error_code try_to_hold_folder(const std::string& name, OpenFile& lock) {
  const Opening alone{GENERIC_WRITE, 0, CREATE_NEW, FILE_ATTRIBUTE_HIDDEN | FILE_FLAG_DELETE_ON_CLOSE};
  const std::error_code error = open_file(name + "/.rosin-lock", alone, lock);
  const int code = error.value();
  // (That one is being removed reads as a lack of rights.)
  const bool taken = code == ERROR_FILE_EXISTS || code == ERROR_SHARING_VIOLATION || code == ERROR_ACCESS_DENIED;
  return taken ? std::make_error_code(std::errc::operation_would_block) : error;
}

}  // namespace rosin::platform
