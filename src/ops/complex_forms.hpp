// What ops record for complex operands: ops on their parts. Each is given the operands as they came, at least one of
// them complex. Read next: complex.cpp.
#pragma once

#include <span>

#include <rosin/array.hpp>

namespace rosin::complex_form {

/// x in the other type, one of both being complex: the imaginary part of a real is 0; a Bool says whether z is not 0.
/// Error (dtype): another real type, which would drop the imaginary part.
Array cast(const Array& x, DType type);

Array add(std::span<const Array> x);
Array sub(std::span<const Array> x);
Array mul(std::span<const Array> x);
Array div(std::span<const Array> x);
Array neg(std::span<const Array> x);
Array square(std::span<const Array> x);
Array reciprocal(std::span<const Array> x);
Array abs(std::span<const Array> x);
Array sqrt(std::span<const Array> x);
Array exp(std::span<const Array> x);
Array log(std::span<const Array> x);
Array eq(std::span<const Array> x);
Array ne(std::span<const Array> x);
Array where(std::span<const Array> x);
Array is_nan(std::span<const Array> x);
Array is_inf(std::span<const Array> x);
Array is_finite(std::span<const Array> x);

}  // namespace rosin::complex_form
