// Images in CWHN inside a plan: values have the bits of evaluation after each op, where everything is in
// logical order.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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
#include <rosin/resample.hpp>
#include <rosin/stats.hpp>

#include "base/workers.hpp"

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
  for (size_t i = 0; i < alone.size(); ++i) {
    // (Bits: NaN equals itself, as in the variance of one image.)
    EXPECT_EQ(std::bit_cast<uint32_t>(together[i]), std::bit_cast<uint32_t>(alone[i])) << i;
  }
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

/// Along any dim; of images that all stand in CWHN, or of which one is a leaf; with what reads them in either order.
TEST(ChannelsFirst, ImagesThatArePutTogetherAreTheSame) {
  Rng rng(14);
  const Array x = drawn(rng, {9, 8, 3, 2}), w = drawn(rng, {3, 3, 3, 5}), u = drawn(rng, {3, 3, 3, 5});
  const Array leaf = drawn(rng, {9, 8, 5, 2});
  for (int dim = 0; dim < 4; ++dim) {
    for (const bool has_leaf : {false, true}) {
      const int64_t channels = dim == 2 ? 10 : 5;
      const Array v = drawn(rng, {3, 3, channels, 4});
      const auto joined = [&](const Array& of, auto step) {
        const Array first = step(relu(step(crosscor(of, w, {.pad = 1}))));
        const Array second = has_leaf ? leaf : step(crosscor(of, u, {.pad = 1}));
        return step(concat({first, second}, dim));
      };
      expect_same_values([&](auto step) { return step(crosscor(joined(x, step), v, {.pad = 1})); });
      expect_same_values([&](auto step) { return step(joined(x, step) * 2); });
      expect_same_values([&](auto step) { return step(sum(step(maxpool(joined(x, step), 2)), 0)); });
      expect_same_values([&](auto step) {
        const auto loss = [&](const Array& of) { return sum(square(crosscor(joined(of, step), v, {.pad = 1}))); };
        return gradient(loss, x);
      });
    }
  }
}

