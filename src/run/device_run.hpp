// DeviceRun: one run of a plan while it is given to a device: it has the turn of the compute stream, is ordered behind
// what its memory waits for, and tells that memory its ticket. Read first: open_device.hpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plan/device.hpp"
#include "run/open_device.hpp"

namespace rosin {

class DeviceRun {
 public:
  /// `ops`: of each launch, for the message of a fault. Error (backend): the device has failed before.
  DeviceRun(OpenDevice& device, const plan::RunMemory& memory, std::shared_ptr<const std::vector<std::string>> ops);
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;
  /// Where the run was not finished: what it was given uses its memory all the same.
  ~DeviceRun();

  /// The run reads it too, whoever else does.
  void reads(const DeviceBlock& block) { stream_.order_to_read(block); }
  /// All is given to the stream. The ticket is the run's.
  Ticket finish();

 private:
  void tell(Ticket ticket) const noexcept;

  OpenDevice& device_;
  DeviceStream& stream_;
  const plan::RunMemory& memory_;
  DeviceStream::Turn turn_;
  bool finished_ = false;
};

}  // namespace rosin
