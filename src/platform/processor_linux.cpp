// processor.hpp on Linux.
#include "platform/processor.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <thread>

namespace rosin::platform {
namespace {

int threads_of_cgroup() {
  FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "re");
  if (!file) return 0;
  long long quota = 0, period = 0;
  const int read = std::fscanf(file, "%lld %lld", &quota, &period);
  std::fclose(file);
  return read == 2 && period > 0 ? static_cast<int>(std::ceil(static_cast<double>(quota) / static_cast<double>(period)))
                                 : 0;
}

}  // namespace

std::string processor_name() {
  std::ifstream facts("/proc/cpuinfo");
  for (std::string line; std::getline(facts, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(':');
    const size_t first = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    if (first != std::string::npos) return line.substr(first);
  }
  utsname names{};
  return uname(&names) == 0 ? std::string(names.machine) : std::string("unknown processor");
}

int available_threads() {
  cpu_set_t set;
  int count = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
  const int limit = threads_of_cgroup();
  if (limit > 0 && limit < count) count = limit;
  return count < 1 ? 1 : count;
}

/// (What sysconf says counts the caches of others too, on some virtual machines.)
int64_t last_cache_bytes() {
  std::ifstream size("/sys/devices/system/cpu/cpu0/cache/index3/size");
  int64_t kibibytes = 0;
  char unit = 0;
  return size >> kibibytes >> unit && unit == 'K' ? 1024 * kibibytes : 0;
}

int64_t memory_bytes() {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  int64_t container = 0;  // stays 0 where the file says "max" or is missing
  limit >> container;
  return container > 0 ? std::min(machine, container) : machine;
}

void prefer_large_pages(void* memory, size_t bytes) noexcept {
  constexpr uintptr_t page = uintptr_t{2} << 20;  // of x86-64, and of aarch64 with small ones of 4 KiB
  const auto begin = reinterpret_cast<uintptr_t>(memory), first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + bytes) / page * page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace rosin::platform
