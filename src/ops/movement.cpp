// Movement ops: reshape, broadcast, permute, slice, pad, concat, each with its gradient as array ops.
// Read next: movement_forms.cpp (functions composed of these).
#include <rosin/movement.hpp>

#include <algorithm>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/free_list.hpp>
#include <rosin/reduce.hpp>

#include "base/sizes.hpp"
#include "graph/context.hpp"
#include "graph/handle.hpp"
#include "graph/integers.hpp"
#include "graph/leaf.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

void reshape_gradient(Backward& b) {
  b.give(0, is_scalar(*b.gradient.node()) ? b.gradient : reshape(b.gradient, b.in(0).shape()));
}

const Op& reshape_op = *register_op({.name = "reshape",
                                     .kind = Kind::movement,
                                     .operands = 1,
                                     .doc = "the same elements under other sizes",
                                     .movement = Movement::reshape,
                                     .gradient = reshape_gradient,
                                     .takes_number = true});

const Op& expand_op = *register_op({.name = "expand",
                                    .kind = Kind::movement,
                                    .operands = 1,
                                    .doc = "repeats dims of size 1 and missing last dims",
                                    .movement = Movement::broadcast,
                                    .gradient = [](Backward& b) { b.give(0, sum_to(b.gradient, b.in(0).shape())); }});

void permute_gradient(Backward& b) {
  const auto attributes = b.attributes<PermuteAttributes>();
  const int rank = b.node().rank;
  int inverse[Shape::max_rank];
  for (int d = 0; d < rank; ++d) inverse[attributes.from[d]] = d;
  b.give(0, permute(b.gradient, std::span<const int>(inverse, static_cast<size_t>(rank))));
}

const Op& permute_op = *register_op({.name = "permute",
                                     .kind = Kind::movement,
                                     .operands = 1,
                                     .doc = "dims in another order",
                                     .movement = Movement::permute,
                                     .attribute_words = 1,
                                     .gradient = permute_gradient});

// Puts g at the places start, start + step, ... of a dim of `size` elements; zeros elsewhere.
Array spread(const Array& g, int dim, int64_t start, int64_t step, int64_t size) {
  const int64_t count = g.size(dim);
  if (count == 0) return zeros(with_size(g.shape(), dim, size), g.dtype());
  if (step < 0) return spread(flip(g, dim), dim, start + (count - 1) * step, -step, size);
  if (step == 1) return pad(g, dim, start, size - start - count);
  const Fold fold = fold_at(g.shape(), dim);
  const Array apart = pad(reshape(g, {fold.inner, 1, count, fold.outer}), 1, 0, step - 1);
  const int64_t length = std::min(count * step, size - start);
  const Array line = slice(reshape(apart, {fold.inner, count * step, fold.outer}), 1, 0, length);
  return reshape(pad(line, 1, start, size - start - length), with_size(g.shape(), dim, size));
}

void slice_gradient(Backward& b) {
  const auto attributes = b.attributes<SliceAttributes>();
  const int dim = static_cast<int>(attributes.dim);
  b.give(0, spread(b.gradient, dim, attributes.start, attributes.step, b.in(0).size(dim)));
}

const Op& slice_op = *register_op({.name = "slice",
                                   .kind = Kind::movement,
                                   .operands = 1,
                                   .doc = "a range of one dim; the gradient is zero outside it",
                                   .movement = Movement::slice,
                                   .attribute_words = 3,
                                   .sizes_in_attributes = true,
                                   .gradient = slice_gradient});

void pad_gradient(Backward& b) {
  const auto attributes = b.attributes<PadAttributes>();
  const int dim = static_cast<int>(attributes.dim);
  const Array inside = slice(b.gradient, dim, attributes.low, attributes.low + b.in(0).size(dim));
  b.give(0, inside);
  if (b.needs(1)) b.give(1, sum(b.gradient) - sum(inside));
}

const Op& pad_op = *register_op({.name = "pad",
                                 .kind = Kind::movement,
                                 .operands = 2,
                                 .doc = "elements of one value before and after a dim",
                                 .movement = Movement::pad,
                                 .attribute_words = 3,
                                 .sizes_in_attributes = true,
                                 .gradient = pad_gradient});

void concat_gradient(Backward& b) {
  const int dim = static_cast<int>(b.attributes<DimAttributes>().dim);
  int64_t start = 0;
  for (int i = 0; i < b.operands(); ++i) {
    const int64_t size = b.in(i).size(dim);
    if (b.needs(i)) b.give(i, slice(b.gradient, dim, start, start + size));
    start += size;
  }
}

