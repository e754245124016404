// Rows of thousands of elements on a device, which keeps them in shared memory or reads them again: their sums of
// exponentials, gradients of losses over many classes, special elements. And gradients by weights of convolutions of
// few channels, whose parts are added up by whichever group comes last. Read first: test_device.hpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <rosin/compose.hpp>
#include <rosin/conv.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/label_loss.hpp>
#include <rosin/math_mode.hpp>
#include <rosin/matmul.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "test_device.hpp"

namespace rosin {
namespace {

using Values = std::vector<double>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Rows {
  int64_t length, count;
  DType type;
};

// Of so many rows each has a group, whatever the device keeps of it; 5003 elements are no multiple of a strip.
constexpr Rows cases[] = {{4104, 17, Float32}, {5003, 20, Float16}, {10304, 41, BFloat16}};

/// Rows whose largest element comes late, early, or anywhere.
Array scores(const Rows& rows) {
  Rng rng(5);
  Values values = uniform(rng, {rows.length, rows.count}, -4, 4).to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto length = static_cast<size_t>(rows.length), row = i / length;
    const double along = 90.0 * static_cast<double>(i % length) / static_cast<double>(length);
    values[i] += row % 3 == 0 ? along : row % 3 == 1 ? -along : 0;
  }
  return cast(Array(values, {rows.length, rows.count}), rows.type);
}

Values log_of_sums(const Values& x, const Rows& rows) {
  Values made;
  for (int64_t r = 0; r < rows.count; ++r) {
    const auto row = x.begin() + r * rows.length;
    const double largest = *std::max_element(row, row + rows.length);
    double sum = 0;
    for (int64_t i = 0; i < rows.length; ++i) sum += std::exp(row[i] - largest);
    made.push_back(largest + std::log(sum));
  }
  return made;
}

void expect_near(const Values& got, const Values& wanted, double relative, double least) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], wanted[i], relative * std::abs(wanted[i]) + least) << "element " << i;
}

template <class F> void in_both_modes(F&& f) {
  for (const MathMode mode : {MathMode::standard, MathMode::exact}) {
    SCOPED_TRACE(mode == MathMode::exact ? "exact" : "standard");
    with(mode, [&] {
      f();
      return 0;
    });
  }
}

TEST(LongRowsDeviceSteps, SumsAndTheirGradientsAreThoseOfTheDefinition) {
  for (const Rows& rows : cases) {
    SCOPED_TRACE(std::to_string(rows.length) + " " + to_string(rows.type));
    const Array x = scores(rows);
    const Values values = x.to_vector<double>(), logs = log_of_sums(values, rows);
    Values slopes = values;
    for (size_t i = 0; i < slopes.size(); ++i)
      slopes[i] = std::exp(slopes[i] - logs[i / static_cast<size_t>(rows.length)]);
    in_both_modes([&] {
      const auto f = [](const Array& v) { return logsumexp(cast(v, Float32), {0}); };
      expect_near(f(there(x)).to_vector<double>(), logs, 2e-6, 0);
      const Array got = gradient([&](const Array& v) { return sum(f(v)); }, there(x));
      expect_near(got.to_vector<double>(), slopes, rows.type == Float32 ? 4e-5 : 1.0 / 128,
                  rows.type == Float16 ? 1e-7 : 1e-10);
    });
  }
}

/// Scores that a product leaves in memory, where their gradient takes their place.
TEST(LongRowsDeviceSteps, LossesOverManyClassesHaveTheGradientsOfTheCpu) {
  constexpr int64_t features = 8, classes = 5003, batch = 20;
  for (const DType type : {Float32, BFloat16}) {
    SCOPED_TRACE(to_string(type));
    Rng rng(3);
    const Array w = cast(randn(rng, {classes, features}), type), x = cast(randn(rng, {features, batch}), type);
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < batch; ++i) labels.push_back(i * 977 % classes);
    const Array y = cast(Array(labels, {batch}), Int32);
    const auto slopes = [](const Array& weights, const Array& inputs, const Array& right) {
      const auto loss = [&](const Array& v) { return labelcrossentropy(cast(matmul(v, inputs), Float32), right); };
      const auto [value, slope] = withgradient(loss, weights);
      Values made = cast(slope, Float32).to_vector<double>();
      made.push_back(value.item<double>());
      return made;
    };
    const Values wanted = slopes(w, x, y);
    const double coarse = type == Float32 ? 1e-4 : 0.03, least = type == Float32 ? 1e-7 : 2e-4;
    in_both_modes([&] { expect_near(slopes(there(w), there(x), there(y)), wanted, coarse, least); });
  }
}

TEST(LongRowsDeviceSteps, SpecialElementsDoWhatTheyDoOnTheCpu) {
  const Rows rows{5003, 20, Float32};
  Values values = scores(rows).to_vector<double>();
  const auto set = [&](int64_t row, int64_t from, int64_t to, double value) {
    std::fill(values.begin() + row * rows.length + from, values.begin() + row * rows.length + to, value);
  };
  set(0, 0, rows.length, -infinity);
  set(1, 0, rows.length - 1, -infinity);
  set(2, 1, rows.length, -infinity);
  set(3, 0, 3000, -infinity);
  set(4, 777, 778, infinity);
  set(5, 0, rows.length, infinity);
  set(6, 4321, 4322, nan);
  set(7, 0, 1, nan);
  set(8, 3000, 3001, 3e38);
  set(9, 0, 2500, -3e38);
  set(9, 2500, rows.length, 3e38);
  set(10, 0, 2500, 3e38);
  set(10, 2500, rows.length, -3e38);
  set(11, 0, 2500, -infinity);
  set(11, 2500, rows.length, -3e38);
  const Array x = cast(Array(values, {rows.length, rows.count}), Float32);
  const auto of = [](const Array& v) {
    Values made = softmax(v, 0).to_vector<double>();
    const Array sums = logsumexp(v, {0}), slopes = gradient([](const Array& z) { return sum(logsumexp(z, {0})); }, v);
    for (const Values& more : {sums.to_vector<double>(), slopes.to_vector<double>()})
      made.insert(made.end(), more.begin(), more.end());
    return made;
  };
  const Values wanted = of(x);
  in_both_modes([&] {
    const Values got = of(there(x));
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const bool same = got[i] == wanted[i] || (std::isnan(got[i]) && std::isnan(wanted[i]));
      const bool near = std::isfinite(wanted[i]) && std::abs(got[i] - wanted[i]) <= 4e-5 * std::abs(wanted[i]) + 1e-30;
      ASSERT_TRUE(same || near) << "element " << i << ": " << got[i] << " for " << wanted[i];
    }
  });
}

TEST(LongRowsDeviceSteps, PartsOfGradientsByWeightsAreAddedUpInOneOrder) {
  Rng rng(9);
  const Array x = randn(rng, {12, 12, 6, 96}), w = randn(rng, {5, 5, 6, 16}), slopes = randn(rng, {8, 8, 16, 96});
  const auto by_weights = [](const Array& images, const Array& weights, const Array& dy) {
    return gradient([&](const Array& v) { return sum(crosscor(images, v) * dy); }, weights).to_vector<double>();
  };
  const Values wanted = by_weights(x, w, slopes);
  const Array images = there(x), weights = there(w), dy = there(slopes);
  in_both_modes([&] {
    const Values first = by_weights(images, weights, dy);
    expect_near(first, wanted, 1e-5, 2e-3);
    for (int again = 0; again < 2; ++again) EXPECT_EQ(by_weights(images, weights, dy), first);
  });
}

}  // namespace
}  // namespace rosin
