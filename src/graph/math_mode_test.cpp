// Which mode nodes are recorded in. What devices make of them: tests/math_modes_test.cpp.
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/gradient_rules.hpp>
#include <rosin/math_mode.hpp>
#include <rosin/reduce.hpp>

#include "graph/math_mode_testing.hpp"
#include "graph/node.hpp"

namespace rosin {
namespace {

MathMode mode_of(const Array& x) { return x.node()->recorded_in.mode(); }

TEST(MathMode, TheInnermostWithCounts) {
  const Array x = ones({2});
  EXPECT_EQ(math_mode(), MathMode::usual);
  EXPECT_EQ(mode_of(x + x), MathMode::usual);
  with(MathMode::exact, [&] {
    EXPECT_EQ(math_mode(), MathMode::exact);
    EXPECT_EQ(mode_of(x + x), MathMode::exact);
    with(MathMode::fast, [&] { EXPECT_EQ(mode_of(x + x), MathMode::fast); });
    with(MathMode::usual, [&] { EXPECT_EQ(mode_of(x + x), MathMode::usual); });
    EXPECT_EQ(mode_of(x + x), MathMode::exact);
  });
  EXPECT_EQ(mode_of(x + x), MathMode::usual);
}

TEST(MathMode, EndsWithAnExceptionToo) {
  EXPECT_THROW(with(MathMode::fast, [] { throw std::runtime_error("a fault"); }), std::runtime_error);
  EXPECT_EQ(math_mode(), MathMode::usual);
}

TEST(MathMode, WithGivesWhatItsFunctionGives) {
  int number = 3;
  int& same = with(MathMode::exact, [&]() -> int& { return number; });
  EXPECT_EQ(&same, &number);
}

TEST(MathMode, OfTheProgramHoldsForAllThreadsButInsideOfWith) {
  const ProgramMode program(MathMode::fast);
  EXPECT_EQ(math_mode(), MathMode::fast);
  with(MathMode::exact, [] {
    MathMode elsewhere{}, recorded{};
    std::thread([&] {
      elsewhere = math_mode();
      recorded = mode_of(ones({2}) + 1.0);
    }).join();
    EXPECT_EQ(elsewhere, MathMode::fast);  // a scope is of its thread
    EXPECT_EQ(recorded, MathMode::usual);  // what the program says is asked when the node is computed
    EXPECT_EQ(math_mode(), MathMode::exact);
  });
}

TEST(MathMode, GradientsAreInTheModeOfTheirOp) {
  const Array x = ones({3});
  const Array g = gradient(
      [](const Array& a) {
        const Array inside = with(MathMode::exact, [&] { return exp(a); });
        return sum(inside);
      },
      x);
  EXPECT_EQ(mode_of(g), MathMode::exact);  // the slope of exp
  const Array h = with(MathMode::fast, [&] { return gradient([](const Array& a) { return sum(exp(a)); }, x); });
  EXPECT_EQ(mode_of(h), MathMode::fast);
}

TEST(MathMode, IsKeptByWhatACheckpointRecordsAgain) {
  const auto twice = [](const Array& a) { return exp(exp(a)); };
  const Array g = with(MathMode::exact,
                       [&] { return gradient([&](const Array& a) { return sum(checkpoint(twice)(a)); }, ones({3})); });
  EXPECT_EQ(mode_of(g), MathMode::exact);
  for (const Node* operand : g.node()->arrays()) {
    if (!operand || operand->ready()) continue;
    EXPECT_EQ(operand->recorded_in.mode(), MathMode::exact);
  }
}

TEST(MathMode, DoesNotEndARegionOfACheckpoint) {
  const auto f = [](const Array& a) {
    const Array first = with(MathMode::fast, [&] { return exp(a); });
    const Array second = exp(first);
    EXPECT_EQ(first.node()->recorded_in.region(), second.node()->recorded_in.region());
    EXPECT_NE(second.node()->recorded_in.region(), 0u);
    EXPECT_EQ(mode_of(second), MathMode::usual);
    return second;
  };
  const Array g = gradient([&](const Array& a) { return sum(checkpoint(f)(a)); }, ones({1}));
  EXPECT_NEAR(g.item<double>(), 41.193555674716116, 1e-3);
}

}  // namespace
}  // namespace rosin
