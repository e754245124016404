// Pooling over windows at places that are drawn; see rosin/fractional_pool.hpp. Made of gathers.
#include <rosin/fractional_pool.hpp>

#include <string>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "graph/context.hpp"
#include "graph/refuse_type.hpp"
#include "ops/reduction.hpp"
#include "ops/windows.hpp"

namespace rosin {
namespace {

/// (window, out, planes): the elements of the windows along one dim, by samples u (planes).
Array drawn_elements(const Array& u, int64_t in, int64_t window, int64_t out) {
  const Array places = reshape(wide(u), {1, -1});
  const double step = out > 1 ? static_cast<double>(in - window) / static_cast<double>(out - 1) : 0;
  const Array number = arange(out), begin = floor((number + places) * step) - floor(places * step);
  const Array first = cast(where(eq(number, out - 1), in - window, begin), Int64);
  return reshape(arange(window), {-1, 1, 1}) + reshape(first, {1, out, -1});
}

}  // namespace

MaxPooled fractional_maxpool(const Array& x, const Extents& window, const Extents& out, const Array& samples) {
  constexpr std::string_view name = "fractional_maxpool";
  if (x.is_nothing()) refuse(ErrorKind::argument, name, "x is an array", "nothing", "pass images");
  require_real(name, x);
  const int spatial = spatial_dims(name, x);
  const DeviceScope scope(*x.node());
  const Shape drawn = {spatial, x.size(-2), x.size(-1)};
  const Array u = samples.is_nothing() ? uniform(drawn) : samples;
  if (u.shape() != drawn) {
    refuse(ErrorKind::shape, name, "samples are (spatial dims, channels, batch)",
           to_string(u.shape()) + " for " + to_string(x.shape()), "leave them out to have them drawn");
  }
  const int64_t planes = x.size(-2) * x.size(-1);
  Array places = zeros({1, 1, planes}, Int64);
  Shape pooled = x.shape();
  int64_t plane = 1;
  for (int d = 0; d < spatial; ++d) {
    const int64_t in = x.size(d), reach = extent_for(name, "window", window, d, spatial, 1);
    const int64_t wanted = extent_for(name, "out", out, d, spatial, 1);
    if (wanted < 1 || reach < 1 || reach > in || wanted > in) {
      refuse(ErrorKind::shape, name, "windows and results lie in the image",
             std::to_string(reach) + " and " + std::to_string(wanted) + " in dim " + std::to_string(d) + " of " +
                 to_string(x.shape()),
             "check the sizes");
    }
    const Array here = drawn_elements(select(u, 0, d), in, reach, wanted) * plane;
    const Array sums =
        reshape(places, {places.size(0), 1, places.size(1), 1, planes}) + reshape(here, {1, reach, 1, wanted, planes});
    places = reshape(sums, {places.size(0) * reach, places.size(1) * wanted, planes});
    pooled = with_size(pooled, d, wanted);
    plane *= in;
  }
  const int64_t elements = places.size(0), windows = places.size(1);
  const Array columns = reshape(
      take_along(reshape(x, {plane, planes}), reshape(places, {elements * windows, planes}), 0), places.shape());
  const Array best = argmax(columns, 0);
  return {reshape(take_along(columns, best, 0), pooled), reshape(take_along(places, best, 0), pooled)};
}

}  // namespace rosin
