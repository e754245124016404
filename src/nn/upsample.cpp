// Upsample, PixelShuffle, PixelUnshuffle: see rosin/upsample.hpp.
#include <rosin/upsample.hpp>

#include <algorithm>
#include <vector>

#include <rosin/movement.hpp>
#include <rosin/resample.hpp>

#include "base/sizes.hpp"
#include "model/locate.hpp"
#include "nn/layer_parts.hpp"
#include "ops/weighed_taps.hpp"

namespace rosin {
namespace {

constexpr const char* mode_names[] = {"nearest", "linear", "bilinear", "trilinear"};

int64_t at(const Extents& extents, int dim) {
  const auto list = extents.list();
  return list[std::min(list.size() - 1, static_cast<size_t>(dim))];
}

/// Element i of the result is element floor(i * in / out) of x.
std::vector<int64_t> nearest(int64_t in, int64_t out) {
  require_resizable("Upsample", static_cast<double>(out));
  std::vector<int64_t> places;
  for (int64_t i = 0; i < out; ++i) places.push_back(i * in / out);
  return places;
}

std::string extents_text(const char* name, const Extents& extents) {
  const auto list = extents.list();
  if (list.empty()) return "";
  const int count = static_cast<int>(list.size());
  return std::string(", ") + name + " = " + (count == 1 ? std::to_string(list[0]) : tuple_text(list.data(), count));
}

}  // namespace

Upsample::Upsample(UpsampleMode how, const UpsampleOptions& options)
    : mode(how), scale(options.scale), size(options.size) {
  if (scale.empty() != size.empty()) return;
  throw Error(ErrorKind::argument,
              std::string("Upsample: either scale or size should be specified (but not both); got ") +
                  (scale.empty() ? "neither" : "both") + "; write Upsample(2) to double sizes");
}

namespace {

/// The size that a dim of `layer`'s input gets. Nothing can be spread, and only nothing can vanish.
int64_t size_after(const Upsample& layer, const Array& x, int dim) {
  const int64_t in = x.size(dim), stated = at(layer.size.empty() ? layer.scale : layer.size, dim);
  if (stated >= 0) {
    const int64_t out = layer.size.empty() ? product_of_sizes("Upsample", {in, stated}) : stated;
    if ((in == 0) == (out == 0)) return out;
  }
  refuse_input(layer.rosin_show(), "makes images of at least 1 element in each dim out of such", x,
               "give images with elements, and a positive scale or size");
}

}  // namespace

Array Upsample::operator()(const Array& x) const {
  return located(*this, [&] {
    const int spatial = x.rank() - 2, wanted = mode == UpsampleMode::nearest ? spatial : static_cast<int>(mode);
    if (spatial < 1 || spatial != wanted) {
      refuse_input(rosin_show(), "expects " + std::to_string(std::max(wanted, 1)) + " spatial dims", x,
                   "images are (spatial..., channels, batch)");
    }
    std::vector<int64_t> sizes;
    for (int d = 0; d < spatial; ++d) sizes.push_back(size_after(*this, x, d));
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) {
      sizes.insert(sizes.end(), {x.size(-2), x.size(-1)});
      return reshape(x, sizes);
    }
    if (mode != UpsampleMode::nearest) return interpolate(x, {.size = Extents(sizes), .align_corners = true});
    TapsKey key("Upsample");
    for (int d = 0; d < spatial; ++d) key.add(x.size(d)).add(sizes[static_cast<size_t>(d)]);
    return picked(x, 0, key, [&] {
      std::vector<std::vector<int64_t>> places;
      for (int d = 0; d < spatial; ++d) places.push_back(nearest(x.size(d), sizes[static_cast<size_t>(d)]));
      return places;
    });
  });
}

std::string Upsample::rosin_show() const {
  return std::string("Upsample(:") + mode_names[static_cast<int>(mode)] + extents_text("scale", scale) +
         extents_text("size", size) + ")";
}

Array PixelShuffle::operator()(const Array& x) const {
  return located(*this, [&] {
    const int spatial = x.rank() - 2;
    const bool images = spatial >= 1 && spatial <= 3 && r >= 1;
    int64_t factor = 1;
    for (int d = 0; images && d < spatial; ++d) factor = product_of_sizes("PixelShuffle", {factor, r});
    if (!images || x.size(-2) % factor != 0) {
      refuse_input(rosin_show(), "expects channels that are a multiple of r for each spatial dim", x,
                   "images are (spatial..., channels, batch)");
    }
    // (spatial..., r..., channels, batch), then each r before its dim.
    int64_t apart[Shape::max_rank], together[Shape::max_rank];
    int order[Shape::max_rank];
    for (int d = 0; d < spatial; ++d) {
      apart[d] = x.size(d);
      apart[spatial + d] = r;
      order[2 * d] = spatial + d;
      order[2 * d + 1] = d;
      together[d] = product_of_sizes("PixelShuffle", {x.size(d), r});
    }
    apart[2 * spatial] = together[spatial] = x.size(-2) / factor;
    apart[2 * spatial + 1] = together[spatial + 1] = x.size(-1);
    order[2 * spatial] = 2 * spatial;
    order[2 * spatial + 1] = 2 * spatial + 1;
    const size_t rank = static_cast<size_t>(2 * spatial + 2);
    const Array parts = permute(reshape(x, std::span<const int64_t>(apart, rank)), std::span<const int>(order, rank));
    return reshape(parts, std::span<const int64_t>(together, static_cast<size_t>(spatial + 2)));
  });
}

Array PixelUnshuffle::operator()(const Array& x) const {
  return located(*this, [&] {
    const int spatial = x.rank() - 2;
    bool fits = spatial >= 1 && spatial <= 3 && r >= 1;
    for (int d = 0; fits && d < spatial; ++d) fits = x.size(d) % r == 0;
    if (!fits) {
      refuse_input(rosin_show(), "expects sizes that r divides", x, "images are (spatial..., channels, batch)");
    }
    // Each r before its dim, then (spatial..., r..., channels, batch).
    std::vector<int64_t> apart, together;
    std::vector<int> order;
    int64_t channels = x.size(-2);
    for (int d = 0; d < spatial; ++d) {
      apart.insert(apart.end(), {r, x.size(d) / r});
      together.push_back(x.size(d) / r);
      order.push_back(2 * d + 1);
      channels *= r;
    }
    for (int d = 0; d < spatial; ++d) order.push_back(2 * d);
    apart.insert(apart.end(), {x.size(-2), x.size(-1)});
    together.insert(together.end(), {channels, x.size(-1)});
    order.insert(order.end(), {2 * spatial, 2 * spatial + 1});
    return reshape(permute(reshape(x, apart), order), together);
  });
}

}  // namespace rosin