TEST(ChannelsFirst, ImagesThatArePutTogetherForAConvolutionAreNotTurned) {
  Rng rng(15);
  const Array x = drawn(rng, {20, 20, 8, 2}), w = drawn(rng, {3, 3, 8, 16}), v = drawn(rng, {3, 3, 32, 16});
  const auto made = [&] {
    const Array first = relu(crosscor(x, w, {.pad = 1})), second = relu(crosscor(x * 2, w, {.pad = 1}));
    return crosscor(concat({first, second}, 2), v, {.pad = 1});
  };
  eval(made());
  const Stats before = stats();
  eval(made());
  // Kernels: x * 2, that and x into CWHN, the result back; calls: three convolutions and the concat.
  EXPECT_LE(stats().kernels - before.kernels, 4);
  EXPECT_EQ(stats().calls - before.calls, 4);
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

/// Images whose planes fit a strip, or are cut into runs that end with them, or not; few and many channels and images;
/// and few images that are worth several threads.
TEST(ChannelsFirst, ReductionsOfImagesOfAnySizeAreTheSame) {
  set_worker_threads(3);  // which share out the lanes of few images
  struct Size {
    Shape x, w;
  };
  const std::vector<Size> sizes = {
      {{28, 28, 3, 4}, {3, 3, 3, 8}},       {{8, 9, 2, 65}, {2, 3, 2, 17}},  {{93, 71, 1, 3}, {2, 2, 1, 5}},
      {{200, 31, 1, 1}, {1, 2, 1, 33}},     {{5001, 1, 2}, {2, 1, 3}},       {{17, 3, 40}, {3, 3, 600}},
      {{9, 21, 40, 1, 2}, {2, 2, 1, 1, 4}}, {{66, 65, 1, 40}, {1, 1, 1, 2}}, {{28, 29, 2, 1}, {1, 2, 2, 256}},
      {{70, 61, 1, 1}, {1, 2, 1, 64}},      {{5, 6, 2, 2}, {1, 2, 2, 1500}}};
  Rng rng(8);
  for (const Size& size : sizes) {
    const Array x = drawn(rng, size.x), w = drawn(rng, size.w);
    const int rank = x.rank();
    for (unsigned set = 1; set < 1u << rank; ++set) {
      std::vector<int> dims;
      for (int d = 0; d < rank; ++d) {
        if (set >> d & 1) dims.push_back(d);
      }
      SCOPED_TRACE(to_string(size.x) + " over set " + std::to_string(set));
      expect_same_values([&](auto step) {
        const Array y = step(conv(x, w)), scaled = step(y * 0.25 + 1);
        const Array total = step(sum(scaled, Dims(dims))), product = step(prod(scaled, Dims(dims)));
        const Array spread = step(var(y, Dims(dims))), largest = step(maximum(scaled, Dims(dims)));
        const Array bent = step(sum(step(tanh(y)), Dims(dims)));
        return concat({reshape(total, {-1}), reshape(product, {-1}), reshape(spread, {-1}), reshape(largest, {-1}),
                       reshape(bent, {-1})},
                      0);
      });
    }
  }
  set_worker_threads(0);
}

TEST(ChannelsFirst, ReductionsOfPoolsAndOfArraysBesideImagesAreTheSame) {
  Rng rng(9);
  const Array x = drawn(rng, {28, 26, 6, 5}), mask = drawn(rng, {14, 13, 6, 5});
  for (const std::initializer_list<int> dims : {std::initializer_list<int>{0, 1}, {0, 1, 3}, {2}, {0, 1, 2, 3}}) {
    expect_same_values([&](auto step) {
      const Array y = step(meanpool(x, 2)), z = step(y * mask);
      return step(step(sum(z, Dims(dims))) + step(sum(mask, Dims(dims)) * step(mean(y, Dims(dims)))));
    });
  }
  for (const int dim : {0, 1, 2, 3}) {
    expect_same_values([&](auto step) { return step(softmax(step(meanpool(x, 2)), dim)); });
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

/// As in the gradient of a variance: a number for each channel, spread over the images and then multiplied.
TEST(ChannelsFirst, WhatFollowsFromBroadcastsAloneIsComputedInTheOrderOfItsReader) {
  Rng rng(8);
  const Array x = drawn(rng, {8, 8, 1, 4}), w = drawn(rng, {3, 3, 1, 4}), b = drawn(rng, {1, 1, 4, 1});
  const auto made = [&](auto step) {
    const Array y = step(conv(x, w, {.pad = 1}));
    return step(sum(step(y - step(step(2 * step(broadcast_to(b, y.shape()))) * y)), {0, 1, 3}));
  };
  expect_same_values(made);
  const Stats before = stats();
  eval(made([](const Array& array) { return array; }));
  EXPECT_EQ(stats().kernels - before.kernels, 1);
}

TEST(ChannelsFirst, ChainsOfConvolutionsCopyNothing) {
  Rng rng(7);
  const Array x = drawn(rng, {8, 8, 1, 4}), w = drawn(rng, {3, 3, 1, 4}), u = drawn(rng, {3, 3, 4, 4});
  const Stats before = stats();
  const Array y = sum(relu(conv(relu(conv(x, w)), u)), {0, 1, 3});
  eval(y);
  const Stats after = stats();
  EXPECT_EQ(after.calls - before.calls, 2);
  EXPECT_EQ(after.kernels - before.kernels, 1);  // the sum: relu is part of the convolutions
}

/// The kernels and calls that evaluating what `f` gives takes.
template <class F> std::pair<uint64_t, uint64_t> steps(F&& f) {
  const Stats before = stats();
  eval(f());
  return {stats().kernels - before.kernels, stats().calls - before.calls};
}

using Steps = std::pair<uint64_t, uint64_t>;

TEST(ChannelsFirst, AConvolutionOfSingleChannelsAloneCopiesNothing) {
  Rng rng(10);
  const Array x = drawn(rng, {16, 17, 6, 3}), w = drawn(rng, {3, 3, 1, 6}), b = drawn(rng, {1, 1, 6});
  const ConvOptions each{.pad = 1, .groups = 6};
  EXPECT_EQ(steps([&] { return conv(x, w, each); }), Steps(0, 1));
  EXPECT_EQ(steps([&] { return relu(crosscor(x, w, each) + b); }), Steps(0, 1));
  EXPECT_EQ(steps([&] { return relu(conv(relu(conv(x, w, each) + b), w, each) + x); }), Steps(0, 2));
  const auto loss = [&](const Array& images, const Array& kernels) { return sum(conv(images, kernels, each) * x); };
  EXPECT_EQ(steps([&] { return std::get<0>(gradient(loss, x, w)); }).first, 0);
}

/// As in MobileNet: images stay in CWHN between convolutions, so that nothing is copied, as if no layer were of single
/// channels; the first is copied into CWHN, in a kernel.
TEST(ChannelsFirst, ConvolutionsOfSingleChannelsTakeImagesInTheOrderOfTheirNeighbours) {
  Rng rng(11);
  const Array x = drawn(rng, {16, 17, 3, 4}), w = drawn(rng, {3, 3, 3, 8}), u = drawn(rng, {3, 3, 1, 8});
  const Array v = drawn(rng, {1, 1, 8, 5}), scale = drawn(rng, {1, 1, 8});
  const auto norm = [&](const Array& y) {
    const Array shift = mean(y, {0, 1, 3});
    return relu((y - shift) * scale / sqrt(mean(square(y - shift), {0, 1, 3}) + 1));
  };
  const ConvOptions pad{.pad = 1}, each{.pad = 1, .groups = 8};
  const auto net = [&](const auto& middle) { return sum(conv(norm(middle(norm(conv(x, w, pad)))), v), {0, 1, 3}); };
  const Array full = drawn(rng, {3, 3, 8, 8});
  const Steps dense = steps([&] { return net([&](const Array& y) { return conv(y, full, pad); }); });
  EXPECT_EQ(steps([&] { return net([&](const Array& y) { return conv(y, u, each); }); }), dense);
}

/// The copy into CWHN is made before the first convolution, and not behind it.
TEST(ChannelsFirst, AConvolutionOfSingleChannelsBeforeOthersTakesTheirOrder) {
  Rng rng(12);
  const Array x = drawn(rng, {16, 17, 8, 4}), u = drawn(rng, {3, 3, 1, 8}), v = drawn(rng, {3, 1, 8, 5});
  const ConvOptions each{.pad = 1, .groups = 8};
  EXPECT_EQ(steps([&] { return sum(conv(relu(conv(x, u, each)), v), {0, 1, 3}); }), Steps(2, 2));
  const auto loss = [&](const Array& first) { return sum(square(conv(relu(conv(x, first, each)), v))); };
  const auto of_dense = [&](const Array& first) { return sum(square(conv(relu(conv(x, first, {.pad = 1})), v))); };
  const Array full = drawn(rng, {3, 3, 8, 8});
  EXPECT_EQ(steps([&] { return gradient(loss, u); }), steps([&] { return gradient(of_dense, full); }));
}

/// Small images are turned in less time than planes of them take.
TEST(ChannelsFirst, AConvolutionOfSingleChannelsTakesSmallImagesChannelsFirst) {
  Rng rng(14);
  const Array x = drawn(rng, {7, 7, 6, 3}), w = drawn(rng, {3, 3, 1, 6});
  EXPECT_EQ(steps([&] { return conv(x, w, {.groups = 6}); }), Steps(2, 1));
  const Array wide = cast(x, Float64), kernels = cast(w, Float64);
  eval();
  EXPECT_EQ(steps([&] { return conv(wide, kernels, {.groups = 6}); }), Steps(0, 1));
}

TEST(ChannelsFirst, ConvolutionsOfSingleChannelsAreTheSame) {
  Rng rng(13);
  const Array large = drawn(rng, {16, 17, 6, 3}), small = drawn(rng, {6, 5, 6, 3});
  const Array w = drawn(rng, {3, 3, 1, 6}), v = drawn(rng, {1, 1, 6, 4}), b = drawn(rng, {1, 1, 6});
  for (const bool is_small : {false, true}) {
    const Array x = is_small ? small : large;
    const ConvOptions each{.stride = is_small ? 1 : 2, .pad = 1, .groups = 6};
    expect_same_values([&](auto step) { return step(relu(step(step(conv(x, w, each)) + b))); });
    expect_same_values([&](auto step) { return step(conv(step(relu(step(step(conv(x, w, each)) + b))), v)); });
    expect_same_values([&](auto step) { return step(sum(step(maxpool(step(conv(x, w, each)), 2)), {0, 3})); });
  }
}

/// Windows that overlap, leave gaps and reach into the padding; rows of few windows and of many.
TEST(ChannelsFirst, PoolsAloneCopyNothing) {
  Rng rng(15);
  for (const Shape& size : {Shape{16, 17, 6, 3}, Shape{60, 9, 3, 2}, Shape{40, 3, 5}, Shape{6, 7, 5, 3, 2}}) {
    const Array x = drawn(rng, size);
    EXPECT_EQ(steps([&] { return maxpool(x, 3, 2, 1); }), Steps(0, 1));
    EXPECT_EQ(steps([&] { return meanpool(x, 2); }), Steps(0, 1));
    EXPECT_EQ(steps([&] { return maxpool(meanpool(x, 2, 1, 1), 2); }), Steps(0, 2));
    const auto loss = [&](const Array& images) { return sum(maxpool(images, 3, 2, 1)); };
    EXPECT_EQ(steps([&] { return gradient(loss, x); }).second, 2u);
  }
}

/// Behind a convolution and before one they take images channels first.
TEST(ChannelsFirst, PoolsTakeImagesInTheOrderOfConvolutionsBesideThem) {
  Rng rng(16);
  const Array x = drawn(rng, {18, 17, 4, 3}), w = drawn(rng, {3, 3, 4, 5});
  const Steps without = steps([&] { return sum(conv(x, w), {0, 1, 3}); });
  const Steps behind = steps([&] { return sum(maxpool(conv(x, w), 3, 2, 1), {0, 1, 3}); });
  const Steps before = steps([&] { return sum(conv(maxpool(x, 3, 2, 1), w), {0, 1, 3}); });
  EXPECT_EQ(behind, Steps(without.first, without.second + 1));
  EXPECT_EQ(before, behind);
}

TEST(ChannelsFirst, ResizedImagesKeepTheOrderOfConvolutionsBesideThem) {
  Rng rng(20);
  const Array x = drawn(rng, {9, 8, 4, 3}), w = drawn(rng, {3, 3, 4, 5}), u = drawn(rng, {3, 3, 5, 2});
  const InterpolateOptions larger{.size = {11, 13}}, wider{.size = {7, 14}};
  const Steps without = steps([&] { return sum(crosscor(conv(x, w), u), {0, 1, 3}); });
  const Steps between = steps([&] { return sum(crosscor(interpolate(conv(x, w), larger), u), {0, 1, 3}); });
  EXPECT_EQ(between, Steps(without.first, without.second + 1));
  const auto resized = [&](const Array& a, const InterpolateOptions& options, auto step) {
    return step(crosscor(step(interpolate(step(conv(a, w)), options)), u));
  };
  for (const InterpolateOptions& options : {larger, wider}) {
    expect_same_values([&](auto step) { return resized(x, options, step); });
    expect_same_values([&](auto step) { return resized(x, options, step) + step(resized(x, options, step)); });
    expect_same_values([&](auto step) {
      const auto loss = [&](const Array& a, const Array& b) {
        return step(sum(step(square(step(crosscor(step(interpolate(step(conv(a, b)), options)), u))))));
      };
      const auto [by_x, by_w] = gradient(loss, x, w);
      return concat({reshape(by_x, {-1}), reshape(by_w, {-1})}, 0);
    });
  }
}

TEST(ChannelsFirst, ResizedLinesAndVolumesAreTheSame) {
  Rng rng(21);
  const Array line = drawn(rng, {20, 3, 2}), volume = drawn(rng, {5, 4, 6, 2, 2});
  const Array v = drawn(rng, {3, 3, 4}), w = drawn(rng, {2, 2, 2, 2, 3});
  expect_same_values([&](auto step) { return step(interpolate(step(conv(line, v)), {.size = 7})); });
  expect_same_values([&](auto step) { return step(interpolate(step(conv(volume, w)), {.size = {9, 3, 2}})); });
  expect_same_values([&](auto step) { return step(interpolate(step(conv(volume, w)), {.size = 1})); });
  const Array large = drawn(rng, {40, 50, 3, 1}), u = drawn(rng, {3, 3, 3, 16});
  expect_same_values([&](auto step) { return step(interpolate(step(conv(large, u)), {.size = {61, 90}})); });
  expect_same_values([&](auto step) {
    return step(interpolate(step(conv(volume, w)), {.size = {8, 3, 11}, .mode = Interpolation::nearest}));
  });
}

TEST(ChannelsFirst, PoolsOfAnyWindowsAndTheirGradientsAreTheSame) {
  Rng rng(17);
  struct Case {
    Shape size;
    int64_t window, stride, pad;
  };
  const std::vector<Case> cases = {{{34, 31, 6, 3}, 3, 2, 1}, {{61, 20, 3, 2}, 3, 2, 1}, {{63, 12, 3, 2}, 5, 1, 2},
                                   {{12, 9, 5, 2}, 3, 1, 1},  {{30, 31, 4, 2}, 2, 3, 0}, {{70, 4, 3}, 4, 2, 1},
                                   {{9, 8, 7, 3, 2}, 3, 2, 1}};
  for (const auto& [size, window, stride, pad] : cases) {
    const Array x = drawn(rng, size);
    const Array w = drawn(rng, size.rank() == 3   ? Shape{3, size[1], 4}
                               : size.rank() == 4 ? Shape{3, 3, size[2], 4}
                                                  : Shape{3, 3, 3, size[3], 4});
    SCOPED_TRACE(to_string(size));
    for (const bool largest : {true, false}) {
      const auto pool = [&, window = window, stride = stride, pad = pad](const Array& y) {
        return largest ? maxpool(y, window, stride, pad) : meanpool(y, window, stride, pad);
      };
      const ConvOptions same{.pad = 1};
      expect_same_values([&](auto step) {
        const Array images = step(conv(x, w, same));
        const auto loss = [&](const Array& y) { return sum(square(pool(y)) * 0.1); };
        const Array pooled = step(pool(images)), slope = step(gradient(loss, images));
        return step(concat({reshape(pooled, {-1}), reshape(slope, {-1})}, 0));
      });
    }
  }
}

TEST(ChannelsFirst, ConvolutionsOfPointsAloneAreProducts) {
  Rng rng(18);
  for (const DType type : {Float32, Float64}) {
    const Array x = cast(drawn(rng, {16, 17, 6, 3}), type), w = cast(drawn(rng, {1, 1, 6, 5}), type);
    const Array b = cast(drawn(rng, {1, 1, 5}), type);
    eval(x, w, b);
    EXPECT_EQ(steps([&] { return conv(x, w); }), Steps(0, 1));
    EXPECT_EQ(steps([&] { return relu(crosscor(x, w) + b); }), Steps(0, 1));
    EXPECT_EQ(steps([&] { return conv(x, w, {.stride = 2}); }).second, 1u);
    const auto loss = [&](const Array& images, const Array& kernels) { return sum(conv(images, kernels)); };
    EXPECT_EQ(steps([&] { return std::get<0>(gradient(loss, x, w)); }).second, 1u);
  }
  const Array small = drawn(rng, {7, 7, 6, 3}), w = drawn(rng, {1, 1, 6, 5});
  EXPECT_EQ(steps([&] { return conv(small, w); }), Steps(2, 1));  // small images are one product
}

}  // namespace
}  // namespace rosin
