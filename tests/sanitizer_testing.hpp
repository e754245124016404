// What sanitizers keep tests from.
#pragma once

namespace rosin {

// ThreadSanitizer allows no new threads in a forked child.
#ifdef __SANITIZE_THREAD__
constexpr bool child_may_start_threads = false;
#else
constexpr bool child_may_start_threads = true;
#endif

// Sanitizers look at their process in ways that one with the rights of several users does not allow, keep memory of
// their own, and end the process where there is no more of it.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool counts_memory = false;
constexpr bool runs_with_more_rights = false;
constexpr bool memory_may_run_out = false;
#else
constexpr bool counts_memory = true;
constexpr bool runs_with_more_rights = true;
constexpr bool memory_may_run_out = true;
#endif

}  // namespace rosin
