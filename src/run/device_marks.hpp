// DeviceMarks: where a run on a device gets a ticket before its end, as some of its results are wanted early: behind
// the last step that writes results of a group. Read first: device_steps.hpp. Read next: device_run.hpp.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "run/device_steps.hpp"

namespace rosin {

class DeviceMarks {
 public:
  /// Of a run with this memory, whose listener says what it wants; without one, none.
  DeviceMarks(const DeviceSteps& steps, const plan::RunMemory& memory);

  /// Numbers of steps, ascending: a mark stands behind so many. None at the end of the run, which has a ticket anyway.
  std::span<const size_t> cuts() const { return cuts_; }
  struct Written {
    size_t steps;
    Memory* memory;
  };
  /// What is wanted of the groups that are written once so many steps are over, and were not before.
  std::span<const Written> written_at(size_t steps) const;

 private:
  std::vector<Written> written_;  // by steps
  std::vector<size_t> cuts_;
};

}  // namespace rosin