const Op& concat_op = *register_op({.name = "concat",
                                    .kind = Kind::movement,
                                    .operands = Op::any,
                                    .doc = "any number of arrays one after another along a dim",
                                    .movement = Movement::concat,
                                    .attribute_words = 1,
                                    .gradient = concat_gradient});

[[noreturn]] void refuse_reshape(const std::string& rule, std::span<const int64_t> sizes, const Array& x,
                                 std::string_view cure) {
  std::string wanted = "(";
  for (const int64_t size : sizes) wanted += (wanted.size() > 1 ? ", " : "") + std::to_string(size);
  refuse(ErrorKind::shape, "reshape", rule, to_string(x.shape()) + " -> " + wanted + ")", cure);
}

// The one size that was given as -1 is what the count leaves for it.
Shape completed(std::span<const int64_t> sizes, const Array& x) {
  const auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open != sizes.end() && std::find(open + 1, sizes.end(), -1) != sizes.end()) {
    refuse_reshape("only one size can be left open", sizes, x, "state all other sizes");
  }
  if (sizes.size() > size_t{Shape::max_rank}) return Shape(sizes);  // refuses
  int64_t all[Shape::max_rank];
  const auto rank = static_cast<int>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), all);
  if (open != sizes.end()) {
    int64_t& left = all[open - sizes.begin()];
    left = 1;
    const int64_t known = Shape(std::span<const int64_t>(all, sizes.size())).count();
    left = known > 0 && x.count() % known == 0 ? x.count() / known : 0;
  }
  const bool fits = std::none_of(all, all + rank, [](int64_t size) { return size < 0; }) && can_be_sizes(all, rank);
  const Shape shape = fits ? Shape(std::span<const int64_t>(all, sizes.size())) : Shape{};
  if (!fits || shape.count() != x.count()) {
    refuse_reshape("the number of elements must stay " + std::to_string(x.count()), sizes, x,
                   "leave one size to be computed by writing -1");
  }
  return shape;
}

// A place that may count from the end, at the nearest end of [low, high] where it lies outside.
int64_t place(int64_t at, int64_t size, int64_t low, int64_t high) {
  return std::clamp(at < 0 ? at + size : at, low, high);
}

void check_concat(const Array& first, const Array& other, size_t place_of_other, int dim) {
  const Shape a = first.shape(), b = other.shape();
  if (a.rank() == b.rank() && with_size(a, dim, 0) == with_size(b, dim, 0)) return;
  refuse(ErrorKind::shape, "concat", "all sizes but that of dim " + std::to_string(dim) + " must be equal",
         to_string(a) + " and, as array " + std::to_string(place_of_other) + ", " + to_string(b),
         "slice, pad or reshape before joining");
}

// What lists of arrays are made of on the way: a steady step takes nothing from the heap.
template <class T> using Few = std::vector<T, detail::FreeListAllocator<T>>;

}  // namespace

Array unreshaped(const Array& x) {
  const Node& node = *x.node();
  if (node.op != &reshape_op || node.recorder != Context::current_or_null()) return x;
  // Of one that a gradient call keeps it is the same operand: else the call would add up in another order once x had
  // been looked at.
  const bool pending = node.state.load(std::memory_order_relaxed) == NodeState::pending;
  if (!pending && !(node.kept && node.arrays()[0]->ready())) return x;
  Node* const from = node.arrays()[0];
  return handle_of(from);
}

/// A reshape of what this thread has reshaped looks at what that was made of: none stands between steps that could
/// fuse.
Array reshape(const Array& x, std::span<const int64_t> sizes) {
  require(reshape_op, x);
  const Shape shape = completed(sizes, x);
  const Array from = unreshaped(x);
  return shape == from.shape() ? from : record_one(reshape_op, from, from.dtype(), shape);
}

Array expand(const Array& x, const Shape& shape) {
  require(expand_op, x);
  if (x.shape() == shape) return x;
  if (!(broadcast_shapes("expand", x.shape(), shape) == shape)) {
    refuse(ErrorKind::shape, "expand", "only dims of size 1 and missing last dims can be repeated",
           to_string(x.shape()) + " -> " + to_string(shape), "insert dims of size 1 with unsqueeze or reshape");
  }
  return record_one(expand_op, x, x.dtype(), shape);
}

