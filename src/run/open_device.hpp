// OpenDevice: one device of a plug-in in use: its stream, its memory, its kernels. All work of a device is given to one
// stream, one caller at a time. Read first: include/rosin/backend.h. Read next: device_table.hpp (who opens them),
// device_executor.hpp (plans), transfer.hpp (copies).
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <vector>

#include <rosin/backend.h>

#include "run/device_kernels.hpp"
#include "run/device_pool.hpp"

namespace rosin {

class OpenDevice {
 public:
  /// Error (device): it cannot be opened. `name`: "CUDA:0"; `index`: its position in the list of devices.
  OpenDevice(const rosin_backend& functions, int id, std::string name, int index);

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
  /// Gives free memory back, and kernels that no plan uses.
  void trim();
  /// Unloads kernels that no plan uses, when all work has ended.
  void unload_kernels();
  /// Gives a call back, which work under way may still use: it goes when that has ended.
  void retire(rosin_call* call) noexcept;
  /// Copies host memory, which may be used again at once, into a block that nothing else uses. The copy runs beside
  /// other work; who uses the block calls `arrived` first.
  void upload(DeviceBlock& to, const void* from, size_t bytes);
  /// Work given to the stream from now on sees what was copied into the block. For who has the turn.
  void arrived(DeviceBlock& block) {
    if (block.arriving) wait_for(block);
  }

  const rosin_backend& functions;
  const std::string name;
  rosin_device_info info{};
  rosin_device* device = nullptr;
  rosin_stream* stream = nullptr;

 private:
  /// Pinned memory that one copy after the other goes through.
  struct Staging {
    void* memory = nullptr;
    size_t bytes = 0;
    SharedEvent copied;
  };

  Staging& next_staging(size_t bytes);
  void wait_for(DeviceBlock& block);

  rosin_device* open(int id);

  std::mutex turn_;
  std::mutex retiring_;
  std::vector<rosin_call*> retired_;
  std::mutex uploading_;
  rosin_stream* copy_stream_ = nullptr;
  rosin_event* used_ = nullptr;  // what the block was used for before
  std::array<Staging, 4> staging_;
  size_t next_staging_ = 0;
  std::string fault_;  // why the device is not used any more
  std::array<std::string, 8> in_flight_;
  size_t noted_ = 0;  // since the last time all work had ended

 public:
  DevicePool pool;
  DeviceKernels kernels;
};

}  // namespace rosin
