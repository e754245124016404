// Sorting: one op gives places; values and gradients follow by take_along.
#include <rosin/sort.hpp>

#include <limits>

#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "graph/refuse_type.hpp"
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

// The first `count` places; all elements where count is the size.
Array places(const Array& x, int dim, bool descending, int64_t count) {
  if (x.size(dim) > std::numeric_limits<int32_t>::max()) {
    refuse(ErrorKind::argument, "argsort", "a dim can have at most 2147483647 elements", to_string(x.shape()),
           "sort parts of it");
  }
  return record_one(argsort_op, x, Int32, with_size(x.shape(), dim, count),
                    Attributes::of(SortAttributes{dim, descending}));
}

}  // namespace

Array argsort(const Array& x, int dim, bool descending) {
  require(argsort_op, x);
  if (is_dim_of_one(dim, x.shape())) return reshape(argsort(reshape(x, {1}), 0, descending), Shape{});
  const int at = checked_dim("argsort", dim, x.shape());
  return places(x, at, descending, x.size(at));
}

Array sort(const Array& x, int dim, bool descending) {
  require(argsort_op, x);
  require_real("sort", x);
  if (is_dim_of_one(dim, x.shape())) return reshape(sort(reshape(x, {1}), 0, descending), Shape{});
  const int at = checked_dim("sort", dim, x.shape());
  return take_along(x, places(x, at, descending, x.size(at)), at);
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
  const Array indices = places(x, at, largest, k);
  return {take_along(x, indices, at), indices};
}

}  // namespace rosin
