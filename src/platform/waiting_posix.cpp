// waiting.hpp on POSIX, where the standard library does it.
#include "platform/waiting.hpp"

namespace rosin::platform {

void wait_for_change(const std::atomic<uint32_t>& number, uint32_t old) noexcept { number.wait(old); }
void wake_one(std::atomic<uint32_t>& number) noexcept { number.notify_one(); }
void wake_all(std::atomic<uint32_t>& number) noexcept { number.notify_all(); }

}  // namespace rosin::platform
