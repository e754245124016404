// The op suite, integers: UInt64 to its last bit, sums that do not overflow, division as in Python, C++ numbers that a
// type does not hold, Bool in arithmetic. Values follow by hand or from 128-bit integers. Read first: op_suite.hpp.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <rosin/compose.hpp>
#include <rosin/conv.hpp>
#include <rosin/error.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/pool.hpp>
#include <rosin/sort.hpp>

#include "op_suite.hpp"

namespace rosin::suite {
namespace {

__extension__ using Wide = __int128;

constexpr DType integer_types[] = {UInt8, Int8, Int16, UInt16, Int32, UInt32, Int64, UInt64};
constexpr uint64_t top = uint64_t{1} << 63, last = std::numeric_limits<uint64_t>::max();

template <class T> Array row_of(std::initializer_list<T> values) {
  return there(Array(values, {static_cast<int64_t>(values.size())}));
}

template <class T> std::vector<T> read(const Array& x) { return x.to_vector<T>(); }
std::vector<int> truth(const Array& x) { return x.to_vector<int>(); }

/// The text of the Error, which must be one of types; empty where there is none.
std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::dtype) << error.what();
    return error.what();
  }
  return {};
}

/// Where kernels are compiled, all that the body needs are compiled as one program.
void at_once(const std::function<void()>& body) {
  run_checks(1, [&](size_t) { body(); });
}

TEST(OpSuiteIntegers, UInt64IsUnsignedToItsLastBit) {
  at_once([] {
    const Array u = row_of<uint64_t>({top, 1, last, 10});
    EXPECT_EQ(read<float>(cast(u, Float32)), (std::vector<float>{0x1p63F, 1, 0x1p64F, 10}));
    EXPECT_EQ(read<uint64_t>(cast(row_of({1e19F, -1.0F, 1e30F, 7.5F}), UInt64)),
              (std::vector<uint64_t>{static_cast<uint64_t>(1e19F), 0, last, 7}));
    EXPECT_EQ(maximum(u).item<uint64_t>(), last);
    EXPECT_EQ(minimum(u).item<uint64_t>(), 1u);
    EXPECT_EQ(truth(u > row_of<uint64_t>({2, 2, 2, 2})), (std::vector<int>{1, 0, 1, 1}));
    EXPECT_EQ(truth(u <= row_of<uint64_t>({last, 0, top, 10})), (std::vector<int>{1, 0, 0, 1}));
    EXPECT_EQ(read<uint64_t>(max(u, 11)), (std::vector<uint64_t>{top, 11, last, 11}));
    EXPECT_EQ(read<uint64_t>(min(u, 11)), (std::vector<uint64_t>{11, 1, 11, 10}));
    EXPECT_EQ(read<uint64_t>(mod(u, 10)), (std::vector<uint64_t>{8, 1, 5, 0}));
    EXPECT_EQ(read<uint64_t>(floor_divide(u, 10)),
              (std::vector<uint64_t>{922337203685477580u, 0, 1844674407370955161u, 1}));
    EXPECT_EQ(read<uint64_t>(u + last), (std::vector<uint64_t>{top - 1, 0, last - 1, 9}));
    EXPECT_EQ(read<uint64_t>(u * 3), (std::vector<uint64_t>{top, 3, last - 2, 30}));
    EXPECT_EQ(read<uint64_t>(abs(u)), (std::vector<uint64_t>{top, 1, last, 10}));
    EXPECT_EQ(read<uint64_t>(sign(u)), (std::vector<uint64_t>{1, 1, 1, 1}));
    EXPECT_EQ(read<uint64_t>(clamp(u, 5, 1e19)), (std::vector<uint64_t>{top, 5, 10000000000000000000u, 10}));
    EXPECT_EQ(read<uint64_t>(where(u > top, u, last)), (std::vector<uint64_t>{last, last, last, last}));
    EXPECT_EQ(read<float>(u / 2.0F), (std::vector<float>{0x1p62F, 0.5F, 0x1p63F, 5}));
    EXPECT_EQ(truth(cast(u, Bool)), (std::vector<int>{1, 1, 1, 1}));
  });
}

