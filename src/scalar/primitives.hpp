// The table of primitives: all that scalar code can say, with the exact meaning that every executor keeps.
// Read next: compute.hpp (the meaning in C++), scalar.hpp (the scalars that bodies are written in).
//
// Floats are IEEE 754 binary32 and binary64, rounded to nearest even; no operation is fused with another, subnormal
// numbers are kept, the sign and the payload of a NaN mean nothing. Integers are two's complement and wrap around.
#pragma once

#include <cstdint>
#include <string_view>

namespace rosin {

enum class Primitive : uint8_t {
  input,
  literal,
  add,
  subtract,
  multiply,
  divide,
  negate,
  absolute,
  minimum,
  maximum,
  floor,
  ceil,
  trunc,
  round_even,
  sqrt,
  fma,
  less,
  less_equal,
  equal,
  not_equal,
  logical_and,
  logical_or,
  logical_not,
  select,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  shift_right_zero,
  reinterpret,
  convert
};

struct PrimitiveInfo {
  Primitive primitive;
  std::string_view name;
  int arity;
  std::string_view doc;
};

inline constexpr PrimitiveInfo primitives[] = {
    {Primitive::input, "input", 0, "operand number `immediate` of the body"},
    {Primitive::literal, "literal", 0, "the value whose bits are `immediate` (integers sign-extended, Bool 0 or 1)"},
    {Primitive::add, "add", 2, "x + y; integers wrap around"},
    {Primitive::subtract, "subtract", 2, "x - y; integers wrap around"},
    {Primitive::multiply, "multiply", 2, "x * y; integers wrap around"},
    {Primitive::divide, "divide", 2,
     "x / y; integers: the quotient rounded toward zero, 0 where y is 0, the lowest number divided by -1 is itself"},
    {Primitive::negate, "negate", 1, "-x; floats: the sign bit is flipped; integers wrap around"},
    {Primitive::absolute, "absolute", 1, "|x|; floats: the sign bit is cleared; the lowest integer is its own"},
    {Primitive::minimum, "minimum", 2, "x if x < y or x is NaN, else y; so a NaN wins, and of equal zeros the second"},
    {Primitive::maximum, "maximum", 2, "x if x > y or x is NaN, else y; so a NaN wins, and of equal zeros the second"},
    {Primitive::floor, "floor", 1, "the largest integer not above x, as a float; keeps the sign of zero"},
    {Primitive::ceil, "ceil", 1, "the smallest integer not below x, as a float; keeps the sign of x"},
    {Primitive::trunc, "trunc", 1, "x without its fraction, as a float; keeps the sign of x"},
    {Primitive::round_even, "round_even", 1, "the nearest integer, halves to even, as a float; keeps the sign of x"},
    {Primitive::sqrt, "sqrt", 1, "the square root, rounded correctly; -0 for -0, NaN below"},
    {Primitive::fma, "fma", 3, "x * y + z, rounded once; slow on x86-64 without FMA"},
    {Primitive::less, "less", 2, "Bool x < y; false where one is NaN"},
    {Primitive::less_equal, "less_equal", 2, "Bool x <= y; false where one is NaN"},
    {Primitive::equal, "equal", 2, "Bool x == y; false where one is NaN; -0 equals 0"},
    {Primitive::not_equal, "not_equal", 2, "Bool x != y; true where one is NaN"},
    {Primitive::logical_and, "logical_and", 2, "Bool, both"},
    {Primitive::logical_or, "logical_or", 2, "Bool, at least one"},
    {Primitive::logical_not, "logical_not", 1, "Bool, the opposite"},
    {Primitive::select, "select", 3, "y where the Bool x is true, else z, bit by bit"},
    {Primitive::bit_and, "bit_and", 2, "integers, bit by bit"},
    {Primitive::bit_or, "bit_or", 2, "integers, bit by bit"},
    {Primitive::bit_xor, "bit_xor", 2, "integers, bit by bit"},
    {Primitive::shift_left, "shift_left", 2,
     "integers: x * 2^y, wrapping around; y counts modulo the bits of the type"},
    {Primitive::shift_right, "shift_right", 2,
     "integers: x / 2^y, rounded down (signed types copy the sign bit); y counts modulo the bits of the type"},
    {Primitive::shift_right_zero, "shift_right_zero", 2,
     "integers: the bits move down, zeros enter, whatever the sign; y counts modulo the bits of the type"},
    {Primitive::reinterpret, "reinterpret", 1, "the same bits: Float32 <-> Int32, Float64 <-> Int64"},
    {Primitive::convert, "convert", 1,
     "to another type. Float to integer: toward zero, to the nearest bound where it does not fit, NaN to 0. Integer to "
     "integer: the low bits, sign-extended. To Float: nearest even, overflow to Inf. To Bool: not equal to 0 (NaN is "
     "true). Bool to number: 0 or 1"},
};

inline constexpr int primitive_count = sizeof(primitives) / sizeof(primitives[0]);

constexpr const PrimitiveInfo& info(Primitive primitive) noexcept { return primitives[static_cast<int>(primitive)]; }

constexpr bool primitives_are_in_order() noexcept {
  for (int i = 0; i < primitive_count; ++i)
    if (primitives[i].primitive != static_cast<Primitive>(i)) return false;
  return primitive_count == static_cast<int>(Primitive::convert) + 1;
}
static_assert(primitives_are_in_order());

}  // namespace rosin
