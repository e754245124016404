// WeightNorm, SpectralNorm, PReLU: values and gradients are PyTorch's. And sizes without values.
#include <rosin/reparametrise.hpp>

#include <gtest/gtest.h>

#include <rosin/activation.hpp>
#include <rosin/approx.hpp>
#include <rosin/chain.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/embedding.hpp>
#include <rosin/functor.hpp>
#include <rosin/io.hpp>
#include <rosin/log.hpp>
#include <rosin/move.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/outputsize.hpp>
#include <rosin/pool_layers.hpp>
#include <rosin/prelu.hpp>

#include "../tests/layer_testing.hpp"
#include "../tests/test_device.hpp"

namespace rosin {
namespace {

using layer_testing::expect_near;

/// A matrix from its rows.
Array rows(const std::vector<float>& values, int64_t m, int64_t n) { return transpose(Array(values, {n, m})); }
Array vector(const std::vector<float>& values) { return Array(values, {static_cast<int64_t>(values.size())}); }

Array squares(const Array& y) { return sum(square(y)); }

// torch.nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)), loss (y^2).sum().
TEST(WeightNorm, HasPyTorchsValuesAndGradients) {
  const WeightNorm layer(Dense(rows({-1, -0.5f, 0, 0.5f, 1, 1.5f}, 2, 3), vector({0.1f, -0.2f})));
  const Array x = Array({1.0f, -2.0f, 0.5f}, {3, 1});
  expect_near(layer(x), {0.1, -0.95}, 1e-6);
  expect_near(layer.g, {1.118034, 1.870829}, 1e-6);
  const auto g = gradient([&](const auto& l) { return squares(l(x)); }, layer);
  expect_near(g.g, {0, 0.7616945}, 1e-6);
  expect_near(transpose(g.layer.weight), {0.2, -0.4, 0.1, -2.103571, 3.392857, -1.560714}, 1e-5);
  EXPECT_TRUE(allclose(remove_weight_norm(layer)(x), layer(x)));
}

TEST(WeightNorm, OfKernelsKeepsALengthForEachOutput) {
  std::vector<float> w, values;
  for (int i = 0; i < 8; ++i) w.push_back(std::sin(static_cast<float>(i)));
  for (int i = 0; i < 9; ++i) values.push_back(std::cos(static_cast<float>(i)));
  const WeightNorm layer(CrossCor(Array(w, {2, 2, 1, 2}), false));
  const Array x = Array(values, {3, 3, 1, 1});
  expect_near(layer(x), {-0.5377911, -0.9045015, 0.4294489, 0.9036819, -1.427727, 0.3591515, 1.603041, -0.08357498},
              1e-5);
  const auto g = gradient([&](const auto& l) { return squares(l(x)); }, layer);
  expect_near(g.g, {3.381788, 6.705863}, 1e-5);
  expect_near(g.layer.weight, {-4.084665, -2.159225, 1.968409, 0.1917219, -1.945302, 0.5599515, 6.633996, 1.397873},
              1e-5);
  EXPECT_EQ(error_of([] { WeightNorm(Dense(3, 2), 2); }),
            "WeightNorm: the dim must be one of the weight's; got dim 2 of (2, 3); give a layer with a weight, and the "
            "dim of its outputs");
}

// torch.nn.utils.parametrizations.spectral_norm with u and v set, one training step.
TEST(SpectralNorm, HasPyTorchsValuesAndGradients) {
  SpectralNorm layer(Dense(rows({1, 2, -1, 0.5f, -1, 3}, 2, 3), false));
  layer.u = Array({0.6f, 0.8f}, {2, 1});
  layer.v = Array({0.0f, 0.6f, 0.8f}, {3, 1});
  const Array x = Array({1.0f, -2.0f, 0.5f}, {3, 1});
  const auto [value, g] = withgradient([&](const auto& l) { return squares(l(x)); }, layer);
  expect_near(transpose(g.layer.weight), {-0.9897984, 1.81925, -0.9308434, 0.3960346, -1.513632, -1.763731}, 1e-5);
  expect_near(layer.u.value(), {0.2169305, 0.9761871}, 1e-6);
  expect_near(layer.v.value(), {0.2470483, -0.1900371, 0.9501857}, 1e-6);
  expect_near(layer(x), {-1.226439, 1.401645}, 1e-5);
  expect_near(remove_spectral_norm(layer)(x), {-1.226439, 1.401645}, 1e-5);
}

TEST(SpectralNorm, BeginsNearTheLargestSingularValue) {
  seed(3);
  const SpectralNorm layer(Dense(rows({3, 0, 0, 2}, 2, 2), false));
  expect_near(layer.weight(), {1, 0, 0, 2.0 / 3}, 1e-4);
}

TEST(Reparametrise, LayersAreSavedMovedPrintedAndNested) {
  seed(1);
  Chain model(WeightNorm(Conv({3, 3}, 1, 2)), flatten, SpectralNorm(Dense(8, 3)), PReLU(3));
  const Array x = randn({4, 4, 1, 2}), y = model(x);
  EXPECT_EQ(trainables(model).size(), 6u);
  const std::string file = testing::TempDir() + "reparametrised.safetensors";
  save(file, model);
  seed(2);
  Chain other(WeightNorm(Conv({3, 3}, 1, 2)), flatten, SpectralNorm(Dense(8, 3)), PReLU(3));
  load(file, other);
  EXPECT_TRUE(allclose(other(x), y));
  const Device device = some_device();
  EXPECT_TRUE(allclose(cpu((model | device)(x | device)), y, {.rtol = 1e-4, .atol = 1e-5}));
  EXPECT_EQ(to_string(Chain(WeightNorm(Dense(3, 2)), PReLU())),
            "Chain(\n"
            "  WeightNorm(\n"
            "    layer = Dense(3 => 2),              # 8 parameters\n"
            "    g = 2×1 Array{Float32},             # 2 parameters\n"
            "  ),\n"
            "  PReLU(1),                             # 1 parameters\n"
            ")                   # Total: 4 arrays, 11 parameters, 44 bytes.");
}

TEST(Reparametrise, GradientsAgreeWithFiniteDifferences) {
  seed(4);
  layer_testing::check_layer_gradient(WeightNorm(Dense(3, 2)), randn({3, 4}), "WeightNorm");
  layer_testing::check_layer_gradient(PReLU(2), randn({3, 2, 2}), "PReLU");
}

// torch.nn.PReLU(3); the loss weighs element i by i.
TEST(PReLU, HasPyTorchsValuesAndGradients) {
  PReLU layer(3);
  layer.weight = vector({0.1f, 0.25f, -0.5f});
  const Array x = Array({-1.0f, 2.0f, 3.0f, -4.0f, -0.5f, -6.0f}, {2, 3, 1});
  expect_near(layer(x), {-0.1, 2, 3, -1, 0.25, 3}, 1e-6);
  const Array by = reshape(cast(arange(6), Float32), x.shape());
  const auto [by_layer, by_x] = gradient([&](const PReLU& l, const Array& a) { return sum(l(a) * by); }, layer, x);
  expect_near(by_x, {0, 1, 2, 0.75, -2, -2.5}, 1e-6);
  expect_near(by_layer.weight, {0, -12, -32}, 1e-5);
  EXPECT_EQ(layer(vector({-1, 1, 1})).shape(), Shape{3});
  EXPECT_EQ(PReLU()(Array(-2.0)).item(), -0.5);
  EXPECT_EQ(
      error_of([&] {
        layer(ones({2, 4}));
      }),
      "layer PReLU(3) expects size(input, 0) == 3, but got 2×4 Array{Float32}; arrays are (..., channels, batch)");
}

// The cases of Flux's test/outputsize.jl.
TEST(OutputSize, IsThatOfWhatTheModelGives) {
  const Chain model(Conv({3, 3}, 3, 16), Conv({3, 3}, 16, 32));
  EXPECT_EQ(outputsize(model, {10, 10, 3, 64}), (Shape{6, 6, 32, 64}));
  EXPECT_EQ(outputsize(model, {10, 10, 3}, {.padbatch = true}), (Shape{6, 6, 32, 1}));
  EXPECT_EQ(outputsize(Dense(10, 4), {10, 3}), (Shape{4, 3}));
  EXPECT_EQ(outputsize(flatten, {5, 5, 3, 10}), (Shape{75, 10}));
  EXPECT_EQ(outputsize(Chain(Conv({3, 3}, 3, 16), BatchNorm(16, relu), GlobalMeanPool(), flatten), {10, 10, 3, 50}),
            (Shape{16, 50}));
  EXPECT_EQ(outputsize(Embedding(7, 4), {5, 2}, {.type = Int32}), (Shape{4, 5, 2}));
  EXPECT_NE(error_of([&] {
              outputsize(model, {10, 10, 4, 64});
            }).find("expects size(input, 2) == 3"),
            std::string::npos);
}

TEST(OutputSize, ComputesNothing) {
  // 4 TiB: whoever computed would say so.
  EXPECT_EQ(outputsize([](const Array& x) { return exp(x); }, {1 << 20, 1 << 20}), (Shape{1 << 20, 1 << 20}));
}

TEST(AutoSize, TellsEachLayerHowManyChannelsComeIn) {
  const Chain model = autosize(
      {28, 28, 1, 32}, {[](int64_t in) {
                          return Conv({3, 3}, in, 8, relu, {.stride = 2});
                        },
                        [](int64_t in) { return BatchNorm(in); }, flatten, [](int64_t in) { return Dense(in, 10); }});
  EXPECT_EQ(model.size(), 4);
  EXPECT_EQ(model[-1].get_if<Dense>()->weight.shape(), (Shape{10, 13 * 13 * 8}));
  EXPECT_EQ(model(zeros({28, 28, 1, 2})).shape(), (Shape{10, 2}));
}

}  // namespace
}  // namespace rosin