TEST(OpSuiteIntegers, UInt64IsUnsignedInSumsPlacesAndWindows) {
  at_once([] {
    const Array u = row_of<uint64_t>({1, top, 10, last});
    EXPECT_EQ(sum(u).dtype(), UInt64);
    EXPECT_EQ(sum(u).item<uint64_t>(), top + 10);
    EXPECT_EQ(read<uint64_t>(cumsum(u)), (std::vector<uint64_t>{1, top + 1, top + 11, top + 10}));
    EXPECT_EQ(prod(row_of<uint64_t>({top - 1, 2})).item<uint64_t>(), last - 1);
    EXPECT_FLOAT_EQ(mean(row_of<uint64_t>({top, 1})).item<float>(), 0x1p62F);
    EXPECT_EQ(argmax(u).item<int>(), 3);
    EXPECT_EQ(argmin(row_of<uint64_t>({top, last, 5})).item<int>(), 2);
    EXPECT_EQ(read<uint64_t>(sort(u)), (std::vector<uint64_t>{1, 10, top, last}));
    EXPECT_EQ(read<uint64_t>(topk(u, 2).values), (std::vector<uint64_t>{last, top}));
    EXPECT_EQ(read<uint64_t>(maxpool(reshape(u, {4, 1, 1}), 2)), (std::vector<uint64_t>{top, last}));
    EXPECT_EQ(read<uint64_t>(pad(u, 0, 0, 1, last)).back(), last);
    EXPECT_EQ(full({1}, last, UInt64).item<uint64_t>(), last);
    EXPECT_EQ(read<uint64_t>(matmul(reshape(u, {2, 2}), reshape(u, {2, 2}))),
              (std::vector<uint64_t>{top * 10 + 1, top * last + top, 10 + last * 10, top * 10 + 1}));
    EXPECT_THROW(eval(gather(u, row_of<uint64_t>({top}))), Error);
  });
}

TEST(OpSuiteIntegers, PlacesOfInt64SeeEveryBit) {
  const int64_t large = int64_t{1} << 62;
  const Array x = row_of<int64_t>({large, large + 1, large - 1, -large});
  EXPECT_EQ(argmax(x).item<int>(), 1);
  EXPECT_EQ(argmin(slice(x, 0, 0, 3)).item<int>(), 2);
  EXPECT_EQ(maximum(x).item<int64_t>(), large + 1);
}

TEST(OpSuiteIntegers, SumsAndProductsDoNotOverflowTheNarrowType) {
  const Array many = there(evaluated(full({200, 200}, 65535, UInt16)));
  EXPECT_EQ(sum(many).dtype(), Int64);
  EXPECT_EQ(sum(many).item<int64_t>(), 40000 * int64_t{65535});
  EXPECT_EQ(sum(sum(many, 1)).item<int64_t>(), 40000 * int64_t{65535});
  EXPECT_EQ(read<int64_t>(cumsum(reshape(many, {40000}))).back(), 40000 * int64_t{65535});
  EXPECT_EQ(mean(many).item<float>(), 65535.0F);
  const Array large = row_of<int32_t>({100000, 100000, 3});
  EXPECT_EQ(prod(large).item<int64_t>(), int64_t{30000000000});
  EXPECT_EQ(read<int64_t>(cumprod(large)), (std::vector<int64_t>{100000, 10000000000, 30000000000}));
}

TEST(OpSuiteIntegers, ABatchOfPicturesIsSummedExactly) {
  if (on_other_device()) GTEST_SKIP() << "a check of the CPU: it takes an interpreter long";
  const Array pixels = full({28, 28, 60000}, 200, UInt8);
  EXPECT_EQ(sum(pixels).item<int64_t>(), int64_t{28} * 28 * 60000 * 200);
  EXPECT_EQ(mean(pixels).item<float>(), 200.0F);
}

