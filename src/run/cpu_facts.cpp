// Reads the facts where Linux shows them; other systems get the plain answers of POSIX.
#include "run/cpu_facts.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace rosin {

std::string cpu_name() {
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

int64_t cpu_memory() {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  std::ifstream limit("/sys/fs/cgroup/memory.max");
  int64_t container = 0;  // stays 0 where the file says "max" or is missing
  limit >> container;
  return container > 0 ? std::min(machine, container) : machine;
}

}  // namespace rosin
