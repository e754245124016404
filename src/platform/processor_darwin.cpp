// processor.hpp on macOS.
#include "platform/processor.hpp"

#include <sys/sysctl.h>

#include <thread>

namespace rosin::platform {

std::string processor_name() {
  size_t bytes = 0;
  if (sysctlbyname("machdep.cpu.brand_string", nullptr, &bytes, nullptr, 0) != 0) return "unknown processor";
  std::string name(bytes, '\0');
  if (sysctlbyname("machdep.cpu.brand_string", name.data(), &bytes, nullptr, 0) != 0) return "unknown processor";
  return name.c_str();  // without the zero at its end
}

int available_threads() {
  const int count = static_cast<int>(std::thread::hardware_concurrency());
  return count < 1 ? 1 : count;
}

int64_t last_cache_bytes() {
  int64_t bytes = 0;
  size_t size = sizeof bytes;
  return sysctlbyname("hw.l3cachesize", &bytes, &size, nullptr, 0) == 0 ? bytes : 0;
}

int64_t memory_bytes() {
  int64_t bytes = 0;
  size_t size = sizeof bytes;
  return sysctlbyname("hw.memsize", &bytes, &size, nullptr, 0) == 0 ? bytes : 0;
}

void prefer_large_pages(void*, size_t) noexcept {}

}  // namespace rosin::platform
