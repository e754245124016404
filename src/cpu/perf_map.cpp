// See perf_map.hpp.
#include "cpu/perf_map.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

#include "base/environment.hpp"

namespace rosin::cpu {
namespace {

/// Opened for this process once; a child that was forked has a number of its own, and no file.
int map_file() {
  static const pid_t process = getpid();
  static const int file = [] {
    if (!environment_switch(Setting::perf_map).value_or(false)) return -1;
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

void tell_perf(const void* code, size_t bytes, const std::string& name) {
  const int file = map_file();
  if (file < 0) return;
  char place[64];
  const int length = std::snprintf(place, sizeof place, "%llx %zx ",
                                   static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(code)), bytes);
  const std::string line = std::string(place, static_cast<size_t>(length)) + name + "\n";
  if (write(file, line.data(), line.size()) < 0) return;  // a full disk costs a name
}

}  // namespace rosin::cpu
