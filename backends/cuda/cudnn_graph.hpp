// What plans are made of: a call as a graph of cuDNN's operations. Read first: cudnn_library.hpp,
// vendor/convolution.hpp, attention.hpp. Read next: cudnn_plan.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cuda/attention.hpp"
#include "cuda/cudnn_library.hpp"
#include "vendor/convolution.hpp"

namespace rosin::cuda {

using vendor::Convolution;

/// Which device plans are for: that of a handle, or one that is described and need not be there.
struct DnnTarget {
  const DnnLibrary* library = nullptr;
  dnn::Handle handle = nullptr;
  const DnnDescriptor* properties = nullptr;
  const rosin_host* host = nullptr;  // who keeps plans from one process to the next; null: nobody
  std::string kept_for;              // what plans depend on beside their graph: the hardware
};

struct DnnGraph {
  std::vector<DnnDescriptor> parts;                 // what it is made of, which lives as long; the graph is the last
  std::vector<std::pair<int64_t, int>> arrays;      // by the numbers that cuDNN is told, which of the call
  std::vector<std::pair<int64_t, float>> numbers;   // that are no arrays, in the same way
  std::vector<std::pair<int64_t, uint64_t>> rooms;  // bytes of what stands in the room of a run, before the plan's own
  std::vector<uint64_t> bytes;                      // that each array of the call reaches over
  std::string key;                                  // the same for equal calls
  std::string name;                                 // for messages
  int32_t type = ROSIN_FLOAT32;
  int32_t compute = ROSIN_COMPUTE_EXACT;
  bool deterministic = false;
  bool for_tensor_cores = false;  // engines of these come first
};

DnnGraph graph_of(const DnnTarget& target, const Convolution& convolution);
DnnGraph graph_of(const DnnTarget& target, const Attention& attention);

/// The same for equal calls.
std::string key_of(const Attention& attention);

dnn::Type dnn_type_of(int32_t type);

/// An array as graphs have it, finished. `inner`: it is stored nowhere.
DnnDescriptor dnn_tensor(const DnnLibrary& library, int64_t id, dnn::Type type, const Tensor& from, bool inner = false);

}  // namespace rosin::cuda
