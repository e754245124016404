// Ops that move elements: reshape, permute, slice, pad, concat and what follows from them.
// Dims and indices count from 0, negative ones from the end; ranges are half-open. Layout is column-major.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// The same elements, in column-major order, under other sizes. One size may be -1. Error (shape): the counts differ.
ROSIN_API Array reshape(const Array& x, std::span<const int64_t> sizes);
inline Array reshape(const Array& x, std::initializer_list<int64_t> sizes) {
  return reshape(x, std::span<const int64_t>(sizes.begin(), sizes.size()));
}
inline Array reshape(const Array& x, const Shape& shape) {
  return reshape(x, std::span<const int64_t>(shape.begin(), shape.end()));
}
/// (a, b, ..., n) -> (a*b*..., n): all but the last dim become one; a vector (n) becomes (1, n). Source: Flux.flatten.
ROSIN_API Array flatten(const Array& x);
/// Dim d of the result is dim order[d] of x. Error (shape): `order` is not a permutation of x's dims.
ROSIN_API Array permute(const Array& x, std::span<const int> order);
inline Array permute(const Array& x, std::initializer_list<int> order) {
  return permute(x, std::span<const int>(order.begin(), order.size()));
}
/// (m, n, ...) -> (n, m, ...): the first two dims change places; a vector (n) becomes (1, n).
ROSIN_API Array transpose(const Array& x);
/// The elements of one dim, or of several, in reverse order.
ROSIN_API Array flip(const Array& x, int dim);
ROSIN_API Array flip(const Array& x, std::span<const int> dims);
inline Array flip(const Array& x, std::initializer_list<int> dims) {
  return flip(x, std::span<const int>(dims.begin(), dims.size()));
}
/// x repeated along dims of size 1 and along missing last dims. Error (shape): it does not fit.
ROSIN_API Array expand(const Array& x, const Shape& shape);
inline Array broadcast_to(const Array& x, const Shape& shape) { return expand(x, shape); }
/// Drops all dims of size 1; or one of them, or several. Error (shape): its size is not 1.
ROSIN_API Array squeeze(const Array& x);
ROSIN_API Array squeeze(const Array& x, int dim);
ROSIN_API Array squeeze(const Array& x, std::span<const int> dims);
inline Array squeeze(const Array& x, std::initializer_list<int> dims) {
  return squeeze(x, std::span<const int>(dims.begin(), dims.size()));
}
/// A new dim of size 1 before dim `dim`; -1: as the last one.
ROSIN_API Array unsqueeze(const Array& x, int dim);

/// Elements start, start + step, ... before `stop` of one dim. A negative step runs down and excludes `stop` too.
/// As in NumPy, a range ends where the dim does: of 3 elements, slice(x, 0, 1, 9) has 2, slice(x, 0, 5, 9) none.
/// Error (argument): step 0.
ROSIN_API Array slice(const Array& x, int dim, int64_t start, int64_t stop, int64_t step = 1);
/// x[ranges...]: `index(x, {slice(), slice(0, 3), 5})`, or x(slice(), slice(0, 3), 5); dims without a range are taken
/// whole, single indices drop theirs. Ranges end where the dim does; Error (argument): a single index outside it, or
/// more ranges than dims.
ROSIN_API Array index(const Array& x, std::span<const Slice> ranges);
inline Array index(const Array& x, std::initializer_list<Slice> ranges) {
  return index(x, std::span<const Slice>(ranges.begin(), ranges.size()));
}
/// Element `at` of one dim, without that dim. Error (argument): outside the dim.
ROSIN_API Array select(const Array& x, int dim, int64_t at);
/// Row i (n elements) or column j (m elements) of a matrix (m, n).
ROSIN_API Array row(const Array& x, int64_t i);
ROSIN_API Array column(const Array& x, int64_t j);

/// `low` elements of `value` (0-d, default 0) before and `high` after a dim. Error (argument): a negative count.
ROSIN_API Array pad(const Array& x, int dim, int64_t low, int64_t high, const Array& value = 0);
/// (low, high) for the first dims: `pad(x, {{1, 1}, {2, 2}})`.
ROSIN_API Array pad(const Array& x, std::span<const std::pair<int64_t, int64_t>> widths, const Array& value = 0);
inline Array pad(const Array& x, std::initializer_list<std::pair<int64_t, int64_t>> widths, const Array& value = 0) {
  return pad(x, std::span<const std::pair<int64_t, int64_t>>(widths.begin(), widths.size()), value);
}

