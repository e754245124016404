// Layers that normalise: see rosin/normalise_layers.hpp.
#include <rosin/normalise_layers.hpp>

#include <algorithm>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/layer.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "model/locate.hpp"
#include "nn/layer_parts.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/reduction.hpp"

namespace rosin {
namespace {

/// Dims first .. last - 1, without `left_out`.
Dims dims_between(int first, int last, int left_out) {
  int dims[Shape::max_rank];
  size_t count = 0;
  for (int d = first; d < last; ++d) {
    if (d != left_out) dims[count++] = d;
  }
  return Dims(std::span<const int>(dims, count));
}

/// Statistics over some dims, which keep size 1.
struct Moments {
  Array mean, variance;  // biased
  Array distance;        // x - mean
};
Moments moments_of(const Array& x, const Dims& dims) {
  Moments m;
  m.mean = mean(x, dims);
  m.distance = x - m.mean;
  m.variance = spread_over(x, m.distance, dims_mask("normalise", dims, x.shape()));
  return m;
}

struct SharedMoments : Moments {
  Array values;  // the number of elements of a channel, size 1
};
/// The same over the parts of a batch that several processes have, of which some may have none; this one has so many
/// elements of a channel, a number that goes along with their sums.
SharedMoments moments_of(const Array& x, const Dims& dims, const SumOverParts& over, int64_t own_values) {
  const Array own = sum(x, dims), sums = reshape(own, {-1});
  const Array number = full_like(slice(sums, 0, 0, 1), own_values);
  const Array all = over.sum(over.parts, concat({sums, number}, 0));
  SharedMoments m;
  m.values = slice(all, 0, own.count(), own.count() + 1);
  const Array divisor = max(m.values, 1.0);
  m.mean = reshape(slice(all, 0, 0, own.count()), own.shape()) / divisor;
  m.distance = x - m.mean;
  m.variance = over.sum(over.parts, sum(square(m.distance), dims)) / divisor;
  return m;
}

/// y*scale + bias; scale and bias are (channels), channels the second dim from the end of y.
Array scaled(const Array& y, const Array& scale, const Array& bias) {
  const int rank = y.rank();
  if (scale.is_nothing()) return y;
  return y * along_dim(scale, rank - 2, rank) + along_dim(bias, rank - 2, rank);
}

/// scale * distance / sqrt(variance + eps) + bias, the parameters being nothing or along their dims.
Array standardised(const Array& distance, const Array& variance, double eps, const Array& scale, const Array& bias) {
  const Array factor = rsqrt(variance + eps);
  return scale.is_nothing() ? distance * factor : distance * (factor * scale) + bias;
}

/// The same with a layer's parameters, of channels, and its activation, in the type of its input. Halves are computed
/// in Float32.
template <class L> Array standardised(const L& layer, const Array& in, const Array& distance, const Array& variance) {
  const auto of_channels = [&](const Array& parameter) {
    return parameter.is_nothing() ? parameter : along_dim(wide(parameter), distance.rank() - 2, distance.rank());
  };
  const Array y = standardised(distance, variance, layer.eps, of_channels(layer.scale), of_channels(layer.bias));
  return layer.act(narrow(y, in));
}

/// What a layer makes of no elements: no statistics take part, so that those of nothing spoil neither the running ones
/// nor a gradient.
template <class L> Array of_nothing(const L& layer, const Array& in) {
  return layer.act(scaled(in, layer.scale, layer.bias));
}

template <class L> void check_channels(const L& layer, const Array& x, int least_rank) {
  if (x.rank() >= least_rank && x.size(-2) == layer.channels) return;
  refuse_input(layer.rosin_show(),
               "expects size(input, " + std::to_string(std::max(x.rank(), least_rank) - 2) +
                   ") == " + std::to_string(layer.channels) + " of at least " + std::to_string(least_rank) + " dims",
               x, "arrays are (..., channels, batch)");
}

[[noreturn]] void refuse_one_value(const char* layer, const Array& x) {
  throw Error(ErrorKind::argument, std::string(layer) +
                                       ": expected more than 1 value per channel when training; got input of size " +
                                       to_string(x.shape()) + "; use larger batches, or testmode(model)");
}

/// Moves one running statistic of a layer towards that of a batch, which has size 1 in all dims but the channels'.
/// Number: double or Array.
template <class Number>
void move_towards(const Buffer& running, const Number& keep, const Array& batch, const Number& weight) {
  const Array& old = running.value();
  assign(running, narrow(keep * wide(old) + weight * reshape(batch, old.shape()), old));
}

/// Moves the running statistics of a layer; `values` elements were averaged for each.
template <class L> void track(const L& layer, const Array& batch_mean, const Array& batch_variance, int64_t values) {
  const double keep = 1 - layer.momentum, n = static_cast<double>(values);
  move_towards(layer.mean, keep, batch_mean, layer.momentum);
  move_towards(layer.variance, keep, batch_variance, layer.momentum * n / (n - 1));
}

/// Statistics over all parts of the batch. Those of fewer than two elements move nothing.
Moments shared_moments(const BatchNorm& layer, const Array& x, const Dims& dims, int64_t own_values, bool training) {
  const SharedMoments batch = moments_of(x, dims, layer.over, own_values);
  if (training && !layer.mean.is_nothing()) {
    const Array& values = batch.values;
    const Array weight = cast(values > 1.0, values.dtype()) * layer.momentum, keep = 1 - weight;
    move_towards(layer.mean, keep, batch.mean, weight);
    move_towards(layer.variance, keep, batch.variance * (values / max(values - 1, 1.0)), weight);
  }
  return batch;
}

/// With the running statistics.
template <class L> Array with_running(const L& layer, const Array& in) {
  const int rank = in.rank();
  const Array distance = wide(in) - along_dim(wide(layer.mean.value()), rank - 2, rank);
  return standardised(layer, in, distance, along_dim(wide(layer.variance.value()), rank - 2, rank));
}

/// x in the type of scale; without that in the type of the statistics, or in a half where those are Float32.
template <class L> Array input_of(const L& layer, const Array& x) {
  const Array& parameter = layer.scale.is_nothing() ? layer.mean.value() : layer.scale;
  const bool is_half = x.dtype() == Float16 || x.dtype() == BFloat16;
  if (is_half && layer.scale.is_nothing() && !parameter.is_nothing() && parameter.dtype() == Float32) return x;
  return matched_input(x, parameter, layer);
}

template <class L, class Options> void make_parameters(L& layer, int64_t channels, const Options& options) {
  const Shape each{channels};  // Error where that is no size
  layer.channels = channels;
  layer.eps = options.eps;
  if (!options.affine) return;
  layer.scale = options.initgamma(each);
  layer.bias = options.initbeta(each);
}

template <class L, class Options> void make_statistics(L& layer, int64_t channels, const Options& options) {
  layer.momentum = options.momentum;
  layer.mode = options.active;
  if (!options.track_stats) return;
  const DType type = layer.scale.is_nothing() ? Float32 : layer.scale.dtype();
  layer.mean = zeros({channels}, type);
  layer.variance = ones({channels}, type);
  eval();
}

template <class L> std::string text_of(const std::string& begin, const L& layer, bool affine_by_default) {
  const bool affine = !layer.scale.is_nothing();
  std::string text = begin + activation_text(layer.act);
  if (affine != affine_by_default) text += affine ? ", affine=true" : ", affine=false";
  if constexpr (requires { layer.mode; }) {
    if (layer.mode != LayerMode::automatic) text += layer.mode == LayerMode::train ? ", active=true" : ", active=false";
  }
  return text + ")";
}

/// x as (all that is averaged together, the rest). Error (shape): x does not begin with these sizes.
template <class Layer> Array as_rows(const Layer& layer, const Array& x) {
  const Shape& size = layer.size;
  bool fits = x.rank() >= size.rank();
  for (int d = 0; fits && d < size.rank(); ++d) fits = x.size(d) == size[d];
  if (!fits) {
    refuse_input(layer.rosin_show(), "expects first sizes " + to_string(size), x, "arrays are (features..., batch)");
  }
  const Array in = matched_input(widened(x), layer.scale, layer);
  return size.rank() == 1 || x.count() == 0 ? in : reshape(in, {size.count(), -1});
}

std::string sizes_text(const Shape& size) {
  std::string sizes;
  for (int64_t n : size) sizes += (sizes.empty() ? "" : ", ") + std::to_string(n);
  return sizes;
}

}  // namespace

BatchNorm::BatchNorm(int64_t channel_count, Activation activation, const BatchNormOptions& options)
    : act(std::move(activation)) {
  make_parameters(*this, channel_count, options);
  make_statistics(*this, channel_count, options);
}

Array BatchNorm::operator()(const Array& x) const {
  return located(*this, [&] {
    check_channels(*this, x, 2);
    const Array in = input_of(*this, x);
    const bool training = is_training(mode), uses_running = !training && !mean.is_nothing();
    if (x.count() == 0 && (uses_running || !over.sum || channels == 0)) return of_nothing(*this, in);
    if (uses_running) return with_running(*this, in);
    const int64_t values = x.count() / channels;
    const Dims dims = dims_between(0, x.rank(), x.rank() - 2);
    if (over.sum) {
      const Moments batch = shared_moments(*this, wide(in), dims, values, training);
      return standardised(*this, in, batch.distance, batch.variance);
    }
    if (training && values == 1) refuse_one_value("BatchNorm", x);
    const Spread batch = spread_in_one_pass(in, dims_mask("BatchNorm", dims, in.shape()));
    if (training && !mean.is_nothing()) track(*this, batch.mean, batch.variance, values);
    return standardised(*this, in, batch.distance, batch.variance);
  });
}

std::string BatchNorm::rosin_show() const { return text_of("BatchNorm(" + std::to_string(channels), *this, true); }

LayerNorm::LayerNorm(const Shape& sizes, Activation activation, const LayerNormOptions& options)
    : act(std::move(activation)), size(sizes), eps(options.eps) {
  if (!options.affine) return;
  scale = ones(sizes);
  bias = zeros(sizes);
  eval();
}

Array LayerNorm::operator()(const Array& x) const {
  return located(*this, [&] {
    const Array rows = as_rows(*this, x);
    const Array y = x.count() == 0 ? rows : reshape(normalise(rows, 0, eps), x.shape());
    return act(scale.is_nothing() ? y : y * scale + bias);
  });
}

std::string LayerNorm::rosin_show() const { return text_of("LayerNorm(" + sizes_text(size), *this, true); }

RMSNorm::RMSNorm(const Shape& sizes, const RMSNormOptions& options) : size(sizes), eps(options.eps) {
  if (!options.affine) return;
  scale = ones(sizes);
  eval();
}

Array RMSNorm::operator()(const Array& x) const {
  return located(*this, [&] {
    const Array rows = as_rows(*this, x), values = wide(rows);
    const Array y =
        x.count() == 0 ? rows : reshape(narrow(values * rsqrt(mean(square(values), 0) + eps), rows), x.shape());
    return scale.is_nothing() ? y : y * scale;
  });
}

std::string RMSNorm::rosin_show() const {
  return "RMSNorm(" + sizes_text(size) + (scale.is_nothing() ? ", affine=false)" : ")");
}

InstanceNorm::InstanceNorm(int64_t channel_count, Activation activation, const InstanceNormOptions& options)
    : act(std::move(activation)) {
  make_parameters(*this, channel_count, options);
  make_statistics(*this, channel_count, options);
}

Array InstanceNorm::operator()(const Array& x) const {
  return located(*this, [&] {
    check_channels(*this, x, 3);
    const Array in = input_of(*this, x);
    if (x.count() == 0) return of_nothing(*this, in);
    const bool training = is_training(mode);
    if (!training && !mean.is_nothing()) return with_running(*this, in);
    const int batch_dim = x.rank() - 1;
    const Moments m = moments_of(wide(in), dims_between(0, x.rank() - 2, -1));
    if (training && !mean.is_nothing()) {
      const int64_t values = x.count() / (channels * x.size(batch_dim));
      if (values == 1) refuse_one_value("InstanceNorm", x);
      track(*this, rosin::mean(m.mean, batch_dim), rosin::mean(m.variance, batch_dim), values);
    }
    return standardised(*this, in, m.distance, m.variance);
  });
}

std::string InstanceNorm::rosin_show() const {
  return text_of("InstanceNorm(" + std::to_string(channels), *this, false);
}

GroupNorm::GroupNorm(int64_t channel_count, int64_t group_count, Activation activation, const GroupNormOptions& options)
    : act(std::move(activation)), groups(group_count) {
  if (group_count < 1 || channel_count % group_count != 0) {
    throw Error(ErrorKind::argument, "GroupNorm: the number of groups (" + std::to_string(group_count) +
                                         ") must divide the number of channels (" + std::to_string(channel_count) +
                                         "); got a remainder; use another number of groups");
  }
  make_parameters(*this, channel_count, options);
}

namespace {

/// Of groups, the first two dims: pixels, and channels of a group. From the channels' own statistics, each of one row
/// that is read once, but where rows would be short.
/// Source: Chan, Golub and LeVeque, Algorithms for computing the sample variance (1983), statistics of parts.
Spread spread_of_groups(const Array& x) {
  constexpr int64_t least_row = 32;
  if (x.size(0) < least_row) return spread_in_one_pass(x, dims_mask("GroupNorm", {0, 1}, x.shape()));
  const uint64_t channels = dims_mask("GroupNorm", {1}, x.shape());
  const Spread each = spread_in_one_pass(x, dims_mask("GroupNorm", {0}, x.shape()));
  const Array mean = mean_over(each.mean, channels), offset = each.mean - mean;
  const Array variance = mean_over(each.variance + offset * offset, channels);
  return {mean, variance, x - expand(mean, each.mean.shape())};
}

}  // namespace

Array GroupNorm::operator()(const Array& x) const {
  return located(*this, [&] {
    check_channels(*this, x, 2);
    const Array in = matched_input(widened(x), scale, *this);
    if (x.count() == 0) return of_nothing(*this, in);
    // Of one group of one sample all that is in the first two dims.
    const int64_t together = channels / groups, batch = x.size(-1);
    const Array parts = reshape(in, {x.count() / (channels * batch), together, groups, batch});
    const Spread spread = spread_of_groups(parts);
    const auto by_group = [&](const Array& parameter) {
      return parameter.is_nothing() ? parameter : reshape(wide(parameter), {1, together, groups, 1});
    };
    const Array y = standardised(spread.distance, spread.variance, eps, by_group(scale), by_group(bias));
    return act(reshape(narrow(y, in), x.shape()));
  });
}

std::string GroupNorm::rosin_show() const {
  return text_of("GroupNorm(" + std::to_string(channels) + ", " + std::to_string(groups), *this, true);
}

}  // namespace rosin
