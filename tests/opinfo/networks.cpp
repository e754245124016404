// Rows of torch.nn.functional: activations, normalisation, distances, attention. Read first: call.hpp.
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
        {"nn.functional.hardshrink", [](Call& c) { return hardshrink(c.array(0), c.real(1, "lambd", 0.5)); }},
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

const Table norms("networks", {
                                  {"nn.functional.batch_norm", batch_norm, 10},
                                  {"nn.functional.instance_norm", instance_norm, 10},
                                  {"nn.functional.layer_norm", layer_norm, 10},
                                  {"native_layer_norm", layer_norm_with_statistics, 10},
                                  {"nn.functional.rms_norm", rms_norm, 10},
                                  {"nn.functional.group_norm", group_norm, 10},
                              });

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

const Table pairs("networks", {
                                  {"nn.functional.pairwise_distance", pairwise_distance},
                                  {"nn.functional.cosine_similarity", cosine},
                                  {"nn.functional.scaled_dot_product_attention", attended},
                              });

}  // namespace
}  // namespace rosin::opinfo
