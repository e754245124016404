// What a thread does between two looks at something that another thread is about to change.
#pragma once

namespace rosin {

/// Lets the processor's other thread run, and saves power.
inline void pause_processor() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace rosin
