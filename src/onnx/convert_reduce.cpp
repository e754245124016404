// Conversions of reductions, running sums and the choice of the largest. Read first: convert.hpp.
#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/sort.hpp>

#include "onnx/convert.hpp"
#include "ops/reducers.hpp"

namespace rosin::onnx {
namespace {

using Reduction = Array(const Array& x, Dims dims);

/// The axes are an attribute in older versions and an input in newer ones; none means all, or none on request.
std::vector<int> reduced_dims(const NodeCall& call, const Array& x) {
  const std::vector<int64_t> axes = call.integers_either(1, "axes");
  std::vector<int> dims = call.dims(axes, x.rank());
  const bool takes_all = axes.empty() && call.integer("noop_with_empty_axes", 0) == 0;
  for (int d = 0; takes_all && d < x.rank(); ++d) dims.push_back(d);
  return dims;
}

Array reduced(const NodeCall& call, const Array& x, Reduction* f) {
  const std::vector<int> dims = reduced_dims(call, x);
  if (dims.empty()) return x;
  const Array y = as(f(x, Dims(std::span<const int>(dims))), x.dtype());
  return call.integer("keepdims", 1) != 0 ? y : squeeze(y, std::span<const int>(dims));
}

/// What no number of the type is below, or exceeds.
Array bound_of(const Reducer& reducer, DType type) {
  if (!is_integer(type) || size_of(type) > 2) return neutral_of(reducer, type);
  const int64_t count = int64_t{1} << (8 * size_of(type)), low = type == Int8 || type == Int16 ? -count / 2 : 0;
  return &reducer == &maximum_reducer ? low : low + count - 1;
}

/// The largest or smallest; of an empty axis what no number exceeds or is below.
Array extreme(const NodeCall& call, Reduction* f, const Reducer& reducer) {
  Array x = call[0];
  for (const int d : reduced_dims(call, x)) {
    if (x.size(d) == 0) x = pad(x, d, 0, 1, bound_of(reducer, x.dtype()));
  }
  return reduced(call, x, f);
}

Array place(const NodeCall& call, Array (*f)(const Array&, int)) {
  const Array& x = call[0];
  const int dim = call.dim(call.integer("axis", 0), x.rank());
  const bool last = call.integer("select_last_index", 0) != 0;
  Array found = as(f(last ? flip(x, dim) : x, dim), Int64);
  if (last) found = x.size(dim) - 1 - found;
  const bool keeps = call.integer("keepdims", 1) != 0, kept = found.rank() == x.rank();
  if (keeps == kept) return found;
  return keeps ? unsqueeze(found, dim) : squeeze(found, dim);
}

/// Running sums or products, from `start` where the element itself does not count.
Array running(const NodeCall& call, Array (*f)(const Array&, int), double start) {
  const Array& x = call[0];
  const int dim = call.dim(call.integer_in(1), x.rank());
  const bool reverse = call.integer("reverse", 0) != 0;
  Array y = reverse ? flip(x, dim) : x;
  y = as(f(y, dim), x.dtype());
  if (call.integer("exclusive", 0) != 0) y = slice(pad(y, dim, 1, 0, start), dim, 0, x.size(dim));
  return reverse ? flip(y, dim) : y;
}

}  // namespace

Arrays reduce_sum(const NodeCall& call) { return {reduced(call, call[0], sum)}; }
Arrays reduce_mean(const NodeCall& call) { return {reduced(call, call[0], mean)}; }
Arrays reduce_max(const NodeCall& call) { return {extreme(call, maximum, maximum_reducer)}; }
Arrays reduce_min(const NodeCall& call) { return {extreme(call, minimum, minimum_reducer)}; }
Arrays reduce_prod(const NodeCall& call) { return {reduced(call, call[0], prod)}; }
Arrays reduce_l1(const NodeCall& call) { return {reduced(call, abs(call[0]), sum)}; }
Arrays reduce_l2(const NodeCall& call) {
  const Array& x = call[0];
  return {as(sqrt(reduced(call, square(x), sum)), x.dtype())};
}
Arrays reduce_log_sum(const NodeCall& call) { return {log(reduced(call, call[0], sum))}; }
Arrays reduce_log_sum_exp(const NodeCall& call) { return {reduced(call, call[0], logsumexp)}; }
Arrays reduce_sum_square(const NodeCall& call) { return {reduced(call, square(call[0]), sum)}; }
Arrays arg_max(const NodeCall& call) { return {place(call, argmax)}; }
Arrays arg_min(const NodeCall& call) { return {place(call, argmin)}; }

Arrays cumulative_sum(const NodeCall& call) { return {running(call, cumsum, 0)}; }
Arrays cumulative_product(const NodeCall& call) { return {running(call, cumprod, 1)}; }

Arrays top_k(const NodeCall& call) {
  const Array& x = call[0];
  const int dim = call.dim(call.integer("axis", -1), x.rank());
  const int64_t k = call.opset() < 10 ? call.integer("k", 0) : call.integer_in(1);
  const TopK found = topk(x, k, dim, call.integer("largest", 1) != 0);
  return {found.values, as(found.indices, Int64)};
}

}  // namespace rosin::onnx
