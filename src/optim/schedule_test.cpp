// Schedules at points where their value is known by hand.
#include <rosin/schedule.hpp>

#include <gtest/gtest.h>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

TEST(Schedules, ExponentialFallsEvenlyDownToItsLowest) {
  const ExponentialRate rate{.start = 1, .decay = 0.25, .steps = 2, .lowest = 0.1};
  EXPECT_DOUBLE_EQ(rate(0), 1);
  EXPECT_DOUBLE_EQ(rate(1), 0.5);
  EXPECT_DOUBLE_EQ(rate(2), 0.25);
  EXPECT_DOUBLE_EQ(rate(20), 0.1);
}

TEST(Schedules, StepsHoldBetweenDrops) {
  const StepRate rate{.start = 8, .decay = 0.5, .steps = 3};
  EXPECT_DOUBLE_EQ(rate(2), 8);
  EXPECT_DOUBLE_EQ(rate(3), 4);
  EXPECT_DOUBLE_EQ(rate(8), 2);
}

TEST(Schedules, CosineGoesFromStartToEnd) {
  const CosineRate rate{.start = 3, .end = 1, .steps = 6};
  EXPECT_DOUBLE_EQ(rate(0), 3);
  EXPECT_DOUBLE_EQ(rate(2), 2.5);
  EXPECT_DOUBLE_EQ(rate(3), 2);
  EXPECT_DOUBLE_EQ(rate(6), 1);
  EXPECT_DOUBLE_EQ(rate(100), 1);
}

TEST(Schedules, WarmupGrowsToWhatFollows) {
  const auto rate = warmup(4, CosineRate{.start = 2, .end = 0, .steps = 2});
  EXPECT_DOUBLE_EQ(rate(0), 0.5);
  EXPECT_DOUBLE_EQ(rate(3), 2);
  EXPECT_DOUBLE_EQ(rate(4), 2);
  EXPECT_DOUBLE_EQ(rate(5), 1);
  EXPECT_DOUBLE_EQ(rate(6), 0);
  EXPECT_DOUBLE_EQ(ConstantRate{0.5}(7), 0.5);
}

TEST(Schedules, RefuseStepsThatTheyCannotCount) {
  const auto refused = [](auto rate) { return error_of([&] { static_cast<void>(rate(3)); }); };
  EXPECT_EQ(refused(ExponentialRate{.steps = 0}),
            "ExponentialRate: steps must be at least 1; got 0; ConstantRate keeps the rate");
  EXPECT_EQ(refused(ExponentialRate{.steps = -5}),
            "ExponentialRate: steps must be at least 1; got -5; ConstantRate keeps the rate");
  EXPECT_EQ(refused(StepRate{.steps = 0}), "StepRate: steps must be at least 1; got 0; ConstantRate keeps the rate");
  EXPECT_EQ(refused(CosineRate{.steps = 0}),
            "CosineRate: steps must be at least 1; got 0; ConstantRate keeps the rate");
  EXPECT_EQ(refused(warmup(-1, ConstantRate{})),
            "warmup: steps must be at least 0; got -1; ConstantRate keeps the rate");
  EXPECT_DOUBLE_EQ(warmup(0, ConstantRate{0.5})(0), 0.5);
}

}  // namespace
}  // namespace rosin
