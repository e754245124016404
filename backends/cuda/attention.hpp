// From the description of attention to what cuDNN is told: tensors of (batch, heads, length, features). Nothing of CUDA
// is called here. Read first: rosin/backend_calls.h (attention). Read next: cudnn_graph.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "vendor/convolution.hpp"

namespace rosin::cuda {

using vendor::Tensor;

/// Attention, or its gradient: y of q, k and v, with the state where that is kept; or dq, dk and dv of all these and
/// dy.
struct Attention {
  bool gradient = false;
  bool causal = false;
  bool deterministic = false;
  int32_t type = ROSIN_BFLOAT16;
  double scale = 1;
  Tensor q, k, v, y, state, dy, dq, dk, dv;  // at < 0: it is not there; the state is (batch, heads, length, 1)
  std::vector<uint64_t> bytes;               // that each array of the call reaches over
};

/// Throws ROSIN_UNSUPPORTED unless cuDNN has calls like this one, whatever the sizes.
void check_attention(const rosin_call_description& call);

/// The attention of a call with sizes. Throws ROSIN_UNSUPPORTED where its arrays do not lie as cuDNN reads them,
/// ROSIN_INVALID where their sizes do not fit.
Attention attention_of(const rosin_call_description& call);

}  // namespace rosin::cuda
