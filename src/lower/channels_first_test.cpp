// Images in CWHN inside a plan: values equal those of evaluation after each op, where everything is in logical order.
#include <gtest/gtest.h>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/conv.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/pool.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

namespace rosin {
namespace {

Array drawn(Rng& rng, const Shape& shape) {
  Array x = randn(rng, shape);
  eval(x);
  return x;
}

/// f with `step` after every op: the identity, or evaluation.
template <class F> std::vector<float> values(F&& f, bool one_by_one) {
  const auto step = [one_by_one](const Array& x) {
    if (one_by_one) eval(x);
    return x;
  };
  return f(step).template to_vector<float>();
}

template <class F> void expect_same_values(F&& f) {
  const std::vector<float> together = values(f, false), alone = values(f, true);
  ASSERT_EQ(together.size(), alone.size());
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(together[i], alone[i], 1e-5 * (1 + std::abs(alone[i]))) << i;
}

TEST(ChannelsFirst, ANetworkOfConvolutionsAndPoolsIsTheSame) {
  Rng rng(1);
  const Array x = drawn(rng, {12, 10, 3, 4}), w = drawn(rng, {3, 3, 3, 5}), u = drawn(rng, {3, 3, 5, 6});
  const Array b = drawn(rng, {1, 1, 5}), dense = drawn(rng, {7, 2 * 1 * 6});
  expect_same_values([&](auto step) {
    const Array first = step(maxpool(step(relu(step(step(conv(x, w)) + b))), 2));
    const Array second = step(meanpool(step(tanh(step(crosscor(first, u)))), {1, 2}, {1, 2}));
    return step(matmul(dense, step(slice(step(flatten(second)), 0, 0, 12))));
  });
}

TEST(ChannelsFirst, ReductionsOverAnyDimsAreTheSame) {
  Rng rng(2);
  const Array x = drawn(rng, {6, 5, 2, 3}), w = drawn(rng, {2, 2, 2, 4});
  for (const std::initializer_list<int> dims :
       {std::initializer_list<int>{0}, {1}, {2}, {3}, {0, 1}, {0, 1, 3}, {2, 3}, {0, 1, 2}}) {
    expect_same_values([&](auto step) {
      const Array y = step(conv(x, w));
      return step(step(sum(step(y * 2), Dims(dims))) + step(sum(step(square(y)), Dims(dims))));
    });
  }
}

TEST(ChannelsFirst, SoftmaxOverTheFirstDimIsTheSame) {
  Rng rng(3);
  const Array x = drawn(rng, {6, 5, 2, 3}), w = drawn(rng, {2, 2, 2, 4});
  expect_same_values([&](auto step) { return step(softmax(step(conv(x, w)), 0) * 3); });
}

TEST(ChannelsFirst, RowResultsMeetImages) {
  const Array x = reshape(cast(arange(3 * 4 * 2 * 2), Float32), {3, 4, 2, 2}),
              i = reshape(cast(arange(16), Float32), {1, 4, 2, 2});
  const Array w = reshape(cast(arange(4), Float32), {1, 1, 2, 2});
  eval();
  expect_same_values([&](auto step) { return step(step(sum(step(x * 1), 0)) + step(conv(i, w))); });
}

TEST(ChannelsFirst, ViewsHandlesAndOtherArraysSeeTheLogicalOrder) {
  Rng rng(4);
  const Array x = drawn(rng, {5, 4, 2, 3}), w = drawn(rng, {2, 2, 2, 3}), mask = drawn(rng, {4, 3, 3, 3});
  expect_same_values([&](auto step) {
    const Array y = step(conv(x, w)), z = step(y * mask);
    const Array turned = step(permute(z, {2, 0, 1, 3}));
    const Array part = step(slice(y, 1, 0, 2));
    const Array held = step(y - 1);
    return step(concat({step(reshape(turned, {-1})), step(reshape(part, {-1})), step(reshape(held, {-1}))}, 0));
  });
}

TEST(ChannelsFirst, GradientsAreTheSame) {
  Rng rng(5);
  const Array x = drawn(rng, {8, 8, 3, 4}), w = drawn(rng, {3, 3, 3, 4}), u = drawn(rng, {2, 2, 4, 2}),
              b = drawn(rng, {1, 1, 4});
  for (const bool by_images : {false, true}) {
    expect_same_values([&](auto step) {
      const auto loss = [&](const Array& images, const Array& kernels, const Array& bias) {
        const Array y = step(maxpool(step(relu(step(step(conv(images, kernels, {.pad = 1})) + bias))), 2));
        return step(sum(step(square(step(conv(y, u))))));
      };
      const auto [dx, dw, db] = gradient(loss, x, w, b);
      return by_images ? dx : concat({reshape(dw, {-1}), reshape(db, {-1})}, 0);
    });
  }
}

TEST(ChannelsFirst, OneDimensionalAndVolumeImagesWork) {
  Rng rng(6);
  const Array line = drawn(rng, {9, 3, 2}), volume = drawn(rng, {4, 5, 3, 2, 2});
  const Array v = drawn(rng, {3, 3, 4}), u = drawn(rng, {2, 2, 2, 2, 3});
  expect_same_values([&](auto step) { return step(sum(step(relu(step(conv(line, v)))), 1)); });
  expect_same_values([&](auto step) { return step(maxpool(step(relu(step(conv(volume, u)))), {3, 2, 2}) + 1); });
}

TEST(ChannelsFirst, ChainsOfConvolutionsCopyNothing) {
  Rng rng(7);
  const Array x = drawn(rng, {8, 8, 1, 4}), w = drawn(rng, {3, 3, 1, 4}), u = drawn(rng, {3, 3, 4, 4});
  const Stats before = stats();
  const Array y = sum(relu(conv(relu(conv(x, w)), u)));
  eval(y);
  const Stats after = stats();
  EXPECT_EQ(after.calls - before.calls, 2);
  EXPECT_EQ(after.kernels - before.kernels, 2);  // relu, relu with the sum
}

}  // namespace
}  // namespace rosin
