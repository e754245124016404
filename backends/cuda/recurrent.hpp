// From the description of a recurrent layer to its sizes and arrays. Nothing of CUDA is called here.
// Read first: rosin/backend_calls.h (recurrent). Read next: cudnn_recurrent.hpp.
#pragma once

#include <cstdint>

#include <rosin/backend.h>

namespace rosin::cuda {

/// A layer, or its gradient.
struct Recurrent {
  bool gradient = false;
  int32_t cell = ROSIN_CELL_TANH;
  int32_t type = ROSIN_FLOAT32;
  int32_t compute = ROSIN_COMPUTE_EXACT;
  int64_t features = 0, out = 0, steps = 0, batch = 0;

  int64_t gates() const { return cell == ROSIN_CELL_LSTM ? 4 : cell == ROSIN_CELL_GRU ? 3 : 1; }
  int64_t parameters() const { return gates() * out * (features + out + 1); }
  uint64_t element_bytes() const { return type == ROSIN_FLOAT64 ? 8 : type == ROSIN_FLOAT32 ? 4 : 2; }
};

/// Throws ROSIN_UNSUPPORTED unless cuDNN has layers like this one, whatever the sizes.
void check_recurrent(const rosin_call_description& call);

/// The layer of a call with sizes. Throws ROSIN_UNSUPPORTED where its arrays do not lie as cuDNN is told here,
/// ROSIN_INVALID where their sizes do not fit.
Recurrent recurrent_of(const rosin_call_description& call);

}  // namespace rosin::cuda
