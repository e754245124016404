// train and its triggers. The cases are those of Flux's own tests (test/train.jl, test/utils.jl).
#include <rosin/train.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/log.hpp>
#include <rosin/matmul.hpp>
#include <rosin/reduce.hpp>

namespace rosin {
namespace {

struct Line {
  Array weight;
  Array operator()(const Array& x) const { return matmul(weight, x); }
};
Line zero_line() { return {zeros({1, 1})}; }

TEST(Train, StopsBeforeTheUpdateWhenTheLossIsNoNumber) {
  Line model = zero_line();
  State state = setup(Descent{0.1}, model);
  std::vector<int> items;
  for (int i = 1; i <= 100; ++i) items.push_back(i);
  int calls = 0;
  const auto loss = [&](const Line& m, int item) {
    ++calls;
    return (item == 51 ? std::numeric_limits<float>::quiet_NaN() : 1.0f) * sum(m(ones({1})));
  };
  try {
    train(loss, model, items, state);
    FAIL() << "a NaN was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    EXPECT_STREQ(error.what(), "train: loss is NaN on item 51; stopped before the update");
  }
  EXPECT_EQ(calls, 51);
  EXPECT_NEAR(model.weight.item(), -5, 1e-5);
}

TEST(Train, LeavesModelAndStateBitEqualWhenTheLossIsInfinite) {
  Line model{Array({0.5f}, {1, 1})};
  State state = setup(Adam{}, model);
  const auto loss = [](const Line& m, double scale) { return sum(m.weight * m.weight) * scale; };
  train(loss, model, std::vector<double>{1, 2, 3}, state);
  const float before = model.weight.item<float>();
  const std::string text = to_string(state);
  EXPECT_THROW(train(loss, model, std::vector<double>{std::numeric_limits<double>::infinity()}, state), Error);
  EXPECT_EQ(model.weight.item<float>(), before);
  EXPECT_EQ(to_string(state), text);
  train(loss, model, std::vector<double>{4}, state);
  EXPECT_NE(model.weight.item<float>(), before);
}

TEST(Train, SplitsTuplesIntoArguments) {
  Line model = zero_line();
  State state = setup(Descent{0.5}, model);
  const std::vector<std::tuple<Array, Array>> data(30, std::tuple{ones({1, 1}), full({1, 1}, 3.0f)});
  train([](const Line& m, const Array& x, const Array& y) { return mean(square(m(x) - y)); }, model, data, state);
  EXPECT_NEAR(model.weight.item(), 3, 1e-5);
}

TEST(Train, AStepAloneGivesWhatTheLossGave) {
  Line model = zero_line(), other = zero_line();
  State state = setup(Descent{0.5}, model), same = setup(Descent{0.5}, other);
  const std::tuple item{ones({1, 1}), full({1, 1}, 3.0f)};
  const auto loss = [](const Line& m, const Array& x, const Array& y) { return mean(square(m(x) - y)); };
  EXPECT_EQ(trainstep(loss, model, item, state).item(), 9);
  EXPECT_EQ(model.weight.item(), 3);
  const auto [value, gradient] = trainstep_withgradient(loss, other, item, same);
  EXPECT_EQ(value.item(), 9);
  EXPECT_EQ(gradient.weight.item(), -6);
  EXPECT_EQ(other.weight.item(), 3);
  const auto infinite = [](const Line& m, double x) { return sum(m.weight) / x; };
  EXPECT_THROW(trainstep(infinite, model, 0.0, state), Error);
  EXPECT_EQ(model.weight.item(), 3);
}

TEST(Train, WhatFollowsTheLossGoesToTheCallbacks) {
  Line model = zero_line();
  State state = setup(Descent{0.25}, model);
  const auto loss = [](const Line& m, double target) {
    const Array y = m(ones({1, 1}));
    return std::tuple(sum(square(y - target)), y, target);
  };
  std::vector<double> seen, losses;
  int throttled = 0;
  auto counts = [&](const TrainStep&) { return ++throttled; };
  train(loss, model, std::vector<double>{2, 2, 2}, state,
        callbacks(
            counts, [&](const TrainStep& step) { losses.push_back(step.loss.item()); },
            [&](const TrainStep& step, const auto& value) {
              seen.push_back(std::get<1>(value).item() + static_cast<double>(step.item));
              EXPECT_EQ(std::get<2>(value), 2);
            }));
  EXPECT_EQ(losses, (std::vector<double>{4, 1, 0.25}));
  EXPECT_EQ(seen, (std::vector<double>{0 + 1, 1 + 2, 1.5 + 3}));
  EXPECT_EQ(throttled, 3);
}

TEST(Train, AProgressBarHasALineForEachEpoch) {
  Line model = zero_line();
  State state = setup(Descent{0.25}, model);
  const auto loss = [](const Line& m, double target) { return sum(square(m(ones({1, 1})) - target)); };
  std::FILE* file = std::tmpfile();
  ProgressBar bar(2, 3, file);
  for (int epoch = 0; epoch < 2; ++epoch) train(loss, model, std::vector<double>{2, 2, 2}, state, bar);
  std::rewind(file);
  char text[400] = {};
  const size_t read = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  const std::string said(text, read);
  EXPECT_NE(said.find("poch 1/2"), std::string::npos) << said;
  EXPECT_NE(said.find("poch 2/2"), std::string::npos) << said;
  EXPECT_NE(said.find("loss 0.25"), std::string::npos) << said;
}

TEST(Train, WarnsWhenTheStateOfARuleIsLost) {
  forget_said();
  std::string heard;
  set_log_sink([](const LogMessage& message, void* data) { *static_cast<std::string*>(data) += message.text; }, &heard);
  Line model = zero_line();
  const auto loss = [](const Line& m, int) { return sum(m.weight * 1.0f); };
  train(loss, model, std::vector<int>{1}, Descent{0.1});
  EXPECT_EQ(heard, "");
  train(loss, model, std::vector<int>{1}, Momentum{});
  set_log_sink(nullptr);
  EXPECT_EQ(heard,
            "train: what Momentum(0.01, 0.9) keeps between steps is lost when train returns; write state = "
            "setup(Momentum(0.01, 0.9), model) and give train the state");
}

TEST(Triggers, EarlyStoppingStopsAtTheFourthRisingLoss) {
  double loss = 0;
  auto stop = early_stopping([&] { return loss += 1; }, 3);
  int calls = 1;
  while (!stop()) ++calls;
  EXPECT_EQ(calls, 4);
}

TEST(Triggers, EarlyStoppingGoesOnWhileTheScoreImproves) {
  auto stop = early_stopping([](double score) { return score; }, 2);
  for (double score : {5.0, 4.0, 4.5, 3.0, 3.5}) EXPECT_FALSE(stop(score));
  EXPECT_TRUE(stop(3.2));
}

TEST(Triggers, PatienceCountsTruthsInARow) {
  auto stop = patience([](bool now) { return now; }, 3);
  int passed = 0;
  for (bool now : {false, true, false, true, true, true}) {
    if (stop(now)) break;
    ++passed;
  }
  EXPECT_EQ(passed, 5);
}

TEST(Triggers, PlateauStopsAfterThreeSmallChanges) {
  double v = 10;
  const auto score = [&] { return v = v / std::abs(v) - v; };
  PlateauOptions<> options;
  options.init_score = 10;
  options.min_dist = 18;
  auto stop = plateau(score, 3, options);
  int count = 0;
  while (count < 10 && !stop()) ++count;
  EXPECT_EQ(count, 3);
}

TEST(Triggers, PlateauTakesTheFirstScoreForAChange) {
  auto stop = plateau([] { return 0.0; }, 3);
  int calls = 1;
  while (calls < 10 && !stop()) ++calls;
  EXPECT_EQ(calls, 4);
}

double now = 0;

TEST(Triggers, ThrottleCallsOnceInSoManySeconds) {
  int calls = 0;
  auto limited = throttle([&] { ++calls; }, 2);
  limited.clock = []() noexcept { return now; };
  for (now = 0; now < 6; now += 0.5) limited();
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace rosin
