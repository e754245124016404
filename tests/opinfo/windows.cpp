// Rows of torch.nn.functional that work on images: convolutions, pools, interpolation, grids. Read first: call.hpp.
#include <algorithm>
#include <cmath>

#include <rosin/rosin.hpp>

#include "call.hpp"

namespace rosin::opinfo {
namespace {

using Sizes = std::vector<int64_t>;

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

template <int spatial> Array averaged(Call& c) {
  const MeanWindowOptions options{.ceil = c.flag(4, "ceil_mode", false),
                                  .count_pad = c.flag(5, "count_include_pad", true),
                                  .divisor = c.integer(6, "divisor_override", 0)};
  const Extents window = extents(c, 1, "kernel_size"), pad = extents(c, 3, "padding");
  return with_batch(c.array(0), spatial + 2,
                    [&](const Array& all) { return meanpool(all, window, extents(c, 2, "stride"), pad, options); });
}
template <int spatial> Arrays largest(Call& c) {
  const WindowOptions options{.dilation = extents(c, 4, "dilation"), .ceil = c.flag(-1, "ceil_mode", false)};
  const Extents window = extents(c, 1, "kernel_size"), stride = extents(c, 2, "stride"), pad = extents(c, 3, "padding");
  if (!c.flag(-1, "return_indices", false)) {
    return {with_batch(c.array(0), spatial + 2,
                       [&](const Array& all) { return maxpool(all, window, stride, pad, options); })};
  }
  Array places;
  const Array y = with_batch(c.array(0), spatial + 2, [&](const Array& all) {
    const MaxPooled pooled = maxpool_with_indices(all, window, stride, pad, options);
    places = pooled.indices;
    return pooled.values;
  });
  return {y, reshape(places, y.shape())};
}

constexpr const char* equal_places = "of equal places PyTorch gives each the gradient, not the last one alone";
/// PyTorch's size is that of the windows unless it is told.
template <int spatial> Array spread(Call& c) {
  const Array y = c.array(0), places = c.array(1, "indices");
  const Extents window = extents(c, 2, "kernel_size"), stride = extents(c, 3, "stride"), pad = extents(c, 4, "padding");
  Sizes given = reversed(c.integers(5, "output_size"));
  if (given.size() > spatial) given.resize(spatial);  // channels and batch are among them
  Extents size{std::span<const int64_t>(given)};
  if (size.empty()) {
    const auto of = [](const Extents& all, int d, int64_t otherwise) {
      const auto list = all.list();
      return list.empty() ? otherwise : list[list.size() == 1 ? 0 : static_cast<size_t>(d)];
    };
    Sizes sizes;
    for (int d = 0; d < spatial; ++d) {
      const int64_t reach = of(window, d, 1);
      sizes.push_back((y.size(d) - 1) * of(stride, d, reach) - 2 * of(pad, d, 0) + reach);
    }
    size = Extents(std::span<const int64_t>(sizes));
  }
  const bool batched = y.rank() == spatial + 2;
  const Array back = max_unpool(batched ? y : unsqueeze(y, -1), batched ? places : unsqueeze(places, -1), size);
  return batched ? back : squeeze(back, -1);
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
template <int spatial> Array averaged_to(Call& c) {
  const Array x = c.array(0);
  const Extents size = reached(c, x, spatial);
  bool even = true;
  for (int d = 0; d < spatial; ++d) {
    even = even && x.size(d) % size.list()[size.list().size() == 1 ? 0 : static_cast<size_t>(d)] == 0;
  }
  return with_batch(x, spatial + 2, [&](const Array& all) {
    return even ? adaptive_meanpool(all, size) : interpolate(all, {.size = size, .mode = Interpolation::area});
  });
}
template <int spatial> Arrays largest_to(Call& c) {
  const Array x = c.array(0);
  const bool batched = x.rank() == spatial + 2;
  const MaxPooled pooled = adaptive_maxpool_with_indices(batched ? x : unsqueeze(x, -1), reached(c, x, spatial));
  const Arrays both = {batched ? pooled.values : squeeze(pooled.values, -1),
                       batched ? pooled.indices : squeeze(pooled.indices, -1)};
  return c.flag(2, "return_indices", false) ? both : Arrays{both[0]};
}

const Table windows("windows", {
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
                                   {"nn.functional.max_unpool1d", spread<1>, 1, equal_places},
                                   {"nn.functional.max_unpool1d/grad", spread<1>},
                                   {"nn.functional.max_unpool2d", spread<2>, 1, equal_places},
                                   {"nn.functional.max_unpool2d/grad", spread<2>},
                                   {"nn.functional.max_unpool3d", spread<3>, 1, equal_places},
                                   {"nn.functional.max_unpool3d/grad", spread<3>},
                                   {"nn.functional.adaptive_avg_pool1d", averaged_to<1>},
                                   {"nn.functional.adaptive_avg_pool2d", averaged_to<2>},
                                   {"nn.functional.adaptive_avg_pool3d", averaged_to<3>},
                                   {"nn.functional.adaptive_max_pool1d", largest_to<1>},
                                   {"nn.functional.adaptive_max_pool2d", largest_to<2>},
                                   {"nn.functional.adaptive_max_pool3d", largest_to<3>},
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
  options.mode = mode == "bicubic"   ? Interpolation::cubic
                 : mode == "nearest" ? Interpolation::nearest
                                     : Interpolation::linear;
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
  return with_batch(c.array(0), 4, [&](const Array& x) { return pixel_unshuffle(x, r); });
}
Array channels_shuffled(Call& c) {
  const Array x = c.array(0);
  const int64_t groups = c.integer(1, "groups", 1), channels = x.size(-2);
  const Array parts = reshape(x, {-1, channels / groups, groups, x.size(-1)});
  return reshape(permute(parts, {0, 2, 1, 3}), x.shape());
}

const Table pictures("windows",
                     {
                         {"nn.functional.interpolate/nearest", resampled<Interpolation::nearest>},
                         {"nn.functional.interpolate/nearest-exact", resampled<Interpolation::nearest_exact>},
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
                     });

}  // namespace
}  // namespace rosin::opinfo
