// waiting.hpp on Windows.
#include "platform/waiting.hpp"

#include <windows.h>

namespace rosin::platform {

void wait_for_change(const std::atomic<uint32_t>& number, uint32_t old) noexcept {
  static_assert(sizeof number == sizeof old);
  if (number.load() != old) return;
  WaitOnAddress(const_cast<std::atomic<uint32_t>*>(&number), &old, sizeof old, INFINITE);
}
void wake_one(std::atomic<uint32_t>& number) noexcept { WakeByAddressSingle(&number); }
void wake_all(std::atomic<uint32_t>& number) noexcept { WakeByAddressAll(&number); }

}  // namespace rosin::platform
