// Conversion of elements between all types.
#pragma once

#include <cstdint>

#include <rosin/dtype.hpp>

#include "scalar/body.hpp"

namespace rosin {

/// target[i] = source[i] converted. Float to integer truncates and saturates, NaN gives 0; float to Bool: not zero;
/// real to complex: imaginary part 0; complex to real: the real part. Memory may overlap only when types are equal.
void convert_elements(void* target, DType target_type, const void* source, DType source_type, int64_t count);

/// The element type whose memory holds values of a scalar type as they are.
DType storage_of(ScalarType type) noexcept;

}  // namespace rosin
