// Strips of 16-bit floats to and from float, in vectors where the processor has them; bits as rosin/half.hpp gives.
#pragma once

#include <cstdint>

#include <rosin/half.hpp>

#include "scalar/body.hpp"

namespace rosin {

/// out[i] = x[i] converted, count elements; the memories do not overlap.
struct HalfStrips {
  void (*half_to_float)(float* out, const Half* x, int64_t count);
  void (*float_to_half)(Half* out, const float* x, int64_t count);
  void (*bfloat_to_float)(float* out, const BFloat* x, int64_t count);
  void (*float_to_bfloat)(BFloat* out, const float* x, int64_t count);
};

/// All sets give the same bits.
const HalfStrips& half_strips(InstructionSet set) noexcept;
/// Those of the best set of this processor.
const HalfStrips& half_strips() noexcept;

}  // namespace rosin
