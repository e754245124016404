// Bits of integers: result types, C++ numbers, chains, errors. Their values, for every type, stand in bits.txt
// (NumPy's), which the op suite runs. Expected values here follow by hand.
#include <rosin/bits.hpp>

#include <gtest/gtest.h>

#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/reduce.hpp>

#include "../../tests/error_testing.hpp"

namespace rosin {
namespace {

template <class T> std::vector<T> read(const Array& x) { return x.to_vector<T>(); }

TEST(Bits, NumbersTakeTheTypeOfTheArray) {
  const Array bytes(std::vector<uint8_t>{0, 15, 170, 255}, {4});
  EXPECT_EQ(bitwise_and(bytes, 0x0F).dtype(), UInt8);
  EXPECT_EQ(read<int>(bitwise_and(bytes, 0x0F)), (std::vector<int>{0, 15, 10, 15}));
  EXPECT_EQ(read<int>(bitwise_or(0x81, bytes)), (std::vector<int>{129, 143, 171, 255}));
  EXPECT_EQ(read<int>(bitwise_xor(bytes, 255)), read<int>(bitwise_not(bytes)));
  EXPECT_EQ(read<int>(left_shift(bytes, 4)), (std::vector<int>{0, 240, 160, 240}));
  EXPECT_EQ(read<int>(right_shift(bytes, 4)), (std::vector<int>{0, 0, 10, 15}));
  EXPECT_EQ(read<int>(left_shift(1, bitwise_and(bytes, 7))), (std::vector<int>{1, 128, 4, 128}));
  EXPECT_EQ(error_of([&] { bitwise_and(bytes, 256); }, ErrorKind::dtype).rfind("bitwise_and: ", 0), 0u);
  EXPECT_EQ(bitwise_and(Array(12), 10).item<int>(), 8) << "numbers alone";
}

TEST(Bits, CountsOutsideLoseAllBits) {
  const Array x(std::vector<int32_t>{-8, 8, -1, 1}, {4});
  for (const int count : {32, 33, 64, 1 << 30, -1, -31}) {
    EXPECT_EQ(read<int>(left_shift(x, count)), (std::vector<int>{0, 0, 0, 0})) << count;
    EXPECT_EQ(read<int>(right_shift(x, count)), (std::vector<int>{-1, 0, -1, 0})) << count;
  }
  const Array words = cast(x, UInt32);
  EXPECT_EQ(read<uint32_t>(right_shift(words, 31)), (std::vector<uint32_t>{1, 0, 1, 0})) << "zeros enter";
  EXPECT_EQ(read<uint32_t>(right_shift(words, 32)), (std::vector<uint32_t>{0, 0, 0, 0}));
  const Array small = cast(x, Int8);
  EXPECT_EQ(read<int>(left_shift(small, 5)), (std::vector<int>{0, 0, -32, 32})) << "bits leave the type";
  EXPECT_EQ(read<int>(left_shift(small, 8)), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(read<int>(right_shift(small, 8)), (std::vector<int>{-1, 0, -1, 0}));
}

TEST(Bits, OfBoolAreLogic) {
  const Array a = Array({0, 0, 1, 1}, {4}) != 0, b = Array({0, 1, 0, 1}, {4}) != 0;
  for (const Array& y : {bitwise_and(a, b), bitwise_or(a, b), bitwise_xor(a, b), bitwise_not(a)}) {
    EXPECT_EQ(y.dtype(), Bool);
  }
  EXPECT_EQ(read<int>(bitwise_xor(a, b)), (std::vector<int>{0, 1, 1, 0}));
  EXPECT_EQ(read<int>(bitwise_not(a)), (std::vector<int>{1, 1, 0, 0}));
  EXPECT_EQ(bitwise_and(a, 1).dtype(), Int32) << "a number that is no Bool";
  EXPECT_EQ(left_shift(a, b).dtype(), Int32);
  EXPECT_EQ(read<int>(left_shift(a, b)), (std::vector<int>{0, 0, 1, 2}));
}

/// The number of bits that are set, by adding neighbours: a chain that becomes one kernel.
TEST(Bits, AChainCountsBits) {
  Array x(std::vector<uint32_t>{0, 1, 0xFFFFFFFF, 0xF0F0F0F0, 0x80000001}, {5});
  x = x - bitwise_and(right_shift(x, 1), 0x55555555);
  x = bitwise_and(x, 0x33333333) + bitwise_and(right_shift(x, 2), 0x33333333);
  x = bitwise_and(x + right_shift(x, 4), 0x0F0F0F0F);
  EXPECT_EQ(read<int>(right_shift(x * 0x01010101, 24)), (std::vector<int>{0, 1, 32, 16, 2}));
}

TEST(Bits, FloatsAndWhatHoldsNoCommonTypeAreRefused) {
  const Array x({1.0f, 2.0f}, {2}), n({1, 2}, {2});
  for (const auto& [name, f] : std::initializer_list<std::pair<std::string, Array (*)(const Array&, const Array&)>>{
           {"bitwise_and", bitwise_and},
           {"bitwise_or", bitwise_or},
           {"bitwise_xor", bitwise_xor},
           {"left_shift", left_shift},
           {"right_shift", right_shift}}) {
    const std::string text =
        name + ": not defined for elements of type Float32; got such an operand; convert it with cast(x, type)";
    EXPECT_EQ(error_of([&] { f(x, x); }, ErrorKind::dtype), text);
    EXPECT_EQ(error_of([&] { f(n, x); }, ErrorKind::dtype), text);
    EXPECT_EQ(error_of([&] { f(n, 0.5); }, ErrorKind::dtype), text);
    EXPECT_EQ(error_of([&] { f(cast(n, UInt64), n); }, ErrorKind::dtype).rfind(name + ": ", 0), 0u);
    EXPECT_EQ(error_of([&] { f(n, {}); }, ErrorKind::argument).rfind(name + ": an operand is nothing", 0), 0u);
    EXPECT_EQ(error_of([&] { f(n, Array({1, 2, 3}, {3})); }, ErrorKind::shape).rfind(name + ": sizes", 0), 0u);
  }
  EXPECT_EQ(
      error_of([&] { bitwise_not(x); }, ErrorKind::dtype),
      "bitwise_not: not defined for elements of type Float32; got such an operand; convert it with cast(x, type)");
  EXPECT_EQ(error_of([&] { n& n; }, ErrorKind::dtype).rfind("logical_and: the operands must be Bool", 0), 0u)
      << "operators stay those of logic";
}

TEST(Bits, NoGradientFlowsThrough) {
  const Array x({1.5f, 6.0f}, {2});
  const Array g = gradient([](const Array& y) { return sum(y * bitwise_and(cast(y, Int32), 6)); }, x);
  EXPECT_EQ(read<float>(g), (std::vector<float>{0, 6}));
}

}  // namespace
}  // namespace rosin
