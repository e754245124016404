// IdleArenas: what runs have borrowed from a device and given back, kept for the next runs. An arena belongs to no
// plan: plans of about one size that take turns use the same one. Read next: buffer_pool.cpp, device_pool.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace rosin {

/// Bytes of idle arenas that a device keeps, where nothing else is said.
inline constexpr int64_t usual_arena_limit = int64_t{256} << 20;

/// A list of blocks with `bytes` and `next`. Not for threads: a pool's lock is held.
template <class Block> class IdleArenas {
 public:
  static constexpr size_t any = SIZE_MAX;

  /// The smallest arena of at least so many bytes and at most `most`, which leaves the list; or null. One that is
  /// preferred (it is only compared) goes before smaller ones.
  Block* take(size_t bytes, size_t most, const void* preferred = nullptr) noexcept {
    Block** best = nullptr;
    for (Block** at = &first_; *at; at = &(*at)->next) {
      const bool fits = (*at)->bytes >= bytes && (*at)->bytes <= most;
      if (!fits || (best && (*at)->bytes >= (*best)->bytes && *at != preferred)) continue;
      best = at;
      if (*at == preferred || (!preferred && (*at)->bytes == bytes)) break;
    }
    if (!best) return nullptr;
    Block* taken = *best;
    *best = taken->next;
    bytes_ -= static_cast<int64_t>(taken->bytes);
    return taken;
  }

  void put(Block* arena) noexcept {
    arena->next = first_;
    first_ = arena;
    bytes_ += static_cast<int64_t>(arena->bytes);
  }

  /// Those beyond the budget, used longest ago; the last two stay, whatever they take, so that two plans in turn find
  /// theirs again.
  Block* take_surplus() noexcept {
    if (bytes_ <= limit_) return nullptr;
    int64_t kept = 0, count = 0;
    Block** at = &first_;
    for (; *at && (count < always_kept || kept + static_cast<int64_t>((*at)->bytes) <= limit_); at = &(*at)->next) {
      kept += static_cast<int64_t>((*at)->bytes);
      ++count;
    }
    bytes_ = kept;
    return std::exchange(*at, nullptr);
  }

  Block* take_all() noexcept {
    bytes_ = 0;
    return std::exchange(first_, nullptr);
  }

  void set_limit(int64_t bytes) noexcept { limit_ = bytes; }
  int64_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr int64_t always_kept = 2;

  Block* first_ = nullptr;  // used last
  int64_t bytes_ = 0;
  int64_t limit_ = usual_arena_limit;
};

/// So much larger than what a run needs an arena may be: a small plan does not take the arena that a large one of
/// another thread is about to want.
inline size_t most_for_arena(size_t bytes) { return bytes > SIZE_MAX / 4 ? SIZE_MAX : 4 * bytes; }

}  // namespace rosin
