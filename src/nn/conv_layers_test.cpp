// Convolution and pooling layers: sizes, orientation, messages. Values of the ops are tested in src/ops.
#include <rosin/conv_layers.hpp>

#include <gtest/gtest.h>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/compose.hpp>
#include <rosin/dense.hpp>
#include <rosin/index.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/pool_layers.hpp>

#include "../tests/layer_testing.hpp"

namespace rosin {
namespace {

bool allclose_to(const Array& a, const Array& b) { return a.shape() == b.shape() && maximum(abs(a - b)).item() < 1e-5; }

TEST(Conv, AnImpulseGivesTheWeight) {
  for (const Shape& kernel : {Shape{3, 3}, Shape{3, 1}, Shape{1, 3}}) {
    const Conv layer(rand({kernel[0], kernel[1], 1, 1}), false, {}, {.pad = SamePad()});
    const Array impulse = scatter(zeros({25}), Array({12}, {1}), ones({1}));
    const Array y = layer(reshape(impulse, {5, 5, 1, 1}));
    const int64_t left = 2 - kernel[0] / 2, top = 2 - kernel[1] / 2;
    const Array around = index(y, {slice(left, left + kernel[0]), slice(top, top + kernel[1])});
    EXPECT_TRUE(all(around == layer.weight).item<bool>());
    EXPECT_NEAR(sum(y).item(), sum(layer.weight).item(), 1e-5);
  }
}

TEST(Conv, PadsEachSideByItself) {
  const Conv layer(ones({3, 3, 1, 1}), false, {}, {.pad = {0, 1, 1, 2}});
  const Array y = layer(ones({28, 28, 1, 1}));
  ASSERT_EQ(y.shape(), (Shape{27, 29, 1, 1}));
  const auto at = [&](int64_t i, int64_t j) { return y.item(i, j, 0, 0); };
  EXPECT_EQ(at(0, 0), 6);
  EXPECT_EQ(at(1, 1), 9);
  EXPECT_EQ(at(-1, 0), 4);
  EXPECT_EQ(at(0, -1), 3);
  EXPECT_EQ(at(0, -2), 6);
  EXPECT_EQ(at(-1, -1), 2);
}

TEST(Conv, CrossCorDoesNotFlip) {
  const Array w = rand({2, 2, 1, 1}), x = rand({5, 5, 1, 1});
  const Array y = CrossCor(w, false)(x);
  EXPECT_NEAR(y.item(0, 0, 0, 0), sum(w * index(x, {slice(0, 2), slice(0, 2)})).item(), 1e-5);
  EXPECT_TRUE(allclose_to(Conv(flip(flip(w, 0), 1), false)(x), y));
}

/// PyTorch's ConvTranspose2d by hand: each pixel lays the kernel, as it is, at twice its place.
TEST(Conv, CrossCorTransposeDoesNotFlip) {
  const Array x = reshape(Array({1.0f, 10.0f}, {2}), {2, 1, 1, 1});
  const Array w = reshape(Array({1.0f, 2.0f, 3.0f}, {3}), {3, 1, 1, 1});
  const CrossCorTranspose layer(w, false, {}, {.stride = {2, 1}});
  EXPECT_EQ(layer(x).to_vector(), (std::vector<float>{1, 2, 13, 20, 30}));
  EXPECT_EQ(ConvTranspose(w, false, {}, {.stride = {2, 1}})(x).to_vector(), (std::vector<float>{3, 2, 31, 20, 10}));
  const Array image = rand({5, 4, 2, 1}), kernel = rand({3, 2, 3, 2});
  const Array y = CrossCorTranspose(kernel, false, {}, {.stride = 2})(image);
  EXPECT_TRUE(allclose_to(ConvTranspose(flip(flip(kernel, 0), 1), false, {}, {.stride = 2})(image), y));
  const Array back = gradient([&](const Array& a) { return sum(crosscor(a, kernel, {.stride = 2}) * image); }, y);
  EXPECT_TRUE(allclose_to(back, y));
  EXPECT_EQ(error_of([&] { crosscor_transpose(image, w); }).substr(0, 19), "crosscor_transpose:");
}

TEST(Pool, RefusesAWindowWithoutSizes) {
  EXPECT_EQ(error_of([] {
              MaxPool(Extents{}, {.pad = SamePad()})(ones({3, 3, 1, 1}));
            }),
            "layer MaxPool((), pad=SamePad()): the window has no sizes; got (); give one number, or one for each "
            "spatial dim");
  EXPECT_EQ(error_of([] {
              MeanPool{Extents{}}(ones({3, 3, 1, 1}));
            }).substr(0, 43),
            "layer MeanPool(()): the window has no sizes");
}

TEST(Conv, SamePadKeepsSizesAndDividesByTheStride) {
  for (const Extents& kernel : {Extents{1}, Extents{2}, Extents{3}, Extents{4, 5}, Extents{6, 7, 8}}) {
    const int spatial = static_cast<int>(kernel.list().size());
    std::vector<int64_t> sizes(static_cast<size_t>(spatial), 9), thirds(static_cast<size_t>(spatial), 3);
    for (auto* list : {&sizes, &thirds}) list->insert(list->end(), {1, 2});
    const Array x = rand(Shape(std::span<const int64_t>(sizes)));
    EXPECT_EQ(Conv(kernel, 1, 1, {.pad = SamePad()})(x).shape(), x.shape());
    EXPECT_EQ(Conv(kernel, 1, 1, {.pad = SamePad(), .dilation = 2})(x).shape(), x.shape());
    EXPECT_EQ(Conv(kernel, 1, 1, {.stride = 3, .pad = SamePad()})(x).shape(), Shape(std::span<const int64_t>(thirds)));
    EXPECT_EQ(MaxPool(kernel, {.pad = SamePad(), .stride = 1})(x).shape(), x.shape());
  }
  EXPECT_EQ(ConvTranspose({3, 3}, 1, 1, {.stride = 2, .pad = SamePad()})(rand({5, 4, 1, 1})).shape(),
            (Shape{10, 8, 1, 1}));
}

TEST(Conv, SizesAreThoseOfFlux) {
  EXPECT_EQ(Conv({3, 3}, 3, 16, {.stride = 2, .pad = 3, .dilation = 2})(rand({5, 5, 3, 1})).shape(),
            (Shape{4, 4, 16, 1}));
  EXPECT_EQ(ConvTranspose({3, 3}, 3, 16, {.stride = 2, .pad = 3, .dilation = 2})(rand({5, 5, 3, 1})).shape(),
            (Shape{7, 7, 16, 1}));
  EXPECT_EQ(ConvTranspose({3, 3}, 2, 4, {.stride = 2, .outpad = 1})(rand({5, 5, 2, 1})).shape(), (Shape{12, 12, 4, 1}));
  EXPECT_EQ(Conv({3, 3}, 4, 6, {.groups = 2}).weight.shape(), (Shape{3, 3, 2, 6}));
  EXPECT_EQ(DepthwiseConv({3, 3}, 4, 8).weight.shape(), (Shape{3, 3, 1, 8}));
  EXPECT_EQ(ConvTranspose({3, 3}, 4, 6, {.groups = 2}).weight.shape(), (Shape{3, 3, 3, 4}));
  EXPECT_EQ(Chain(Conv({3, 3}, 3, 16), Conv({3, 3}, 16, 32))(rand({10, 10, 3, 8})).shape(), (Shape{6, 6, 32, 8}));
}

// torch.nn.Conv2d(1, 1, (2, 3), padding=(1, 2), padding_mode=...): reflect, replicate, circular.
TEST(Conv, PadsByAnyMode) {
  const Array w = reshape(cast(arange(6), Float32) - 2, {3, 2, 1, 1}),
              x = square(reshape(cast(arange(12), Float32), {4, 3, 1, 1}));
  const auto values = [&](PadMode mode) {
    return CrossCor(w, false, {}, {.pad = {2, 1}, .padding_mode = mode})(x).to_vector();
  };
  using Values = std::vector<float>;
  EXPECT_EQ(values(PadMode::reflect), (Values{-91, -62, -43, -50, -87, -114, 125,  130, 173, 238, 225, 174,
                                              357, 386, 469, 558, 521, 430,  -147, -94, -35, -18, -79, -146}));
  EXPECT_EQ(values(PadMode::repeat), (Values{0,   3,   13,  30,  32,  27,  96,  123, 173, 238, 264, 267,
                                             336, 387, 469, 558, 584, 579, 192, 243, 317, 382, 384, 363}));
  EXPECT_EQ(values(PadMode::circular),
            (Values{-299, -294, -195, -226, -299, -294, 165,  138,  173,  238,  165,  138,
                    413,  378,  469,  558,  413,  378,  -299, -294, -195, -226, -299, -294}));
  const Conv layer(flip(w, {0, 1}), false, {}, {.pad = {2, 1}, .padding_mode = PadMode::reflect});
  EXPECT_EQ(layer(x).to_vector(), values(PadMode::reflect));
  EXPECT_EQ(layer.rosin_show(), "Conv((3, 2), 1 => 1, pad=(2, 1), padding_mode=reflect, bias=false)");
  EXPECT_EQ(Conv({3}, 1, 1, {.pad = SamePad(), .padding_mode = PadMode::circular})(ones({5, 1, 1})).shape(),
            (Shape{5, 1, 1}));
}

TEST(Conv, ANetworkOfConvolutionsClassifies) {
  const Chain model(Conv({2, 2}, 1, 16, relu), MaxPool({2, 2}), Conv({2, 2}, 16, 8, relu), MaxPool({2, 2}), flatten,
                    Dense(288, 10), softmax);
  const Array y = model(rand({28, 28, 1, 5}));
  EXPECT_EQ(y.shape(), (Shape{10, 5}));
  EXPECT_NEAR(sum(y).item(), 5, 1e-4);
}

TEST(Conv, RefusesImagesThatDoNotFit) {
  const Conv layer({3, 3}, 3, 16);
  EXPECT_EQ(error_of([&] {
              layer(rand({8, 8, 1, 2}));
            }),
            "layer Conv((3, 3), 3 => 16) expects size(input, 2) == 3, but got 8×8×1×2 Array{Float32}; images are "
            "(spatial..., "
            "channels, batch)");
  EXPECT_EQ(
      error_of([&] {
        layer(rand({8, 8, 3}));
      }),
      "layer Conv((3, 3), 3 => 16) expects 4 dims (spatial..., channels, batch), but got 8×8×3 Array{Float32}; add "
      "the batch dim with unsqueeze(x, -1)");
  EXPECT_EQ(
      error_of([] {
        Conv({3, 3}, 3, 16, {.groups = 2});
      }),
      "Conv: input channel dimension must be divisible by groups; got 2 groups for 3 and 16 channels; use another "
      "number of groups");
}

TEST(Pooling, LayersAreTheirFunctions) {
  const Array x = rand({10, 10, 3, 2});
  EXPECT_TRUE(allclose_to(AdaptiveMaxPool({5, 5})(x), MaxPool({2, 2})(x)));
  EXPECT_TRUE(allclose_to(AdaptiveMeanPool({4, 4})(x), MeanPool({4, 4}, {.stride = 2})(x)));
  EXPECT_EQ(GlobalMaxPool()(x).shape(), (Shape{1, 1, 3, 2}));
  EXPECT_TRUE(allclose_to(GlobalMeanPool()(x), MeanPool({10, 10})(x)));
  EXPECT_EQ(flatten(rand({5, 5, 3, 10})).shape(), (Shape{75, 10}));
  EXPECT_EQ(
      Chain(Conv({3, 3}, 3, 16), BatchNorm(16, relu), GlobalMeanPool(), flatten, Dense(16, 10))(rand({10, 10, 3, 50}))
          .shape(),
      (Shape{10, 50}));
}

}  // namespace
}  // namespace rosin
