// Pooling over windows of images x (spatial..., channels, batch) with one to three spatial dims (WHCN).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// Sizes of one to three spatial dims; one number holds for all dims. Pads may have two numbers per dim: low, high.
class ROSIN_API Extents {
 public:
  Extents() = default;
  template <std::integral T> Extents(T all) : count_(1) { values_[0] = static_cast<int64_t>(all); }
  Extents(std::initializer_list<int64_t> values) : Extents(std::span<const int64_t>(values.begin(), values.size())) {}
  /// Error (argument): more than six.
  explicit Extents(std::span<const int64_t> values);

  bool empty() const noexcept { return count_ == 0; }
  std::span<const int64_t> list() const noexcept { return {values_, static_cast<size_t>(count_)}; }

 private:
  int64_t values_[6] = {};
  int count_ = 0;
};

/// Largest element of each window. Sizes: (in + low + high - window) / stride + 1, rounded down; stride defaults to the
/// window. Padding counts as the lowest finite value; NaN wins. The gradient goes to the first largest element (dim 0
/// fastest). Error (shape): wrong rank, or a window larger than the padded input. Source: NNlib.maxpool.
ROSIN_API Array maxpool(const Array& x, const Extents& window, const Extents& stride = {}, const Extents& pad = {});
/// Mean of each window; padding counts as zeros, the divisor is the window's full size. Source: NNlib.meanpool.
ROSIN_API Array meanpool(const Array& x, const Extents& window, const Extents& stride = {}, const Extents& pad = {});
/// Pooling to the stated sizes: stride in / out (rounded down), window in - (out - 1) * stride. Source: Flux.
ROSIN_API Array adaptive_maxpool(const Array& x, const Extents& out);
ROSIN_API Array adaptive_meanpool(const Array& x, const Extents& out);
/// Over all spatial dims, which keep size 1. Equal largest elements share the gradient.
ROSIN_API Array global_maxpool(const Array& x);
ROSIN_API Array global_meanpool(const Array& x);

}  // namespace rosin
