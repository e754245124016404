// Containers of layers and embeddings: what they compute and print.
#include <rosin/combine_layers.hpp>

#include <gtest/gtest.h>

#include <rosin/dense.hpp>
#include <rosin/embedding.hpp>
#include <rosin/index.hpp>
#include <rosin/move.hpp>

#include "../tests/layer_testing.hpp"
#include "../tests/test_device.hpp"

namespace rosin {
namespace {

using layer_testing::expect_near;

Layer times(double factor) {
  return [factor](const Array& x) { return x * factor; };
}

TEST(SkipConnection, JoinsOutputAndInput) {
  const SkipConnection layer(times(3), [](const Array& a, const Array& b) { return a - b; });
  EXPECT_EQ(layer(Array(2.0)).item(), 4);
  EXPECT_EQ(to_string(SkipConnection(Dense(2, 2), add)),
            "SkipConnection(\n"
            "  Dense(2 => 2),                        # 6 parameters\n"
            "  +,\n"
            ")");
}

TEST(Parallel, TakesOneInputOrOneForEachLayer) {
  const Parallel layer(add, {times(1), times(10), times(100)});
  EXPECT_EQ(layer(Array(2.0)).item(), 222);
  const Array three[] = {Array(1.0), Array(2.0), Array(3.0)};
  EXPECT_EQ(layer(std::span<const Array>(three))[0].item(), 321);
  EXPECT_EQ(error_of([&] { layer(std::span<const Array>(three, 2)); }),
            "Parallel: 3 sub-layers can take one input or 3 inputs; got 2 inputs; give one for each layer");
  const Parallel one([](std::span<const Array> all) { return Arrays{all[0] * 10 + all[2]}; }, {times(2)});
  EXPECT_EQ(one(std::span<const Array>(three))[0].item(), 26);
}

TEST(Parallel, PrintsItsConnectionAndNames) {
  EXPECT_EQ(to_string(Parallel(add, {{"α", Dense(2, 4)}, {"β", Dense(2, 4, {.bias = false})}})),
            "Parallel(\n"
            "  +,\n"
            "  α = Dense(2 => 4),                    # 12 parameters\n"
            "  β = Dense(2 => 4; bias=false),        # 8 parameters\n"
            ")                   # Total: 3 arrays, 20 parameters, 80 bytes.");
}

TEST(PairwiseFusion, FeedsEachResultIntoTheNextLayer) {
  const PairwiseFusion layer(add, {times(2), times(3), times(5)});
  const Array three[] = {Array(1.0), Array(10.0), Array(100.0)};
  const Arrays got = layer(std::span<const Array>(three));
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0].item(), 2);
  EXPECT_EQ(got[1].item(), 36);
  EXPECT_EQ(got[2].item(), 680);
}

TEST(Maxout, IsTheLargestOfItsLayers) {
  const Maxout layer({times(2), times(-1)});
  expect_near(layer(Array({1.0, -3.0}, {2})), {2, 3}, 0);
}

TEST(Embedding, LooksUpColumns) {
  const Embedding layer(Array({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3}));
  expect_near(layer(Array({2, 0}, {2})), {5, 6, 1, 2}, 0);
  EXPECT_EQ(layer(zeros({4, 5}, Int64)).shape(), (Shape{2, 4, 5}));
  expect_near(layer(onehot(Array({1, 1, 0, 2}, {2, 2}), 3)), {3, 4, 3, 4, 1, 2, 5, 6}, 0);
  EXPECT_EQ(
      error_of([&] { layer(ones({2})); }),
      "layer Embedding(3 => 2): indices must be integers or one-hot Bool; got 2-element Array{Float32}; convert them "
      "with cast(x, Int32)");
}

TEST(Embedding, NamesItselfWhereAnIndexLiesOutside) {
  const Array w = ones({2, 3}), beyond({0, 3}, {2});
  const std::string rest =
      ": an index must lie in its dim of 3 elements; got 3; indices count from 0, negative ones "
      "from the end";
  EXPECT_EQ(error_of([&] { static_cast<void>(Embedding(w)(beyond).to_vector()); }), "Embedding" + rest);
  EXPECT_EQ(error_of([&] { static_cast<void>(EmbeddingBag(w)(beyond).to_vector()); }), "EmbeddingBag" + rest);
}

