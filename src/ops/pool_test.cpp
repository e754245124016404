// Pooling against PyTorch (tests/oracles/conv.txt), adaptive and global forms, and what is refused.
#include <rosin/pool.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/approx.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/fractional_pool.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/profile.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "../tests/error_testing.hpp"
#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::extents_of;
using oracles::OracleCase;
using Arrays = std::vector<Array>;

TEST(Pool, AgreesWithPyTorch) {
  oracles::run_oracles(
      "conv.txt",
      {{"maxpool",
        [](const OracleCase& e, const Arrays& x) {
          return Arrays{maxpool(x[0], extents_of(e, "window"), extents_of(e, "stride"), extents_of(e, "pad"))};
        }},
       {"meanpool", [](const OracleCase& e, const Arrays& x) {
          return Arrays{meanpool(x[0], extents_of(e, "window"), extents_of(e, "stride"), extents_of(e, "pad"))};
        }}});
}

TEST(Pool, AdaptiveWindowsFollowFluxRule) {
  const Array x = cast(reshape(arange(7), {7, 1, 1}), Float32);
  EXPECT_EQ(adaptive_maxpool(x, 3).to_vector(), (std::vector<float>{2, 4, 6}));  // stride 2, window 3
  EXPECT_EQ(adaptive_meanpool(x, 3).to_vector(), (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(global_meanpool(x).shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(global_maxpool(x).item<float>(), 6);
}

TEST(Pool, WindowsThatDoNotFitAreRefused) {
  EXPECT_THROW(maxpool(zeros({3, 3, 1, 1}), 4), Error);
  EXPECT_THROW(maxpool(zeros({3, 3}), 2), Error);
  EXPECT_THROW(maxpool(zeros({3, 3, 1, 1}), {2, 2, 2}), Error);
}

TEST(Pool, AdaptiveFormsNameThemselves) {
  EXPECT_EQ(error_of([] {
              static_cast<void>(adaptive_maxpool(ones({4, 1, 1}), 5));
            }),
            "adaptive_maxpool: the result's sizes must be in [1, input size]; got 5 for an input of 4; use a smaller "
            "size");
  EXPECT_EQ(error_of([] { static_cast<void>(adaptive_meanpool(ones({4}), 2)); }).substr(0, 18), "adaptive_meanpool:");
  EXPECT_EQ(error_of([] {
              static_cast<void>(adaptive_maxpool(full({4, 1, 1}, true), 2));
            }),
            "adaptive_maxpool: it takes numbers; got Bool; convert with cast(x, Float32)");
}

// Values of windows with steps, rounded up, with places and other divisors are PyTorch's: tests/opinfo.

TEST(Pool, WindowsWithStepsAreTheSameInAllTypes) {
  const Array x = mod(arange(10 * 9 * 2 * 2) * 7, 23), wide = cast(reshape(x, {10, 9, 2, 2}), Float64);
  const WindowOptions steps{.dilation = {2, 3}, .ceil = true};
  const auto largest = [&](DType type) { return maxpool(cast(wide, type), {3, 2}, {2, 1}, {1, 0}, steps); };
  const MeanWindowOptions inside{.dilation = {2, 3}, .ceil = true, .count_pad = false};
  const auto means = [&](DType type) { return meanpool(cast(wide, type), {3, 2}, {2, 1}, {1, 0}, inside); };
  const MaxPooled places = maxpool_with_indices(wide, {3, 2}, {2, 1}, {1, 0}, steps);
  for (const DType type : {Float32, Float16, BFloat16, Int32, Int8}) {
    EXPECT_EQ(largest(type).to_vector<double>(), largest(Float64).to_vector<double>()) << to_string(type);
    const MaxPooled got = maxpool_with_indices(cast(wide, type), {3, 2}, {2, 1}, {1, 0}, steps);
    EXPECT_EQ(got.indices.to_vector<int64_t>(), places.indices.to_vector<int64_t>()) << to_string(type);
  }
  EXPECT_TRUE(allclose(means(Float16), means(Float64), {.rtol = 1e-3}));
  EXPECT_TRUE(allclose(means(Float32), means(Float64)));
}

TEST(Pool, ElementsGoBackToTheirPlaces) {
  const Array x = reshape(Array({1.0f, 5.0f, 2.0f, 4.0f, 3.0f, 0.0f, 7.0f, 6.0f}, {8}), {4, 1, 2});
  const MaxPooled pooled = maxpool_with_indices(x, 2);
  EXPECT_EQ(pooled.indices.to_vector<int64_t>(), (std::vector<int64_t>{1, 3, 0, 2}));
  EXPECT_EQ(max_unpool(pooled.values, pooled.indices, 4).to_vector(), (std::vector<float>{0, 5, 0, 4, 3, 0, 7, 0}));
  EXPECT_THROW(eval(max_unpool(pooled.values, pooled.indices, 3)), Error);
  EXPECT_THROW(max_unpool(pooled.values, x, 4), Error);
}

TEST(Pool, NormsOfWindowsAreNNlibs) {
  const Array x = reshape(Array({3.0, 4.0, 0.0, 2.0, 1.0}, {5}), {5, 1, 1});
  EXPECT_TRUE(allclose(lpnormpool(x, 2, 2), Array({5.0, 2.0}, {2, 1, 1})));
  EXPECT_TRUE(allclose(lpnormpool(x, 1, 2, 1, 1), Array({3.0, 7.0, 4.0, 2.0, 3.0, 1.0}, {6, 1, 1})));
  EXPECT_EQ(lpnormpool(x, 2, 2, {}, {}, {.ceil = true}).shape(), (Shape{3, 1, 1}));
  EXPECT_THROW(lpnormpool(x, 0, 2), Error);
}

/// What the loss sum(w * maxpool(relu(x + b))) gives back to each element of x, by definition; images (size, size, n).
struct Windows {
  int64_t size, window, stride, pad;
  int64_t out() const { return (size + 2 * pad - window) / stride + 1; }
};
std::vector<double> given_back(const Windows& s, const std::vector<double>& x, const std::vector<double>& w) {
  std::vector<double> back(x.size());
  const auto planes = static_cast<int64_t>(x.size()) / (s.size * s.size);
  for (int64_t at = 0; at < planes * s.out() * s.out(); ++at) {
    const int64_t plane = at / (s.out() * s.out()), row = at / s.out() % s.out(), column = at % s.out();
    size_t first = 0;
    double largest = 0;  // of relu: what is no more gets nothing
    for (int64_t tap = 0; tap < s.window * s.window; ++tap) {
      const int64_t i = column * s.stride - s.pad + tap % s.window, j = row * s.stride - s.pad + tap / s.window;
      if (i < 0 || j < 0 || i >= s.size || j >= s.size) continue;
      const auto place = static_cast<size_t>((plane * s.size + j) * s.size + i);
      if (x[place] > largest) largest = x[first = place];
    }
    if (largest > 0) back[first] += w[static_cast<size_t>(at)];
  }
  return back;
}

TEST(Pool, GivesBackThroughReluWhatItsWindowsHave) {
  seed(31);
  for (const Windows& s : {Windows{8, 2, 2, 0}, {9, 3, 2, 1}, {7, 3, 1, 1}, {6, 2, 3, 1}, {40, 3, 2, 1}}) {
    const Shape shape{s.size, s.size, 3, 2};
    const Array x = round(randn<double>(shape) * 2.0) - 0.5, w = randn<double>({s.out(), s.out(), 3, 2});  // with ties
    const Array b = zeros({1, 1, 3, 1}, Float64);
    const auto loss = [&](const Array& images, const Array& bias) {
      return sum(w * maxpool(relu(images + bias), s.window, s.stride, s.pad));
    };
    const auto [dx, db] = gradient(loss, x, b);
    const Array wanted(given_back(s, x.to_vector<double>(), w.to_vector<double>()), shape);
    EXPECT_TRUE(allclose(dx, wanted, {.rtol = 1e-12, .atol = 1e-12})) << s.size;
    EXPECT_TRUE(allclose(db, sum(wanted, {0, 1, 3}), {.rtol = 1e-12, .atol = 1e-11})) << s.size;
  }
}

TEST(Pool, NoPassOverTheImagesAsksForTheirSigns) {
  const Array x = randn({40, 40, 3, 2});
  const Profile seen = profile([&] { eval(gradient([](const Array& y) { return sum(maxpool(relu(y), 2)); }, x)); });
  int slopes = 0;
  for (const ProfileEntry& entry : seen.entries) {
    if (entry.ops.find("relu_slope") == std::string::npos) continue;
    ++slopes;
    EXPECT_EQ(entry.sizes.substr(0, 16), "(20, 20, 3, 2) F");
  }
  EXPECT_EQ(slopes, 1);
}

TEST(Pool, GradientsThroughReluHaveGradients) {
  seed(32);  // no element of it is near another one, or near 0
  const Array x = randn<double>({9, 9, 2, 2}), w = randn<double>({9, 9, 2, 2}), step = 1e-6 * w;
  const auto slope = [](const Array& at) {
    return gradient([](const Array& images) { return sum(exp(maxpool(relu(images), 3, 2, 1))); }, at);
  };
  const Array product = gradient([&](const Array& at) { return sum(w * slope(at)); }, x);
  EXPECT_TRUE(allclose(product, (slope(x + step) - slope(x - step)) / 2e-6, {.rtol = 1e-6, .atol = 1e-6}));
}

/// Of windows that lie in the padding, as of images without relu, not all give what they have.
TEST(Pool, BiasesGetNothingOfThePadding) {
  const Array x = full({2, 2, 1, 1}, -std::numeric_limits<double>::infinity(), Float64);
  const Array b = zeros({1, 1, 1, 1}, Float64);
  const auto bias = [&](auto f) {
    return gradient([&](const Array& at) { return sum(maxpool(f(x + at), 2, 1, 1)); }, b).template item<double>();
  };
  EXPECT_EQ(bias([](const Array& y) { return y; }), 1);  // the window in the middle alone
  EXPECT_EQ(bias([](const Array& y) { return relu(y); }), 0);
}

TEST(Pool, LargeStepsDoNotFit) {
  EXPECT_EQ(error_of([] {
              static_cast<void>(maxpool(ones({4, 1, 1}), 3, 1, 0, {.dilation = 2}));
            }),
            "maxpool: the window must be at least 1 and fit the padded input, the stride at least 1; got size 4, "
            "window 3, stride 1, pad (0, 0), dilation 2 in dim 0; use a smaller window or more padding");
}

// torch.nn.functional.fractional_max_pool2d(x, (2, 3), output_size=(3, 4), return_indices=True, _random_samples=...)
TEST(FractionalMaxPool, HasTheWindowsOfPyTorch) {
  const Array x = reshape(sin(arange(0.0, 140.0, 1.0)), {7, 5, 4, 1});
  const Array samples({0.1f, 0.9f, 0.5f, 0.3f, 0.7f, 0.2f, 0.95f, 0.05f}, {2, 4, 1});
  const MaxPooled pooled = fractional_maxpool(x, {3, 2}, {4, 3}, samples);
  const std::vector<int64_t> want = {8,  8,  2,  13, 14, 8,  9,  20, 21, 22, 32, 33, 9,  4,  4,  4,
                                     16, 17, 17, 11, 23, 23, 24, 34, 7,  2,  12, 13, 7,  18, 19, 13,
                                     21, 32, 32, 32, 9,  10, 10, 4,  16, 16, 16, 11, 22, 22, 23, 34};
  EXPECT_EQ(pooled.indices.to_vector<int64_t>(), want);
  EXPECT_EQ(pooled.values.shape(), (Shape{4, 3, 4, 1}));
  const Array planes = reshape(pooled.indices, {12, 4});
  EXPECT_EQ(pooled.values.to_vector(), take_along(reshape(x, {35, 4}), planes, 0).to_vector());
  const auto total = [&](const Array& in) { return sum(fractional_maxpool(in, {3, 2}, {4, 3}, samples).values); };
  const Array begin = reshape(arange(4) * 35, {1, 4});
  EXPECT_EQ(gradient(total, x).to_vector(),
            scatter_add(zeros({140}), reshape(planes + begin, {48}), ones({48}), 0).to_vector());
}

TEST(FractionalMaxPool, DrawsItsPlaces) {
  const Array x = randn({9, 8, 2, 3});
  seed(4);
  const MaxPooled first = fractional_maxpool(x, 2, {4, 5});
  seed(4);
  const MaxPooled again = fractional_maxpool(x, 2, {4, 5});
  EXPECT_EQ(first.indices.to_vector<int64_t>(), again.indices.to_vector<int64_t>());
  EXPECT_EQ(first.values.shape(), (Shape{4, 5, 2, 3}));
  EXPECT_THROW(fractional_maxpool(x, 10, 2), Error);
  EXPECT_THROW(fractional_maxpool(x, 2, 2, zeros({2, 1, 3})), Error);
}

}  // namespace
}  // namespace rosin
