// What a forward pass keeps for its backward pass: values that follow cheaply from others are computed again.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/conv.hpp>
#include <rosin/create.hpp>
#include <rosin/dropout.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/label_loss.hpp>
#include <rosin/matmul.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "plan/plan_testing.hpp"

namespace rosin {
namespace {

using Values = std::vector<float>;

constexpr int64_t rows = 96, columns = 64, size = rows * columns * 4;

class Recompute : public testing::Test {
 protected:
  Array x, w, weight;
  void SetUp() override {
    seed(3);
    x = randn({rows, columns});
    w = randn({rows, rows});
    weight = randn({rows, columns});
    eval();
  }

  /// A loss in which f stands between two products, and its gradients by x and by both matrices.
  template <class F> auto trained(F f) {
    return withgradient(
        [&](const Array& a, const Array& b, const Array& c) { return sum(matmul(c, f(matmul(b, a))) * weight); }, x, w,
        w);
  }
  /// Bytes that the backward pass finds kept on account of f.
  template <class F> int64_t kept_for(F f) {
    const int64_t without = counted([&] { return trained([](const Array& z) { return z; }); }).kept_bytes;
    return counted([&] { return trained(f); }).kept_bytes - without;
  }
  /// The same of f between two convolutions, on images of these sizes.
  static constexpr int64_t channels = 24, images = 9 * 7 * channels * 5;
  template <class F> int64_t kept_for_images(F f) {
    const Array pictures = randn({9, 7, channels, 5}), filters = randn({3, 3, channels, channels});
    eval();
    const auto kept = [&](auto between) {
      const auto loss = [&](const Array& a, const Array& b) {
        return sum(square(conv(between(conv(pictures, a, {.pad = {1}})), b, {.pad = {1}})));
      };
      return counted([&] { return withgradient(loss, filters, filters); }).kept_bytes;
    };
    const int64_t without = kept([](const Array& z) { return z; });
    return kept(f) - without;
  }
  /// The same bits with every value of the forward pass held, so that all of them are stored.
  template <class F> void expect_same_bits(F f) {
    const auto less = trained([&](const Array& z) { return f(z, [](const Array& value) { return value; }); });
    std::vector<Array> held;
    const auto all = trained([&](const Array& z) {
      return f(z, [&](const Array& value) {
        held.push_back(value);
        return value;
      });
    });
    EXPECT_EQ(less.value.item(), all.value.item());
    EXPECT_EQ(std::get<0>(less.gradient).to_vector(), std::get<0>(all.gradient).to_vector());
    EXPECT_EQ(std::get<1>(less.gradient).to_vector(), std::get<1>(all.gradient).to_vector());
    EXPECT_EQ(std::get<2>(less.gradient).to_vector(), std::get<2>(all.gradient).to_vector());
  }
};

constexpr auto unheld = [](const Array& value) { return value; };

TEST_F(Recompute, TrafficCountsWhatKernelsAndCallsMove) {
  const Stats sum_of_two = counted([&] { return x + weight; });
  EXPECT_EQ(sum_of_two.read_bytes, 2 * size);
  EXPECT_EQ(sum_of_two.written_bytes, size);
  EXPECT_EQ(sum_of_two.kept_bytes, 0);
  const Stats product = counted([&] { return matmul(w, x); });
  EXPECT_EQ(product.read_bytes, rows * rows * 4 + size);
  EXPECT_EQ(product.written_bytes, size);
}

TEST_F(Recompute, ANormalisationKeepsOneArrayOfItsSizeAndTheStatisticsOfRows) {
  const auto normalised = [](const Array& z, auto step) {
    const Array centred = step(z - mean(z, 0));
    return step(step(centred / sqrt(mean(centred * centred, 0) + 1e-5)) * 2 + 1);
  };
  EXPECT_LE(kept_for([&](const Array& z) { return normalised(z, unheld); }), size + 4 * columns * 4);
  expect_same_bits(normalised);
}

TEST_F(Recompute, AnActivationKeepsItsInputAlone) {
  const auto activation = [](const Array& z, auto step) { return step(step(z * 0.5) * step(z * 0.25 + 1)); };
  EXPECT_LE(kept_for([&](const Array& z) { return activation(z, unheld); }), size);
  expect_same_bits(activation);
  EXPECT_LE(kept_for([](const Array& z) { return gelu(z); }), size);
  EXPECT_EQ(kept_for([](const Array& z) { return relu(z); }), 0);
}

/// Whether a class is the label follows from the labels and the numbers of classes, which nobody else reads.
TEST_F(Recompute, ALossOfLabelsKeepsNoTargets) {
  const Array labels = cast(floor(rand({columns}) * static_cast<double>(rows)), Int32);
  eval();
  const Stats step =
      counted([&] { return withgradient([&](const Array& a) { return labelcrossentropy(matmul(a, x), labels); }, w); });
  // The logits and their slopes, and the slopes of weights.
  EXPECT_LE(step.written_bytes, 2 * size + rows * rows * 4 + 16 * columns * 4);
}

/// Its result, which the product behind it reads as well, and neither its exponentials nor what they were made of.
TEST_F(Recompute, ASoftmaxKeepsItsResultAlone) {
  for (const int dim : {0, 1}) {
    EXPECT_LE(kept_for([&](const Array& z) { return softmax(z, dim); }), 0) << dim;
  }
}

TEST_F(Recompute, ALogsoftmaxKeepsItsResultAlone) {
  for (const int dim : {0, 1}) {
    EXPECT_LE(kept_for([&](const Array& z) { return logsoftmax(z, dim); }), 0) << dim;
    expect_same_bits([&](const Array& z, auto step) { return step(logsoftmax(step(z), dim)); });
  }
}

/// Draws are computed again: neither the numbers nor the mask made of them is kept.
TEST_F(Recompute, ADropoutKeepsItsSeedAlone) {
  EXPECT_LE(kept_for([](const Array& z) { return dropout(z, 0.25); }), 0);
  EXPECT_EQ(launches([&] { return dropout(x, 0.25); }), (Launched{1, 0}));
  EXPECT_EQ(launches([] { return randn({100, 7}); }), (Launched{1, 0}));
}

/// The images stand in CWHN, draws are counted in logical order: a byte for each element says what was dropped.
TEST_F(Recompute, ADropoutOfImagesKeepsItsMaskAlone) {
  EXPECT_LE(kept_for_images([](const Array& z) { return dropout(z, 0.25); }), images);
}

/// Where statistics are not of rows, but of planes or of what stands in one channel.
TEST_F(Recompute, ABatchNormAndReluKeepOneArrayOfItsSizeBesideStatistics) {
  const BatchNorm norm(rows, relu);
  eval();
  EXPECT_LE(kept_for([&](const Array& z) { return norm(z); }), size + 8 * rows * 4);
  const BatchNorm of_images(channels, relu);
  eval();
  EXPECT_LE(kept_for_images(of_images), images * 4 + 8 * channels * 4);
}

/// Statistics are one pass over the images, all else forward another one, with the residual and relu inside; so it is
/// backward, where the first pass writes the slopes by the residual.
TEST(BatchNormPasses, OverMemoryAreTwoForwardAndTwoBackward) {
  const Shape shape{32, 32, 16, 8};
  const Array x = randn(shape), residual = randn(shape), weight = randn(shape);
  BatchNorm norm(16);
  eval();
  const int64_t one = shape.count() * 4, little = one / 8;  // statistics and partial sums
  const auto passed = [&](const Array& a, const Array& r) { return relu(norm(a) + r); };
  EXPECT_LE(counted([&] { return passed(x, residual); }).read_bytes, 2 * one + little);
  const Stats training = counted([&] {
    trainmode(norm);
    return passed(x, residual);
  });
  EXPECT_LE(training.read_bytes, 3 * one + little);
  EXPECT_LE(training.written_bytes, one + little);
  const Stats both = counted([&] {
    return gradient([&](const Array& a, const Array& r) { return sum(passed(a, r) * weight); }, x, residual);
  });
  EXPECT_LE(both.read_bytes, 6 * one + little);
  EXPECT_LE(both.written_bytes, 2 * one + little);
}

}  // namespace
}  // namespace rosin
