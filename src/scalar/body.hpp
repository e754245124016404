// ElementBody: what an elementwise op computes, in the two forms made from one generic lambda: compiled loops over
// strips (this CPU) and scalar code (every other executor). Read next: make_body.hpp (how both are made).
#pragma once

#include <cstdint>

#include <rosin/dtype.hpp>

#include "base/instruction_set.hpp"

namespace rosin {

struct ScalarCode;

/// The types that kernels compute in. Narrower types are computed in a wider one and rounded once, at each op.
enum class ScalarType : uint8_t { boolean, int32, uint32, int64, uint64, float32, float64 };
inline constexpr int scalar_type_count = 7;

/// The type in which elements of `type` are computed; Int8, UInt8, Int16, UInt16: Int32; halves: Float32.
/// Complex types have none (they count as Float32 of twice the elements where that is meant).
constexpr ScalarType scalar_type(DType type) noexcept {
  switch (type) {
    case DType::Bool: return ScalarType::boolean;
    case DType::UInt32: return ScalarType::uint32;
    case DType::Int64: return ScalarType::int64;
    case DType::UInt64: return ScalarType::uint64;
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
    case DType::ComplexF32: return ScalarType::float32;
    case DType::Float64:
    case DType::ComplexF64: return ScalarType::float64;
    default: return ScalarType::int32;
  }
}

constexpr int bytes_of(ScalarType type) noexcept {
  constexpr int8_t bytes[scalar_type_count] = {1, 4, 4, 8, 8, 4, 8};
  return bytes[static_cast<int>(type)];
}

/// out[i] = body(in[0][i], in[1][i], ...) for i in [0, count); all contiguous, operands of the loop's type (operand 0
/// of an op with a mask first is Bool), Bool as bytes 0 and 1; out may equal an operand of the same element size.
using StripLoop = void (*)(void* out, const void* const* in, int64_t count);

/// The forms of one body; a null loop means that the body has no meaning for that type.
struct ElementBody {
  StripLoop loops[scalar_type_count] = {};                              // for the best instruction set
  ScalarType result[scalar_type_count] = {};                            // type of the loop's result
  StripLoop (*variant)(ScalarType type, InstructionSet set) = nullptr;  // the loop for a stated instruction set
  void (*code)(ScalarType type, ScalarCode& out) = nullptr;             // writes the scalar code and its result
};

}  // namespace rosin
