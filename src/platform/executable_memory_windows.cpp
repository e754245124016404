// executable_memory.hpp on Windows.
#include "platform/executable_memory.hpp"

#include <windows.h>

#include <cstring>

namespace rosin::platform {

ExecutableMemory::ExecutableMemory(const void* code, size_t bytes) noexcept {
  SYSTEM_INFO system;
  GetSystemInfo(&system);
  bytes_ = (bytes + system.dwPageSize - 1) / system.dwPageSize * system.dwPageSize;
  void* memory = VirtualAlloc(nullptr, bytes_, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (!memory) return;
  std::memcpy(memory, code, bytes);
  DWORD before = 0;
  if (VirtualProtect(memory, bytes_, PAGE_EXECUTE_READ, &before)) {
    FlushInstructionCache(GetCurrentProcess(), memory, bytes_);
    code_ = memory;
  } else {
    VirtualFree(memory, 0, MEM_RELEASE);
  }
}

ExecutableMemory::~ExecutableMemory() {
  if (code_) VirtualFree(code_, 0, MEM_RELEASE);
}

}  // namespace rosin::platform
