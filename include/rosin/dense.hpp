// Dense and its relatives: layers that are one product and one sum.
// Read first: layer.hpp, init.hpp. Read next: chain.hpp.
#pragma once

#include <cstdint>
#include <string>

#include <rosin/activation_value.hpp>
#include <rosin/array.hpp>
#include <rosin/init.hpp>

namespace rosin {

/// `bias`: true (zeros), false (none), or the array itself.
struct DenseOptions {
  Array bias = true;
  Init init = glorot_uniform;
};

/// act(weight * x + bias). Source: Flux.Dense.
struct ROSIN_API Dense {
  Array weight;    // (out, in)
  Array bias;      // (out), or nothing
  Activation act;  // Flux's σ
  static constexpr int rosin_fields = 3;

  Dense() = default;
  Dense(int64_t in, int64_t out, Activation activation = {}, const DenseOptions& options = {});
  Dense(int64_t in, int64_t out, const DenseOptions& options) : Dense(in, out, {}, options) {}
  /// Of given arrays: w is (out, in), b (out) or true or false.
  Dense(const Array& w, const Array& b, Activation activation = {});
  Dense(const Array& w, Activation activation) : Dense(w, true, activation) {}

  /// x is (in, batch...) -> (out, batch...). Error (shape) when dim 0 has another size.
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

struct ScaleOptions {
  Array bias = true;
  Init init = ones32;
};

/// act(scale * x + bias), element by element. Source: Flux.Scale.
struct ROSIN_API Scale {
  Array scale;  // (size...)
  Array bias;   // (size...), or nothing
  Activation act;
  static constexpr int rosin_fields = 3;

  Scale() = default;
  Scale(int64_t size, Activation activation = {}, const ScaleOptions& options = {})
      : Scale(Shape{size}, activation, options) {}
  Scale(const Shape& size, Activation activation = {}, const ScaleOptions& options = {});
  Scale(const Array& s, const Array& b, Activation activation = {});

  /// x is (size..., batch...). Error (shape) when the sizes do not broadcast.
  Array operator()(const Array& x) const;
  std::string rosin_show() const;
};

/// act(x' * weight[k, :, :] * y + bias[k]) for each k. Source: Flux.Bilinear.
struct ROSIN_API Bilinear {
  Array weight;  // (out, in of x, in of y)
  Array bias;    // (out), or nothing
  Activation act;
  static constexpr int rosin_fields = 3;

  Bilinear() = default;
  Bilinear(int64_t in, int64_t out, Activation activation = {}, const DenseOptions& options = {})
      : Bilinear(in, in, out, activation, options) {}
  Bilinear(int64_t in_of_x, int64_t in_of_y, int64_t out, Activation activation = {}, const DenseOptions& options = {});
  Bilinear(const Array& w, const Array& b, Activation activation = {});

  /// x is (in of x, batch...), y (in of y, batch...) -> (out, batch...). One array stands for both.
  Array operator()(const Array& x, const Array& y) const;
  Array operator()(const Array& x) const { return operator()(x, x); }
  std::string rosin_show() const;
};

}  // namespace rosin
