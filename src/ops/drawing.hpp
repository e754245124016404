// What functions that draw share: where and in which type numbers are drawn, and what becomes of them.
// Read next: random.cpp, distributions.cpp.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include <rosin/array_options.hpp>
#include <rosin/elementwise.hpp>

#include "graph/context.hpp"
#include "graph/leaf.hpp"
#include "ops/shapes.hpp"

namespace rosin {

/// The type in which numbers of `type` are drawn. Error (dtype): it is no float.
inline DType drawn_type(std::string_view op, DType type) {
  if (!is_float(type)) {
    refuse(ErrorKind::dtype, op, "it draws floats", to_string(type), "use randint or bernoulli, or cast the result");
  }
  return type == Float64 ? Float64 : Float32;
}

/// The value of a C++ number.
inline double number_of(const Node& number) {
  const ScalarValue value = scalar_value(number);
  return is_float(number.dtype) ? value.real : static_cast<double>(value.integer);
}

/// A parameter that is a C++ number is looked at, arrays are not. Error (argument): it is outside its range.
inline void require_number(std::string_view op, const Array& x, bool (*fits)(double), std::string_view range) {
  if (x.is_nothing() || !is_scalar(*x.node())) return;
  const double value = number_of(*x.node());
  if (fits(value)) return;
  refuse(ErrorKind::argument, op, "a parameter lies in its range", std::to_string(value),
         "give a number " + std::string(range));
}
inline void require_positive(std::string_view op, const Array& x) {
  require_number(
      op, x, [](double value) { return value > 0; }, "above 0");
}

/// cos(2*pi*x): the angle of a number in [0, 1), drawn evenly.
Array cos_of_turns(const Array& x);

/// Draws stand where the options say, else with a bound or parameter that is an array, else where all arrays made from
/// numbers do.
inline uint8_t place_of_draws(const ArrayOptions& options, std::initializer_list<const Array*> parameters) {
  if (options.has_device()) return static_cast<uint8_t>(options.position());
  for (const Array* x : parameters) {
    if (!x->is_nothing() && !is_scalar(*x->node())) return x->node()->device;
  }
  return Context::current().device;
}

/// What was drawn, in the type that was asked for. Bounds and parameters may be arrays, but not larger than the result.
/// Error (shape): one is.
inline Array checked_draw(std::string_view op, const Array& x, const Shape& shape, DType type) {
  if (!(x.shape() == shape)) {
    refuse(ErrorKind::shape, op, "parameters must broadcast to " + to_string(shape), to_string(x.shape()),
           "ask for the larger shape");
  }
  return x.dtype() == type ? x : cast(x, type);
}

}  // namespace rosin
