// Conversions of normalisations. Read first: convert.hpp.
#include <cmath>
#include <numeric>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "onnx/convert.hpp"

namespace rosin::onnx {
namespace {

struct Moments {
  Array mean, deviation;  // the second one is 1 / sqrt(variance + epsilon)
};

Moments moments_of(const Array& x, const std::vector<int>& dims, double epsilon) {
  const Dims over{std::span<const int>(dims)};
  const Array centre = mean(x, over);
  return {centre, rsqrt(mean(square(x - centre), over) + epsilon)};
}

std::vector<int> first_dims(int count) {
  std::vector<int> dims(static_cast<size_t>(std::max(count, 0)));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

Array of_channels(const Array& list, const Array& x) { return along(list, x.rank() - 2, x.rank()); }

/// Computed in Float32 where halves come in, as the format says.
Array widened(const Array& x) { return x.dtype() == Float16 || x.dtype() == BFloat16 ? cast(x, Float32) : x; }

}  // namespace

/// In training the statistics are those of the batch, and new running ones come out.
Arrays batch_norm(const NodeCall& call) {
  const Array& x = call[0];
  const double epsilon = call.real("epsilon", 1e-5), momentum = call.real("momentum", 0.9);
  if (x.rank() < 2) call.refuse("the input must have channels", to_string(x.shape()));
  const bool training = call.opset() >= 14 ? call.integer("training_mode", 0) != 0
                        : call.opset() < 7 ? call.integer("is_test", 0) == 0 && call.wants(1)
                                           : call.wants(1);
  const auto shaped = [&](size_t input) { return as(of_channels(call[input], x), x.dtype()); };
  if (!training) {
    const Array scale = shaped(1) * rsqrt(shaped(4) + epsilon);
    return {x * scale + (shaped(2) - shaped(3) * scale)};
  }
  std::vector<int> dims = first_dims(x.rank() - 2);
  dims.push_back(x.rank() - 1);
  const Array centre = mean(x, Dims(std::span<const int>(dims)));
  const Array spread = mean(square(x - centre), Dims(std::span<const int>(dims)));
  const Array y = (x - centre) * rsqrt(spread + epsilon) * shaped(1) + shaped(2);
  const auto running = [&](size_t input, const Array& now) {
    return call[input] * momentum + as(reshape(now, call[input].shape()), call[input].dtype()) * (1.0 - momentum);
  };
  return {y, running(3, centre), running(4, spread)};
}

Arrays instance_norm(const NodeCall& call) {
  const Array& x = call[0];
  const Moments of = moments_of(x, first_dims(x.rank() - 2), call.real("epsilon", 1e-5));
  return {(x - of.mean) * of.deviation * of_channels(call[1], x) + of_channels(call[2], x)};
}

Arrays layer_norm(const NodeCall& call) {
  const Array x = widened(call[0]);
  const int last = call.dim(call.integer("axis", -1), x.rank());
  const Moments of = moments_of(x, first_dims(last + 1), call.real("epsilon", 1e-5));
  Array y = as((x - of.mean) * of.deviation, call[0].dtype()) * call[1];
  if (call.has(2)) y = y + call[2];
  return {y, of.mean, of.deviation};
}

Arrays rms_norm(const NodeCall& call) {
  const Array x = widened(call[0]);
  const std::vector<int> dims = first_dims(call.dim(call.integer("axis", -1), x.rank()) + 1);
  const Array scale = rsqrt(mean(square(x), Dims(std::span<const int>(dims))) + call.real("epsilon", 1e-5));
  return {as(x * scale, call[0].dtype()) * call[1]};
}

/// Version 18 has a scale for each group, newer ones for each channel.
Arrays group_norm(const NodeCall& call) {
  const Array& x = call[0];
  const int64_t groups = call.integer("num_groups", 0), channels = x.rank() < 2 ? 0 : x.size(-2);
  if (groups < 1 || channels % groups != 0) call.refuse("groups must divide the channels", std::to_string(groups));
  std::vector<int64_t> sizes = sizes_of(x);
  sizes.insert(sizes.end() - 1, groups);
  sizes[sizes.size() - 3] = channels / groups;
  const Array split = widened(reshape(x, sizes));
  const Moments of = moments_of(split, first_dims(split.rank() - 2), call.real("epsilon", 1e-5));
  const Array y = as((split - of.mean) * of.deviation, x.dtype());
  if (call.opset() < 21) return {reshape(y * of_channels(call[1], y) + of_channels(call[2], y), x.shape())};
  return {reshape(y, x.shape()) * of_channels(call[1], x) + of_channels(call[2], x)};
}

/// Squares of neighbouring channels, those outside being 0.
Arrays lrn(const NodeCall& call) {
  const Array& x = call[0];
  const int64_t size = call.integer("size", 1);
  const int dim = x.rank() - 2;
  if (size < 1 || size > 4096 || dim < 0) call.refuse("size must be in 1 .. 4096", std::to_string(size));
  const Array padded = pad(square(x), dim, (size - 1) / 2, size / 2);
  Array total;
  for (int64_t i = 0; i < size; ++i) {
    const Array part = slice(padded, dim, i, i + x.size(dim));
    total = total.is_nothing() ? part : total + part;
  }
  const double alpha = call.real("alpha", 1e-4) / static_cast<double>(size);
  return {x / pow(call.real("bias", 1) + alpha * total, call.real("beta", 0.75))};
}

Arrays mean_variance_norm(const NodeCall& call) {
  const Array& x = call[0];
  std::vector<int64_t> axes = call.integers("axes");
  if (axes.empty()) axes = {0, 2, 3};
  const std::vector<int> dims = call.dims(axes, x.rank());
  const Dims over{std::span<const int>(dims)};
  const Array centred = x - mean(x, over);
  return {centred / (sqrt(mean(square(centred), over)) + 1e-9)};
}

Arrays lp_norm(const NodeCall& call) {
  const Array& x = call[0];
  const int dim = call.dim(call.integer("axis", -1), x.rank());
  const Array length = norm(x, dim, static_cast<double>(call.integer("p", 2)));
  return {where(eq(length, 0), zeros_like(x), x / length)};
}

}  // namespace rosin::onnx
