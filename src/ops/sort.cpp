// Sorting: places alone, or values and places in one step; gradients go back to the places that values came from.
#include <rosin/sort.hpp>

#include <limits>
#include <utility>

#include <rosin/movement.hpp>

#include "graph/refuse_type.hpp"
#include "ops/add_along.hpp"
#include "ops/shapes.hpp"

namespace rosin {
namespace {

const Op& argsort_op =
    *register_op({.name = "argsort",
                  .kind = Kind::sort,
                  .operands = 1,
                  .doc = "places that sort a dim, stable, NaN as the largest; the first ones where the "
                         "result is shorter",
                  .type_rule = TypeRule::index,
                  .attribute_words = 2});

void sort_gradient(Backward& b) {
  const Array& slope = b.gradient_of(0);
  if (slope.is_nothing()) return;  // places have none
  const int dim = static_cast<int>(b.attributes<SortAttributes>().dim);
  b.give(0, add_along(b.in(0).shape(), b.out(1, Int32, slope.shape()), slope, dim));
}

const Op& sort_op = *register_op({.name = "sort",
                                  .kind = Kind::sort,
                                  .operands = 1,
                                  .results = 2,
                                  .doc = "the elements that argsort finds, and their places",
                                  .attribute_words = 2,
                                  .gradient = sort_gradient});

void check_size(std::string_view op, const Array& x, int dim) {
  if (x.size(dim) <= std::numeric_limits<int32_t>::max()) return;
  refuse(ErrorKind::argument, op, "a dim can have at most 2147483647 elements", to_string(x.shape()),
         "sort parts of it");
}

// The first `count` elements; all of them where count is the size.
TopK sorted(std::string_view op, const Array& x, int dim, bool descending, int64_t count) {
  check_size(op, x, dim);
  const Shape shape = with_size(x.shape(), dim, count);
  const Array* in[] = {&x};
  const ResultForm forms[] = {{x.dtype(), shape}, {Int32, shape}};
  Array results[2];
  record(sort_op, in, forms, Attributes::of(SortAttributes{dim, descending}), results);
  return {std::move(results[0]), std::move(results[1])};
}

}  // namespace

Array argsort(const Array& x, int dim, bool descending) {
  require(argsort_op, x);
  if (is_dim_of_one(dim, x.shape())) return reshape(argsort(reshape(x, {1}), 0, descending), Shape{});
  const int at = checked_dim("argsort", dim, x.shape());
  check_size("argsort", x, at);
  return record_one(argsort_op, x, Int32, x.shape(), Attributes::of(SortAttributes{at, descending}));
}

Array sort(const Array& x, int dim, bool descending) {
  require(argsort_op, x);
  require_real("sort", x);
  if (is_dim_of_one(dim, x.shape())) return reshape(sort(reshape(x, {1}), 0, descending), Shape{});
  const int at = checked_dim("sort", dim, x.shape());
  return sorted("sort", x, at, descending, x.size(at)).values;
}

TopK topk(const Array& x, int64_t k, int dim, bool largest) {
  require(argsort_op, x);
  require_real("topk", x);
  if (is_dim_of_one(dim, x.shape())) {
    const TopK found = topk(reshape(x, {1}), k, 0, largest);
    return k == 1 ? TopK{reshape(found.values, Shape{}), reshape(found.indices, Shape{})} : found;
  }
  const int at = checked_dim("topk", dim, x.shape());
  if (k < 0 || k > x.size(at)) {
    refuse(ErrorKind::argument, "topk", "k must be in [0, " + std::to_string(x.size(at)) + "]", std::to_string(k),
           "the dim has no more elements");
  }
  return sorted("topk", x, at, largest, k);
}

}  // namespace rosin
