// A reducer that the library does not know, stated once: reductions and scans of it on the CPU and by the kernels of
// devices, with a gradient. Read first: graph/reducer.hpp, kernel_testing.hpp.
#include <gtest/gtest.h>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/movement.hpp>

#include "kernels/kernel_testing.hpp"
#include "ops/reduction.hpp"
#include "ops/shapes.hpp"
#include "scalar/make_combine.hpp"

namespace rosin::kernels {
namespace {

using namespace scalar;

/// The probability of at least one of independent events: 1 - (1 - x)(1 - y).
const Reducer either_reducer{
    .name = "either",
    .body = make_combine([](auto x, auto y) { return x + y - x * y; }, [](auto x) { return lit(x, 0); }, floats),
    .slopes = [](const Array& before, const Array& x, const Array&) {
      return Slopes{1.0 - x, 1.0 - before};
    }};
const Op& either_op = *register_op({.name = "test_either",
                                    .kind = Kind::reduction,
                                    .operands = 1,
                                    .doc = "for tests",
                                    .reducer = &either_reducer,
                                    .attribute_words = 1});
const Op& running_either_op = running_op("test_running_either", "either along a dim", either_reducer);

/// The bits in which an odd number of elements has a one.
const Reducer parity_reducer{
    .name = "parity",
    .body = make_combine([](auto x, auto y) { return x ^ y; }, [](auto x) { return lit(x, 0); },
                         TypeSet<ScalarType::int32, ScalarType::int64>{})};
const Op& parity_op = *register_op({.name = "test_parity",
                                    .kind = Kind::reduction,
                                    .operands = 1,
                                    .doc = "for tests",
                                    .reducer = &parity_reducer,
                                    .attribute_words = 1});

Array over(const Op& op, const Array& x, uint64_t mask) {
  const int64_t sizes[] = {mask & 1 ? 1 : x.size(0), mask & 2 ? 1 : x.size(1)};
  return record_one(op, x, x.dtype(), Shape(std::span<const int64_t>(sizes)),
                    Attributes::of(ReductionAttributes{mask}));
}

const Array& chances() {
  static const Array x({0.5, 0.25, 0.5, 0.75, 0.0, 0.5}, {3, 2});
  return x;
}

TEST(Reducer, OfATestIsReducedOverDimsHereAndByKernels) {
  const auto columns = [] { return over(either_op, chances(), 1); };
  const auto rows = [] { return over(either_op, chances(), 2); };
  for (const Array& y : {columns(), by_kernels(columns)}) {
    EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{0.8125, 0.875}));
  }
  for (const Array& y : {rows(), by_kernels(rows)}) {
    EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{0.875, 0.25, 0.75}));
  }
}

TEST(Reducer, OfATestIsFusedWithItsNeighbours) {
  const auto f = [] { return 1.0 - over(either_op, chances() * 0.5, 1); };
  const std::vector<double> expected{0.75 * 0.875 * 0.75, 0.625 * 1.0 * 0.75};
  for (const Array& y : {f(), by_kernels(f)}) EXPECT_EQ(y.to_vector<double>(), expected);
}

TEST(Reducer, OfATestRunsAlongADimHereAndByKernels) {
  for (const bool reversed : {false, true}) {
    const auto f = [&] { return record_scan(running_either_op, chances(), 0, reversed); };
    const std::vector<double> expected = reversed ? std::vector<double>{0.8125, 0.625, 0.5, 0.875, 0.5, 0.5}
                                                  : std::vector<double>{0.5, 0.625, 0.8125, 0.75, 0.75, 0.875};
    for (const Array& y : {f(), by_kernels(f)}) EXPECT_EQ(y.to_vector<double>(), expected);
  }
}

TEST(Reducer, StatesTheGradientOfItsScan) {
  // Of the last result: the chance that none of the others happens.
  const Array x = reshape(slice(chances(), 1, 0, 1), {3});
  const Array slopes =
      gradient([](const Array& a) { return slice(record_scan(running_either_op, a, 0, false), 0, 2, 3); }, x);
  EXPECT_EQ(slopes.to_vector<double>(), (std::vector<double>{0.375, 0.25, 0.375}));
}

TEST(Reducer, OfIntegersAloneRefusesFloats) {
  const Array x({6, 3, 5, 1}, {4, 1});
  const auto f = [&] { return over(parity_op, x, 1); };
  for (const Array& y : {f(), by_kernels(f)}) EXPECT_EQ(y.item<int>(), 6 ^ 3 ^ 5 ^ 1);
  try {
    over(parity_op, chances(), 1).item(0, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::dtype);
    EXPECT_EQ(std::string(error.what()),
              "test_parity: not defined for elements of type Float64; convert with cast(x, type)");
  }
}

const Op& formless_op = *register_op({.name = "test_formless",
                                      .kind = Kind::scan,
                                      .operands = 1,
                                      .doc = "for tests",
                                      .reducer = &either_reducer,
                                      .attribute_words = 2});

std::string text_of(const Error& error) {
  EXPECT_EQ(error.kind(), ErrorKind::internal);
  return error.what();
}

TEST(Reducer, AScanOfNoKnownFormIsAnErrorThatNamesIt) {
  const std::string known = "test_formless: ops of this kind and form must be known to ";
  const std::string came = "; got one of the kind scan; report it";
  try {
    record_scan(formless_op, chances(), 0, false).item(0, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(text_of(error).rfind(known + "the CPU" + came, 0), 0u) << error.what();
  }
  try {
    by_kernels([] { return record_scan(formless_op, chances(), 0, false); });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(text_of(error).rfind(known + "the writer of kernels" + came, 0), 0u) << error.what();
  }
}

}  // namespace
}  // namespace rosin::kernels
