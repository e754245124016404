// See element_text.hpp.
#include "model/element_text.hpp"

#include <cmath>

#include <rosin/complex.hpp>

#include "graph/host_values.hpp"
#include "graph/leaf.hpp"
#include "model/number_text.hpp"

namespace rosin {

ElementTexts::ElementTexts(const Array& x, bool compact) : type_(x.dtype()), compact_(compact) {
  if (is_complex(type_)) floats_ = host_values<double>("to_string", view_as_real(on_cpu(x)));
  else if (is_float(type_)) floats_ = host_values<double>("to_string", x);
  else integers_ = host_values<int64_t>("to_string", x);
}

std::string ElementTexts::text(int64_t at, bool alone) const {
  const auto i = static_cast<size_t>(at);
  if (is_complex(type_)) return complex_text(floats_[2 * i], floats_[2 * i + 1]);
  if (is_float(type_)) return float_text(floats_[i], type_, compact_);
  if (type_ == Bool && alone) return integers_[i] ? "true" : "false";
  return type_ == UInt64 ? std::to_string(static_cast<uint64_t>(integers_[i])) : std::to_string(integers_[i]);
}

/// As Julia: "1.0 - 2.0im", "0.0 + NaN*im".
std::string ElementTexts::complex_text(double real, double imaginary) const {
  const bool minus = std::signbit(imaginary) && !std::isnan(imaginary);
  const char* sign = compact_ ? (minus ? "-" : "+") : (minus ? " - " : " + ");
  return float_text(real, part_type(type_), compact_) + sign +
         float_text(minus ? -imaginary : imaginary, part_type(type_), compact_) +
         (std::isfinite(imaginary) ? "im" : "*im");
}

}  // namespace rosin
