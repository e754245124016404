// executable_memory.hpp on POSIX.
#include "platform/executable_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace rosin::platform {

ExecutableMemory::ExecutableMemory(const void* code, size_t bytes) noexcept {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  bytes_ = (bytes + page - 1) / page * page;
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  std::memcpy(memory, code, bytes);
  if (mprotect(memory, bytes_, PROT_READ | PROT_EXEC) == 0) code_ = memory;
  else munmap(memory, bytes_);
}

ExecutableMemory::~ExecutableMemory() {
  if (code_) munmap(code_, bytes_);
}

}  // namespace rosin::platform
