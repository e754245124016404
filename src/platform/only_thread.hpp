// Whether the process has one thread.
#pragma once

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace rosin::platform {

/// Whether the process has no other thread. It stays so as long as the caller starts none. A system that does not say
/// may have some.
inline bool only_thread() noexcept {
#if __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded;
#else
  return false;
#endif
}

}  // namespace rosin::platform
