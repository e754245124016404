// What the layers share: biases, input types, texts of their one-line forms and messages.
#pragma once

#include <string>
#include <string_view>

#include <rosin/activation_value.hpp>
#include <rosin/array.hpp>
#include <rosin/error.hpp>

namespace rosin {

/// The bias that `wanted` asks for: zeros of the weight's type (true), nothing (false or nothing), or `wanted` itself,
/// converted. Evaluated. Error (shape): an array of another shape.
Array bias_for(std::string_view layer, const Array& wanted, const Array& weight, const Shape& shape);

/// x in the type of a parameter, but for autocast scopes, where ops choose their types: other floats with one warning
/// for each layer, integers and Bool silently (Float32 where there is no parameter). Error (dtype): x or the parameter
/// is complex.
Array converted_input(const Array& x, const Array& parameter, const std::string& layer);
template <class L> Array matched_input(const Array& x, const Array& parameter, const L& layer) {
  const DType type = x.dtype();
  if (is_float(type) && (parameter.is_nothing() || type == parameter.dtype())) return x;
  return converted_input(x, parameter, layer.rosin_show());
}

/// Throws Error (dtype): the layer does not compute with complex numbers, and x is one of its input or parameters.
[[noreturn]] void refuse_complex(const std::string& layer, const Array& x);

/// A vector (n) with its elements along `dim` of arrays of that rank: (1, ..., n, 1, ...).
Array along_dim(const Array& vector, int dim, int rank);

/// ", relu", or nothing for the identity.
std::string activation_text(const Activation& act);
/// As in messages: "64×10 Array{Float32}".
std::string summary(const Array& x);
/// "(5, 5)", "(5,)".
std::string tuple_text(const int64_t* values, int count);
/// The one value that all are equal to, or the tuple.
std::string compact_text(const int64_t* values, int count);

/// `layer LAYER RULE; got SUMMARY; CURE`.
[[noreturn]] void refuse_input(const std::string& layer, const std::string& rule, const Array& x,
                               std::string_view cure);

}  // namespace rosin