TEST(OpSuiteIntegers, ContractionsOfIntegersAreExactInInt64) {
  at_once([] {
    const Array a = row_of<int8_t>({127, -128, 127, 127}), b = row_of<int8_t>({127, -128, 127, -128});
    EXPECT_EQ(dot(a, b).dtype(), Int64);
    EXPECT_EQ(dot(a, b).item<int64_t>(), 127 * 127 + 128 * 128 + 127 * 127 - 127 * 128);
    const Array wide = row_of<int32_t>({1 << 30, 1 << 30, 3, -7});
    const Array square = matmul(reshape(wide, {2, 2}), reshape(wide, {2, 2}));
    const int64_t q = int64_t{1} << 30;
    EXPECT_EQ(square.dtype(), Int64);
    EXPECT_EQ(read<int64_t>(square), (std::vector<int64_t>{q * q + 3 * q, q * q - 7 * q, 3 * q - 21, 3 * q + 49}));
    const Array pixels = reshape(wide, {4, 1, 1}), kernel = reshape(row_of<int32_t>({1 << 20, 16777217}), {2, 1, 1});
    const int64_t k = 1 << 20, l = 16777217;
    const Array seen = crosscor(pixels, kernel);
    EXPECT_EQ(seen.dtype(), Int64);
    EXPECT_EQ(read<int64_t>(seen), (std::vector<int64_t>{q * k + q * l, q * k + 3 * l, 3 * k - 7 * l}));
    EXPECT_EQ(read<int64_t>(conv(pixels, kernel)), (std::vector<int64_t>{q * l + q * k, q * l + 3 * k, 3 * l - 7 * k}));
    EXPECT_EQ(read<int64_t>(conv_transpose(pixels, kernel)).front(), q * l);
    EXPECT_EQ(crosscor(pixels, cast(kernel, Float32)).dtype(), Float32);
  });
}

/// Python's // and % of whole numbers.
int64_t floored_quotient(int64_t a, int64_t b) { return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0)); }

TEST(OpSuiteIntegers, FloorDivisionAndRemainderAreThoseOfPython) {
  at_once([] {
    std::vector<int64_t> a, b;
    for (int64_t x = -7; x <= 7; ++x) {
      for (int64_t y = -7; y <= 7; ++y) {
        a.push_back(x);
        b.push_back(y);
      }
    }
    const auto count = static_cast<int64_t>(a.size());
    for (const DType type : integer_types) {
      const bool is_signed = type == Int8 || type == Int16 || type == Int32 || type == Int64;
      const Array x = there(cast(is_signed ? Array(a, {count}) : abs(Array(a, {count})), type));
      const Array y = there(cast(is_signed ? Array(b, {count}) : abs(Array(b, {count})), type));
      const Array quotient = floor_divide(x, y), rest = mod(x, y);
      EXPECT_EQ(quotient.dtype(), type);
      const std::vector<int64_t> got = read<int64_t>(quotient), left = read<int64_t>(rest);
      for (size_t i = 0; i < a.size(); ++i) {
        const int64_t p = is_signed ? a[i] : std::abs(a[i]), q = is_signed ? b[i] : std::abs(b[i]);
        EXPECT_EQ(got[i], floored_quotient(p, q)) << to_string(type) << ": " << p << " // " << q;
        EXPECT_EQ(left[i], q == 0 ? 0 : p - q * floored_quotient(p, q)) << to_string(type) << ": " << p << " % " << q;
      }
    }
    const Array parts = floor_divide(row_of({7.5F, -7.5F, 7.5F, 1.0F}), row_of({2.0F, 2.0F, -2.0F, 0.0F}));
    EXPECT_EQ(read<float>(parts), (std::vector<float>{3, -4, -4, std::numeric_limits<float>::infinity()}));
    EXPECT_EQ(read<float>(row_of({7, -7}) / 2), (std::vector<float>{3.5F, -3.5F}));
  });
}

