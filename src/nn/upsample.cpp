// Upsample and PixelShuffle: see rosin/upsample.hpp.
#include <rosin/upsample.hpp>

#include <algorithm>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/host_vector.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
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
  std::vector<int64_t> source = host_vector<int64_t>("Upsample", out);
  for (int64_t i = 0; i < out; ++i) source[static_cast<size_t>(i)] = i * in / out;
  return gather(x, in_scope(Array(source, {out})), dim);
}

/// Element i of the result lies at i * (in - 1) / (out - 1), between two elements of x.
Array linear_along(const Array& x, int dim, int64_t out) {
  const DeviceScope scope(*x.node());
  const int64_t in = x.size(dim);
  std::vector<int64_t> below = host_vector<int64_t>("Upsample", out), above = host_vector<int64_t>("Upsample", out);
  std::vector<double> part = host_vector<double>("Upsample", out);
  for (size_t i = 0; i < below.size(); ++i) {
    const double place =
        out > 1 ? static_cast<double>(i) * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    below[i] = std::min(static_cast<int64_t>(place), in - 1);
    above[i] = std::min(below[i] + 1, in - 1);
    part[i] = place - static_cast<double>(below[i]);
  }
  const Array weight = in_scope(cast(Array(part, vector_along(dim, x.rank(), out)), x.dtype()));
  const Array low = gather(x, in_scope(Array(below, {out})), dim);
  const Array high = gather(x, in_scope(Array(above, {out})), dim);
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
  const int64_t in = x.size(dim), out = layer.size.empty() ? in * at(layer.scale, dim) : at(layer.size, dim);
  if (out >= 0 && (in == 0) == (out == 0)) return out;
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
    int64_t factor = 1;
    for (int d = 0; d < spatial; ++d) factor *= r;
    if (spatial < 1 || spatial > 3 || r < 1 || x.size(-2) % factor != 0) {
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
      together[d] = x.size(d) * r;
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

}  // namespace rosin
