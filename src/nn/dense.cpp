// Dense, Scale, Bilinear: see rosin/dense.hpp.
#include <rosin/dense.hpp>

#include <rosin/compose.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>

#include "model/locate.hpp"
#include "nn/layer_parts.hpp"
#include "ops/autocast_casts.hpp"

namespace rosin {
namespace {

/// act(y + bias).
Array finished(const Array& y, const Array& bias, const Activation& act) {
  return act(bias.is_nothing() ? y : y + beside(bias, y));
}

std::string ending(const Activation& act, const Array& bias) {
  return activation_text(act) + (bias.is_nothing() ? "; bias=false)" : ")");
}

void check_rank(std::string_view layer, const Array& weight, int rank, std::string_view form) {
  if (!weight.is_nothing() && weight.rank() == rank) return;
  throw Error(ErrorKind::shape, std::string(layer) + ": the weight must be " + std::string(form) + "; got " +
                                    (weight.is_nothing() ? "nothing" : to_string(weight.shape())) + "; reshape it");
}

/// Whether x, which does not begin with `in` features, was probably meant to be flattened.
bool is_image(const Array& x, int64_t in) { return x.rank() > 3 || (x.rank() == 3 && x.size(0) * x.size(1) == in); }

/// x (size, rest...) as (size, all the rest); rank 0 and 1 stay.
Array as_columns(const Array& x) { return x.rank() > 2 ? reshape(x, {x.size(0), -1}) : x; }

/// y (out, all the rest) with the dims of x after dim 0.
Array with_rest_of(const Array& y, const Array& x) {
  if (x.rank() <= 2) return y;
  int64_t sizes[Shape::max_rank];
  for (int d = 0; d < x.rank(); ++d) sizes[d] = d == 0 ? y.size(0) : x.size(d);
  return reshape(y, Shape(std::span<const int64_t>(sizes, static_cast<size_t>(x.rank()))));
}

}  // namespace

Dense::Dense(int64_t in, int64_t out, Activation activation, const DenseOptions& options)
    : Dense(options.init({out, in}), options.bias, std::move(activation)) {}

Dense::Dense(const Array& w, const Array& b, Activation activation) : weight(w), act(std::move(activation)) {
  check_rank("Dense", w, 2, "(out, in)");
  eval(weight);
  bias = bias_for("Dense", b, w, {w.size(0)});
}

Array Dense::operator()(const Array& x) const {
  return located(*this, [&] {
    if (x.rank() == 0 || x.size(0) != weight.size(1)) {
      refuse_input(rosin_show(), "expects size(input, 0) == " + std::to_string(weight.size(1)), x,
                   is_image(x, weight.size(1))
                       ? "arrays are (features, batch): flatten(x) makes them of images"
                       : "arrays are (features, batch), with the features first: transpose(x) exchanges the two");
    }
    const Array y = matmul(weight, as_columns(matched_input(x, weight, *this)));
    return with_rest_of(finished(y, bias, act), x);
  });
}

std::string Dense::rosin_show() const {
  if (weight.is_nothing()) return "Dense()";
  return "Dense(" + std::to_string(weight.size(1)) + " => " + std::to_string(weight.size(0)) + ending(act, bias);
}

Scale::Scale(const Shape& size, Activation activation, const ScaleOptions& options)
    : Scale(options.init(size), options.bias, std::move(activation)) {}

Scale::Scale(const Array& s, const Array& b, Activation activation) : scale(s), act(std::move(activation)) {
  eval(scale);
  bias = bias_for("Scale", b, s, s.shape());
}

Array Scale::operator()(const Array& x) const {
  return located(*this, [&] {
    const bool by_parts = is_complex(x.dtype()) || is_complex(scale.dtype());
    return finished(scale * (by_parts ? x : matched_input(x, scale, *this)), bias, act);
  });
}

std::string Scale::rosin_show() const {
  if (scale.is_nothing()) return "Scale()";
  std::string sizes;
  for (int64_t size : scale.shape()) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  return "Scale(" + sizes + ending(act, bias);
}

Bilinear::Bilinear(int64_t in_of_x, int64_t in_of_y, int64_t out, Activation activation, const DenseOptions& options)
    : Bilinear(options.init({out, in_of_x, in_of_y}), options.bias, std::move(activation)) {}

Bilinear::Bilinear(const Array& w, const Array& b, Activation activation) : weight(w), act(std::move(activation)) {
  check_rank("Bilinear", w, 3, "(out, in of x, in of y)");
  eval(weight);
  bias = bias_for("Bilinear", b, w, {w.size(0)});
}

Array Bilinear::operator()(const Array& x, const Array& y) const {
  return located(*this, [&] {
    const int64_t out = weight.size(0), in_of_x = weight.size(1), in_of_y = weight.size(2);
    if (x.rank() == 0 || x.size(0) != in_of_x) {
      refuse_input(rosin_show(), "expects size(x, 0) == " + std::to_string(in_of_x), x, "arrays are (features, batch)");
    }
    if (y.rank() != x.rank() || y.size(0) != in_of_y) {
      refuse_input(rosin_show(), "expects size(y, 0) == " + std::to_string(in_of_y) + " and the rank of x", y,
                   "arrays are (features, batch)");
    }
    const Array a = as_columns(matched_input(x, weight, *this)), b = as_columns(matched_input(y, weight, *this));
    const int64_t batch = a.rank() > 1 ? a.size(1) : 1;
    // For all k at once: (out * in of x, in of y) * y, then the products with x are summed.
    const Array half = matmul(reshape(weight, {out * in_of_x, in_of_y}), reshape(b, {in_of_y, batch}));
    const Array products = matmul(reshape(half, {out, in_of_x, batch}), reshape(a, {in_of_x, 1, batch}));
    const Array z = x.rank() == 1 ? reshape(products, {out}) : reshape(products, {out, batch});
    return with_rest_of(finished(z, bias, act), x);
  });
}

std::string Bilinear::rosin_show() const {
  if (weight.is_nothing()) return "Bilinear()";
  const std::string x = std::to_string(weight.size(1)), y = std::to_string(weight.size(2));
  return "Bilinear(" + (x == y ? x : "(" + x + ", " + y + ")") + " => " + std::to_string(weight.size(0)) +
         ending(act, bias);
}

}  // namespace rosin