// torch.nn.Embedding(3, 2, padding_idx=1), loss (y^2).sum(); new ones begin with zeros there.
TEST(Embedding, ThePaddingGetsNoGradient) {
  Embedding layer(Array({0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f}, {2, 3}));
  layer.padding = 1;
  const Array x = Array({1, 2, 1, 0}, {4});
  expect_near(layer(x), {2, 3, 4, 5, 2, 3, 0, 1}, 0);
  const auto loss = [&](const Array& in) { return [in](const Embedding& l) { return sum(square(l(in))); }; };
  expect_near(gradient(loss(x), layer).weight, {0, 2, 0, 0, 8, 10}, 0);
  expect_near(gradient(loss(onehot(x, 3)), layer).weight, {0, 2, 0, 0, 8, 10}, 0);
  const Embedding fresh(3, 2, {.padding_idx = -1});
  expect_near(fresh.weight(slice(), 2), {0, 0}, 0);
  EXPECT_EQ(fresh.padding, 2);
  EXPECT_EQ(error_of([] { Embedding(3, 2, {.padding_idx = 3}); }),
            "Embedding: padding_idx must lie in [0, 3); got 3; negative ones count from the end");
}

// torch.nn.EmbeddingBag(3, 2) of indices 0 1 2 2 1 with offsets 0 2 2 4; the loss weighs element i by i + 1.
TEST(EmbeddingBag, TakesBagsByTheirPlacesOnAnyDevice) {
  const Array by = reshape(cast(arange(1, 9), Float32), {2, 4});
  const struct {
    Reduction reduction;
    std::vector<double> values, slopes;
  } cases[] = {{sum, {4, -2, 0, 0, 10, 12, 3, -4}, {1, 2, 8, 10, 10, 12}},
               {mean, {2, -1, 0, 0, 5, 6, 3, -4}, {0.5, 1, 7.5, 9, 5, 6}},
               {maximum, {3, 2, 0, 0, 5, 6, 3, -4}, {0, 2, 8, 8, 5, 6}}};
  for (const Device& device : {Device(), some_device()}) {
    const Array data = Array({0, 1, 2, 2, 1}, {5}) | device, at = Array({0, 2, 2, 4}, {4}) | device;
    for (const auto& [reduction, values, slopes] : cases) {
      const EmbeddingBag layer = EmbeddingBag(Array({1.0f, 2.0f, 3.0f, -4.0f, 5.0f, 6.0f}, {2, 3}), reduction) | device;
      expect_near(cpu(layer(data, at)), values, 1e-6);
      const auto g = gradient([&](const EmbeddingBag& l) { return sum(l(data, at) * (by | device)); }, layer);
      expect_near(cpu(g.weight), slopes, 1e-5);
    }
    const EmbeddingBag layer = EmbeddingBag(3, 2, sum) | device;
    for (const Array& wrong : {Array({1, 2}, {2}), Array({0, 4, 2}, {3})}) {
      EXPECT_NE(error_of([&] { static_cast<void>(cpu(layer(data, wrong | device)).to_vector()); }), "no error");
    }
  }
}

TEST(EmbeddingBag, TakesOneHotBags) {
  const EmbeddingBag layer(Array({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3}), mean);
  const Array x = Array({0, 1, 2, 2}, {2, 2});
  EXPECT_EQ(layer(onehot(x, 3)).to_vector(), layer(x).to_vector());
}

TEST(EmbeddingBag, ReducesBagsOfSeveralLengths) {
  const EmbeddingBag layer(Array({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3}), sum);
  expect_near(layer(Array({0, 1, 2, 2}, {2, 2})), {4, 6, 10, 12}, 0);
  const Array bags[] = {Array({0}, {1}), Array({1, 2}, {2})};
  expect_near(layer(std::span<const Array>(bags)), {1, 2, 8, 10}, 0);
  expect_near(layer(Array({0, 1, 2}, {3}), Array({0, 1}, {2})), {1, 2, 8, 10}, 0);
}

}  // namespace
}  // namespace rosin
