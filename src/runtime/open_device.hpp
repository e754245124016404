// OpenDevice: one device of a plug-in in use: its stream, its memory, its kernels. All work of a device is given to one
// stream, one caller at a time. Read first: include/rosin/backend.h. Read next: devices.hpp (who opens them),
// device_executor.hpp (plans), transfer.hpp (copies).
#pragma once

#include <array>
#include <mutex>
#include <string>

#include <rosin/backend.h>

#include "runtime/device_kernels.hpp"
#include "runtime/device_pool.hpp"

namespace rosin {

class OpenDevice {
 public:
  /// Error (device): it cannot be opened. `index`: its position in the list of devices.
  OpenDevice(const rosin_backend& functions, int id, int index);

  /// Held while work is given to the stream.
  class Turn {
   public:
    /// Error (backend): the device has failed before.
    explicit Turn(OpenDevice& device);

   private:
    std::unique_lock<std::mutex> lock_;
  };

  /// Waits until all work has ended. Error (backend): some of it failed; from then on the device is not used.
  void synchronize();
  /// The same for who has the turn.
  void settle(const Turn&);
  /// A failure that the plug-in reports: poisons the device if it is a fault, and throws.
  [[noreturn]] void fail(rosin_status status, std::string_view what);
  void check(rosin_status status, std::string_view what) {
    if (status != ROSIN_OK) fail(status, what);
  }
  /// Notes work for the message of a fault.
  void note(const std::string& ops);
  /// Gives free memory back, when nothing uses it.
  void trim();

  const rosin_backend& functions;
  const std::string name;  // "CUDA:0"
  rosin_device_info info{};
  rosin_device* device = nullptr;
  rosin_stream* stream = nullptr;

 private:
  static std::string name_of(const rosin_backend& functions, int id);
  rosin_device* open(int id);

  std::mutex turn_;
  std::string fault_;  // why the device is not used any more
  std::array<std::string, 8> in_flight_;
  size_t noted_ = 0;  // since the last time all work had ended

 public:
  DevicePool pool;
  DeviceKernels kernels;
};

}  // namespace rosin
