// Reductions that kernels know: sum, prod, maximum, minimum, any, all, argmax, argmin.
// Read next: statistics.cpp (mean, var, norm, ... made of these), scan.cpp (running sums and products).
#include <rosin/reduce.hpp>

#include <algorithm>
#include <limits>

#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
#include "graph/leaf.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/reducers.hpp"
#include "ops/reduction.hpp"
#include "ops/shapes.hpp"
#include "ops/windows.hpp"

namespace rosin {
namespace {

void sum_gradient(Backward& b) {
  b.give(0, is_scalar(*b.gradient.node()) ? b.gradient : expand(b.gradient, b.in(0).shape()));
}

const Op& sum_op = register_op({.name = "sum",
                                .kind = Kind::reduction,
                                .operands = 1,
                                .doc = "sum over dims; integers in Int64",
                                .type_rule = TypeRule::attribute,
                                .reducer = &sum_reducer,
                                .attribute_words = 1,
                                .gradient = sum_gradient,
                                .takes_number = true})
                       ->called(sum);

// The product of the others: the reduced dims are brought together as dim 0 unless there is only one.
void prod_gradient(Backward& b) {
  const uint64_t mask = b.attributes<ReductionAttributes>().dims;
  const Array x = b.in(0);
  int order[Shape::max_rank], inverse[Shape::max_rank];
  int count = 0;
  for (const bool wanted : {true, false}) {
    for (int d = 0; d < x.rank(); ++d) {
      if (((mask >> d) & 1) == (wanted ? 1u : 0u)) order[count++] = d;
    }
  }
  for (int d = 0; d < count; ++d) inverse[order[d]] = d;
  const auto rank = static_cast<size_t>(count);
  const Array moved = permute(x, std::span<const int>(order, rank));
  const Array others = product_of_others(reshape(moved, {reduced_count(x.shape(), mask), -1}), 0);
  b.give(0, permute(reshape(others, moved.shape()), std::span<const int>(inverse, rank)) * b.gradient);
}

const Op& prod_op = register_op({.name = "prod",
                                 .kind = Kind::reduction,
                                 .operands = 1,
                                 .doc = "product over dims; the gradient holds at zeros",
                                 .type_rule = TypeRule::attribute,
                                 .reducer = &product_reducer,
                                 .attribute_words = 1,
                                 .gradient = prod_gradient})
                        ->called(prod);

// Ties share.
void extremum_gradient(Backward& b) {
  const Array chosen = cast(eq(b.in(0), b.out()), b.out().dtype());
  b.give(0, chosen * (b.gradient / sum_over(chosen, b.attributes<ReductionAttributes>().dims)));
}

const Op& maximum_op = register_op({.name = "maximum",
                                    .kind = Kind::reduction,
                                    .operands = 1,
                                    .doc = "largest element over dims, NaN if there is one; ties share the gradient",
                                    .reducer = &maximum_reducer,
                                    .attribute_words = 1,
                                    .gradient = extremum_gradient})
                           ->called(maximum);
const Op& minimum_op = register_op({.name = "minimum",
                                    .kind = Kind::reduction,
                                    .operands = 1,
                                    .doc = "smallest element over dims, NaN if there is one; ties share the gradient",
                                    .reducer = &minimum_reducer,
                                    .attribute_words = 1,
                                    .gradient = extremum_gradient})
                           ->called(minimum);
const Op& peak_op = *register_op({.name = "peak",
                                  .kind = Kind::reduction,
                                  .operands = 1,
                                  .doc = "largest element over dims, without gradient",
                                  .reducer = &maximum_reducer,
                                  .attribute_words = 1});
const Op& any_op = register_op({.name = "any",
                                .kind = Kind::reduction,
                                .operands = 1,
                                .doc = "whether any element over dims is true",
                                .type_rule = TypeRule::boolean,
                                .reducer = &any_reducer,
                                .attribute_words = 1})
                       ->called(any);
const Op& all_op = register_op({.name = "all",
                                .kind = Kind::reduction,
                                .operands = 1,
                                .doc = "whether all elements over dims are true",
                                .type_rule = TypeRule::boolean,
                                .reducer = &all_reducer,
                                .attribute_words = 1})
                       ->called(all);
const Op& argmax_op = register_op({.name = "argmax",
                                   .kind = Kind::scan,
                                   .operands = 1,
                                   .doc = "place of the first largest element along a dim",
                                   .type_rule = TypeRule::index,
                                   .reducer = &maximum_reducer,
                                   .scan = Scan::place,
                                   .attribute_words = 2})
                          ->called(argmax);
const Op& argmin_op = register_op({.name = "argmin",
                                   .kind = Kind::scan,
                                   .operands = 1,
                                   .doc = "place of the first smallest element along a dim",
                                   .type_rule = TypeRule::index,
                                   .reducer = &minimum_reducer,
                                   .scan = Scan::place,
                                   .attribute_words = 2})
                          ->called(argmin);

// x with one element that changes no result in each empty dim that is reduced, so that the result depends on x still:
// its gradient is that of nothing, not nothing.
Array with_something(const Op& op, const Array& x, uint64_t mask) {
  Array filled = x;
  for (int d = 0; d < x.rank(); ++d) {
    if ((mask >> d & 1) && x.size(d) == 0) filled = pad(filled, d, 0, 1, neutral_of(*op.reducer, x.dtype()));
  }
  return filled;
}

// Records the reduction; no dims give x itself, no elements a constant. Dims from `rank` on, whose size is 1 by then,
// are left out of the result.
Array reduce(const Op& op, const Array& x, DType type, uint64_t mask, int rank) {
  int64_t sizes[Shape::max_rank];
  const Shape from = x.shape();
  const int count = std::min(rank, from.rank());
  for (int d = 0; d < count; ++d) sizes[d] = (mask >> d) & 1 ? 1 : from[d];
  const Shape shape{std::span<const int64_t>(sizes, static_cast<size_t>(count))};
  if (mask == 0) return reshape(x, shape);
  if (x.count() == 0) {
    const Array filled = op.gradient ? with_something(op, x, mask) : x;
    if (filled.count() > 0) return reduce(op, filled, type, mask, rank);
    const DeviceScope scope(*x.node());
    return shape.count() == 0 ? zeros(shape, type) : full(shape, neutral_of(*op.reducer, type), type);
  }
  return record_one(op, x, type, shape, Attributes::of(ReductionAttributes{mask}));
}

Array choose(const Op& op, const Array& x, uint64_t mask, int rank = Shape::max_rank) {
  require(op, x);
  if (reduced_count(x.shape(), mask) == 0) {
    refuse(ErrorKind::argument, op.name, "nothing to choose from in an empty dim", to_string(x.shape()),
           "check the size before the call");
  }
  return reduce(op, x, x.dtype(), mask, rank);
}

Array truth(const Op& op, const Array& x, uint64_t mask, int rank = Shape::max_rank) {
  require(op, x);
  return reduce(op, x.dtype() == Bool ? x : ne(x, 0), Bool, mask, rank);
}

Array accumulate(const Op& op, const Array& x, uint64_t mask, int rank = Shape::max_rank) {
  require(op, x);
  if (is_complex(x.dtype()) && op.reducer == &sum_reducer) {
    const int parts_rank = std::min(rank, x.rank()) + 1;
    return view_as_complex(reduce(op, view_as_real(x), part_type(x.dtype()), mask << 1, parts_rank));
  }
  const DType type = sum_type(x.dtype());
  return reduce(op, x.dtype() == type ? x : cast(x, type), type, mask, rank);
}

Array place_along(const Op& op, const Array& x, int dim) {
  require(op, x);
  if (is_dim_of_one(dim, x.shape())) return reshape(place_along(op, reshape(x, {1}), 0), Shape{});
  const int at = checked_dim(op.name, dim, x.shape());
  const int64_t size = x.size(at);
  if (size == 0 || size > std::numeric_limits<int32_t>::max()) {
    refuse(ErrorKind::argument, op.name, "the dim must have 1 to 2147483647 elements", to_string(x.shape()),
           "check the size before the call");
  }
  return record_one(op, x, Int32, with_size(x.shape(), at, 1), Attributes::of(ScanAttributes{at, 0}));
}

Array scalar(const Array& x) { return reshape(x, Shape{}); }

/// Whether of images all that their spatial dims hold becomes one sum.
bool sums_planes(const Shape& from, const Shape& to) {
  const int spatial = from.rank() - 2;
  for (int d = 0; d < std::min(spatial, to.rank()); ++d) {
    if (to[d] != 1) return false;
  }
  return spatial > 0;
}

}  // namespace

Dims::Dims(std::span<const int> dims) {
  if (dims.size() > Shape::max_rank) {
    refuse(ErrorKind::shape, "dims", "an array has at most 8 dims", std::to_string(dims.size()), "name each dim once");
  }
  for (const int dim : dims) dims_[count_++] = dim;
}

uint64_t dims_mask(std::string_view op, const Dims& dims, const Shape& shape) {
  uint64_t mask = 0;
  for (const int dim : dims.list()) {
    // Of one element there is nothing to combine.
    if (!is_dim_of_one(dim, shape)) mask |= uint64_t{1} << checked_dim(op, dim, shape);
  }
  return mask;
}

uint64_t all_dims(const Shape& shape) { return (uint64_t{1} << shape.rank()) - 1; }

DType sum_type(DType type) {
  const bool counted = type == DType::Bool || (is_integer(type) && type != DType::UInt64);
  return counted ? DType::Int64 : type;
}

int64_t reduced_count(const Shape& shape, uint64_t mask) {
  int64_t count = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    if ((mask >> d) & 1) count *= shape[d];
  }
  return count;
}

