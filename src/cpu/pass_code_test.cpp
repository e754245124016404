// What a pass leaves out: instructions that stand there already, and rounding of what is rounded.
#include "cpu/pass_code.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

namespace rosin::cpu {
namespace {

class PassCodes : public ::testing::Test {
 protected:
  uint16_t input(Packing packing) {
    text.inputs.push_back({.packing = packing});
    return code.add({.primitive = Primitive::input,
                     .type = ScalarType::float32,
                     .operands = {},
                     .immediate = static_cast<int64_t>(text.inputs.size()) - 1});
  }
  uint16_t number(float value) {
    return code.add({.primitive = Primitive::literal,
                     .type = ScalarType::float32,
                     .operands = {},
                     .immediate = std::bit_cast<int32_t>(value)});
  }
  uint16_t op(Primitive what, uint16_t a, uint16_t b = 0, uint16_t c = 0) {
    return code.add({.primitive = what, .type = ScalarType::float32, .operands = {a, b, c}});
  }
  /// Whether rounding the place adds an instruction.
  bool rounds(Packing packing, uint16_t place) {
    const size_t before = text.code.list.size();
    const uint16_t rounded = code.add(rounded_to(packing, place));
    EXPECT_EQ(rounded == place, code.fits(place, packing));
    EXPECT_EQ(rounded == place, text.code.list.size() == before);
    return rounded != place;
  }

  LoopText text;
  PassCode code{text};
};

TEST_F(PassCodes, WhatIsThereIsShared) {
  const uint16_t x = input(Packing::none), sum = op(Primitive::add, x, x);
  EXPECT_EQ(op(Primitive::add, x, x), sum);
  EXPECT_NE(op(Primitive::multiply, x, x), sum);
}

TEST_F(PassCodes, WhatIsRoundedIsNotRoundedAgain) {
  const uint16_t x = input(Packing::bfloat), y = input(Packing::bfloat);
  EXPECT_FALSE(rounds(Packing::bfloat, x));
  EXPECT_TRUE(rounds(Packing::half, x));
  for (const Primitive what : {Primitive::negate, Primitive::absolute})
    EXPECT_FALSE(rounds(Packing::bfloat, op(what, x)));
  for (const Primitive what : {Primitive::minimum, Primitive::maximum}) {
    EXPECT_FALSE(rounds(Packing::bfloat, op(what, x, y)));
  }
  const uint16_t sum = op(Primitive::add, x, y);
  EXPECT_TRUE(rounds(Packing::bfloat, sum));
  const uint16_t rounded = code.add(rounded_to(Packing::bfloat, sum));
  EXPECT_FALSE(rounds(Packing::bfloat, rounded));
  EXPECT_TRUE(rounds(Packing::bfloat, op(Primitive::maximum, rounded, sum)));
}

TEST_F(PassCodes, NumbersFitWhereTheyAreExact) {
  const uint16_t x = input(Packing::half), less = op(Primitive::less, x, number(0));
  EXPECT_FALSE(rounds(Packing::half, op(Primitive::select, less, number(0.125f), x)));
  EXPECT_TRUE(rounds(Packing::half, op(Primitive::select, less, number(0.1f), x)));
  EXPECT_TRUE(rounds(Packing::half, op(Primitive::select, less, x, number(1e6f))));
  EXPECT_FALSE(rounds(Packing::bfloat, number(-6)));
  EXPECT_TRUE(rounds(Packing::bfloat, number(257)));
  EXPECT_FALSE(rounds(Packing::half, number(257)));
}

}  // namespace
}  // namespace rosin::cpu
