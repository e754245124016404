// code_names.hpp for perf: its map of names, and the file that its documentation calls jitdump
// (tools/perf/Documentation/jitdump-specification.txt of Linux).
#include "platform/code_names.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <mutex>

#include "platform/posix.hpp"

namespace rosin::platform {
namespace {

/// A file of this process, or why there is none.
struct NamesFile {
  pid_t process = getpid();
  int descriptor = -1;
  std::error_code error;

  bool is_of_parent() const { return getpid() != process; }
  std::error_code fail(std::error_code why) {
    if (descriptor >= 0) close(descriptor);
    descriptor = -1;
    return error = why;
  }
};

NamesFile open_map() {
  NamesFile file;
  const std::string path = "/tmp/perf-" + std::to_string(file.process) + ".map";
  file.descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file.descriptor < 0) return file.error = last_error(), file;
  struct stat facts {};
  if (fstat(file.descriptor, &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_uid != geteuid())
    file.fail(std::make_error_code(std::errc::permission_denied));
  return file;
}

// What stands in a jitdump file, in the bytes of this machine.

struct DumpHeader {
  uint32_t magic = 0x4A695444, version = 1, bytes = sizeof(DumpHeader), machine = EM_X86_64, padding = 0, process = 0;
  uint64_t time = 0, flags = 0;
};

struct LoadedCode {
  uint32_t kind = 0, bytes = 0;
  uint64_t time = 0;
  uint32_t process = 0, thread = 0;
  uint64_t address = 0, code_address = 0, code_bytes = 0, number = 0;
};
static_assert(sizeof(DumpHeader) == 40 && sizeof(LoadedCode) == 56);

/// Of the clock of `perf record -k 1`, in nanoseconds.
uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

/// perf learns of the file by a mapping of it that may be executed, which stays.
NamesFile open_dump() {
  NamesFile file;
  const std::string path = "jit-" + std::to_string(file.process) + ".dump";
  unlink(path.c_str());
  file.descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file.descriptor < 0) return file.error = last_error(), file;
  DumpHeader header;
  header.process = static_cast<uint32_t>(file.process);
  header.time = now();
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (write(file.descriptor, &header, sizeof header) != sizeof header ||
      mmap(nullptr, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.descriptor, 0) == MAP_FAILED) {
    file.fail(last_error());
    unlink(path.c_str());
  }
  return file;
}

std::mutex dump_lock;

}  // namespace

std::error_code add_to_perf_map(const NamedCode& code) {
  static const NamesFile file = open_map();
  if (file.is_of_parent() || file.error) return file.is_of_parent() ? std::error_code() : file.error;
  char place[64];
  const int length = std::snprintf(place, sizeof place, "%zx %zx ", reinterpret_cast<size_t>(code.code), code.bytes);
  const std::string line = std::string(place, static_cast<size_t>(length)) + code.name + "\n";
  return write(file.descriptor, line.data(), line.size()) < 0 ? last_error() : std::error_code();
}

std::error_code add_to_jitdump(const NamedCode& code) {
  static NamesFile file = open_dump();
  static uint64_t number = 0;
  if (file.is_of_parent()) return {};
  std::lock_guard lock(dump_lock);
  if (file.error) return file.error;
  LoadedCode head;
  head.bytes = static_cast<uint32_t>(sizeof head + code.name.size() + 1 + code.bytes);
  head.time = now();
  head.process = static_cast<uint32_t>(file.process);
  head.thread = static_cast<uint32_t>(syscall(SYS_gettid));
  head.address = head.code_address = reinterpret_cast<uintptr_t>(code.code);
  head.code_bytes = code.bytes;
  head.number = number++;
  const iovec parts[] = {{&head, sizeof head},
                         {const_cast<char*>(code.name.c_str()), code.name.size() + 1},
                         {const_cast<void*>(code.code), code.bytes}};
  const ssize_t written = writev(file.descriptor, parts, 3);
  if (written == static_cast<ssize_t>(head.bytes)) return {};
  // What follows a part of a record would not be read.
  return file.fail(written < 0 ? last_error() : std::make_error_code(std::errc::no_space_on_device));
}

}  // namespace rosin::platform
