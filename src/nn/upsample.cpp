// Upsample, PixelShuffle, PixelUnshuffle: see rosin/upsample.hpp.
#include <rosin/upsample.hpp>

#include <algorithm>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "base/sizes.hpp"
#include "graph/context.hpp"
#include "graph/leaf.hpp"
#include "model/locate.hpp"
#include "nn/layer_parts.hpp"

namespace rosin {
namespace {

constexpr const char* mode_names[] = {"nearest", "linear", "bilinear", "trilinear"};

int64_t at(const Extents& extents, int dim) {
  const auto list = extents.list();
  return list[std::min(list.size() - 1, static_cast<size_t>(dim))];
}

Shape vector_along(int dim, int rank, int64_t size) {
  int64_t sizes[Shape::max_rank];
  std::fill_n(sizes, rank, 1);
  sizes[dim] = size;
  return Shape(std::span<const int64_t>(sizes, static_cast<size_t>(rank)));
}

/// Element i of the result is element floor(i * in / out) of x.
Array nearest_along(const Array& x, int dim, int64_t out) {
  const DeviceScope scope(*x.node());
  const int64_t in = x.size(dim);
  if (out % in == 0) return repeat(x, out / in, dim);
  product_of_sizes("Upsample", {in, out});
  return gather(x, table(leaf_of<int64_t>({out}, [=](int64_t i) { return i * in / out; })), dim);
}

/// Element i of the result lies at i * (in - 1) / (out - 1), between two elements of x.
Array linear_along(const Array& x, int dim, int64_t out) {
  const DeviceScope scope(*x.node());
  const int64_t in = x.size(dim);
  const auto place = [=](int64_t i) {
    return out > 1 ? static_cast<double>(i) * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  };
  const auto below = [=](int64_t i) { return std::min(static_cast<int64_t>(place(i)), in - 1); };
  const auto above = [=](int64_t i) { return std::min(below(i) + 1, in - 1); };
  const auto part = [=](int64_t i) { return place(i) - static_cast<double>(below(i)); };
  const Array weight = table(cast(leaf_of<double>(vector_along(dim, x.rank(), out), part), x.dtype()));
  const Array low = gather(x, table(leaf_of<int64_t>({out}, below)), dim);
  const Array high = gather(x, table(leaf_of<int64_t>({out}, above)), dim);
  return low + weight * (high - low);
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
    Array y = x;
    for (int d = 0; d < spatial; ++d) {
      const int64_t out = size_after(*this, x, d);
      if (out == 0) continue;
      y = mode == UpsampleMode::nearest ? nearest_along(y, d, out) : linear_along(y, d, out);
    }
    return y;
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
