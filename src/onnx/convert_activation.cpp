// Conversions of activations, softmax and its relatives, dropout. Read first: convert.hpp.
#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "onnx/convert.hpp"

namespace rosin::onnx {
namespace {

/// f along the axis.
template <Array (*f)(const Array&, int)> Arrays along_axis(const NodeCall& call) {
  return {f(call[0], call.dim(call.integer("axis", -1), call[0].rank()))};
}

/// Before version 13: over all dims from the axis on, as one.
template <Array (*f)(const Array&, int)> Arrays over_rest(const NodeCall& call) {
  const Array& x = call[0];
  const int64_t rank = x.rank(), axis = call.integer("axis", 1);
  if (axis < -rank || axis > rank) call.refuse("an axis must be one of the input's", std::to_string(axis));
  const auto inner = static_cast<size_t>(rank - (axis < 0 ? axis + rank : axis));
  const std::vector<int64_t> sizes = sizes_of(x);
  const int64_t row = product(std::span<const int64_t>(sizes).first(inner));
  return {reshape(f(reshape(x, {row, product(std::span<const int64_t>(sizes).subspan(inner))}), 0), x.shape())};
}

/// 1 at the first largest element, else 0.
Array hardest(const Array& x, int dim) {
  const Array place = argmax(x, dim);
  const Array counts = along(arange(x.size(dim)), dim, x.rank());
  const Array kept = place.rank() == x.rank() ? place : unsqueeze(place, dim);
  return as(eq(kept, counts), x.dtype());
}

}  // namespace

Arrays elu_value(const NodeCall& call) { return {elu(call[0], call.real("alpha", 1))}; }
Arrays selu_value(const NodeCall& call) {
  return {selu(call[0], call.real("alpha", 1.67326319217681884765625), call.real("gamma", 1.05070102214813232421875))};
}
Arrays leakyrelu_value(const NodeCall& call) { return {leakyrelu(call[0], call.real("alpha", 0.01))}; }
Arrays hardsigmoid_value(const NodeCall& call) {
  return {hardsigmoid(call[0], call.real("alpha", 0.2), call.real("beta", 0.5))};
}
Arrays celu_value(const NodeCall& call) { return {celu(call[0], call.real("alpha", 1))}; }
Arrays trelu_value(const NodeCall& call) { return {trelu(call[0], call.real("alpha", 1))}; }

/// Before version 7 the slopes are those of the channels.
Arrays prelu(const NodeCall& call) {
  const Array& x = call[0];
  Array slope = call[1];
  if (call.opset() < 7 && slope.count() > 1) slope = along(slope, x.rank() - 2, x.rank());
  return {max(x, 0) + slope * min(x, 0)};
}

Arrays shrink(const NodeCall& call) {
  const Array& x = call[0];
  const double bias = call.real("bias", 0), lambda = call.real("lambd", 0.5);
  const Array below = as(as(x, Float64) + bias, x.dtype()), above = as(as(x, Float64) - bias, x.dtype());
  return {where(lt(x, -lambda), below, where(gt(x, lambda), above, zeros_like(x)))};
}

Arrays gelu_value(const NodeCall& call) {
  return {call.text("approximate", "none") == "tanh" ? gelu(call[0]) : gelu_erf(call[0])};
}

Arrays swish_value(const NodeCall& call) { return {swish(call[0], call.real("alpha", 1))}; }

Arrays swiglu_value(const NodeCall& call) { return {swish_value(call)[0] * call[1]}; }

Arrays softmax_value(const NodeCall& call) { return along_axis<softmax>(call); }
Arrays softmax_flattened(const NodeCall& call) { return over_rest<softmax>(call); }
Arrays logsoftmax_value(const NodeCall& call) { return along_axis<logsoftmax>(call); }
Arrays logsoftmax_flattened(const NodeCall& call) { return over_rest<logsoftmax>(call); }
Arrays hardmax(const NodeCall& call) { return along_axis<hardest>(call); }
Arrays hardmax_flattened(const NodeCall& call) { return over_rest<hardest>(call); }

/// Drops in training alone: where the file says so and, before version 12, inside gradient calls never.
Arrays dropout(const NodeCall& call) {
  const Array& x = call[0];
  const double ratio = call.opset() < 12 ? call.real("ratio", 0.5) : call.has(1) ? call.real_in(1) : 0.5;
  const bool training = call.opset() >= 12 && call.has(2) && call.integer_in(2) != 0;
  const DType mask_type = call.opset() < 10 ? x.dtype() : Bool;
  if (!training || ratio == 0) return {x, call.wants(1) ? full(x.shape(), 1, mask_type) : Array()};
  const Array kept = bernoulli(full({}, 1.0 - ratio), x.shape());
  return {where(kept, x * (1.0 / (1.0 - ratio)), zeros_like(x)), kept};
}

}  // namespace rosin::onnx
