// ScalarCode: an elementwise body as a flat list of instructions, the form that every executor but the compiled loops
// starts from. Read first: primitives.hpp. Read next: scalar.hpp (how bodies write it),
// interpret_testing.hpp (the reference of the tests).
#pragma once

#include <cstdint>
#include <vector>

#include "scalar/body.hpp"
#include "scalar/primitives.hpp"

namespace rosin {

/// One value: what it is computed by, its type, the places of its operands in the list.
struct Instruction {
  Primitive primitive = Primitive::literal;
  ScalarType type = ScalarType::float32;  // of the result
  uint16_t operands[3] = {};
  int64_t immediate = 0;  // input: its number; literal: its bits

  bool operator==(const Instruction&) const = default;
};

struct ScalarCode {
  std::vector<Instruction> list;  // operands stand before their users
  uint16_t result = 0;            // place of the body's value
};

/// The place of an instruction in the list; one that stands there already is shared.
uint16_t append(ScalarCode& code, const Instruction& instruction);

}  // namespace rosin
