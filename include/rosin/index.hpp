// Ops that address elements by arrays of indices. Indices are integers, count from 0, negative ones from the end; one
// outside its dim is found by the kernel: Error (argument) when the value is read or at the step's end.
#pragma once

#include <cstdint>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// Slices of x along `dim` (default: the last), in the order of `indices`, whose shape takes that dim's place:
/// weight (features, n), indices (shape...) -> (features, shape...). The gradient adds where indices repeat.
ROSIN_API Array gather(const Array& x, const Array& indices, int dim = -1);
/// target with updates written at indices along `dim` (updates is shaped as gather(target, indices, dim)); of repeated
/// indices the last one stays, and only it gets a gradient. On the CPU a target that nothing else holds or reads
/// (`x = scatter(x, ...)`) is written where it stands, so that this costs what is written.
ROSIN_API Array scatter(const Array& target, const Array& indices, const Array& updates, int dim = -1);
/// target with updates added at indices along `dim`, in the order of the indices.
ROSIN_API Array scatter_add(const Array& target, const Array& indices, const Array& updates, int dim = -1);
/// target with its elements and the updates at their indices along `dim` multiplied (in the order of the indices), or
/// the largest or smallest of them (NaN wins; those that tie share the gradient). Not of complex elements. The gradient
/// and the second gradient of scatter_mul hold at zeros. Source: torch.index_reduce, jax .at[].multiply, max, min.
ROSIN_API Array scatter_mul(const Array& target, const Array& indices, const Array& updates, int dim = -1);
ROSIN_API Array scatter_max(const Array& target, const Array& indices, const Array& updates, int dim = -1);
ROSIN_API Array scatter_min(const Array& target, const Array& indices, const Array& updates, int dim = -1);
/// The mean of the element and of the updates at its index, or of the updates alone (then an element without one
/// stays). Of Bool and integers Float32. Not of complex elements. Source: torch.index_reduce with include_self.
ROSIN_API Array scatter_mean(const Array& target, const Array& indices, const Array& updates, int dim = -1,
                             bool include_target = true);
/// Element by element: result(.., i, ..) = x(.., indices(.., i, ..), ..); all dims but `dim` have x's sizes.
ROSIN_API Array take_along(const Array& x, const Array& indices, int dim = 0);

/// labels (shape...) of integers in [0, classes) -> Bool (classes, shape...), true at the label. Error (argument) for
/// others, negative ones too. Source: OneHotArrays.
ROSIN_API Array onehot(const Array& labels, int64_t classes);
/// Place of the first largest element along dim 0, without that dim: (classes, shape...) -> Int32 (shape...).
ROSIN_API Array onecold(const Array& y);

}  // namespace rosin