TEST(OpSuiteIntegers, ANumberThatTheTypeDoesNotHoldIsRefused) {
  const Array bytes = row_of<uint8_t>({1, 2}), small = row_of<int8_t>({1, 2}), words = row_of<uint32_t>({1, 2});
  EXPECT_EQ(refusal([&] { max(small, 200); }),
            "max: a number beside an array of Int8 must be one that the type holds, -128 to 127; got 200; convert the "
            "array with cast(x, Int32)");
  EXPECT_EQ(refusal([&] { max(words, -5); }),
            "max: a number beside an array of UInt32 must be one that the type holds, 0 to 4294967295; got -5; convert "
            "the array with cast(x, Int64)");
  const Array mask = row_of<uint8_t>({0, 1}) == 1;
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { where(mask, bytes, -1); }, [&] { where(mask, -1, bytes); }, [&] { bytes + 256; }, [&] { 300 - bytes; },
           [&] { small * -129; }, [&] { mod(bytes, 1000); }, [&] { floor_divide(small, 128); },
           [&] { row_of<int64_t>({1}) + last; }, [&] { row_of<uint64_t>({1}) - int64_t{-1}; },
           [&] { pad(bytes, 0, 1, 1, -1); }, [&] { full({2}, 256, UInt8); }, [&] { full_like(small, 128); }}) {
    EXPECT_NE(refusal(call), "");
  }
  EXPECT_EQ(read<int>(small + 127), (std::vector<int>{-128, -127})) << "the number is held; sums wrap";
  EXPECT_EQ(read<int>(bytes + 255), (std::vector<int>{0, 1}));
  EXPECT_EQ(read<float>(bytes / -2), (std::vector<float>{-0.5F, -1})) << "quotients are Float32";
  EXPECT_EQ(read<float>(row_of({1.0F}) + last), (std::vector<float>{0x1p64F}));
  EXPECT_EQ(read<int>(clamp(bytes, -5, 300)), (std::vector<int>{1, 2})) << "bounds may lie outside";
}

/// lhs OP rhs for the six comparisons, in their order below.
std::vector<int> compared(Wide lhs, Wide rhs) {
  return {lhs == rhs, lhs != rhs, lhs<rhs, lhs <= rhs, lhs> rhs, lhs >= rhs};
}
std::vector<int> compared(const Array& a, const Array& b) {
  std::vector<int> results;
  for (const Array& result : {a == b, a != b, a<b, a <= b, a> b, a >= b}) {
    EXPECT_EQ(result.dtype(), Bool);
    EXPECT_EQ(result.shape(), Shape{1});
    results.push_back(result.item<bool>());
  }
  return results;
}

TEST(OpSuiteIntegers, ComparisonsWithNumbersAreThoseOfMathematics) {
  at_once([] {
    const std::vector<int64_t> numbers = {
        0,        -1,  1,    127,   128,        -128,       -129,        255,
        256,      300, -300, 65536, 2147483648, 4294967296, -2147483649, int64_t{1} << 62,
        INT64_MIN};
    for (const DType type : integer_types) {
      const Array zero = there(evaluated(full({1}, 0, type)));
      for (const int64_t number : numbers) {
        EXPECT_EQ(compared(zero, Array(number)), compared(0, Wide{number})) << to_string(type) << " 0 and " << number;
        EXPECT_EQ(compared(Array(number), zero), compared(Wide{number}, 0))
            << number << " and " << to_string(type) << " 0";
      }
      EXPECT_EQ(compared(zero, Array(last)), compared(0, Wide{last})) << to_string(type);
      EXPECT_EQ(compared(Array(top), zero), compared(Wide{top}, 0)) << to_string(type);
    }
    EXPECT_EQ(compared(row_of<uint64_t>({last}), Array(last)), compared(1, 1));
  });
}

TEST(OpSuiteIntegers, TwoIntegerTypesMeetInOneThatHoldsBoth) {
  at_once([] {
    const std::map<std::pair<DType, DType>, DType> meetings = {
        // numpy.promote_types
        {{UInt8, Int8}, Int16},   {{UInt8, Int16}, Int16},  {{UInt8, UInt16}, UInt16},   {{UInt8, UInt64}, UInt64},
        {{Int8, UInt16}, Int32},  {{Int8, Int64}, Int64},   {{Int16, UInt16}, Int32},    {{Int16, UInt32}, Int64},
        {{UInt16, Int32}, Int32}, {{Int32, UInt32}, Int64}, {{UInt32, Int64}, Int64},    {{UInt32, UInt64}, UInt64},
        {{Bool, UInt64}, UInt64}, {{Bool, Int8}, Int8},     {{Int32, Float16}, Float16}, {{UInt64, Float32}, Float32}};
    for (const auto& [types, common] : meetings) {
      const Array a = there(evaluated(full({2}, 1, types.first))), b = there(evaluated(full({2}, 1, types.second)));
      EXPECT_EQ((a + b).dtype(), common) << to_string(types.first) << " and " << to_string(types.second);
      EXPECT_EQ((b + a).dtype(), common);
      EXPECT_EQ(read<int>(b + a), (std::vector<int>{2, 2}));
    }
    for (const DType type : {Int8, Int16, Int32, Int64}) {
      const Array a = there(evaluated(full({1}, 1, type))), b = row_of<uint64_t>({1});
      EXPECT_EQ(refusal([&] { a < b; }), "lt: no integer type holds both " + std::string(to_string(type)) +
                                             " and UInt64; got such operands; convert one, e.g. with cast(x, Int64)");
    }
  });
}

