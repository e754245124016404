// Conversions of ops that move elements or make them from nothing. Read first: convert.hpp.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "onnx/convert.hpp"

namespace rosin::onnx {
namespace {

Array as_sizes(const std::vector<int64_t>& list) { return worked_out(list, {static_cast<int64_t>(list.size())}); }

/// The start and end of a range of one axis as indices in [0, size], or [-1, size - 1] where the step is negative.
std::pair<int64_t, int64_t> bounded(int64_t start, int64_t end, int64_t step, int64_t size) {
  const auto counted = [&](int64_t at) { return at < 0 ? at + size : at; };
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  return {std::clamp(counted(start), step > 0 ? low : int64_t{0}, high), std::clamp(counted(end), low, high)};
}

Array sliced(const Array& x, int dim, int64_t start, int64_t end, int64_t step) {
  const auto [first, stop] = bounded(start, end, step, x.size(dim));
  if (step > 0 ? first >= stop : first <= stop) return slice(x, dim, 0, 0);
  return slice(x, dim, first, stop < 0 ? to_end : stop, step);
}

/// Where each element of a padded dim comes from.
std::vector<int64_t> padded_places(int64_t size, int64_t low, int64_t high, const std::string& mode) {
  std::vector<int64_t> places;
  for (int64_t i = -low; i < size + high; ++i) {
    int64_t at = i;
    if (mode == "edge") {
      at = std::clamp(i, int64_t{0}, size - 1);
    } else if (mode == "wrap") {
      at = (i % size + size) % size;
    } else {
      const int64_t period = std::max<int64_t>(2 * (size - 1), 1);
      at = (i % period + period) % period;
      if (at >= size) at = period - at;
    }
    places.push_back(at);
  }
  return places;
}

Array padded(const NodeCall& call, const Array& x, int dim, int64_t low, int64_t high, const Array& value) {
  const std::string mode = call.text("mode", "constant");
  Array y = x;
  if (low < 0 || high < 0) {
    const int64_t from = std::max<int64_t>(-low, 0);
    y = slice(y, dim, from, std::max(from, x.size(dim) - std::max<int64_t>(-high, 0)));
  }
  low = std::max<int64_t>(low, 0);
  high = std::max<int64_t>(high, 0);
  if (low == 0 && high == 0) return y;
  if (mode == "constant") return pad(y, dim, low, high, value);
  if (mode != "reflect" && mode != "edge" && mode != "wrap") call.refuse("the mode of a pad must be known", mode);
  if (y.size(dim) == 0) call.refuse("what is padded by its own elements must have some", "none");
  if (low + high > (int64_t{1} << 24))
    call.refuse("a dim is padded by at most 2^24 elements", std::to_string(low + high));
  return gather(y, as_sizes(padded_places(y.size(dim), low, high, mode)), dim);
}

/// Blocks of channels and space change places. `order` is of the dims of the split array.
Array rearranged(const Array& x, std::initializer_list<int64_t> split, std::initializer_list<int> order,
                 std::initializer_list<int64_t> sizes) {
  return reshape(permute(reshape(x, split), order), sizes);
}

int64_t block_size(const NodeCall& call) {
  const int64_t block = call.integer("blocksize", 0);
  if (block < 1 || block > 1 << 15 || call[0].rank() != 4)
    call.refuse("blocks are of images, with a size", std::to_string(block));
  return block;
}

}  // namespace

Arrays constant_value(const NodeCall& call) {
  if (const Attribute* value = call.find("value")) return {value->tensor};
  if (const Attribute* value = call.find("value_float")) return {full({}, static_cast<double>(value->real), Float32)};
  if (const Attribute* value = call.find("value_int")) return {worked_out(std::vector<int64_t>{value->integer}, {})};
  if (call.find("value_ints")) return {as_sizes(call.integers("value_ints"))};
  if (call.find("value_floats")) {
    const std::vector<double> values = call.reals("value_floats");
    return {worked_out(values, {static_cast<int64_t>(values.size())}, Float32)};
  }
  call.refuse("a constant must be dense numbers", "something else");
}

Arrays shape_of(const NodeCall& call) {
  const std::vector<int64_t> sizes = reversed(sizes_of(call[0]));
  const auto rank = static_cast<int64_t>(sizes.size());
  const auto bound = [&](int64_t at) { return std::clamp(at < 0 ? at + rank : at, int64_t{0}, rank); };
  const int64_t first = bound(call.integer("start", 0)), last = std::max(first, bound(call.integer("end", rank)));
  return {as_sizes({sizes.begin() + first, sizes.begin() + last})};
}

Arrays size_value(const NodeCall& call) { return {worked_out(std::vector<int64_t>{call[0].count()}, {})}; }

Arrays reshape_value(const NodeCall& call) {
  const Array& x = call[0];
  std::vector<int64_t> wanted = reversed(call.integers_either(1, "shape"));
  const std::vector<int64_t> sizes = sizes_of(x);
  const size_t kept = wanted.size();  // axis a of the one is axis a of the other, from the end on
  for (size_t d = 0; d < kept && call.integer("allowzero", 0) == 0; ++d) {
    if (wanted[d] != 0) continue;
    if (kept - d > sizes.size()) call.refuse("a size of 0 stands for one of the input's", "an axis beyond them");
    wanted[d] = sizes[sizes.size() - (kept - d)];
  }
  return {reshape(x, wanted)};
}

Arrays flatten_value(const NodeCall& call) {
  const Array& x = call[0];
  const int64_t rank = x.rank(), axis = call.integer("axis", 1);
  if (axis < -rank || axis > rank) call.refuse("an axis must be one of the input's", std::to_string(axis));
  const auto inner = static_cast<size_t>(rank - (axis < 0 ? axis + rank : axis));
  const std::vector<int64_t> sizes = sizes_of(x);
  return {reshape(x, {product(std::span<const int64_t>(sizes).first(inner)),
                      product(std::span<const int64_t>(sizes).subspan(inner))})};
}

Arrays squeeze_value(const NodeCall& call) {
  if (!call.has_either(1, "axes")) return {squeeze(call[0])};
  const std::vector<int> dims = call.dims(call.integers_either(1, "axes"), call[0].rank());
  return {dims.empty() ? call[0] : squeeze(call[0], std::span<const int>(dims))};
}

Arrays unsqueeze_value(const NodeCall& call) {
  const Array& x = call[0];
  const std::vector<int64_t> axes = call.integers_either(1, "axes");
  const size_t rank = static_cast<size_t>(x.rank()) + axes.size();
  std::vector<int64_t> sizes(rank, -1);
  for (int dim : call.dims(axes, static_cast<int64_t>(rank))) {
    if (sizes[static_cast<size_t>(dim)] == 1) call.refuse("axes must be different", std::to_string(dim) + " twice");
    sizes[static_cast<size_t>(dim)] = 1;
  }
  int next = 0;
  for (int64_t& size : sizes) {
    if (size < 0) size = x.size(next++);
  }
  return {reshape(x, sizes)};
}

Arrays transpose_value(const NodeCall& call) {
  const Array& x = call[0];
  const int rank = x.rank();
  std::vector<int64_t> axes = call.integers("perm");
  if (axes.empty()) {
    for (int a = rank - 1; a >= 0; --a) axes.push_back(a);
  }
  if (static_cast<int>(axes.size()) != rank) call.refuse("perm must name every axis", std::to_string(axes.size()));
  std::vector<int> order = call.dims(axes, rank);
  std::reverse(order.begin(), order.end());
  return {permute(x, order)};
}

Arrays concat_values(const NodeCall& call) {
  for (size_t i = 0; i < call.input_count(); ++i) call[i];
  return {concat(call.inputs(), call.dim(call.integer("axis", 1), call[0].rank()))};
}

Arrays split_value(const NodeCall& call) {
  const Array& x = call[0];
  const int dim = call.dim(call.integer("axis", 0), x.rank());
  std::vector<int64_t> sizes = call.integers_either(1, "split");
  if (sizes.empty()) {
    const auto parts = static_cast<int64_t>(call.output_count());
    if (parts == 0) call.refuse("a split must have outputs", "none");
    const int64_t size = (x.size(dim) + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp(x.size(dim) - i * size, int64_t{0}, size));
  }
  return split(x, sizes, dim);
}

Arrays slice_value(const NodeCall& call) {
  Array x = call[0];
  const std::vector<int64_t> starts = call.integers_either(1, "starts"), ends = call.integers_either(2, "ends");
  std::vector<int64_t> axes = call.integers_either(3, "axes"), steps;
  if (call.has(4)) steps = call.integers_in(4);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  steps.resize(axes.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size()) {
    call.refuse(
        "starts, ends and axes must be as many",
        std::to_string(starts.size()) + " and " + std::to_string(ends.size()) + " and " + std::to_string(axes.size()));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) call.refuse("a step must not be 0", "0");
    const int64_t step = std::clamp(steps[i], -(int64_t{1} << 60), int64_t{1} << 60);
    x = sliced(x, call.dim(axes[i], x.rank()), starts[i], ends[i], step);
  }
  return {x};
}

