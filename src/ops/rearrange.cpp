// Movements that take an array apart, turn it or put arrays together: unstack, movedim, rot90, diff, repeat by counts,
// block_diag; see rosin/rearrange.hpp. Read first: movement_forms.cpp.
#include <rosin/rearrange.hpp>

#include <numeric>
#include <utility>
#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>

#include "graph/context.hpp"
#include "ops/shapes.hpp"

namespace rosin {

std::vector<Array> unstack(const Array& x, int dim) {
  const int at = checked_dim("unstack", dim, x.shape());
  std::vector<Array> parts;
  for (int64_t i = 0; i < x.size(at); ++i) parts.push_back(select(x, at, i));
  return parts;
}

Array movedim(const Array& x, int from, int to) {
  const int source = checked_dim("movedim", from, x.shape()), goal = checked_dim("movedim", to, x.shape());
  std::vector<int> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + source);
  order.insert(order.begin() + goal, source);
  return permute(x, order);
}

Array rot90(const Array& x, int64_t times, int from, int to) {
  const int a = checked_dim("rot90", from, x.shape()), b = checked_dim("rot90", to, x.shape());
  if (a == b) {
    refuse(ErrorKind::shape, "rot90", "it turns in a plane of two dims", "dim " + std::to_string(a) + " twice",
           "name two dims");
  }
  std::vector<int> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  switch ((times % 4 + 4) % 4) {
    case 1: return permute(flip(x, b), order);
    case 2: return flip(flip(x, a), b);
    case 3: return flip(permute(x, order), b);
    default: return x;
  }
}

Array diff(const Array& x, int dim, int64_t times) {
  const int at = checked_dim("diff", dim, x.shape());
  if (times < 0) {
    refuse(ErrorKind::argument, "diff", "the number of times cannot be negative", std::to_string(times),
           "0 gives the array");
  }
  Array result = x;
  for (int64_t i = 0; i < times && result.size(at) > 0; ++i) {
    result = slice(result, at, 1, to_end) - slice(result, at, 0, result.size(at) - 1);
  }
  return result;
}

Array repeat(const Array& x, const Array& times, int dim) {
  const int at = checked_dim("repeat", dim, x.shape());
  if (!is_integer(times.dtype())) {
    refuse(ErrorKind::dtype, "repeat", "counts are integers", to_string(times.dtype()), "cast them");
  }
  if (times.rank() != 1 || times.count() != x.size(at)) {
    refuse(ErrorKind::shape, "repeat", "there is a count for each slice",
           to_string(times.shape()) + " for dim " + std::to_string(at) + " of " + to_string(x.shape()),
           "give a number, or a vector of that size");
  }
  std::vector<int64_t> places;
  int64_t place = 0;
  for (const int64_t count : times.to_vector<int64_t>()) {
    if (count < 0) {
      refuse(ErrorKind::argument, "repeat", "the number of times cannot be negative", std::to_string(count),
             "use 0 for nothing");
    }
    places.insert(places.end(), static_cast<size_t>(count), place++);
  }
  const DeviceScope scope(*x.node());
  return gather(x, in_scope(Array(places, {static_cast<int64_t>(places.size())})), at);
}

Array block_diag(std::span<const Array> matrices) {
  if (matrices.empty()) refuse(ErrorKind::argument, "block_diag", "there is a matrix", "none", "pass some");
  int64_t rows = 0, above = 0;
  for (const Array& block : matrices) {
    if (block.rank() != 2) {
      refuse(ErrorKind::shape, "block_diag", "blocks are matrices", to_string(block.shape()), "reshape it to two dims");
    }
    rows += block.size(0);
  }
  std::vector<Array> columns;
  for (const Array& block : matrices) {
    columns.push_back(pad(block, 0, above, rows - above - block.size(0)));
    above += block.size(0);
  }
  return concat(columns, 1);
}

}  // namespace rosin
