// From the description of a convolution to what a library (cuDNN, MIOpen) is told: tensors of (batch, channels, spatial
// dims from the slowest) and a window. No library is called here.
// Read first: rosin/backend.h (Vendor calls). Read next: cuda/cudnn_graph.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rosin/backend.h>

namespace rosin::vendor {

/// An array as the library sees it. Weights are (out, in / groups, spatial dims).
struct Tensor {
  std::vector<int64_t> sizes, strides;
  int at = -1;  // which array of the call it is
};

/// How the dims of an array without gaps follow each other: channels, spatial ones, batch; or spatial ones, channels,
/// batch.
enum class DimOrder { channels_first, planes };

/// Such an array.
Tensor tensor_in(const std::vector<int64_t>& sizes, DimOrder order, int at);
/// Whether an array lies so; dims of one element lie anywhere.
bool lies(const Tensor& tensor, DimOrder order);

/// y = activation(x * w + bias), or the gradient of x * w by x or w: one of the three is the result.
struct Convolution {
  int32_t kind = ROSIN_CALL_CONVOLUTION;
  int32_t type = ROSIN_FLOAT32;
  int32_t compute = ROSIN_COMPUTE_EXACT;
  bool deterministic = false;
  bool flipped = false;
  bool relu = false;
  Tensor x, w, y;
  Tensor bias;                                               // at < 0: there is none
  std::vector<int64_t> stride, dilation, pad_low, pad_high;  // the slowest spatial dim first
  std::vector<uint64_t> bytes;                               // that each array of the call reaches over
};

/// Throws ROSIN_UNSUPPORTED unless the libraries have convolutions like this one, whatever the sizes.
void check_convolution(const rosin_call_description& call);

/// The convolution of a call with sizes. Throws ROSIN_UNSUPPORTED where its arrays do not lie as libraries are told
/// here, ROSIN_INVALID where their sizes do not fit.
Convolution convolution_of(const rosin_call_description& call);

/// The same for equal convolutions.
std::string key_of(const Convolution& convolution);

}  // namespace rosin::vendor
