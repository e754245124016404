// Bits of integers. Read first: elementwise_op.hpp. Types of less than 32 bits are computed in Int32 with their sign or
// zeros in front, and the low bits of the result are kept, so that a count from their own number of bits on needs no
// rule of its own.
#include <rosin/bits.hpp>
#include <rosin/elementwise.hpp>

#include "graph/record.hpp"
#include "ops/elementwise_op.hpp"

namespace rosin {
namespace {

using namespace scalar;

constexpr TypeSet<ScalarType::int32, ScalarType::uint32, ScalarType::int64, ScalarType::uint64> integers;

template <IntegerScalar X> inline constexpr int bit_count = 8 * static_cast<int>(sizeof(typename X::Element));

/// Whether a count is one of a place in X. A negative one is none: as an unsigned number it is large.
template <IntegerScalar X> [[gnu::always_inline]] inline Mask<X> is_place(X count) {
  return (count & -bit_count<X>) == 0;
}

template <IntegerScalar X> [[gnu::always_inline]] inline X shifted_left(X x, X count) {
  return select(is_place(count), call<Primitive::shift_left>(x, count), 0);
}

template <IntegerScalar X> [[gnu::always_inline]] inline X shifted_right(X x, X count) {
  if constexpr (std::is_signed_v<typename X::Element>) {
    return call<Primitive::shift_right>(x, select(is_place(count), count, bit_count<X> - 1));
  } else {
    return select(is_place(count), call<Primitive::shift_right>(x, count), 0);
  }
}

const Op& bitwise_and_op = elementwise<2>(
    "bitwise_and", "bits that both integers have", [](auto a, auto b) { return a & b; }, integers);
const Op& bitwise_or_op = elementwise<2>(
    "bitwise_or", "bits that at least one integer has", [](auto a, auto b) { return a | b; }, integers);
const Op& bitwise_xor_op = elementwise<2>(
    "bitwise_xor", "bits that exactly one integer has", [](auto a, auto b) { return a ^ b; }, integers);
const Op& bitwise_not_op =
    elementwise<1>(
        "bitwise_not", "every bit of an integer the other way", [](auto x) { return x ^ lit(x, -1); }, integers)
        .called(bitwise_not);
const Op& left_shift_op = elementwise<2>(
    "left_shift", "x * 2^count of integers; 0 where the count is negative or too large",
    [](auto x, auto count) { return shifted_left(x, count); }, integers);
const Op& right_shift_op = elementwise<2>(
    "right_shift", "x / 2^count of integers, rounded down; 0 or -1 where the count is negative or too large",
    [](auto x, auto count) { return shifted_right(x, count); }, integers);

/// Of Bool the bits are truth: the ops of logic, which keep the type.
Array record_bits(const Op& op, Array (*of_bools)(const Array&, const Array&), const Array& a, const Array& b) {
  require(op, a);
  require(op, b);
  return a.dtype() == Bool && b.dtype() == Bool ? of_bools(a, b) : record(op, a, b);
}

}  // namespace

Array bitwise_and(const Array& a, const Array& b) { return record_bits(bitwise_and_op, logical_and, a, b); }
Array bitwise_or(const Array& a, const Array& b) { return record_bits(bitwise_or_op, logical_or, a, b); }
Array bitwise_xor(const Array& a, const Array& b) { return record_bits(bitwise_xor_op, logical_xor, a, b); }

Array bitwise_not(const Array& x) {
  require(bitwise_not_op, x);
  return x.dtype() == Bool ? logical_not(x) : record(bitwise_not_op, x);
}

Array left_shift(const Array& x, const Array& count) { return record(left_shift_op, x, count); }
Array right_shift(const Array& x, const Array& count) { return record(right_shift_op, x, count); }

}  // namespace rosin