Array sum_over(const Array& x, uint64_t mask, int rank) { return accumulate(sum_op, x, mask, rank); }
Array peak_over(const Array& x, uint64_t mask) { return choose(peak_op, x, mask); }
Array maximum_over(const Array& x, uint64_t mask, int rank) { return choose(maximum_op, x, mask, rank); }

Array sum(const Array& x) { return sum_over(widened(x), all_dims(x.shape()), 0); }
Array sum(const Array& x, Dims dims) { return sum_over(widened(x), dims_mask("sum", dims, x.shape())); }
Array prod(const Array& x) { return accumulate(prod_op, widened(x), all_dims(x.shape()), 0); }
Array prod(const Array& x, Dims dims) { return accumulate(prod_op, widened(x), dims_mask("prod", dims, x.shape())); }
Array maximum(const Array& x) { return maximum_over(x, all_dims(x.shape()), 0); }
Array maximum(const Array& x, Dims dims) { return maximum_over(x, dims_mask("maximum", dims, x.shape())); }
Array minimum(const Array& x) { return choose(minimum_op, x, all_dims(x.shape()), 0); }
Array minimum(const Array& x, Dims dims) { return choose(minimum_op, x, dims_mask("minimum", dims, x.shape())); }
Array any(const Array& x) { return truth(any_op, x, all_dims(x.shape()), 0); }
Array any(const Array& x, Dims dims) { return truth(any_op, x, dims_mask("any", dims, x.shape())); }
Array all(const Array& x) { return truth(all_op, x, all_dims(x.shape()), 0); }
Array all(const Array& x, Dims dims) { return truth(all_op, x, dims_mask("all", dims, x.shape())); }

Array argmax(const Array& x) { return scalar(place_along(argmax_op, reshape(x, {x.count()}), 0)); }
Array argmax(const Array& x, int dim) { return place_along(argmax_op, x, dim); }
Array argmin(const Array& x) { return scalar(place_along(argmin_op, reshape(x, {x.count()}), 0)); }
Array argmin(const Array& x, int dim) { return place_along(argmin_op, x, dim); }

Array sum_to(const Array& x, const Shape& shape) {
  const Shape from = x.shape();
  if (from == shape) return x;
  uint64_t mask = 0;
  for (int d = 0; d < from.rank(); ++d) {
    const bool kept = d < shape.rank() && shape[d] == from[d];
    if (!kept && d < shape.rank() && shape[d] != 1) {
      refuse(ErrorKind::shape, "sum_to", "the shape must broadcast to that of the array",
             to_string(from) + " -> " + to_string(shape), "reshape first");
    }
    if (!kept && from[d] != 1) mask |= uint64_t{1} << d;
  }
  if (sums_planes(from, shape)) {
    if (const Array given = given_by_windows(x); !given.is_nothing()) return sum_to(given, shape);
  }
  return reshape(sum_over(x, mask, shape.rank()), shape);
}

}  // namespace rosin
