// Threads that sleep until a number changes.
#pragma once

#include <atomic>
#include <cstdint>

namespace rosin::platform {

/// Returns once the number is another than `old`, or now and then for nothing; who changes it wakes afterwards. All
/// accesses are sequentially consistent. (On Windows libstdc++ 12 loses calls of notify_one and notify_all.)
void wait_for_change(const std::atomic<uint32_t>& number, uint32_t old) noexcept;
void wake_one(std::atomic<uint32_t>& number) noexcept;
void wake_all(std::atomic<uint32_t>& number) noexcept;

}  // namespace rosin::platform
