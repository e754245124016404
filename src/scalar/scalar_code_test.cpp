// Primitives mean what the table says, in the interpreter and in compiled loops; code is shared.
#include "scalar/scalar_code.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "scalar/interpret_testing.hpp"
#include "scalar/make_body.hpp"

namespace rosin {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr int32_t lowest = std::numeric_limits<int32_t>::min();
constexpr int32_t highest = std::numeric_limits<int32_t>::max();

/// The body's values by the interpreter, after a check that the loops agree with it.
template <class R, int arity, class F, class T>
std::vector<R> values_of(F f, const std::vector<std::vector<T>>& operands) {
  const ElementBody body = make_body<arity>(f, TypeSet<scalar_type_of<T>>());
  std::vector<const void*> in;
  for (const auto& operand : operands) in.push_back(operand.data());
  const auto count = static_cast<int64_t>(operands[0].size());
  ScalarCode code;
  body.code(scalar_type_of<T>, code);
  std::vector<R> result(operands[0].size()), compiled(operands[0].size());
  evaluate(code, result.data(), in.data(), count);
  body.loops[static_cast<int>(scalar_type_of<T>)](compiled.data(), in.data(), count);
  for (size_t i = 0; i < result.size(); ++i)
    EXPECT_EQ(std::to_string(result[i]), std::to_string(compiled[i])) << "element " << i;
  return result;
}

TEST(Primitives, HaveDistinctNamesAndSayWhatTheyDo) {
  for (const PrimitiveInfo& one : primitives) {
    EXPECT_FALSE(one.doc.empty());
    for (const PrimitiveInfo& other : primitives) EXPECT_EQ(one.name == other.name, &one == &other);
  }
}

TEST(Primitives, IntegersWrapAround) {
  const auto sums = values_of<int32_t, 2>([](auto x, auto y) { return x + y; },
                                          std::vector<std::vector<int32_t>>{{highest, lowest}, {1, -1}});
  EXPECT_EQ(sums, (std::vector<int32_t>{lowest, highest}));
}

TEST(Primitives, IntegerDivisionHasNoTraps) {
  const auto quotients = values_of<int32_t, 2>([](auto x, auto y) { return x / y; },
                                               std::vector<std::vector<int32_t>>{{7, -7, 5, lowest}, {2, 2, 0, -1}});
  EXPECT_EQ(quotients, (std::vector<int32_t>{3, -3, 0, lowest}));
}

TEST(Primitives, ShiftsFillWithTheSignOrWithZeros) {
  const std::vector<std::vector<int32_t>> operand = {{-8, 8}};
  EXPECT_EQ((values_of<int32_t, 1>([](auto x) { return x >> 1; }, operand)), (std::vector<int32_t>{-4, 4}));
  EXPECT_EQ((values_of<int32_t, 1>([](auto x) { return shift_right_zero(x, 1); }, operand)),
            (std::vector<int32_t>{0x7ffffffc, 4}));
  EXPECT_EQ((values_of<int32_t, 1>([](auto x) { return x << 33; }, operand)), (std::vector<int32_t>{-16, 16}));
}

TEST(Primitives, ConversionToIntegersSaturates) {
  const std::vector<std::vector<float>> operand = {{1.9F, -1.9F, 3e9F, -3e9F, inf, -inf, nan}};
  EXPECT_EQ((values_of<int32_t, 1>([](auto x) { return scalar::convert<int32_t>(x); }, operand)),
            (std::vector<int32_t>{1, -1, highest, lowest, highest, lowest, 0}));
  EXPECT_EQ((values_of<uint32_t, 1>([](auto x) { return scalar::convert<uint32_t>(x); }, operand)),
            (std::vector<uint32_t>{1, 0, 3000000000U, 0, 0xffffffffU, 0, 0}));
  EXPECT_EQ((values_of<uint64_t, 1>([](auto x) { return scalar::convert<uint64_t>(x); },
                                    std::vector<std::vector<float>>{{1.9F, -1.9F, 0x1p63F, 0x1p64F, inf, -inf, nan}})),
            (std::vector<uint64_t>{1, 0, uint64_t{1} << 63, UINT64_MAX, UINT64_MAX, 0, 0}));
}

TEST(Primitives, MinimumAndMaximumKeepNaN) {
  const std::vector<std::vector<float>> operands = {{nan, 1, 1, -0.0F}, {1, nan, 2, 0.0F}};
  const auto higher = values_of<float, 2>([](auto x, auto y) { return max(x, y); }, operands);
  EXPECT_TRUE(std::isnan(higher[0]));
  EXPECT_TRUE(std::isnan(higher[1]));
  EXPECT_EQ(higher[2], 2.0F);
  EXPECT_FALSE(std::signbit(higher[3]));  // of equal zeros the second
}

TEST(ScalarCode, SharesCommonSubexpressions) {
  ScalarCode code;
  const scalar::Sym<float> x{&code, append(code, {.primitive = Primitive::input})};
  code.result = (x * 2.0 + x * 2.0).place;
  EXPECT_EQ(code.list.size(), 4U);  // the input, 2, the product, the sum
}

TEST(ScalarCode, EvaluatesMoreThanOneStrip) {
  std::vector<double> in(1000);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<double>(i);
  const auto out = values_of<double, 1>([](auto x) { return x * x; }, std::vector<std::vector<double>>{in});
  for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], in[i] * in[i]);
}

}  // namespace
}  // namespace rosin
