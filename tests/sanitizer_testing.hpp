// What sanitizers and emulators keep tests from.
#pragma once

#include <cstdlib>

namespace rosin {

// The command that runs the programs of another processor here; tests that start one put it in front.
inline const bool emulated = std::getenv("ROSIN_TEST_EMULATOR") != nullptr;

// ThreadSanitizer allows no new threads in a forked child, and qemu fails to make them.
#ifdef __SANITIZE_THREAD__
constexpr bool child_may_start_threads = false;
#else
inline const bool child_may_start_threads = !emulated;
#endif

// They look at their process in ways that one with the rights of several users does not allow, and keep memory of their
// own; sanitizers end the process where there is no more of it.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool counts_memory = false;
constexpr bool runs_with_more_rights = false;
constexpr bool memory_may_run_out = false;
#else
inline const bool counts_memory = !emulated;
inline const bool runs_with_more_rights = !emulated;
constexpr bool memory_may_run_out = true;
#endif

}  // namespace rosin
