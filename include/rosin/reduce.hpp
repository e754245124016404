// Reductions (sum, mean, maximum, ...), places of extrema, running sums and products.
// f(x) reduces all dims to a 0-d array; f(x, dims) keeps reduced dims with size 1, as Julia does.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// Dims to reduce: `sum(x, 0)`, `sum(x, {0, 2})`. Negative dims count from the end; a dim named twice counts once.
class ROSIN_API Dims {
 public:
  static constexpr bool rosin_leaf = true;

  Dims(int dim) noexcept : count_(1) { dims_[0] = dim; }
  Dims(std::initializer_list<int> dims) : Dims(std::span<const int>(dims.begin(), dims.size())) {}
  /// Error (shape): more than eight.
  explicit Dims(std::span<const int> dims);

  std::span<const int> list() const noexcept { return {dims_, static_cast<size_t>(count_)}; }

 private:
  int dims_[Shape::max_rank] = {};
  int count_ = 0;
};

/// Sum. Bool and integers are summed in Int64 and give it, UInt64 in its own type; halves round once. Empty: 0.
ROSIN_API Array sum(const Array& x);
ROSIN_API Array sum(const Array& x, Dims dims);
/// Product; types as sum. Empty: 1. The gradient is right where elements are 0.
ROSIN_API Array prod(const Array& x);
ROSIN_API Array prod(const Array& x, Dims dims);
/// Mean; integers and Bool give Float32 (those of up to 32 bits are added exactly), halves are added in Float32.
/// Empty: NaN.
ROSIN_API Array mean(const Array& x);
ROSIN_API Array mean(const Array& x, Dims dims);
/// Largest element; NaN where one is NaN. Equal largest elements share the gradient. Error (argument): nothing to
/// choose.
ROSIN_API Array maximum(const Array& x);
ROSIN_API Array maximum(const Array& x, Dims dims);
/// Smallest element; as maximum.
ROSIN_API Array minimum(const Array& x);
ROSIN_API Array minimum(const Array& x, Dims dims);
/// Whether any element is not 0; Bool. Empty: false.
ROSIN_API Array any(const Array& x);
ROSIN_API Array any(const Array& x, Dims dims);
/// Whether all elements are not 0; Bool. Empty: true.
ROSIN_API Array all(const Array& x);
ROSIN_API Array all(const Array& x, Dims dims);

/// Place (Int32, from 0) of the first largest element along `dim`; the first NaN where there is one.
/// Without dim: place in column-major order. Error (argument): nothing to choose.
ROSIN_API Array argmax(const Array& x);
ROSIN_API Array argmax(const Array& x, int dim);
/// Place of the first smallest element; as argmax.
ROSIN_API Array argmin(const Array& x);
ROSIN_API Array argmin(const Array& x, int dim);

/// Variance: sum(|x - mean|^2) / (n - 1), or / n when not `corrected`; NaN of nothing. Types as mean; of complex real.
ROSIN_API Array var(const Array& x);
ROSIN_API Array var(const Array& x, Dims dims, bool corrected = true);
template <std::same_as<bool> B> Array var(const Array& x, B corrected);
/// Standard deviation, the root of var; its gradient is 0 where all elements are equal.
ROSIN_API Array stddev(const Array& x);
ROSIN_API Array stddev(const Array& x, Dims dims, bool corrected = true);
template <std::same_as<bool> B> Array stddev(const Array& x, B corrected);
/// log(sum(exp(x))) without overflow. All -Inf (or empty): -Inf, with gradient 0.
ROSIN_API Array logsumexp(const Array& x);
ROSIN_API Array logsumexp(const Array& x, Dims dims);
/// (sum(|x|^p))^(1/p) without overflow, p > 0; p = infinity: the largest |x|; real. At x = 0 the gradient is 0.
ROSIN_API Array norm(const Array& x);
ROSIN_API Array norm(const Array& x, Dims dims, double p = 2);

/// Running sum along `dim`, of x's shape; types as sum.
ROSIN_API Array cumsum(const Array& x, int dim = 0);
/// Running product along `dim`; types as sum. The gradient is right where elements are 0.
ROSIN_API Array cumprod(const Array& x, int dim = 0);
/// Largest, smallest element so far along `dim`, of x's type; NaN from the first one on. Of equal elements the last one
/// takes the gradient.
ROSIN_API Array cummax(const Array& x, int dim = 0);
ROSIN_API Array cummin(const Array& x, int dim = 0);
/// log of the running sum of exp(x) along `dim`, without overflow; of integers Float32. While all are -Inf: -Inf, with
/// gradient 0.
ROSIN_API Array logcumsumexp(const Array& x, int dim = 0);

/// Sums x over the dims along which `shape` broadcasts to x's shape: the adjoint of broadcasting. The result has
/// `shape`. Error (shape): `shape` does not broadcast to x's.
ROSIN_API Array sum_to(const Array& x, const Shape& shape);

namespace detail {

/// Var and stddev over all dims.
ROSIN_API Array var_of_all(const Array& x, bool corrected);
ROSIN_API Array stddev_of_all(const Array& x, bool corrected);

}  // namespace detail

template <std::same_as<bool> B> Array var(const Array& x, B corrected) { return detail::var_of_all(x, corrected); }
template <std::same_as<bool> B> Array stddev(const Array& x, B corrected) {
  return detail::stddev_of_all(x, corrected);
}

}  // namespace rosin
