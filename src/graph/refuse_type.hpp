// The refusal of element types, under the name of what was called.
#pragma once

#include <string_view>

#include <rosin/array.hpp>

namespace rosin {

/// Throws Error (dtype): the op has no meaning, or no form yet, for elements of that type.
[[noreturn]] void refuse_type(std::string_view op, DType type);
/// The same where x is complex.
inline void require_real(std::string_view op, const Array& x) {
  if (is_complex(x.dtype())) refuse_type(op, x.dtype());
}

}  // namespace rosin
