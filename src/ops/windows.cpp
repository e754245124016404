// Reading of strides, pads and dilations.
#include "ops/windows.hpp"

namespace rosin {

int64_t extent_for(std::string_view op, std::string_view what, const Extents& values, int d, int spatial,
                   int64_t otherwise) {
  const auto list = values.list();
  if (list.empty()) return otherwise;
  if (list.size() == 1) return list[0];
  if (list.size() == static_cast<size_t>(spatial)) return list[static_cast<size_t>(d)];
  refuse(ErrorKind::argument, op, std::string(what) + " has one number or one for each spatial dim",
         std::to_string(list.size()) + " numbers for " + std::to_string(spatial) + " dims", "give one for each dim");
}

Padding padding_for(std::string_view op, const Extents& pad, int d, int spatial) {
  const auto list = pad.list();
  if (list.size() == static_cast<size_t>(2 * spatial)) {
    const auto at = static_cast<size_t>(2 * d);
    return {list[at], list[at + 1]};
  }
  const int64_t both = extent_for(op, "pad", pad, d, spatial, 0);
  return {both, both};
}

int spatial_dims(std::string_view op, const Array& x) {
  const int spatial = x.rank() - 2;
  if (spatial >= 1 && spatial <= 3) return spatial;
  refuse(ErrorKind::shape, op, "x must be (spatial..., channels, batch) with one to three spatial dims",
         to_string(x.shape()), "add missing dims of size 1 with unsqueeze");
}

}  // namespace rosin