TEST(OpSuiteIntegers, NumbersAloneAreComputedIn64Bits) {
  const Array bytes = row_of<int8_t>({1});
  EXPECT_EQ(read<int>(bytes + (Array(100) - 90)), (std::vector<int>{11}));
  EXPECT_NE(refusal([&] { bytes + (Array(100) + 100); }), "") << "a sum of numbers is a number";
  EXPECT_EQ((Array(2147483647) + 1).item<int64_t>(), 2147483648);
  EXPECT_EQ((Array(last) - 1).item<uint64_t>(), last - 1);
  EXPECT_TRUE((Array(last) > 1).item<bool>());
  EXPECT_EQ(Array(last).item<uint64_t>(), last);
  EXPECT_EQ(cast(last, Float64).item(), 0x1p64);
  EXPECT_EQ(cast(9007199254740993, Int64).item<int64_t>(), 9007199254740993);
}

TEST(OpSuiteIntegers, BoolCountsAsInt32InArithmetic) {
  const Array flags = row_of<int>({0, 1, 1}) != 0, others = row_of<int>({1, 1, 0}) != 0;
  using Row = std::vector<int>;
  for (const auto& [got, want] : std::vector<std::pair<Array, Row>>{{flags + others, {1, 2, 1}},
                                                                    {flags - others, {-1, 0, 1}},
                                                                    {flags * others, {0, 1, 0}},
                                                                    {-flags, {0, -1, -1}},
                                                                    {max(flags, others), {1, 1, 1}},
                                                                    {min(flags, others), {0, 1, 0}},
                                                                    {abs(flags), {0, 1, 1}},
                                                                    {square(flags), {0, 1, 1}},
                                                                    {floor(flags), {0, 1, 1}},
                                                                    {clamp(flags, 0, 1), {0, 1, 1}},
                                                                    {flags + 5, {5, 6, 6}},
                                                                    {flags + true, {1, 2, 2}}}) {
    EXPECT_EQ(got.dtype(), Int32);
    EXPECT_EQ(read<int>(got), want);
  }
  EXPECT_EQ((row_of<int8_t>({1, 2, 3}) + flags).dtype(), Int8);
  EXPECT_EQ(sum(flags).dtype(), Int64);
  EXPECT_EQ(sum(flags).item<int>(), 2);
  EXPECT_FLOAT_EQ(mean(flags).item<float>(), 2.0F / 3);
  EXPECT_EQ(maximum(flags).dtype(), Bool) << "choosing an element keeps its type";
}

TEST(OpSuiteIntegers, LogicIsOfBoolAndSaysSo) {
  const Array flags = row_of<int>({0, 1, 1}) != 0, others = row_of<int>({1, 1, 0}) != 0;
  EXPECT_EQ(truth(flags ^ others), (std::vector<int>{1, 0, 1}));
  EXPECT_EQ(truth(flags & !others), (std::vector<int>{0, 0, 1}));
  const Array numbers = row_of({1, 2, 3});
  EXPECT_EQ(refusal([&] { numbers& numbers; }),
            "logical_and: the operands must be Bool; got Int32; compare first, e.g. (a > 0) & (b != 0)");
  EXPECT_EQ(refusal([&] { numbers ^ 1; }),
            "logical_xor: the operands must be Bool; got Int32; compare first, e.g. (a > 0) & (b != 0)");
}

}  // namespace
}  // namespace rosin::suite
