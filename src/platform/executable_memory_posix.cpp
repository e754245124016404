// executable_memory.hpp on POSIX.
#include "platform/executable_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace rosin::platform {
namespace {

/// Opened for this process once; a child that was forked has a number of its own, and no file.
int map_file() {
  static const pid_t process = getpid();
  static const int file = [] {
    const std::string path = "/tmp/perf-" + std::to_string(process) + ".map";
    const int opened = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat facts {};
    if (opened < 0 || (fstat(opened, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid()))
      return opened;
    close(opened);
    return -1;
  }();
  return getpid() == process ? file : -1;
}

}  // namespace

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

void name_machine_code(const ExecutableMemory& memory, const char* name) {
  const int file = map_file();
  if (file < 0) return;
  char place[64];
  const int length =
      std::snprintf(place, sizeof place, "%llx %zx ",
                    static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(memory.code())), memory.bytes());
  const std::string line = std::string(place, static_cast<size_t>(length)) + name + "\n";
  if (write(file, line.data(), line.size()) < 0) return;  // a full disk costs a name
}

}  // namespace rosin::platform
