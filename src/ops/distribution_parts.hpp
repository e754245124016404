// Draws that several distributions begin with. Read first: drawing.hpp. Read next: distributions.cpp, counts.cpp.
#pragma once

#include <rosin/random.hpp>

#include "ops/drawing.hpp"

namespace rosin {

/// Numbers in [0, 1), of Float32 or Float64.
inline Array draw(Rng& rng, const Shape& shape, DType type) { return uniform(rng, shape, 0, 1, type); }

/// Mean 1; 0 comes once in 2^24 (Float64: 2^53).
inline Array unit_exponential(Rng& rng, const Shape& shape, DType type) { return -log1p(-draw(rng, shape, type)); }

/// Finite: where the exponential variable is 0 it counts as half of what it is at least otherwise.
inline Array unit_gumbel(Rng& rng, const Shape& shape, DType type) {
  return -log(max(unit_exponential(rng, shape, type), type == Float64 ? 0x1p-54 : 0x1p-25));
}

/// Where and in which type a distribution is drawn, for as long as this lives.
class DrawPlace {
 public:
  /// Error (dtype): the options state no float.
  DrawPlace(std::string_view op, const ArrayOptions& options, std::initializer_list<const Array*> parameters)
      : DrawPlace(op, options.type_or(Float32), drawn_type(op, options.type_or(Float32)), options, parameters) {}
  DrawPlace(std::string_view op, DType type, DType drawn_in, const ArrayOptions& options,
            std::initializer_list<const Array*> parameters)
      : drawn(drawn_in), op_(op), type_(type), scope_(place_of_draws(options, parameters)) {
    for (const Array* x : parameters) {
      if (x->is_nothing()) {
        refuse(ErrorKind::argument, op, "every parameter must be given", "nothing (an empty Array)",
               "give it a value first");
      }
    }
  }

  /// A parameter beside what is drawn.
  Array parameter(const Array& x) const { return x.dtype() == drawn || is_scalar(*x.node()) ? x : typed(x); }
  /// The same, numbers too: where it is computed with before it meets what is drawn.
  Array typed(const Array& x) const { return cast(x, drawn); }
  /// What was drawn, in the type that was asked for.
  Array finished(const Array& x, const Shape& shape) const { return checked_draw(op_, x, shape, type_); }

  const DType drawn;

 private:
  std::string_view op_;
  DType type_;
  DeviceScope scope_;
};

}  // namespace rosin
