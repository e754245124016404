// DeviceRun: one run of a plan while it is given to a device: it has the turn of the compute stream, is ordered behind
// what its memory waits for, and tells that memory its ticket, or that of the mark behind which it is written.
// Read first: open_device.hpp, device_marks.hpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/device.hpp"
#include "run/device_marks.hpp"
#include "run/open_device.hpp"

namespace rosin {

class DeviceRun {
 public:
  /// `ops`: of each launch, for the message of a fault; `marks`: how many the run gets. Error (backend): the device has
  /// failed before.
  DeviceRun(OpenDevice& device, const plan::RunMemory& memory, std::shared_ptr<const std::vector<std::string>> ops,
            size_t marks);
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;
  /// Where the run was not finished: what it was given uses its memory all the same.
  ~DeviceRun();

  /// The run reads it too, whoever else does.
  void reads(const DeviceBlock& block) { stream_.order_to_read(block); }
  /// What has been given so far writes this: its readers wait for no more. Error (backend).
  void mark(std::span<const DeviceMarks::Written> written);
  /// All is given to the stream. The ticket is the run's.
  Ticket finish();

 private:
  void tell(Ticket ticket) const noexcept;

  OpenDevice& device_;
  DeviceStream& stream_;
  const plan::RunMemory& memory_;
  DeviceStream::Turn turn_;
  struct Early {
    Memory* memory;
    Ticket written_by;
  };
  std::vector<Early> early_;
  bool finished_ = false;
};

}  // namespace rosin
