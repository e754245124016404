// OpenDevice: one device of a plug-in in use: its streams, its memory, its kernels. Runs are given to one stream,
// copies to two others; work of one that needs what another has done is ordered behind its ticket (device_stream.hpp).
// Read first: include/rosin/backend.h. Read next: device_table.hpp (who opens them), device_run.hpp (a run on them),
// device_executor.hpp (plans), transfer.hpp (copies).
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <rosin/backend.h>

#include "run/device_kernels.hpp"
#include "run/device_pool.hpp"
#include "run/device_stream.hpp"
#include "run/index_flags.hpp"
#include "run/staging.hpp"

namespace rosin {

class OpenDevice {
 public:
  /// Error (device): it cannot be opened. `name`: "CUDA:0"; `index`: its position in the list of devices.
  OpenDevice(const rosin_backend& functions, int id, std::string name, int index);

  /// Made when it is first used.
  DeviceStream& stream(StreamKind kind) { return *streams_[static_cast<size_t>(kind)]; }
  DeviceStream& compute() { return stream(StreamKind::compute); }

  /// Waits until all work has ended. Error (backend): some of it failed; from then on the device is not used.
  void finish();
  /// The same, and throws what checks have found.
  void synchronize();
  /// A failure that the plug-in reports: poisons the device if it is a fault, and throws. Any thread.
  [[noreturn]] void fail(rosin_status status, std::string_view what);
  void check(rosin_status status, std::string_view what) {
    if (status != ROSIN_OK) fail(status, what);
  }
  /// Calls the plug-in, once more where that fails and the device is not lost: for what is given behind work that
  /// cannot be taken back.
  template <class Call> void insist(Call call, std::string_view what) {
    rosin_status status = call();
    if (status != ROSIN_OK && status != ROSIN_DEVICE_FAULT) status = call();
    check(status, what);
  }
  /// The device is not used any more, as a run was cut off that has overwritten some of what it reads.
  void give_up(const std::string& why);
  /// Error (backend): the device has failed before.
  void refuse_if_failed();
  /// The ops of each launch of the run that gets this ticket, for the message of a fault.
  void note(Ticket run, std::shared_ptr<const std::vector<std::string>> ops);
  /// Gives free memory back, and kernels that no plan uses.
  void trim();
  /// Unloads kernels that no plan uses, when all work has ended.
  void unload_kernels();
  /// Gives a call or a graph back, which work under way may still use: it goes when that has ended.
  void retire(rosin_call* call) noexcept { retire({call, nullptr, compute().last()}); }
  void retire(rosin_graph* graph) noexcept { retire({nullptr, graph, compute().last()}); }
  /// Copies host memory, which may be used again at once, into a block that nothing else uses. The copy runs beside
  /// other work, behind what the block's memory was used for; the ticket is that of the stream copy_in.
  Ticket upload(DeviceBlock& to, const void* from, size_t bytes);
  /// Copies a block to host memory: waits for what writes the block, and for nothing else. Throws what checks of runs
  /// up to that have found.
  void download(void* to, DeviceBlock& from, size_t bytes);

  const rosin_backend& functions;
  const std::string name;
  rosin_device_info info{};
  rosin_device* device = nullptr;

 private:
  struct Note {
    Ticket run;
    std::shared_ptr<const std::vector<std::string>> ops;
  };
  struct Retired {
    rosin_call* call;
    rosin_graph* graph;  // one of them
    Ticket used_by;
  };
  struct Piece;

  void retire(Retired retired) noexcept;
  template <class Over> void free_retired(Over is_over) noexcept;

  rosin_device* open(int id);
  void refuse_failed() const;
  std::string in_flight() const;
  void start_download(DeviceBlock& from, Piece& piece);
  void finish_download(void* to, const Piece& piece);

  std::array<std::unique_ptr<DeviceStream>, stream_kinds> streams_;
  Staging staged_in_{*this}, staged_out_{*this};
  std::mutex retiring_;
  std::vector<Retired> retired_;  // graphs come before the calls that stand in them
  std::mutex faults_;
  std::string fault_;  // why the device is not used any more
  std::array<Note, 8> last_runs_;
  size_t noted_ = 0;

 public:
  DevicePool pool;
  DeviceKernels kernels;
  IndexFlags flags{*this};
};

}  // namespace rosin
