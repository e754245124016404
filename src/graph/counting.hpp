// Counts that several threads may change. A locked instruction costs as much as twenty plain ones, so a process that
// has one thread only does without, as std::shared_ptr does.
#pragma once

#include <atomic>

#include "platform/only_thread.hpp"

namespace rosin {

using platform::only_thread;

/// Adds (modulo 2^n) and gives what was there before.
template <class T> T add_to(std::atomic<T>& count, T more, std::memory_order order) noexcept {
  if (!only_thread()) return count.fetch_add(more, order);
  const T before = count.load(std::memory_order_relaxed);
  count.store(static_cast<T>(before + more), std::memory_order_relaxed);
  return before;
}

}  // namespace rosin
