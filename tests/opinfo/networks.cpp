// Rows of torch.nn.functional: activations, convolutions, pools, normalisation, images, attention. Read first:
// call.hpp.
#include <algorithm>
#include <cmath>

#include <rosin/rosin.hpp>

#include "call.hpp"

namespace rosin::opinfo {
namespace {

using Sizes = std::vector<int64_t>;

Array softplus_of(Call& c) {
  const double beta = c.real(1, "beta", 1), threshold = c.real(2, "threshold", 20);
  const Array x = c.array(0), scaled = beta * x;
  return where(scaled > threshold, x, softplus(min(scaled, threshold)) / beta);
}

Array prelu(Call& c) {
  const Array x = c.array(0);
  Array slope = c.array(1, "weight");
  if (x.rank() > 1 && slope.rank() == 1) {
    Sizes sizes(static_cast<size_t>(x.rank()), 1);
    sizes[sizes.size() - 2] = slope.count();
    slope = reshape(slope, sizes);
  } else if (slope.rank() == 1) {
    slope = reshape(slope, slope.count() == 1 && x.rank() == 0 ? Sizes{} : Sizes{-1});
  }
  return where(x > 0, x, slope * x);
}

Array gelu_of(Call& c) { return c.text(-1, "approximate", "none") == "tanh" ? gelu(c.array(0)) : gelu_erf(c.array(0)); }

/// PyTorch's gates are the second half.
Array gated(Call& c) {
  const Array x = c.array(0);
  return glu(x, c.dim(x, 1, "dim", -1));
}

Array shrunk(Call& c) {
  const Array x = c.array(0);
  const double lambda = c.real(1, "lambd", 0.5);
  return where((x >= -lambda) & (x <= lambda), 0, x);
}

Extents extents(Call& c, int at, const char* name) {
  const Sizes values = reversed(c.integers(at, name));
  return values.size() == 1 ? Extents(values[0]) : Extents(std::span<const int64_t>(values));
}

/// PyTorch's pictures may come without a batch.
template <class F> Array with_batch(const Array& x, int rank, F f) {
  if (x.rank() == rank) return f(x);
  return squeeze(f(unsqueeze(x, -1)), -1);
}

/// Sums over channels get a number each.
Array with_bias(const Array& y, const Array& bias, int spatial) {
  if (bias.is_nothing()) return y;
  Sizes sizes(static_cast<size_t>(spatial), 1);
  sizes.push_back(bias.count());
  return y + reshape(bias, sizes);
}

/// Paddings by name: what keeps the size, with the odd one behind.
Extents convolution_pad(Call& c, const Array& w, int spatial) {
  const Value* const pad = c.find(4, "padding");
  if (!pad || pad->kind != Value::Kind::text) return extents(c, 4, "padding");
  Sizes widths;
  Sizes dilation = reversed(c.integers(5, "dilation"));
  dilation.resize(static_cast<size_t>(spatial), dilation.empty() ? 1 : dilation[0]);
  for (int d = 0; d < spatial; ++d) {
    const int64_t whole = pad->text == "same" ? dilation[static_cast<size_t>(d)] * (w.size(d) - 1) : 0;
    widths.push_back(whole / 2);
    widths.push_back(whole - whole / 2);
  }
  return Extents(std::span<const int64_t>(widths));
}

template <int spatial> Array convolved(Call& c) {
  const Array w = c.array(1, "weight");
  const ConvOptions options{.stride = extents(c, 3, "stride"),
                            .pad = convolution_pad(c, w, spatial),
                            .dilation = extents(c, 5, "dilation"),
                            .groups = c.integer(6, "groups", 1)};
  const Array bias = c.array_or_nothing(2, "bias");
  return with_batch(c.array(0), spatial + 2,
                    [&](const Array& x) { return with_bias(crosscor(x, w, options), bias, spatial); });
}
template <int spatial> Array convolved_back(Call& c) {
  const Array w = c.array(1, "weight"), bias = c.array_or_nothing(2, "bias");
  const ConvOptions options{.stride = extents(c, 3, "stride"),
                            .pad = extents(c, 4, "padding"),
                            .dilation = extents(c, 7, "dilation"),
                            .groups = c.integer(6, "groups", 1)};
  const Extents outpad = extents(c, 5, "output_padding");
  return with_batch(c.array(0), spatial + 2, [&](const Array& x) {
    return with_bias(crosscor_transpose(x, w, options, outpad), bias, spatial);
  });
}

/// Windows that begin inside but end outside, which ceil_mode would add.
void refuse_broken_windows(Call& c, const Array& x, int spatial, int ceil_at) {
  if (!c.flag(ceil_at, "ceil_mode", false)) return;
  const auto number = [&](int at, const char* name, int d, int64_t otherwise) {
    const Sizes values = reversed(c.integers(at, name));
    return values.empty() ? otherwise : values[values.size() == 1 ? 0 : static_cast<size_t>(d)];
  };
  for (int d = 0; d < spatial; ++d) {
    const int64_t window = number(1, "kernel_size", d, 1), step = number(2, "stride", d, window);
    if ((x.size(d) + 2 * number(3, "padding", d, 0) - window) % step) throw Refused("pools have whole windows alone");
  }
}

template <int spatial> Array averaged(Call& c) {
  const Array x = c.array(0);
  refuse_broken_windows(c, x, spatial, 4);
  const Extents window = extents(c, 1, "kernel_size"), pad = extents(c, 3, "padding");
  const bool padded = std::ranges::any_of(pad.list(), [](int64_t width) { return width > 0; });
  const bool inside = !c.flag(5, "count_include_pad", true) && padded;
  if (c.has(6, "divisor_override")) throw Refused("meanpool: the divisor is the window's size");
  return with_batch(x, spatial + 2, [&](const Array& all) {
    const Array y = meanpool(all, window, extents(c, 2, "stride"), pad);
    return inside ? y / meanpool(ones_like(all), window, extents(c, 2, "stride"), pad) : y;
  });
}
template <int spatial> Arrays largest(Call& c) {
  const Array x = c.array(0);
  refuse_broken_windows(c, x, spatial, -1);
  for (const int64_t step : c.integers(-1, "dilation")) {
    if (step != 1) throw Refused("maxpool: neighbours alone");
  }
  const Array y = with_batch(x, spatial + 2, [&](const Array& all) {
    return maxpool(all, extents(c, 1, "kernel_size"), extents(c, 2, "stride"), extents(c, 3, "padding"));
  });
  return c.flag(-1, "return_indices", false) ? Arrays{y, Array()} : Arrays{y};
}

/// Sizes that PyTorch keeps where it is given none.
Extents reached(Call& c, const Array& x, int spatial) {
  const Value* const value = c.find(1, "output_size");
  if (!value || value->kind != Value::Kind::list) return extents(c, 1, "output_size");
  Sizes sizes;
  for (const Value& one : value->items) {
    const int dim = spatial - 1 - static_cast<int>(sizes.size());
    sizes.push_back(one.kind == Value::Kind::none ? x.size(dim) : static_cast<int64_t>(one.number));
  }
  std::ranges::reverse(sizes);
  return Extents(std::span<const int64_t>(sizes));
}
constexpr const char* other_windows = "adaptive pools have windows of one size, as Flux's";
template <int spatial> Array averaged_to(Call& c) {
  const Array x = c.array(0);
  return with_batch(x, spatial + 2, [&](const Array& all) { return adaptive_meanpool(all, reached(c, x, spatial)); });
}
template <int spatial> Arrays largest_to(Call& c) {
  const Array x = c.array(0);
  const Array y =
      with_batch(x, spatial + 2, [&](const Array& all) { return adaptive_maxpool(all, reached(c, x, spatial)); });
  return c.flag(2, "return_indices", false) ? Arrays{y, Array()} : Arrays{y};
}

/// A vector of PyTorch's channels (its dim 1) against x.
Array by_channel(const Array& v, const Array& x) {
  Sizes sizes(static_cast<size_t>(std::max(x.rank(), 2)), 1);
  sizes[sizes.size() - 2] = v.count();
  if (x.rank() < 2) return v;
  return reshape(v, sizes);
}
Array scaled_by_channel(Array y, const Array& scale, const Array& bias) {
  if (!scale.is_nothing()) y = y * by_channel(scale, y);
  return bias.is_nothing() ? y : y + by_channel(bias, y);
}

Array batch_norm(Call& c) {
  const Array x = c.array(0), mean = c.array_or_nothing(1, "running_mean"), var = c.array_or_nothing(2, "running_var");
  const Array scale = c.array_or_nothing(3, "weight"), bias = c.array_or_nothing(4, "bias");
  c.real(6, "momentum", 0.1);
  const double eps = c.real(7, "eps", 1e-5);
  if (x.rank() < 2) throw Refused("BatchNorm: x has channels and a batch");
  if (!c.flag(5, "training", false)) {
    return scaled_by_channel((x - by_channel(mean, x)) / sqrt(by_channel(var, x) + eps), scale, bias);
  }
  std::vector<int> dims;
  for (int d = 0; d < x.rank(); ++d) {
    if (d != x.rank() - 2) dims.push_back(d);
  }
  return scaled_by_channel(normalise(x, Dims(dims), eps), scale, bias);
}
Array instance_norm(Call& c) {
  const Array x = c.array(0);
  c.real(-1, "momentum", 0.1);
  c.has(-1, "running_mean");
  c.has(-1, "running_var");
  if (!c.flag(-1, "use_input_stats", true)) throw Refused("InstanceNorm: statistics of the input");
  std::vector<int> dims;
  for (int d = 0; d < x.rank() - 2; ++d) dims.push_back(d);
  return scaled_by_channel(normalise(x, Dims(dims), c.real(-1, "eps", 1e-5)), c.array_or_nothing(-1, "weight"),
                           c.array_or_nothing(-1, "bias"));
}

std::vector<int> first_dims(size_t count) {
  std::vector<int> dims(count);
  for (size_t d = 0; d < count; ++d) dims[d] = static_cast<int>(d);
  return dims;
}
Array layer_norm(Call& c) {
  const std::vector<int> dims = first_dims(c.integers(1, "normalized_shape").size());
  Array y = normalise(c.array(0), Dims(dims), c.real(4, "eps", 1e-5));
  if (c.has(2, "weight")) y = y * c.array(2, "weight");
  return c.has(3, "bias") ? y + c.array(3, "bias") : y;
}
Arrays layer_norm_with_statistics(Call& c) {
  const Array x = c.array(0);
  const Dims dims(first_dims(c.integers(1, "normalized_shape").size()));
  return {layer_norm(c), mean(x, dims), 1 / sqrt(var(x, dims, false) + c.real(4, "eps", 1e-5))};
}
Array rms_norm(Call& c) {
  const Array x = c.array(0);
  const std::vector<int> dims = first_dims(c.integers(1, "normalized_shape").size());
  const double usual = x.dtype() == Float64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  const Array y = x / sqrt(mean(square(x), Dims(dims)) + c.real(3, "eps", usual));
  return c.has(2, "weight") ? y * c.array(2, "weight") : y;
}
Array group_norm(Call& c) {
  const Array x = c.array(0);
  const int64_t groups = c.integer(1, "num_groups", 1), batch = x.size(-1);
  const Array y = reshape(normalise(reshape(x, {-1, groups, batch}), 0, c.real(4, "eps", 1e-5)), x.shape());
  return scaled_by_channel(y, c.array_or_nothing(2, "weight"), c.array_or_nothing(3, "bias"));
}

Array linear(Call& c) {
  const Array y = tensordot(c.array(1, "weight"), c.array(0), std::vector<int>{0}, std::vector<int>{0});
  return c.has(2, "bias") ? y + c.array(2, "bias") : y;
}

Array embedded(Call& c) {
  c.refuse(-1, "max_norm");
  c.refuse(-1, "scale_grad_by_freq");
  c.has(-1, "sparse");
  c.has(-1, "norm_type");
  if (c.has(-1, "padding_idx")) throw Refused("gather: no padding_idx");
  return gather(c.array(0), c.array(1), -1);
}

const Table functions(
    "networks",
    {
        {"nn.functional.relu", relu},
        {"nn.functional.relu6", relu6},
        {"nn.functional.leaky_relu", [](Call& c) { return leakyrelu(c.array(0), c.real(1, "negative_slope", 0.01)); }},
        {"nn.functional.prelu", prelu},
        {"nn.functional.elu", [](Call& c) { return elu(c.array(0), c.real(1, "alpha", 1)); }},
        {"nn.functional.celu", [](Call& c) { return celu(c.array(0), c.real(1, "alpha", 1)); }},
        {"nn.functional.selu", [](Call& c) { return selu(c.array(0)); }},
        {"nn.functional.gelu", gelu_of},
        {"nn.functional.glu", gated},
        {"nn.functional.silu", [](Call& c) { return swish(c.array(0)); }},
        {"nn.functional.mish", mish},
        {"nn.functional.hardswish", hardswish},
        {"nn.functional.hardsigmoid", [](Call& c) { return hardsigmoid(c.array(0)); }, 1,
         "PyTorch has the slope in Float32"},
        {"nn.functional.hardtanh",
         [](Call& c) { return clamp(c.array(0), c.real(1, "min_val", -1), c.real(2, "max_val", 1)); }},
        {"nn.functional.hardshrink", shrunk},
        {"nn.functional.softshrink", [](Call& c) { return softshrink(c.array(0), c.real(1, "lambd", 0.5)); }},
        {"nn.functional.softplus", softplus_of},
        {"nn.functional.softsign", softsign},
        {"nn.functional.logsigmoid", logsigmoid},
        {"nn.functional.tanhshrink", tanhshrink},
        {"nn.functional.threshold",
         [](Call& c) { return where(c.array(0) > c.real(1, "threshold", 0), c.array(0), c.array(2, "value")); }},
        {"nn.functional.linear", linear},
        {"nn.functional.embedding", embedded},
        {"nn.functional.bilinear",
         [](Call& c) {
           const Array x = c.array(0), y = c.array(1), w = c.array(2);
           if (x.rank() > 2) throw Refused("bilinear: vectors or a batch of them");
           const Array z = x.rank() == 1 ? einsum("j,i,jio->o", {y, x, w}) : einsum("jb,ib,jio->ob", {y, x, w});
           return c.has(3, "bias") ? z + c.array(3, "bias") : z;
         }},
    });

const Table windows("networks", {
                                    {"nn.functional.conv1d", convolved<1>},
                                    {"nn.functional.conv2d", convolved<2>},
                                    {"nn.functional.conv3d", convolved<3>},
                                    {"nn.functional.conv_transpose1d", convolved_back<1>},
                                    {"nn.functional.conv_transpose2d", convolved_back<2>},
                                    {"nn.functional.conv_transpose3d", convolved_back<3>},
                                    {"nn.functional.avg_pool1d", averaged<1>},
                                    {"nn.functional.avg_pool2d", averaged<2>},
                                    {"nn.functional.avg_pool3d", averaged<3>},
                                    {"nn.functional.max_pool1d", largest<1>},
                                    {"nn.functional.max_pool2d", largest<2>},
                                    {"nn.functional.max_pool3d", largest<3>},
                                    {"nn.functional.adaptive_avg_pool1d", averaged_to<1>, 1, other_windows},
                                    {"nn.functional.adaptive_avg_pool2d", averaged_to<2>, 1, other_windows},
                                    {"nn.functional.adaptive_avg_pool3d", averaged_to<3>, 1, other_windows},
                                    {"nn.functional.adaptive_max_pool1d", largest_to<1>, 1, other_windows},
                                    {"nn.functional.adaptive_max_pool2d", largest_to<2>, 1, other_windows},
                                    {"nn.functional.adaptive_max_pool3d", largest_to<3>, 1, other_windows},
                                });

const Table norms("networks", {
                                  {"nn.functional.batch_norm", batch_norm, 10},
                                  {"nn.functional.instance_norm", instance_norm, 10},
                                  {"nn.functional.layer_norm", layer_norm, 10},
                                  {"native_layer_norm", layer_norm_with_statistics, 10},
                                  {"nn.functional.rms_norm", rms_norm, 10},
                                  {"nn.functional.group_norm", group_norm, 10},
                              });

/// The size or the scale of pictures, and what mode says.
InterpolateOptions interpolation(Call& c, int spatial, Interpolation mode) {
  InterpolateOptions options;
  options.mode = mode;
  const bool by_size = c.has(1, "size");
  if (by_size) options.size = extents(c, 1, "size");
  const Value* const scale = c.find(2, "scale_factor");
  const bool rounded = c.flag(-1, "recompute_scale_factor", false);
  if (scale && scale->kind == Value::Kind::list) {
    for (const Value& one : scale->items) options.scale.insert(options.scale.begin(), one.number);
  } else if (scale) {
    options.scale.assign(static_cast<size_t>(spatial), scale->number);
  }
  c.text(3, "mode");
  options.align_corners = c.flag(4, "align_corners", false);
  if (!rounded || by_size) return options;
  Sizes sizes;  // the factor is that of the sizes
  for (int d = 0; d < spatial; ++d) {
    sizes.push_back(
        static_cast<int64_t>(static_cast<double>(c.array(0).size(d)) * options.scale[static_cast<size_t>(d)]));
  }
  options.scale.clear();
  options.size = Extents(std::span<const int64_t>(sizes));
  return options;
}
template <Interpolation mode> Array resampled(Call& c) {
  const Array x = c.array(0);
  return interpolate(x, interpolation(c, x.rank() - 2, mode));
}
Array upsampled(Call& c) {
  InterpolateOptions options = interpolation(c, 2, Interpolation::linear);
  options.align_corners = true;
  return interpolate(c.array(0), options);
}

Array sampled(Call& c) {
  GridSampleOptions options;
  const std::string mode = c.text(2, "mode", "bilinear"), border = c.text(3, "padding_mode", "zeros");
  if (mode == "bicubic") throw Refused("grid_sample: nearest and linear alone");
  options.nearest = mode == "nearest";
  options.border = border == "border"       ? GridBorder::border
                   : border == "reflection" ? GridBorder::reflection
                                            : GridBorder::zeros;
  options.align_corners = c.flag(4, "align_corners", false);
  return grid_sample(c.array(0), c.array(1), options);
}

Array columns(Call& c) {
  const UnfoldOptions options{
      .stride = extents(c, 4, "stride"), .pad = extents(c, 3, "padding"), .dilation = extents(c, 2, "dilation")};
  return with_batch(c.array(0), 4, [&](const Array& x) { return unfold(x, extents(c, 1, "kernel_size"), options); });
}

/// Dims of PyTorch's x split and joined: (.., c r r, h, w) and (.., c, h r, w r).
Array shuffled(Call& c) {
  const int64_t r = c.integer(1, "upscale_factor", 1);
  return with_batch(c.array(0), 4, [&](const Array& x) { return PixelShuffle(r)(x); });
}
Array unshuffled(Call& c) {
  const int64_t r = c.integer(1, "downscale_factor", 1);
  return with_batch(c.array(0), 4, [&](const Array& x) {
    const Array parts = reshape(x, {r, x.size(0) / r, r, x.size(1) / r, x.size(2), x.size(3)});
    return reshape(permute(parts, {1, 3, 0, 2, 4, 5}), {x.size(0) / r, x.size(1) / r, x.size(2) * r * r, x.size(3)});
  });
}
Array channels_shuffled(Call& c) {
  const Array x = c.array(0);
  const int64_t groups = c.integer(1, "groups", 1), channels = x.size(-2);
  const Array parts = reshape(x, {-1, channels / groups, groups, x.size(-1)});
  return reshape(permute(parts, {0, 2, 1, 3}), x.shape());
}

Array pairwise_distance(Call& c) {
  const Array difference = c.array(0) - c.array(1) + c.real(3, "eps", 1e-6);
  const Array y = linalg::vector_norm(difference, c.real(2, "p", 2), 0);
  return c.flag(4, "keepdim", false) ? y : squeeze(y, 0);
}
Array cosine(Call& c) {
  const Array a = c.array(0), b = c.array(1), both = zeros_like(a + b), x = a + both, y = b + both;
  const int dim = c.dim(both, -1, "dim", 1);
  const double eps = c.real(-1, "eps", 1e-8);
  const Array product = sum((x / max(norm(x, dim), eps)) * (y / max(norm(y, dim), eps)), dim);
  return both.rank() ? squeeze(product, dim) : product;
}

/// PyTorch's heads are a dim: (E, L, heads, batch) here; dot_product_attention has them in the features.
Array attended(Call& c) {
  Array q = c.array(0), k = c.array(1), v = c.array(2);
  AttentionOptions options;
  options.causal = c.flag(-1, "is_causal", false);
  c.real(-1, "dropout_p", 0) == 0 ? void() : throw Refused("random numbers");
  if (options.causal && q.size(1) != k.size(1)) {  // PyTorch's first query sees the first key alone
    options.causal = false;
    options.mask = reshape(arange(k.size(1)), {-1, 1}) <= reshape(arange(q.size(1)), {1, -1});
  }
  const bool grouped = c.flag(-1, "enable_gqa", false);
  const int64_t heads = q.rank() > 3 ? q.size(2) : 1;
  options.heads = heads;
  options.kv_heads = grouped && k.rank() > 3 ? k.size(2) : 0;
  if (const Array mask = c.array_or_nothing(-1, "attn_mask"); !mask.is_nothing()) {
    (mask.dtype() == Bool ? options.mask : options.bias) = mask;
  }
  options.scale = c.real(-1, "scale", 0);
  const auto merged = [](const Array& x) {
    if (x.rank() < 4) return x;
    return reshape(permute(x, {0, 2, 1, 3}), {x.size(0) * x.size(2), x.size(1), x.size(3)});
  };
  const Array y = dot_product_attention(merged(q), merged(k), merged(v), options).out;
  if (q.rank() < 4) return y;
  return permute(reshape(y, {v.size(0), heads, q.size(1), q.size(3)}), {0, 2, 1, 3});
}

const Table pictures("networks", {
                                     {"nn.functional.interpolate/nearest", resampled<Interpolation::nearest>},
                                     {"nn.functional.interpolate/linear", resampled<Interpolation::linear>},
                                     {"nn.functional.interpolate/bilinear", resampled<Interpolation::linear>},
                                     {"nn.functional.interpolate/trilinear", resampled<Interpolation::linear>},
                                     {"nn.functional.interpolate/bicubic", resampled<Interpolation::cubic>},
                                     {"nn.functional.interpolate/area", resampled<Interpolation::area>},
                                     {"nn.functional.upsample_bilinear", upsampled},
                                     {"nn.functional.upsample_nearest", resampled<Interpolation::nearest>},
                                     {"nn.functional.grid_sample", sampled},
                                     {"nn.functional.unfold", columns},
                                     {"nn.functional.pixel_shuffle", shuffled},
                                     {"nn.functional.pixel_unshuffle", unshuffled},
                                     {"nn.functional.channel_shuffle", channels_shuffled},
                                     {"nn.functional.pairwise_distance", pairwise_distance},
                                     {"nn.functional.cosine_similarity", cosine},
                                     {"nn.functional.scaled_dot_product_attention", attended},
                                 });

}  // namespace
}  // namespace rosin::opinfo
