// A convolution as stand-ins compute it, one product after the other. Read first: elements.hpp. Read next: cudnn.hpp,
// ../fake_hip/miopen.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/cudnn_types.hpp"
#include "elements.hpp"

namespace fake_dnn {

namespace dnn = rosin::cuda::dnn;

struct Tensor {
  dnn::Type type = dnn::Type::float32;
  std::vector<int64_t> sizes, strides;
  int64_t id = 0, alignment = 1;
  bool is_virtual = false, by_value = false;
  uint64_t address = 0;

  uint64_t reach() const;  // bytes up to the end of the last element
};

/// Everything that one convolution needs.
struct Convolution {
  dnn::Kind kind = dnn::Kind::forward;
  Tensor x, w, y;
  dnn::Type sums = dnn::Type::float32;
  double alpha = 1, beta = 0;
  bool flipped = false, has_bias = false, relu = false, relu_keeps_nan = true, tf32 = false;
  Tensor bias;
  std::vector<int64_t> stride, dilation, pad_low, pad_high;

  /// The arrays that stand in memory, the result as the last.
  std::vector<Tensor*> stored();
};

/// Element by element.
void compute(const Convolution& convolution);

fake::Element element_of(dnn::Type type);

}  // namespace fake_dnn