Array permute(const Array& x, std::span<const int> order) {
  require(permute_op, x);
  const Shape shape = x.shape();
  PermuteAttributes attributes;
  int64_t sizes[Shape::max_rank];
  unsigned seen = 0;
  bool identity = true;
  for (size_t d = 0; d < order.size() && order.size() == static_cast<size_t>(shape.rank()); ++d) {
    const int from = checked_dim("permute", order[d], shape);
    seen |= 1u << from;
    identity = identity && from == static_cast<int>(d);
    attributes.from[d] = static_cast<uint8_t>(from);
    sizes[d] = shape[from];
  }
  if (order.size() != static_cast<size_t>(shape.rank()) || seen != (1u << shape.rank()) - 1) {
    refuse(ErrorKind::shape, "permute", "the order must name each dim once",
           std::to_string(order.size()) + " dims for shape " + to_string(shape), "write e.g. permute(x, {1, 0, 2})");
  }
  if (identity) return x;
  return record_one(permute_op, x, x.dtype(), Shape(std::span<const int64_t>(sizes, order.size())),
                    Attributes::of(attributes));
}

Array slice(const Array& x, int dim, int64_t start, int64_t stop, int64_t step) {
  require(slice_op, x);
  const int at = checked_dim("slice", dim, x.shape());
  if (step == 0) {
    refuse(ErrorKind::argument, "slice", "the step cannot be 0",
           "start " + std::to_string(start) + ", stop " + std::to_string(stop), "use select for one element");
  }
  const bool up = step > 0;
  const int64_t size = x.size(at), low = up ? 0 : -1, high = up ? size : size - 1;
  const int64_t first = place(start, size, low, high);
  const int64_t last = stop == to_end ? (up ? size : -1) : place(stop, size, low, high);
  const int64_t span = up ? last - first : first - last;
  // Steps across the whole dim are all the same.
  const int64_t stride = up ? std::min(step, size + 1) : -std::max(step, -size - 1);
  const int64_t count = span > 0 ? (span - 1) / stride + 1 : 0;
  const SliceAttributes attributes{at, count > 0 ? first : 0, count > 1 ? (up ? stride : -stride) : 1};
  if (count == size && attributes.step == 1) return x;
  return record_one(slice_op, x, x.dtype(), with_size(x.shape(), at, count), Attributes::of(attributes));
}

Array pad(const Array& x, int dim, int64_t low, int64_t high, const Array& value) {
  require(pad_op, x);
  require(pad_op, value);
  const int at = checked_dim("pad", dim, x.shape());
  if (low < 0 || high < 0) {
    refuse(ErrorKind::argument, "pad", "widths cannot be negative",
           "low " + std::to_string(low) + ", high " + std::to_string(high), "use slice to cut");
  }
  if (value.rank() != 0) {
    refuse(ErrorKind::shape, "pad", "the value must be a number or 0-d", to_string(value.shape()),
           "use concat to join arrays");
  }
  if (low == 0 && high == 0) return x;
  require_held("pad", x.dtype(), value);
  const Array fill = value.dtype() == x.dtype() || is_scalar(*value.node()) ? value : cast(value, x.dtype());
  const Array* in[] = {&x, &fill};
  return record(pad_op, in, x.dtype(), with_size(x.shape(), at, sum_of_sizes("pad", {low, x.size(at), high})),
                Attributes::of(PadAttributes{at, low, high}));
}

Array concat(std::span<const Array> arrays, int dim) {
  if (arrays.empty()) {
    refuse(ErrorKind::argument, "concat", "there must be an array to join", "none", "check the list before the call");
  }
  Few<const Array*> in;
  in.reserve(arrays.size());
  for (const Array& x : arrays) {
    require(concat_op, x);
    in.push_back(&x);
  }
  const int at = checked_dim("concat", dim, arrays[0].shape());
  for (size_t i = 1; i < arrays.size(); ++i) check_concat(arrays[0], arrays[i], i, at);
  const DType type = common_type(concat_op, in);
  Few<Array> converted;
  converted.reserve(arrays.size());  // they are pointed to
  int64_t size = 0;
  for (const Array*& x : in) {
    size = sum_of_sizes("concat", {size, x->size(at)});
    if (x->dtype() == type) continue;
    converted.push_back(cast(*x, type));
    x = &converted.back();
  }
  if (in.size() == 1) return *in[0];
  return record(concat_op, in, type, with_size(arrays[0].shape(), at, size), Attributes::of(DimAttributes{at}));
}

}  // namespace rosin
