// ScalarCode: an elementwise body as a flat list of instructions, the form that every executor but the compiled loops
// starts from. Read first: primitives.hpp. Read next: scalar.hpp (how bodies write it),
// interpret_testing.hpp (the reference of the tests).
#pragma once

#include <cstdint>
#include <vector>

#include "scalar/body.hpp"
#include "scalar/primitives.hpp"

namespace rosin {

/// Functions of Float32 that devices compute less exactly than primitives would (backend.h says how exactly). They
/// stand only in codes that were asked to be quick.
enum class Quick : uint8_t { none, exp2, reciprocal, tanh };

/// One value: what it is computed by, its type, the places of its operands in the list.
struct Instruction {
  Primitive primitive = Primitive::literal;
  ScalarType type = ScalarType::float32;  // of the result
  uint16_t operands[3] = {};
  int64_t immediate = 0;      // input: its number; literal: its bits
  Quick quick = Quick::none;  // this function of operand 0, instead of the primitive

  bool operator==(const Instruction&) const = default;
};

struct ScalarCode {
  std::vector<Instruction> list;  // operands stand before their users
  uint16_t result = 0;            // place of the body's value
  bool rounds_each = false;       // its sums and products round one by one in every math mode
  bool quick = false;             // bodies may write quick functions into it
};

/// The place of an instruction in the list; one that stands there already is shared.
uint16_t append(ScalarCode& code, const Instruction& instruction);

}  // namespace rosin
