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

/// x in the type of a parameter: other floats with one warning for each layer, integers and Bool silently.
Array converted_input(const Array& x, DType type, const std::string& layer);
template <class L> Array matched_input(const Array& x, const Array& parameter, const L& layer) {
  if (parameter.is_nothing() || x.dtype() == parameter.dtype()) return x;
  return converted_input(x, parameter.dtype(), layer.rosin_show());
}

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
