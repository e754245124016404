// The reducers: how reductions and running reductions combine elements. A new one is a value here; its ops follow in
// reduce.cpp (over dims) and scan.cpp (along a dim). Read first: graph/reducer.hpp, scalar/make_combine.hpp.
#include "ops/reducers.hpp"

#include <bit>
#include <limits>

#include <rosin/elementwise.hpp>

#include "ops/math_exponential.hpp"
#include "scalar/make_combine.hpp"

namespace rosin {
namespace {

using namespace scalar;

/// What no number is below, or above.
template <class X> X least(X x) {
  if constexpr (FloatScalar<X>) return -infinity(x);
  else if constexpr (BoolScalar<X>) return lit(x, false);
  else return lowest(x);
}
template <class X> X greatest(X x) {
  if constexpr (FloatScalar<X>) return infinity(x);
  else if constexpr (BoolScalar<X>) return lit(x, true);
  else return highest(x);
}

constexpr auto zero = [](auto x) { return lit(x, 0); };
constexpr auto one = [](auto x) { return lit(x, 1); };

constexpr auto larger = [](auto x, auto y) {
  if constexpr (BoolScalar<decltype(x)>) return x | y;
  else return max(x, y);
};
constexpr auto smaller = [](auto x, auto y) {
  if constexpr (BoolScalar<decltype(x)>) return x & y;
  else return min(x, y);
};

/// log(e^x + e^y) without overflow; of equal infinities, that one.
constexpr auto log_of_sum = [](auto x, auto y) {
  const auto gap = select(x == y, 0, max(x, y) - min(x, y));
  return max(x, y) + math::log1p_near(math::falling_exp(gap));
};

/// An extremum passes the gradient to the last element that it was taken from.
Slopes extremum_slopes(const Array&, const Array& x, const Array& y) {
  const Array taken = eq(x, y) | ne(x, x);
  return {cast(!taken, y.dtype()), cast(taken, y.dtype())};
}

/// Where all are -Inf the slopes are 0.
Slopes logaddexp_slopes(const Array& before, const Array& x, const Array& y) {
  const Array whole = where(eq(y, -std::numeric_limits<double>::infinity()), 0.0, y);
  return {exp(before - whole), exp(x - whole)};
}

}  // namespace

const Reducer sum_reducer{.name = "sum", .body = make_combine([](auto x, auto y) { return x + y; }, zero, numbers)};
const Reducer product_reducer{.name = "product",
                              .body = make_combine([](auto x, auto y) { return x * y; }, one, numbers),
                              .in_order = true,
                              .slopes = [](const Array& before, const Array& x, const Array&) {
                                return Slopes{x, before};
                              }};
const Reducer maximum_reducer{.name = "maximum",
                              .body = make_combine<Weight::medium>(
                                  larger, [](auto x) { return least(x); }, everything),
                              .slopes = extremum_slopes};
const Reducer minimum_reducer{.name = "minimum",
                              .body = make_combine<Weight::medium>(
                                  smaller, [](auto x) { return greatest(x); }, everything),
                              .slopes = extremum_slopes};
const Reducer any_reducer{.name = "any", .body = make_combine([](auto x, auto y) { return x | y; }, zero, bools)};
const Reducer all_reducer{.name = "all", .body = make_combine([](auto x, auto y) { return x & y; }, one, bools)};
const Reducer logaddexp_reducer{.name = "logaddexp",
                                .body = make_combine<Weight::heavy>(
                                    log_of_sum, [](auto x) { return least(x); }, floats),
                                .slopes = logaddexp_slopes};

Array neutral_of(const Reducer& reducer, DType type) {
  const int64_t bits = reducer.body.neutral_bits(scalar_type(type));
  switch (scalar_type(type)) {
    case ScalarType::float32: return std::bit_cast<float>(static_cast<int32_t>(bits));
    case ScalarType::float64: return std::bit_cast<double>(bits);
    case ScalarType::boolean: return bits != 0;
    case ScalarType::uint64: return static_cast<uint64_t>(bits);
    case ScalarType::int32:
    case ScalarType::uint32:
    case ScalarType::int64: break;
  }
  return bits;
}

}  // namespace rosin
