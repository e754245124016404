// Conversion of elements between all types.
#pragma once

#include <cstdint>

#include <rosin/dtype.hpp>

#include "scalar/body.hpp"

namespace rosin::cpu {

/// target[i] = source[i] converted. Float to integer truncates and saturates, NaN gives 0; float to Bool: not zero;
/// real to complex: imaginary part 0; complex to real: the real part. Memory may overlap only when types are equal.
void convert(void* target, DType target_type, const void* source, DType source_type, int64_t count);

/// The element type whose memory looks like a tile of this scalar type.
DType tile_type(ScalarType type) noexcept;

}  // namespace rosin::cpu
