// Initialisers: how the first values of parameters are drawn. Names and definitions are Flux's.
// f(shape) draws Float32 from this thread's generator; f(shape, options) states more. Results are evaluated.
// Read next: dense.hpp (layers take one as `.init`).
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <rosin/array.hpp>
#include <rosin/random.hpp>
#include <rosin/small_function.hpp>

namespace rosin {

/// How many inputs and outputs each element of a weight meets. Source: Flux.nfan.
struct Fan {
  int64_t in = 1;
  int64_t out = 1;
};
/// (out, in) -> in, out; (kernel..., in, out) -> both times the kernel's count; a vector (n) -> 1, n; 0-d -> 1, 1.
ROSIN_API Fan nfan(const Shape& shape);

/// `rng` null: this thread's generator.
struct GainOptions {
  double gain = 1;
  Rng* rng = nullptr;
  DType type = Float32;
};
/// Uniform in +-gain * sqrt(6 / (in + out)).
ROSIN_API Array glorot_uniform(const Shape& shape);
ROSIN_API Array glorot_uniform(const Shape& shape, const GainOptions& options);
/// Normal with deviation gain * sqrt(2 / (in + out)).
ROSIN_API Array glorot_normal(const Shape& shape);
ROSIN_API Array glorot_normal(const Shape& shape, const GainOptions& options);

struct KaimingOptions {
  double gain = 1.4142135623730951;  // sqrt(2), for relu
  Rng* rng = nullptr;
  DType type = Float32;
};
/// Uniform in +-gain * sqrt(3 / in).
ROSIN_API Array kaiming_uniform(const Shape& shape);
ROSIN_API Array kaiming_uniform(const Shape& shape, const KaimingOptions& options);
/// Normal with deviation gain / sqrt(in).
ROSIN_API Array kaiming_normal(const Shape& shape);
ROSIN_API Array kaiming_normal(const Shape& shape, const KaimingOptions& options);

struct TruncatedNormalOptions {
  double mean = 0;
  double std = 1;
  double lo = -2;
  double hi = 2;
  Rng* rng = nullptr;
  DType type = Float32;
};
/// Normal, limited to [lo, hi]: the quantile function at uniform numbers. Error (argument): std <= 0, lo >= hi.
ROSIN_API Array truncated_normal(const Shape& shape);
ROSIN_API Array truncated_normal(const Shape& shape, const TruncatedNormalOptions& options);

struct InitOptions {
  Rng* rng = nullptr;
  DType type = Float32;
};
/// truncated_normal with deviation sqrt(1 / in).
ROSIN_API Array lecun_normal(const Shape& shape);
ROSIN_API Array lecun_normal(const Shape& shape, const InitOptions& options);

/// (..., n) with orthonormal columns times gain, or rows where there are fewer of them (leading dims count as one).
/// Error (shape): fewer than two dims. Source: Saxe, McClelland, Ganguli (2014).
ROSIN_API Array orthogonal(const Shape& shape);
ROSIN_API Array orthogonal(const Shape& shape, const GainOptions& options);

struct SparseOptions {
  double sparsity = 0.1;  // part of each column that is 0, rounded up
  double std = 0.01;
  Rng* rng = nullptr;
  DType type = Float32;
};
/// (rows, columns): normal, with exactly ceil(sparsity * rows) zeros in each column. Source: Martens (2010).
ROSIN_API Array sparse_init(const Shape& shape, const SparseOptions& options);

struct IdentityOptions {
  double gain = 1;
  int64_t shift = 0;  // of dim 0, around the end
  DType type = Float32;
};
/// A weight that passes its input on: gain on the diagonal of (out, in), in the middle of the kernel where input and
/// output channel are the same; zeros for a vector.
ROSIN_API Array identity_init(const Shape& shape);
ROSIN_API Array identity_init(const Shape& shape, const IdentityOptions& options);

/// Float32: zeros, ones, uniform in [0, 1), standard normal.
ROSIN_API Array zeros32(const Shape& shape);
ROSIN_API Array ones32(const Shape& shape);
ROSIN_API Array rand32(const Shape& shape);
ROSIN_API Array randn32(const Shape& shape);

/// An initialiser as a value: one of the functions above, or any callable that makes an array of the shape it is given:
/// `{.init = [&](const Shape& s) { return glorot_uniform(s, {.rng = &rng}); }}`.
class ROSIN_API Init {
 public:
  Init(Array (*function)(const Shape& shape)) : make_(function) {}
  Init(Array (*function)(const Shape& shape, DType type))
      : make_([function](const Shape& shape) { return function(shape, Float32); }) {}
  template <class F>
    requires(!std::same_as<F, Init> && std::is_invocable_r_v<Array, const F&, const Shape&>)
  Init(F callable) : make_(std::move(callable)) {}

  /// The values, evaluated. Error (shape) when the callable gives another shape.
  Array operator()(const Shape& shape) const;

 private:
  SmallFunction<Array(const Shape&)> make_;
};

}  // namespace rosin
