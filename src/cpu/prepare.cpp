// Which kernel answers a call; see call.hpp.
#include "cpu/call.hpp"
#include "cpu/contraction.hpp"
#include "cpu/dispatch.hpp"

namespace rosin::cpu {

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

std::unique_ptr<Call> prepare(const CallSpec& spec) {
  switch (spec.op->kind) {
    case Kind::movement: return prepare_movement(spec);
    case Kind::gather: return prepare_gather(spec);
    case Kind::scatter: return prepare_scatter(spec);
    case Kind::contraction: return prepare_contraction(spec);
    case Kind::window: return prepare_window(spec);
    case Kind::sort: return prepare_sort(spec);
    case Kind::scan: return prepare_scan(spec);
    case Kind::random: return prepare_random(spec);
    default:
      throw Error(ErrorKind::internal,
                  std::string(spec.op->name) + ": the CPU has no call for ops of this kind; report it");
  }
}

bool wants_channels_first(const Op& op, DType type, int operand) {
  switch (op.contraction) {
    case Contraction::convolution:
    case Contraction::convolution_data: return operand != 1;      // operand 1: weights
    case Contraction::convolution_weights: return operand != -1;  // the result: weights
    default: break;
  }
  const bool pooled = op.window == Window::maximum || op.window == Window::mean ||
                      op.window == Window::maximum_gradient || op.window == Window::mean_gradient;
  return pooled && (type == DType::Float32 || type == DType::Float64);
}

bool accepts_strides(const Op& op, int) {
  return op.kind == Kind::movement || (op.kind == Kind::contraction && op.contraction == Contraction::matmul);
}

}  // namespace rosin::cpu