Arrays expand_value(const NodeCall& call) {
  const Array& x = call[0];
  std::vector<int64_t> wanted = reversed(call.integers_in(1));
  const std::vector<int64_t> sizes = sizes_of(x);
  wanted.resize(std::max(wanted.size(), sizes.size()), 1);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (wanted[d] == 1) wanted[d] = sizes[d];
  }
  return {expand(x, Shape(std::span<const int64_t>(wanted)))};
}

Arrays tile_value(const NodeCall& call) {
  if (call.opset() < 6) return {tile(call[0], call.integer_in(1), call.dim(call.integer_in(2), call[0].rank()))};
  return {tile(call[0], reversed(call.integers_in(1)))};
}

Arrays pad_value(const NodeCall& call) {
  Array x = call[0];
  const std::vector<int64_t> widths = call.opset() < 2 ? call.integers("paddings") : call.integers_either(1, "pads");
  std::vector<int64_t> axes = call.has(3) ? call.integers_in(3) : std::vector<int64_t>();
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(x.rank()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (widths.size() != 2 * axes.size()) call.refuse("pads must be two for each axis", std::to_string(widths.size()));
  const Array value = call.has(2) ? reshape(call[2], Shape()) : as(call.real("value", 0), x.dtype());
  for (int64_t width : widths) {
    if (std::abs(width / 2) > int64_t{1} << 40) call.refuse("a pad is at most 2^40", std::to_string(width));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    x = padded(call, x, call.dim(axes[i], x.rank()), widths[i], widths[i + axes.size()], value);
  }
  return {x};
}

/// The middle of each dim, or zeros on both sides; of an odd number the larger part stands behind.
Arrays center_crop_pad(const NodeCall& call) {
  Array x = call[0];
  const std::vector<int64_t> sizes = call.integers_in(1);
  std::vector<int64_t> axes = call.integers("axes");
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(x.rank()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (sizes.size() != axes.size()) call.refuse("there must be a size for each axis", std::to_string(sizes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int dim = call.dim(axes[i], x.rank());
    const int64_t more = sizes[i] - x.size(dim);
    if (sizes[i] < 0 || more > int64_t{1} << 40) call.refuse("a size is 0 to 2^40", std::to_string(sizes[i]));
    x = more < 0 ? slice(x, dim, -more / 2, -more / 2 + sizes[i]) : pad(x, dim, more / 2, more - more / 2);
  }
  return {x};
}

Arrays constant_of_shape(const NodeCall& call) {
  const std::vector<int64_t> sizes = reversed(call.integers_in(0));
  const Attribute* value = call.find("value");
  const Shape shape{std::span<const int64_t>(sizes)};
  return {value ? full(shape, reshape(value->tensor, Shape()), value->tensor.dtype()) : zeros(shape, Float32)};
}

Arrays range_value(const NodeCall& call) {
  const DType type = call[0].dtype();
  if (is_integer(type)) {
    const int64_t start = call.integer_in(0), stop = call.integer_in(1), step = call.integer_in(2);
    if (step == 0) call.refuse("a step must not be 0", "0");
    return {as(arange(start, stop, step), type)};
  }
  const double start = call.real_in(0), stop = call.real_in(1), step = call.real_in(2);
  if (step == 0) call.refuse("a step must not be 0", "0");
  return {arange(start, stop, step, type)};
}

Arrays eye_like(const NodeCall& call) {
  const Array& x = call[0];
  const DType type = call.find("dtype") ? stated_type(call, call.integer("dtype", 1)) : x.dtype();
  if (x.rank() != 2) call.refuse("the input must be a matrix", to_string(x.shape()));
  const Array column = arange(x.size(0)), row = unsqueeze(arange(x.size(1)), 0);
  return {as(eq(column, row + call.integer("k", 0)), type)};
}

/// The file's rows are dim 1 here, so its upper triangle is a lower one.
Arrays trilu(const NodeCall& call) {
  const int64_t k = call.has(1) ? call.integer_in(1) : 0;
  return {call.integer("upper", 1) != 0 ? tril(call[0], -k) : triu(call[0], -k)};
}

Arrays depth_to_space(const NodeCall& call) {
  const Array& x = call[0];
  const int64_t b = block_size(call), w = x.size(0), h = x.size(1), c = x.size(2) / (b * b), n = x.size(3);
  if (call.text("mode", "DCR") == "DCR") {
    return {rearranged(x, {w, h, c, b, b, n}, {3, 0, 4, 1, 2, 5}, {w * b, h * b, c, n})};
  }
  return {rearranged(x, {w, h, b, b, c, n}, {2, 0, 3, 1, 4, 5}, {w * b, h * b, c, n})};
}

Arrays space_to_depth(const NodeCall& call) {
  const Array& x = call[0];
  const int64_t b = block_size(call), w = x.size(0) / b, h = x.size(1) / b, c = x.size(2), n = x.size(3);
  if (call.text("mode", "DCR") != "DCR") {
    return {rearranged(x, {b, w, b, h, c, n}, {1, 3, 0, 2, 4, 5}, {w, h, c * b * b, n})};
  }
  return {rearranged(x, {b, w, b, h, c, n}, {1, 3, 4, 0, 2, 5}, {w, h, c * b * b, n})};
}

}  // namespace rosin::onnx
