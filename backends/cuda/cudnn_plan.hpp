// From a convolution to plans of cuDNN: its graph of operations, the engines that cuDNN names for it, of which those
// are left out that change numbers more than the call allows, and plans, each built when it is first wanted. Read
// first: convolution.hpp, cudnn_library.hpp. Read next: cudnn.hpp.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cuda/convolution.hpp"
#include "cuda/cudnn_library.hpp"

namespace rosin::cuda {

/// Which device plans are for: that of a handle, or one that is described and need not be there.
struct DnnTarget {
  const DnnLibrary* library = nullptr;
  dnn::Handle handle = nullptr;
  const DnnDescriptor* properties = nullptr;
};

/// The ways of computing a convolution, the one that cuDNN thinks fastest first. Used from any thread.
class DnnWays {
 public:
  /// Throws ROSIN_UNSUPPORTED where cuDNN has none.
  DnnWays(const DnnTarget& target, const Convolution& convolution, uint64_t workspace);

  const Convolution& convolution() const { return convolution_; }
  size_t count() const { return ways_.size(); }
  /// Whether there is a plan for a way, which is built now: cuDNN may refuse, and it may need too much room.
  bool build(size_t way);
  /// The first way that has a plan. Throws ROSIN_UNSUPPORTED where none has.
  size_t first();
  /// What tells a way from others in every process with this cuDNN on this kind of device: its engine and settings.
  uint64_t mark(size_t way) const { return ways_[way].mark; }
  // Of ways that were built:
  uint64_t workspace(size_t way) const { return ways_[way].workspace; }
  dnn::Descriptor plan(size_t way) const { return ways_[way].plan->get(); }

 private:
  struct Way {
    DnnDescriptor configuration;
    uint64_t mark = 0;
    bool tried = false;
    std::unique_ptr<DnnDescriptor> plan;
    uint64_t workspace = 0;
  };

  void find(dnn::HeuristicMode mode);
  bool allows(const DnnDescriptor& engine) const;

  const DnnLibrary& library_;
  dnn::Handle handle_;
  const DnnDescriptor* properties_;
  Convolution convolution_;
  uint64_t workspace_limit_;
  std::vector<DnnDescriptor> parts_;  // the graph is the last
  std::mutex building_;
  std::vector<Way> ways_;
};

/// The arrays that a plan reads and writes, by the numbers that cuDNN is told.
std::vector<std::pair<int64_t, const Tensor*>> tensors_of(const Convolution& convolution);

/// The same for equal convolutions.
std::string key_of(const Convolution& convolution);

}  // namespace rosin::cuda
