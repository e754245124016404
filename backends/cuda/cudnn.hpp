// cuDNN, opened at run time: the convolutions that it computes for a device, and its handle for recurrent layers
// (cudnn_recurrent.hpp). Where it is missing, too old or does not work, rosin goes on with kernels of its own.
// Read first: cuda.hpp, cudnn_types.hpp. Read next: cudnn_plan.hpp.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cuda/cudnn_plan.hpp"
#include "driver/driver.hpp"
#include "vendor/found_once.hpp"

namespace rosin::cuda {

/// cuDNN on one device.
class Dnn {
 public:
  /// With the device's context current. A first convolution is planned and computed; reason() says where that fails.
  explicit Dnn(const rosin_device& device);
  ~Dnn();
  Dnn(const Dnn&) = delete;
  Dnn& operator=(const Dnn&) = delete;

  const std::string& reason() const { return reason_; }
  /// Whether a bias and relu go along with a convolution, and relu lets NaN through, as rosin's does.
  bool takes_epilogues() const { return takes_epilogues_; }
  /// Bytes, a small part of the device's memory.
  uint64_t large_room() const { return large_room_; }
  /// The ways of a call, found once: those that were found are kept. Throws ROSIN_UNSUPPORTED where there is none.
  template <class Call> std::shared_ptr<DnnWays> ways_of(const Call& call, uint64_t workspace) {
    return found_.of(key_of(call) + std::to_string(workspace),
                     [&] { return std::make_shared<DnnWays>(target(), graph_of(target(), call), workspace); });
  }
  /// Why it is not asked for attention; empty: it is. A small one is computed first, with its gradient, and must be
  /// right. With the device's context current.
  const std::string& attention_reason();
  /// Why it is not asked for recurrent layers; empty: it is. Small ones are computed first, with their gradients, and
  /// must be right. With the device's context current.
  const std::string& recurrent_reason();
  /// Gives work to the stream: `work` has the library's handle for itself, and gives a status of it.
  template <class Work> void use(driver::Stream stream, const char* what, Work&& work) {
    const std::lock_guard guard(running_);
    dnn_library().check(dnn_library().functions().set_stream(handle_, stream), "use of a stream");
    check(work(handle_), what);
  }
  /// Computes in one of them. `arrays`: of the call, in their order.
  void run(driver::Stream stream, const DnnWays& ways, size_t way, const driver::Address* arrays,
           driver::Address workspace);

 private:
  DnnTarget target() const;
  void try_out();
  static void check(int status, const char* what);

  dnn::Handle handle_ = nullptr;
  std::string kept_for_;  // the hardware
  std::string reason_;
  bool takes_epilogues_ = false;
  uint64_t large_room_ = 0;
  std::mutex trying_;
  std::optional<std::string> recurrent_reason_, attention_reason_;
  std::mutex running_;  // a handle has one stream at a time
  vendor::FoundOnce<DnnWays> found_;
};

/// That of the device, made when it is first asked for.
Dnn& dnn_of(rosin_device& device);

/// Who keeps plans from one process to the next; null: nobody.
extern const rosin_host* host_of_plans;

}  // namespace rosin::cuda
