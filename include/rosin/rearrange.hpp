// Movements by name that are made of those of movement.hpp, which is to be read first: an array is taken apart, turned,
// repeated, put along a diagonal. And places of several dims at once: gather_nd, scatter_nd. Read next: index.hpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// The slices along `dim` (default: the last) without that dim: the opposite of stack. Source: MLUtils.unstack.
ROSIN_API std::vector<Array> unstack(const Array& x, int dim = -1);
/// x with dim `from` at the place `to`; the other dims keep their order. Source: numpy.moveaxis.
ROSIN_API Array movedim(const Array& x, int from, int to);
/// x turned `times` times by 90 degrees, from dim `from` towards dim `to`. Error (shape): they are the same dim, or
/// there is no such. Source: numpy.rot90.
ROSIN_API Array rot90(const Array& x, int64_t times = 1, int from = 0, int to = 1);
/// Each element along `dim` less the one before it, `times` times; one element fewer each time. Source: numpy.diff.
/// Error (argument): a negative number of times.
ROSIN_API Array diff(const Array& x, int dim = 0, int64_t times = 1);
/// Each slice along `dim` as often as `times`, integers (size of the dim), which are read, says. Errors: shape, dtype,
/// argument (a negative number). Source: torch.repeat_interleave.
ROSIN_API Array repeat(const Array& x, const Array& times, int dim);
/// Matrices one after another along the diagonal of a larger one of zeros. Errors: argument (none), shape (no matrix).
/// Source: scipy.linalg.block_diag.
ROSIN_API Array block_diag(std::span<const Array> matrices);
inline Array block_diag(std::initializer_list<Array> matrices) {
  return block_diag(std::span<const Array>(matrices.begin(), matrices.size()));
}

/// x at places of its first dims: an array of indices for each of these, which broadcast to (shape...). x (n, m,
/// rest...), {i, j} -> (shape..., rest...), as x[i, j] of NumPy; negative indices count from the end. The gradient adds
/// where places repeat. Errors: dtype, shape (more indices than dims); an index outside its dim becomes one outside
/// all, which is found as gather does.
ROSIN_API Array gather_nd(const Array& x, std::span<const Array> indices);
/// target with updates (shape..., rest...), or what expands to that, written at such places, of repeated ones the last;
/// or added there. Source: numpy.add.at.
ROSIN_API Array scatter_nd(const Array& target, std::span<const Array> indices, const Array& updates);
ROSIN_API Array scatter_nd_add(const Array& target, std::span<const Array> indices, const Array& updates);
inline Array gather_nd(const Array& x, std::initializer_list<Array> indices) {
  return gather_nd(x, std::span<const Array>(indices.begin(), indices.size()));
}
inline Array scatter_nd(const Array& target, std::initializer_list<Array> indices, const Array& updates) {
  return scatter_nd(target, std::span<const Array>(indices.begin(), indices.size()), updates);
}
inline Array scatter_nd_add(const Array& target, std::initializer_list<Array> indices, const Array& updates) {
  return scatter_nd_add(target, std::span<const Array>(indices.begin(), indices.size()), updates);
}

}  // namespace rosin