/// What stands beyond the borders: the elements mirrored at the border element (`reflect`) or at the border itself
/// (`symmetric`), the border element again and again (`repeat`), or the elements from the other side (`circular`).
enum class PadMode : uint8_t { reflect, symmetric, repeat, circular };
/// (low, high) for the first dims, one dim after another. Error (argument): a negative count, or more than there is to
/// take: size - 1 for reflect, size for symmetric and circular. Source: numpy.pad, NNlib's pad_reflect and kin.
ROSIN_API Array pad(const Array& x, std::span<const std::pair<int64_t, int64_t>> widths, PadMode mode);
inline Array pad(const Array& x, std::initializer_list<std::pair<int64_t, int64_t>> widths, PadMode mode) {
  return pad(x, std::span<const std::pair<int64_t, int64_t>>(widths.begin(), widths.size()), mode);
}
/// The elements moved on by `shift` places along a dim; what leaves at the end comes in at the front. Source:
/// numpy.roll, Julia's circshift.
ROSIN_API Array roll(const Array& x, int64_t shift, int dim = 0);
/// x with `value`, which broadcasts to index(x, ranges), in the place of those elements: x[ranges...] = value, as a new
/// array. Errors as of index.
ROSIN_API Array set(const Array& x, std::span<const Slice> ranges, const Array& value);
inline Array set(const Array& x, std::initializer_list<Slice> ranges, const Array& value) {
  return set(x, std::span<const Slice>(ranges.begin(), ranges.size()), value);
}
/// Vectors of sizes n1, n2, ... as arrays (n1, n2, ...) that vary along their own dim alone. Source: numpy.meshgrid
/// with indexing="ij".
ROSIN_API std::vector<Array> meshgrid(std::span<const Array> vectors);
inline std::vector<Array> meshgrid(std::initializer_list<Array> vectors) {
  return meshgrid(std::span<const Array>(vectors.begin(), vectors.size()));
}

/// Arrays one after another along `dim`; all other sizes are equal. Error (shape), Error (argument): none given.
ROSIN_API Array concat(std::span<const Array> arrays, int dim);
inline Array concat(std::initializer_list<Array> arrays, int dim) {
  return concat(std::span<const Array>(arrays.begin(), arrays.size()), dim);
}
/// Arrays of one shape side by side along a new dim `dim`; -1: a new last dim. Source: MLUtils.stack.
ROSIN_API Array stack(std::span<const Array> arrays, int dim);
inline Array stack(std::initializer_list<Array> arrays, int dim) {
  return stack(std::span<const Array>(arrays.begin(), arrays.size()), dim);
}
/// Each element `times` times in a row along `dim`: (1, 2) -> (1, 1, 2, 2); or times[d] times along each dim d.
ROSIN_API Array repeat(const Array& x, int64_t times, int dim);
ROSIN_API Array repeat(const Array& x, std::span<const int64_t> times);
inline Array repeat(const Array& x, std::initializer_list<int64_t> times) {
  return repeat(x, std::span<const int64_t>(times.begin(), times.size()));
}
/// The whole `times` times along `dim`: (1, 2) -> (1, 2, 1, 2); or times[d] times along each dim d. More times than
/// dims make further last dims, of which x has one element.
ROSIN_API Array tile(const Array& x, int64_t times, int dim);
ROSIN_API Array tile(const Array& x, std::span<const int64_t> times);
inline Array tile(const Array& x, std::initializer_list<int64_t> times) {
  return tile(x, std::span<const int64_t>(times.begin(), times.size()));
}
/// Pieces of the stated sizes along `dim`. Error (argument): the sizes do not add up. Error (shape): a negative one.
ROSIN_API std::vector<Array> split(const Array& x, std::span<const int64_t> sizes, int dim);
inline std::vector<Array> split(const Array& x, std::initializer_list<int64_t> sizes, int dim) {
  return split(x, std::span<const int64_t>(sizes.begin(), sizes.size()), dim);
}
/// `parts` pieces of equal size along `dim` (the last ones may be smaller or missing). Source: MLUtils.chunk.
ROSIN_API std::vector<Array> chunk(const Array& x, int64_t parts, int dim = -1);

}  // namespace rosin
