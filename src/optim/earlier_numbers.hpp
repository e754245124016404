// EarlierNumbers: what rules count on the host, for steps on devices that may still be given up. Read next: update.cpp.
#pragma once

#include <vector>

#include <rosin/array.hpp>

#include "graph/memory.hpp"

namespace rosin {

/// Numbers that rules keep on the host (counters of steps), as they were before steps that may still be given up: a
/// device finds out beside the program whether a step holds.
class EarlierNumbers {
 public:
  /// The step in progress changes the number at this place of the state, which owns this object too.
  void keep(Array* place) { numbers_.push_back({Ticket(), place, *place}); }
  /// The step in progress is evaluated; it has changed this memory.
  void confirm(const Memory& changed);
  /// There is no step in progress any more.
  void drop() noexcept;
  /// Puts back what steps that were given up have changed, and forgets what holds. `memory`: of any parameter.
  void settle(const Memory& memory);

 private:
  struct Number {
    Ticket step;  // a fresh one: the step in progress
    Array* place;
    Array value;
  };
  std::vector<Number> numbers_;  // oldest first
};

}  // namespace rosin
