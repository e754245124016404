// Schedules at points where their value is known by hand.
#include <rosin/schedule.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

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

/// The values of a schedule at steps 0, 1, ...
template <class Schedule> std::vector<double> first_of(const Schedule& rate, int64_t count) {
  std::vector<double> values;
  for (int64_t step = 0; step < count; ++step) values.push_back(rate(step));
  return values;
}

void expect_values(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12 * std::abs(want[i]) + 1e-17) << i;
}

// torch.optim.lr_scheduler.MultiStepLR(milestones=[2, 3], gamma=0.5) and PolynomialLR(4, power=2), of 8 and 1.
TEST(Schedules, MultiStepAndPolynomialAreThoseOfPyTorch) {
  expect_values(first_of(MultiStepRate{.start = 8, .decay = 0.5, .milestones = {2, 3}}, 5), {8, 8, 4, 2, 2});
  expect_values(first_of(PolynomialRate{.start = 1, .degree = 2, .steps = 4}, 6), {1, 0.5625, 0.25, 0.0625, 0, 0});
  EXPECT_DOUBLE_EQ((PolynomialRate{.start = 3, .end = 1, .steps = 4}(1)), 2.5);
}

// The formulas of ParameterSchedulers' docstrings, whose t is step + 1.
TEST(Schedules, WavesAndInversesAreThoseOfParameterSchedulers) {
  const double pi = std::numbers::pi;
  for (int64_t step = 0; step < 30; ++step) {
    const auto t = static_cast<double>(step);
    const double triangle = 2 / pi * std::abs(std::asin(std::sin(pi * t / 7))), sine = std::abs(std::sin(pi * t / 7));
    const double halved = std::pow(0.5, std::floor(t / 7)), faded = std::pow(0.9, t);
    EXPECT_NEAR((TriangleRate{0.5, 2, 7}(step)), 1.5 * triangle + 0.5, 1e-12);
    EXPECT_NEAR((TriangleRate{0.5, 2, 7, 0.5}(step)), 1.5 * triangle * halved + 0.5, 1e-12);
    EXPECT_NEAR((TriangleRate{.low = 0.5, .high = 2, .period = 7, .per_step = 0.9}(step)), 1.5 * triangle * faded + 0.5,
                1e-12);
    EXPECT_NEAR((SineRate{0.5, 2, 7}(step)), 1.5 * sine + 0.5, 1e-12);
    EXPECT_NEAR((SineRate{0.5, 2, 7, 0.5}(step)), 1.5 * sine * halved + 0.5, 1e-12);
    EXPECT_NEAR((InverseRate{2, 0.25, 3}(step)), 2 / std::pow(1 + 0.25 * t, 3), 1e-12);
    EXPECT_NEAR((CosineRate{2, 0.5, 7, true}(step)), 1.5 * (1 + std::cos(pi * std::fmod(t, 7) / 7)) / 2 + 0.5, 1e-12);
  }
}

// The values of ParameterSchedulers' test of OneCycle: rising over ceil(0.3 * 10) steps.
TEST(Schedules, OneCycleRisesAndFalls) {
  const OneCycleRate rate{.peak = 1, .steps = 10, .start = 0.2, .end = 0.1, .rising = 0.3};
  EXPECT_NEAR(rate(0), 0.2, 1e-15);
  EXPECT_NEAR(rate(1), 1 - 0.8 * (1 + std::cos(std::numbers::pi / 3)) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(rate(3), 1);
  EXPECT_NEAR(rate(9), 0.1 + 0.9 * (1 + std::cos(std::numbers::pi * 6 / 7)) / 2, 1e-12);
  EXPECT_DOUBLE_EQ(rate(10), 0.1);
  const OneCycleRate usual{.peak = 1, .steps = 8};
  EXPECT_NEAR(usual(0), 1.0 / 25, 1e-15);
  EXPECT_DOUBLE_EQ(usual(8), 1e-5);
  EXPECT_EQ(error_of([] { static_cast<void>(OneCycleRate{.steps = 4, .rising = 1}(0)); }),
            "OneCycleRate: the share that rises must leave steps to rise and to fall; got 1.000000 of 4; use 0.25");
}

// Sequence, Loop, Shifted and Interpolator as in ParameterSchedulers' tests.
TEST(Schedules, AreJoinedLoopedShiftedAndSlowed) {
  const SequenceRate joined{{{1, 1.0}, {50, StepRate{.start = 0.1, .decay = 0.5, .steps = 10}}}};
  EXPECT_DOUBLE_EQ(joined(0), 1);
  EXPECT_DOUBLE_EQ(joined(1), 0.1);
  EXPECT_DOUBLE_EQ(joined(41), 0.00625);
  EXPECT_DOUBLE_EQ(joined(51), 0.003125);
  const auto number = [](int64_t step) { return static_cast<double>(step); };
  expect_values(first_of(LoopRate{number, 3}, 7), {0, 1, 2, 0, 1, 2, 0});
  expect_values(first_of(ShiftedRate{number, 5}, 3), {5, 6, 7});
  expect_values(first_of(SlowedRate{SequenceRate{{{1, 1.0}, {2, 2.0}, {1, 3.0}}}, 2}, 8), {1, 1, 2, 2, 2, 2, 3, 3});
  EXPECT_EQ(error_of([] { static_cast<void>(SequenceRate{}(0)); }),
            "SequenceRate: it needs a stage; got none; write {{steps, rate}, ...}");
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
  EXPECT_EQ(refused(PolynomialRate{.steps = 0}),
            "PolynomialRate: steps must be at least 1; got 0; ConstantRate keeps the rate");
  EXPECT_EQ(refused(LoopRate{1.0, 0}), "LoopRate: steps must be at least 1; got 0; ConstantRate keeps the rate");
  EXPECT_EQ(refused(SlowedRate{1.0, 0}), "SlowedRate: steps must be at least 1; got 0; ConstantRate keeps the rate");
  EXPECT_EQ(refused(TriangleRate{.period = 0}),
            "TriangleRate: steps must be at least 1; got 0; ConstantRate keeps the rate");
  EXPECT_EQ(refused(SineRate{.period = 0}), "SineRate: steps must be at least 1; got 0; ConstantRate keeps the rate");
  EXPECT_EQ(refused(warmup(-1, ConstantRate{})),
            "warmup: steps must be at least 0; got -1; ConstantRate keeps the rate");
  EXPECT_DOUBLE_EQ(warmup(0, ConstantRate{0.5})(0), 0.5);
}

TEST(Schedules, ComposedOnesHaveParametersThatAreSchedules) {
  const auto make = [](double low, double high) { return TriangleRate{.low = low, .high = high, .period = 4}; };
  const auto rate = composed(make, 1.0, StepRate{.start = 9, .decay = 0.5, .steps = 4});
  EXPECT_DOUBLE_EQ(rate(2), 9);    // the height of the first period
  EXPECT_DOUBLE_EQ(rate(6), 4.5);  // of the second
  EXPECT_DOUBLE_EQ(rate(4), 1);
  const AnyRate any = warmup(2, rate);
  EXPECT_DOUBLE_EQ(any(4), 9);
}

}  // namespace
}  // namespace rosin
