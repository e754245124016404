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

/// How windows lie on images. Source: torch.nn.functional.max_pool2d.
struct WindowOptions {
  Extents dilation = {};  // steps between the elements of a window; 1
  bool ceil = false;      // sizes are rounded up: the last window may leave the padded image, where it begins before
                          // the padding behind the image
};
/// Largest element of each window. Sizes: (in + low + high - reach) / stride + 1, rounded down, where the reach is
/// (window - 1) * dilation + 1; stride defaults to the window. Padding counts as the lowest finite value; NaN wins. The
/// gradient goes to the first largest element (dim 0 fastest). Error (shape): wrong rank, or a window larger than the
/// padded input. Source: NNlib.maxpool.
ROSIN_API Array maxpool(const Array& x, const Extents& window, const Extents& stride = {}, const Extents& pad = {},
                        const WindowOptions& options = {});
/// maxpool, and where its elements stand: the place in the image, dim 0 fastest, Int64; 0 where the padding is largest.
struct MaxPooled {
  Array values;
  Array indices;
};
/// Source: torch.nn.functional.max_pool2d(return_indices=True).
ROSIN_API MaxPooled maxpool_with_indices(const Array& x, const Extents& window, const Extents& stride = {},
                                         const Extents& pad = {}, const WindowOptions& options = {});
/// Images of these spatial sizes with the elements of y at the places that maxpool_with_indices gives, else zeros; of
/// equal places the last one stays. Errors: shape; argument (a place outside of the image, when the value is read).
/// Source: torch.nn.functional.max_unpool2d.
ROSIN_API Array max_unpool(const Array& y, const Array& indices, const Extents& size);

struct MeanWindowOptions {
  Extents dilation = {};  // 1
  bool ceil = false;      // as WindowOptions
  bool count_pad = true;  // padding counts in the divisor
  int64_t divisor = 0;    // in place of the number of elements; 0: that
};
/// Mean of each window; padding is zeros, and the divisor is the window's size without what leaves the padded image.
/// Error (shape) as maxpool. Sources: NNlib.meanpool; torch.nn.functional.avg_pool2d.
ROSIN_API Array meanpool(const Array& x, const Extents& window, const Extents& stride = {}, const Extents& pad = {},
                         const MeanWindowOptions& options = {});
/// The sum of x^p over each window, padding as zeros, to the power of 1/p. Error (argument): p is not above 0. Source:
/// NNlib.lpnormpool.
ROSIN_API Array lpnormpool(const Array& x, double p, const Extents& window, const Extents& stride = {},
                           const Extents& pad = {}, const WindowOptions& options = {});
/// Pooling to the stated sizes: stride in / out (rounded down), window in - (out - 1) * stride. Source: Flux. Where the
/// sizes divide each other that is PyTorch's; else interpolate(x, {.size = out, .mode = Interpolation::area}) is its
/// adaptive_avg_pool.
ROSIN_API Array adaptive_maxpool(const Array& x, const Extents& out);
ROSIN_API Array adaptive_meanpool(const Array& x, const Extents& out);
/// The largest elements and their places (as maxpool_with_indices) of PyTorch's windows: number o has the elements from
/// o * in / out rounded down to (o + 1) * in / out rounded up, so that any size is reached. Error (shape).
/// Source: torch.nn.functional.adaptive_max_pool2d.
ROSIN_API MaxPooled adaptive_maxpool_with_indices(const Array& x, const Extents& out);
/// Over all spatial dims, which keep size 1. Equal largest elements share the gradient.
ROSIN_API Array global_maxpool(const Array& x);
ROSIN_API Array global_meanpool(const Array& x);

}  // namespace rosin
