// Labels as columns of a matrix, for classification losses; the way back is onecold (index.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/export.hpp>
#include <rosin/index.hpp>

namespace rosin {

/// Labels (shape...) of integers in [0, classes) -> (classes, shape...) with 1 at the label and 0 elsewhere, of `type`
/// (Bool as in Flux, or Float32, ...). Computed at once, so that a label out of range is an Error (argument) here;
/// `onehot` is the recorded form. Source: OneHotArrays.onehotbatch.
ROSIN_API Array onehotbatch(const Array& labels, int64_t classes, DType type = Bool);
template <std::integral T>
  requires is_element<T>
Array onehotbatch(std::span<const T> labels, int64_t classes, DType type = Bool) {
  return onehotbatch(Array(labels, {static_cast<int64_t>(labels.size())}), classes, type);
}
template <std::integral T>
  requires(is_element<T> && !std::same_as<T, bool>)
Array onehotbatch(const std::vector<T>& labels, int64_t classes, DType type = Bool) {
  return onehotbatch(std::span<const T>(labels), classes, type);
}

}  // namespace rosin
