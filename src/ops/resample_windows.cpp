// Windows as columns, and back; see rosin/resample.hpp. Along each dim positions and elements of windows are two dims,
// which one gather makes and one scatter undoes.
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/resample.hpp>

#include "graph/context.hpp"
#include "ops/windows.hpp"

namespace rosin {
namespace {

/// The windows along one spatial dim of `size` elements.
struct Line {
  int64_t size, window, stride, dilation, count;
  Padding pad;

  /// The place of each element of each window in the padded dim: (count, window).
  Array places() const { return arange(count) * stride + reshape(arange(window) * dilation, {1, window}); }
  int64_t padded() const { return size + pad.low + pad.high; }
};

Line line_of(std::string_view op, int64_t size, const Extents& window, const UnfoldOptions& options, int d,
             int spatial) {
  Line line{.size = size,
            .window = extent_for(op, "window", window, d, spatial, 0),
            .stride = extent_for(op, "stride", options.stride, d, spatial, 1),
            .dilation = extent_for(op, "dilation", options.dilation, d, spatial, 1),
            .count = 0,
            .pad = padding_for(op, options.pad, d, spatial)};
  const int64_t reach = (line.window - 1) * line.dilation + 1;
  if (line.window < 1 || line.stride < 1 || line.dilation < 1 || line.padded() < reach) {
    refuse(ErrorKind::argument, op, "a window of at least 1 fits into the padded dim",
           std::to_string(line.window) + " in " + std::to_string(size), "choose a smaller window, or pad");
  }
  line.count = (line.padded() - reach) / line.stride + 1;
  return line;
}

std::vector<Line> lines_of(std::string_view op, std::span<const int64_t> sizes, const Extents& window,
                           const UnfoldOptions& options) {
  std::vector<Line> lines;
  const int spatial = static_cast<int>(sizes.size());
  for (int d = 0; d < spatial; ++d) {
    lines.push_back(line_of(op, sizes[static_cast<size_t>(d)], window, options, d, spatial));
  }
  return lines;
}

/// From (positions, window) of each dim, then the rest, to all positions, all windows, the rest; or back.
std::vector<int> order_of(int spatial, bool back) {
  std::vector<int> order;
  for (int d = 0; d < 2 * spatial; ++d) {
    order.push_back(back ? d / 2 + d % 2 * spatial : d % spatial * 2 + d / spatial);
  }
  order.push_back(2 * spatial);
  order.push_back(2 * spatial + 1);
  return order;
}

}  // namespace

Array unfold(const Array& x, const Extents& window, const UnfoldOptions& options) {
  const int spatial = spatial_dims("unfold", x);
  const DeviceScope scope(*x.node());
  const Shape shape = x.shape();
  const std::span<const int64_t> sizes = sizes_of(shape).first(static_cast<size_t>(spatial));
  Array y = x;
  int64_t positions = 1, elements = x.size(spatial);  // no -1 in the reshape: the batch may be empty
  int dim = 0;
  for (const Line& line : lines_of("unfold", sizes, window, options)) {
    y = gather(pad(y, dim, line.pad.low, line.pad.high), line.places(), dim);
    positions *= line.count;
    elements *= y.size(dim) * y.size(dim + 1) / line.count;
    dim += 2;
  }
  return reshape(permute(y, order_of(spatial, false)), {positions, elements, x.size(spatial + 1)});
}

Array fold(const Array& y, const Extents& size, const Extents& window, const UnfoldOptions& options) {
  const int spatial = static_cast<int>(size.list().size());
  const std::vector<Line> lines = lines_of("fold", size.list(), window, options);
  std::vector<int64_t> sizes;
  int64_t positions = 1, elements = 1;
  for (const Line& line : lines) sizes.push_back(line.count), positions *= line.count;
  for (const Line& line : lines) sizes.push_back(line.window), elements *= line.window;
  if (spatial < 1 || spatial > 3 || y.rank() != 3 || y.size(0) != positions || y.size(1) % elements != 0) {
    refuse(ErrorKind::shape, "fold",
           "it takes (" + std::to_string(positions) + " positions, " + std::to_string(elements) + " * channels, batch)",
           to_string(y.shape()), "give the sizes and options of unfold");
  }
  const DeviceScope scope(*y.node());
  sizes.push_back(y.size(1) / elements);
  sizes.push_back(y.size(2));
  Array x = permute(reshape(y, sizes), order_of(spatial, true));
  for (int d = spatial - 1; d >= 0; --d) {
    const Line& line = lines[static_cast<size_t>(d)];
    const Array none = zeros(with_dims(x.shape(), 2 * d, 2, {line.padded()}), x.dtype());
    x = slice(scatter_add(none, line.places(), x, 2 * d), 2 * d, line.pad.low, line.pad.low + line.size);
  }
  return x;
}

}  // namespace rosin
