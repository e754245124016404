// processor.hpp on Windows.
#include "platform/processor.hpp"

#include <windows.h>

#include <algorithm>
#include <bit>

#include "platform/windows.hpp"

namespace rosin::platform {
namespace {

/// What a job object, as containers are, leaves of the machine's memory.
uint64_t memory_of_job(uint64_t machine) {
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits{};
  if (!QueryInformationJobObject(nullptr, JobObjectExtendedLimitInformation, &limits, sizeof limits, nullptr)) {
    return machine;
  }
  const DWORD flags = limits.BasicLimitInformation.LimitFlags;
  if (flags & JOB_OBJECT_LIMIT_PROCESS_MEMORY) machine = std::min<uint64_t>(machine, limits.ProcessMemoryLimit);
  if (flags & JOB_OBJECT_LIMIT_JOB_MEMORY) machine = std::min<uint64_t>(machine, limits.JobMemoryLimit);
  return machine;
}

}  // namespace

std::string processor_name() {
  wchar_t name[256];
  DWORD bytes = sizeof name;
  const LSTATUS status = RegGetValueW(HKEY_LOCAL_MACHINE, L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0",
                                      L"ProcessorNameString", RRF_RT_REG_SZ, nullptr, name, &bytes);
  return status == ERROR_SUCCESS ? utf8_text(name) : "unknown processor";
}

/// Of the process's own group of up to 64: more take part only where a thread is moved to another group.
int available_threads() {
  DWORD_PTR ours = 0, all = 0;
  if (!GetProcessAffinityMask(GetCurrentProcess(), &ours, &all)) return 1;
  return std::max(1, std::popcount(static_cast<uint64_t>(ours)));
}

int64_t last_cache_bytes() { return 0; }

int64_t memory_bytes() {
  MEMORYSTATUSEX memory{};
  memory.dwLength = sizeof memory;
  return GlobalMemoryStatusEx(&memory) ? static_cast<int64_t>(memory_of_job(memory.ullTotalPhys)) : 0;
}

void prefer_large_pages(void*, size_t) noexcept {}

}  // namespace rosin::platform
