// Elements of 16 bits go into arrays and come out bit by bit.
#include <rosin/half.hpp>

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include <rosin/elementwise.hpp>

namespace rosin {
namespace {

TEST(HalfElements, BitsOfForeignMemoryAreReadAsTheyAre) {
  const std::array<uint16_t, 4> memory = {0x3c00, 0xc000, 0x7c00, 0x0001};  // 1, -2, Inf, the least number
  const auto elements = std::bit_cast<std::array<Half, 4>>(memory);
  const Array x(std::span<const Half>(elements), {4});
  EXPECT_EQ(x.dtype(), Float16);
  EXPECT_EQ(x.to_vector(), (std::vector<float>{1, -2, std::numeric_limits<float>::infinity(), 0x1p-24F}));
  const std::vector<Half> back = x.to_vector<Half>();
  EXPECT_EQ(std::memcmp(back.data(), memory.data(), sizeof memory), 0);
}

TEST(HalfElements, AnyArrayIsWrittenAsEitherSort) {
  const Array x = Array({1.0F, -2.5F, 3.1415927F}, {3}) * 1;
  EXPECT_EQ(x.to_vector<BFloat>()[2].bits, 0x4049);
  EXPECT_EQ(x.to_vector<Half>()[2].bits, 0x4248);
  EXPECT_EQ(cast(Array(2.0F), BFloat16).item<BFloat>().bits, 0x4000);
  std::array<BFloat, 3> target;
  x.copy_to(std::span<BFloat>(target));
  EXPECT_EQ(static_cast<float>(target[1]), -2.5F);
}

TEST(HalfElements, ArraysAreMadeOfWrittenElements) {
  const Array x({Half(1.5F), Half(70000.0F)}, {2});
  EXPECT_EQ(x.to_vector(), (std::vector<float>{1.5F, std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(Array(std::vector<BFloat>{BFloat(3.0F)}, {1}).dtype(), BFloat16);
}

}  // namespace
}  // namespace rosin
