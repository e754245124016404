// See call.hpp.
#include "plan/call.hpp"

#include <algorithm>

namespace rosin::plan {

bool CallArray::contiguous() const {
  int64_t stride = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] != 1 && strides[d] != stride) return false;
    stride *= shape[d];
  }
  return true;
}

bool CallArray::channels_first() const {
  const int rank = shape.rank();
  if (rank < 3) return false;
  int64_t stride = 1;
  for (int i = 0; i < rank; ++i) {
    const int d = i == 0 ? rank - 2 : i == rank - 1 ? rank - 1 : i - 1;
    if (shape[d] != 1 && strides[d] != stride) return false;
    stride *= shape[d];
  }
  return true;
}

void CallDescription::take(MathMode mode) {
  const DType type = arrays.front().type;
  unrounded = mode != MathMode::exact;
  compute = mode == MathMode::fast && type == DType::Float32 ? ComputeMode::tf32 : ComputeMode::exact;
}

const CallArray* CallDescription::find(CallRole role) const {
  const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const CallArray& a) { return a.role == role; });
  return found == arrays.end() ? nullptr : &*found;
}

}  // namespace rosin::plan
