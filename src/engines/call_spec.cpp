// See call_spec.hpp.
#include "engines/call_spec.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace rosin::engines {
namespace {

using plan::CallArray;
using plan::CallDescription;
using plan::CallKind;
using plan::CallRole;

// How a matrix (rows, columns) stands in memory.
struct MatrixLayout {
  bool transposed = false;
  int64_t distance = 0;  // of columns, or of rows where transposed
};

// None where neither its columns nor its rows are contiguous.
std::optional<MatrixLayout> layout_of(const CallArray& x) {
  for (int d = 0; d < x.shape.rank(); ++d) {
    if (x.strides[d] < 0) return std::nullopt;
  }
  const int64_t rows = x.shape[0], columns = x.shape[1];
  if (x.shape.count() == 0) return MatrixLayout{false, std::max<int64_t>(rows, 1)};
  if (rows == 1 || x.strides[0] == 1) {
    const int64_t distance = columns == 1 ? std::max<int64_t>(rows, 1) : x.strides[1];
    if (distance >= rows && distance >= 1) return MatrixLayout{false, distance};
  }
  if (columns == 1 || x.strides[1] == 1) {
    const int64_t distance = rows == 1 ? std::max<int64_t>(columns, 1) : x.strides[0];
    if (distance >= columns && distance >= 1) return MatrixLayout{true, distance};
  }
  return std::nullopt;
}

// Items of a batch, as strides of the two operands and the result.
struct Batch {
  int64_t size = 1, a = 0, b = 0, c = 0;
};

int64_t batch_stride(const CallArray& x, int dim) {
  return dim < x.shape.rank() && x.shape[dim] != 1 ? x.strides[dim] : 0;
}

// The batch dims as one, or none where they do not line up.
std::optional<Batch> batch_of(const CallArray& a, const CallArray& b, const CallArray& c) {
  std::optional<Batch> batch;
  for (int d = 2; d < c.shape.rank(); ++d) {
    const Batch next{c.shape[d], batch_stride(a, d), batch_stride(b, d), c.strides[d]};
    if (next.size == 1) continue;
    if (!batch) {
      batch = next;
      continue;
    }
    if (next.a != batch->a * batch->size || next.b != batch->b * batch->size || next.c != batch->c * batch->size) {
      return std::nullopt;
    }
    batch->size *= next.size;
  }
  return batch ? batch : Batch{};
}

/// The array of either role.
const CallArray& array_of(const CallDescription& call, CallRole role, CallRole gradient) {
  const CallArray* found = call.find(role);
  return found != nullptr ? *found : *call.find(gradient);
}

template <class Spec>
void take_window(Spec& spec, const CallDescription& call, const CallArray& image, const CallArray& pooled) {
  spec.spatial = call.window.spatial;
  spec.batch = image.shape[-1];
  for (int d = 0; d < spec.spatial; ++d) {
    spec.in[d] = image.shape[d];
    spec.out[d] = pooled.shape[d];
    spec.stride[d] = call.window.stride[d];
    spec.pad_low[d] = call.window.pad_low[d];
    spec.dilation[d] = call.window.dilation[d];
  }
}

}  // namespace

bool readable(const CallArray& matrices) { return layout_of(matrices).has_value(); }

bool in_logical_order(const CallDescription& call) {
  bool logical = true, channels_first = true;
  for (const CallArray& array : call.arrays) {
    if (array.role == CallRole::weights || array.role == CallRole::weights_gradient) continue;
    if (array.role == CallRole::bias) continue;
    logical = logical && array.contiguous();
    channels_first = channels_first && array.channels_first();
  }
  return logical && !channels_first;
}

bool one_batch(const CallDescription& matmul) {
  return batch_of(matmul.arrays[0], matmul.arrays[1], matmul.result()).has_value();
}

MatmulSpec matmul_spec(const CallDescription& call) {
  const CallArray &left = call.arrays[0], &right = call.arrays[1], &result = call.result();
  const MatrixLayout a = *layout_of(left), b = *layout_of(right);
  const Batch batch = *batch_of(left, right, result);
  MatmulSpec matmul;
  matmul.type = result.type;
  matmul.m = result.shape[0];
  matmul.n = result.shape[1];
  matmul.k = left.shape[1];
  matmul.batch = batch.size;
  matmul.a_transposed = a.transposed;
  matmul.b_transposed = b.transposed;
  matmul.lda = a.distance;
  matmul.ldb = b.distance;
  matmul.ldc = std::max<int64_t>(matmul.m, 1);
  matmul.a_batch_stride = batch.a;
  matmul.b_batch_stride = batch.b;
  matmul.c_batch_stride = batch.c;
  matmul.accumulate = call.accumulate;
  matmul.epilogue = call.epilogue;
  return matmul;
}

ConvSpec conv_spec(const CallDescription& call) {
  const CallArray& x = array_of(call, CallRole::input, CallRole::input_gradient);
  const CallArray& w = array_of(call, CallRole::weights, CallRole::weights_gradient);
  const CallArray& y = array_of(call, CallRole::output, CallRole::output_gradient);
  ConvSpec conv;
  conv.kind = call.kind == CallKind::convolution        ? ConvKind::forward
              : call.kind == CallKind::convolution_data ? ConvKind::backward_data
                                                        : ConvKind::backward_weights;
  conv.type = call.result().type;
  take_window(conv, call, x, y);
  conv.in_channels = x.shape[-2];
  conv.out_channels = y.shape[-2];
  conv.groups = call.window.groups;
  for (int d = 0; d < conv.spatial; ++d) {
    conv.kernel[d] = w.shape[d];
    conv.pad_high[d] = call.window.pad_high[d];
  }
  conv.flipped = call.window.flipped;
  conv.epilogue = call.epilogue;
  return conv;
}

PoolSpec pool_spec(const CallDescription& call) {
  const bool backward = call.kind == CallKind::pooling_data;
  const CallArray& image = backward ? *call.find(CallRole::input_gradient) : *call.find(CallRole::input);
  const CallArray& pooled = backward ? *call.find(CallRole::output_gradient) : *call.find(CallRole::output);
  PoolSpec pool;
  if (call.window.mean) pool.kind = backward ? PoolKind::mean_backward : PoolKind::mean_forward;
  else pool.kind = backward ? PoolKind::max_backward : PoolKind::max_forward;
  pool.type = call.result().type;
  take_window(pool, call, image, pooled);
  pool.channels = image.shape[-2];
  for (int d = 0; d < pool.spatial; ++d) pool.kernel[d] = call.window.window[d];
  if (in_logical_order(call)) pool.batch *= std::exchange(pool.channels, 1);
  return pool;
}

}  // namespace rosin::engines
