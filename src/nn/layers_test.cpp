// What holds for every layer: gradients, parameters, copies, one-line forms.
// Values of single layers are tested beside their sources.
#include <gtest/gtest.h>

#include <rosin/activation.hpp>
#include <rosin/approx.hpp>
#include <rosin/attention.hpp>
#include <rosin/chain.hpp>
#include <rosin/combine_layers.hpp>
#include <rosin/complex.hpp>
#include <rosin/compose.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/dense.hpp>
#include <rosin/dropout.hpp>
#include <rosin/embedding.hpp>
#include <rosin/index.hpp>
#include <rosin/io.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/outputsize.hpp>
#include <rosin/pool_layers.hpp>
#include <rosin/prelu.hpp>
#include <rosin/recurrent.hpp>
#include <rosin/reparametrise.hpp>
#include <rosin/transformer.hpp>
#include <rosin/upsample.hpp>

#include <rosin/log.hpp>
#include <rosin/move.hpp>

#include "../tests/layer_testing.hpp"
#include "../tests/test_device.hpp"
#include "graph/node.hpp"

namespace rosin {
namespace {

struct LayerCase {
  Layer layer;
  Shape input;
  size_t trained;    // arrays
  const char* text;  // as printed inside a container, up to the comma
};

std::vector<LayerCase> later_cases() {
  return {
      {RMSNorm(4), {4, 3}, 1, "RMSNorm(4)"},
      {PReLU(3), {4, 3, 2}, 1, "PReLU(3)"},
      {hardshrink, {4, 3}, 0, "hardshrink"},
      {rrelu, {4, 3}, 0, "rrelu"},
      {Upsample(2), {2, 3, 2, 1}, 0, "Upsample(:nearest, scale = 2)"},
      {Upsample(UpsampleMode::bilinear, {.size = {3, 5}}), {2, 3, 2, 1}, 0, "Upsample(:bilinear, size = (3, 5))"},
      {PixelShuffle(2), {2, 3, 4, 1}, 0, "PixelShuffle(2)"},
      {PixelUnshuffle(2), {4, 2, 2, 1}, 0, "PixelUnshuffle(2)"},
      {RNN(2, 3, sigmoid), {2, 3, 2}, 3, "RNN(2 => 3, σ)"},
      {LSTM(2, 3), {2, 3, 2}, 3, "LSTM(2 => 3)"},
      {GRU(2, 3), {2, 3, 2}, 3, "GRU(2 => 3)"},
      {GRUv3(2, 3), {2, 3, 2}, 4, "GRUv3(2 => 3)"},
      {Recurrence(LSTMCell(2, 3)), {2, 3, 2}, 3, nullptr},
      {Bidirectional(GRU(2, 2), GRU(2, 2)), {2, 3, 2}, 6, nullptr},
      {MultiHeadAttention(4, {.nheads = 2}), {4, 3, 2}, 4, nullptr},
      {TransformerEncoderLayer(4, 2, 5), {4, 3, 2}, 16, nullptr},
      {WeightNorm(Dense(3, 2)), {3, 2}, 3, nullptr},
  };
}

std::vector<LayerCase> layer_cases() {
  std::vector<LayerCase> cases = {
      {Dense(3, 2, tanh), {3, 4}, 2, "Dense(3 => 2, tanh)"},
      {Dense(3, 2, {.bias = false}), {3, 2, 2}, 1, "Dense(3 => 2; bias=false)"},
      {Scale(3, sigmoid), {3, 4}, 2, "Scale(3, σ)"},
      {Scale({3, 2}, {}, {.bias = false}), {3, 2, 2}, 1, "Scale(3, 2; bias=false)"},
      {Bilinear(3, 2, tanh), {3, 2}, 2, "Bilinear(3 => 2, tanh)"},
      {Conv({3}, 2, 3), {7, 2, 2}, 2, "Conv((3,), 2 => 3)"},
      {Conv({3, 2}, 2, 4, tanh, {.stride = 2, .pad = 1, .groups = 2, .bias = false}),
       {5, 4, 2, 2},
       1,
       "Conv((3, 2), 2 => 4, tanh, pad=1, stride=2, groups=2, bias=false)"},
      {Conv({2, 2}, 1, 2, {.pad = SamePad(), .dilation = {1, 2}}),
       {4, 4, 1, 2},
       2,
       "Conv((2, 2), 1 => 2, pad=(1, 0, 1, 1), dilation=(1, 2))"},
      {CrossCor({3, 3}, 1, 2, tanh), {4, 4, 1, 2}, 2, "CrossCor((3, 3), 1 => 2, tanh)"},
      {ConvTranspose({3, 3}, 2, 1, {.stride = 2}), {3, 2, 2, 1}, 2, "ConvTranspose((3, 3), 2 => 1, stride=2)"},
      {CrossCorTranspose({3, 2}, 2, 1, tanh, {.stride = 2, .bias = false}),
       {3, 2, 2, 1},
       1,
       "CrossCorTranspose((3, 2), 2 => 1, tanh, stride=2, bias=false)"},
      {DepthwiseConv({2, 2}, 2, 4), {3, 3, 2, 1}, 2, "Conv((2, 2), 2 => 4, groups=2)"},
      {MaxPool({2, 2}), {4, 5, 2, 1}, 0, "MaxPool((2, 2))"},
      {MeanPool({3, 2}, {.pad = 1, .stride = 2}), {4, 5, 2, 1}, 0, "MeanPool((3, 2), pad=1, stride=2)"},
      {AdaptiveMaxPool({2, 2}), {5, 4, 2, 1}, 0, "AdaptiveMaxPool((2, 2))"},
      {AdaptiveMeanPool({2, 2}), {5, 4, 2, 1}, 0, "AdaptiveMeanPool((2, 2))"},
      {GlobalMaxPool(), {4, 3, 2, 2}, 0, "GlobalMaxPool()"},
      {GlobalMeanPool(), {4, 3, 2, 2}, 0, "GlobalMeanPool()"},
      {Flatten(), {4, 3, 2, 2}, 0, "Flatten()"},
      {flatten, {4, 3, 2, 2}, 0, "flatten"},
      {softmax, {4, 3}, 0, "softmax"},
      {Dropout(0.4), {4, 3}, 0, "Dropout(0.4)"},
      {AlphaDropout(0.4), {4, 3}, 0, "AlphaDropout(0.4)"},
      {BatchNorm(3, tanh), {3, 5}, 2, "BatchNorm(3, tanh)"},
      {BatchNorm(2, {.affine = false}), {3, 2, 2, 3}, 0, "BatchNorm(2, affine=false)"},
      {LayerNorm(4), {4, 3}, 2, "LayerNorm(4)"},
      {LayerNorm({3, 2}, tanh), {3, 2, 2}, 2, "LayerNorm(3, 2, tanh)"},
      {LayerNorm(4, {.affine = false}), {4, 3}, 0, "LayerNorm(4, affine=false)"},
      {InstanceNorm(2, tanh, {.affine = true, .track_stats = true}),
       {4, 2, 3},
       2,
       "InstanceNorm(2, tanh, affine=true)"},
      {InstanceNorm(2), {4, 2, 3}, 0, "InstanceNorm(2)"},
      {GroupNorm(4, 2), {3, 4, 2}, 2, "GroupNorm(4, 2)"},
      {SkipConnection(Dense(3, 3, tanh), mul), {3, 2}, 2, nullptr},
      {Parallel(add, {Dense(3, 2), Dense(3, 2, tanh)}), {3, 2}, 4, nullptr},
      {Maxout({Dense(3, 2), Dense(3, 2)}), {3, 2}, 4, nullptr},
      {Chain(Conv({2, 2}, 1, 2, relu), flatten, Dense(8, 3), softmax), {3, 3, 1, 2}, 4, nullptr},
  };
  for (LayerCase& entry : later_cases()) cases.push_back(std::move(entry));
  return cases;
}

/// The layer's line inside a container, up to the comma at its end.
std::string text_in_chain(const Layer& layer) {
  const std::string text = to_string(Chain(layer, Chain())).substr(9);
  return text.substr(0, std::min(text.find(",  "), text.find(",\n")));
}

TEST(Layers, GradientsAgreeWithFiniteDifferences) {
  seed(1);
  for (const LayerCase& entry : layer_cases()) {
    const std::string name = to_string(entry.layer);
    layer_testing::check_layer_gradient(entry.layer, randn<double>(entry.input), name);
  }
}

/// What is linear in x up to a constant c has f(re + i*im) = f(re) + i*(f(im) - c).
void expect_linear(const Layer& layer, const Array& re, const Array& im, const Array& got, const std::string& name) {
  ASSERT_TRUE(is_complex(got.dtype())) << name << " drops imaginary parts";
  EXPECT_TRUE(allclose(real(got), layer(re), {.atol = 1e-6})) << name;
  EXPECT_TRUE(allclose(imag(got), layer(im) - layer(im * 0.0), {.atol = 1e-6})) << name;
}

/// Every layer computes both parts of complex input, or says at the call that it does not.
TEST(Layers, AreRightForComplexInputOrRefuseIt) {
  std::vector<std::string> computed;
  for (const LayerCase& entry : layer_cases()) {
    const std::string name = to_string(entry.layer);
    const Array re = randn(entry.input), im = randn(entry.input);
    Array got;
    const auto call = [&] { got = entry.layer(complex(re, im)); };
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::dtype) << name << ": " << error.what();
      EXPECT_NE(std::string_view(error.what()).find(": not defined for"), std::string_view::npos) << error.what();
      continue;
    }
    computed.push_back(name.substr(0, name.find('(')));
    expect_linear(entry.layer, re, im, got, name);
  }
  EXPECT_EQ(computed, (std::vector<std::string>{"Scale", "GlobalMeanPool", "Flatten", "flatten", "Dropout", "Upsample",
                                                "Upsample", "PixelShuffle", "PixelUnshuffle"}));
}

TEST(Layers, AreRightForComplexParametersOrRefuseThem) {
  const Array w = complex(Array({1.f, 2.f}, {1, 2}), Array({3.f, -1.f}, {1, 2}));
  const auto refused = [](auto f) { return error_of([&] { static_cast<void>(f()); }, ErrorKind::dtype); };
  EXPECT_EQ(
      refused([&] {
        return Dense(w, false)(ones({2, 3}));
      }),
      "layer Dense(2 => 1; bias=false): not defined for complex numbers; got 1×2 Array{ComplexF32}; give it real(x) or "
      "abs(x), or both parts as reals with view_as_real(x)");
  EXPECT_EQ(refused([&] { return Dense(2, 1)(transpose(w)); }),
            "layer Dense(2 => 1): not defined for complex numbers; got 2×1 Array{ComplexF32}; give it real(x) or "
            "abs(x), or both parts as reals with view_as_real(x)");
  EXPECT_EQ(refused([&] {
              return Dense(ones({1, 2}), slice(w, 1, 0, 1));
            }),
            "Dense: a complex bias needs a complex weight; got 1×1 Array{ComplexF32} beside 1×2 Array{Float32}; give "
            "real(bias), or a complex weight");
  EXPECT_NE(refused([&] {
              return Conv(reshape(w, {1, 2, 1}), true)(ones({3, 2, 1}));
            }).find("Conv"),
            std::string::npos);
  const Array column = reshape(w, {2});
  EXPECT_EQ(view_as_real(Scale(column, true)(Array({2.f, 2.f}, {2}))).to_vector(), (std::vector<float>{2, 6, 4, -2}));
  EXPECT_EQ(view_as_real(Embedding(w)(Array({1, 0}, {2}))).to_vector(), (std::vector<float>{2, -1, 1, 3}));
  EXPECT_EQ(view_as_real(EmbeddingBag(w)(Array({1, 0}, {2}))).to_vector(), (std::vector<float>{1.5, 1}));
  EXPECT_NE(refused([&] { return Embedding(w)(onehot(Array({1, 0}, {2}), 2)); }).find("Embedding"), std::string::npos);
}

/// Values and gradients by parameters and input of one layer on two devices; random draws are the same everywhere.
void compare_devices(const Layer& layer, const Array& x, const Device& device) {
  const auto loss = [](const Layer& l, const Array& a) { return sum(sin(l(a) * 1.7 + 0.3)); };
  const auto run = [&](const Layer& l, const Array& a) {
    seed(7);
    auto [value, gradients] = withgradient(loss, l, a);
    std::vector<Array> all = {value};
    for (const Array& g : fleaves(std::get<0>(gradients))) all.push_back(g);
    if (!std::get<1>(gradients).is_nothing()) all.push_back(std::get<1>(gradients));
    return all;
  };
  const std::vector<Array> want = run(layer, x), got = run(layer | device, x | device);
  ASSERT_EQ(want.size(), got.size()) << to_string(layer);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].device(), device) << to_string(layer);
    EXPECT_TRUE(allclose(cpu(got[i]), want[i], {.rtol = 1e-4, .atol = 1e-5})) << to_string(layer) << ", array " << i;
  }
}

TEST(Layers, GiveTheSameOnADevice) {
  const Device device = some_device();
  seed(1);
  for (const LayerCase& entry : layer_cases()) compare_devices(entry.layer, randn(entry.input), device);
  const Array indices({2, 0, 2, 1, 3, 3}, {3, 2});
  compare_devices(Embedding(4, 3), indices, device);
  compare_devices(EmbeddingBag(4, 3), indices, device);
}

TEST(Layers, GradientsOfEmbeddingsAgreeWithFiniteDifferences) {
  const Array indices({2, 0, 2, 1, 3, 3}, {3, 2});
  layer_testing::check_layer_gradient(Embedding(4, 3), indices, "Embedding");
  layer_testing::check_layer_gradient(EmbeddingBag(4, 3), indices, "EmbeddingBag");
}

TEST(Layers, HaveTheTrainableArraysOfTheirDefinition) {
  for (const LayerCase& entry : layer_cases()) {
    EXPECT_EQ(trainables(entry.layer).size(), entry.trained) << to_string(entry.layer);
  }
  EXPECT_EQ(trainables(Embedding(4, 3)).size(), 1u);
}

TEST(Layers, PrintAsFluxDoes) {
  for (const LayerCase& entry : layer_cases()) {
    if (entry.text) {
      EXPECT_EQ(text_in_chain(entry.layer), entry.text);
    }
  }
}

TEST(Layers, CopiesAreIndependentAndGiveTheSame) {
  for (const LayerCase& entry : layer_cases()) {
    Layer copy = entry.layer;
    testmode(copy);
    Layer original = entry.layer;
    testmode(original);
    const Array x = randn(entry.input), before = original(x);
    EXPECT_TRUE(all(original(x) == copy(x)).item<bool>()) << to_string(entry.layer);
    copy = fmap([](const Array& a) { return a + 1; }, copy);
    EXPECT_TRUE(all(original(x) == before).item<bool>()) << to_string(entry.layer);
  }
}

TEST(Layers, SayTheirSizesBeforehand) {
  for (const LayerCase& entry : layer_cases()) {
    EXPECT_EQ(outputsize(entry.layer, entry.input), entry.layer(randn(entry.input)).shape()) << to_string(entry.layer);
  }
}

TEST(Layers, ComputeInHalfTypes) {
  seed(3);
  for (const LayerCase& entry : layer_cases()) {
    const Array x = uniform(entry.input, -1, 1), want = entry.layer(x);
    for (const DType type : {Float16, BFloat16}) {
      const Layer half = type == Float16 ? f16(entry.layer) : bf16(entry.layer);
      const Array got = half(cast(x, type));
      EXPECT_EQ(got.dtype(), type) << to_string(entry.layer);
      const CloseOptions bounds{.rtol = 0.05, .atol = type == Float16 ? 0.01 : 0.06};
      EXPECT_TRUE(allclose(cast(got, Float32), want, bounds)) << to_string(entry.layer) << to_string(type);
    }
  }
}

TEST(Layers, ComeBackFromFiles) {
  const std::string path = testing::TempDir() + "rosin_every_layer.safetensors";
  for (const LayerCase& entry : layer_cases()) {
    if (entry.trained == 0) continue;
    const Array x = randn(entry.input), want = entry.layer(x);
    for (const bool torch_names : {false, true}) {
      Layer other = fmap([](const Array& a) { return a + 1; }, entry.layer);
      if (torch_names) save(path, entry.layer, {.names = torch}), load(path, other, {.names = torch});
      else save(path, entry.layer), load(path, other);
      EXPECT_TRUE(all(other(x) == want).item<bool>()) << to_string(entry.layer) << torch_names;
    }
  }
}

TEST(Layers, ParametersAreEvaluatedWhenMade) {
  for (const LayerCase& entry : layer_cases()) {
    for (const Array& x : fleaves(entry.layer)) EXPECT_TRUE(x.node()->ready()) << to_string(entry.layer);
  }
}

TEST(Layers, FloatInputOfAnotherTypeIsConvertedWithOneWarning) {
  static std::vector<std::string> said;
  set_log_sink([](const LogMessage& message, void*) { said.emplace_back(message.text); });
  forget_said();
  said.clear();
  const Dense layer(4, 2);
  EXPECT_EQ(layer(rand<double>({4, 3})).dtype(), Float32);
  EXPECT_EQ(layer(rand<double>({4, 3})).dtype(), Float32);
  EXPECT_EQ(layer(ones({4, 3}, Int32)).dtype(), Float32);
  set_log_sink(nullptr);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0],
            "layer Dense(4 => 2) with Float32 parameters got Float64 input; it is converted, but earlier layers may be "
            "slow; convert the data once with cast(x, Float32)");
}

TEST(Layers, OtherFloatTypesAreAnErrorWhereThatIsWanted) {
  const Dense layer(4, 2);
  set_strict();
  std::string text;
  try {
    layer(rand<double>({4, 3}));
  } catch (const Error& error) {
    text = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::dtype);
  }
  EXPECT_EQ(layer(ones({4, 3}, Int32)).dtype(), Float32);
  set_strict(false);
  EXPECT_EQ(
      text,
      "layer Dense(4 => 2) with Float32 parameters got Float64 input; convert the data once with cast(x, Float32)");
}

// Bags with weights, padding and ends are PyTorch's in tests/opinfo.
TEST(Layers, BagsWithoutTheirPaddingAreThoseOfTheRest) {
  const Array data({2, 0, 1, 1, 3, 0}, {6}), starts({0, 2, 5}, {3});
  for (const Reduction reduction : {Reduction(sum), Reduction(mean), Reduction(maximum)}) {
    EmbeddingBag layer(4, 3, reduction, {.padding_idx = 0});
    EXPECT_EQ(select(layer.weight, 1, 0).to_vector(), (std::vector<float>{0, 0, 0}));
    const Array got = layer(data, starts);
    EmbeddingBag plain(layer.weight, reduction);
    EXPECT_TRUE(allclose(slice(got, 1, 0, 2), plain(Array({2, 1, 1, 3}, {4}), Array({0, 1}, {2}))));
    EXPECT_EQ(select(got, 1, 2).to_vector(), (std::vector<float>{0, 0, 0}));
    EXPECT_TRUE(allclose(layer(reshape(data, {2, 3})), layer(data, Array({0, 2, 4}, {3}))));
    const auto gradients = gradient([&](const EmbeddingBag& l) { return sum(sin(l(data, starts))); }, layer);
    EXPECT_EQ(select(gradients.weight, 1, 0).to_vector(), (std::vector<float>{0, 0, 0}));
    const Device device = some_device();
    EXPECT_TRUE(allclose(cpu((layer | device)(data | device, starts | device)), got));
    EXPECT_TRUE(allclose(layer(data, Array({0, 2, 5, 6}, {4}), {.last_offset = true}), got));
  }
  EXPECT_THROW(EmbeddingBag(4, 3, mean, {.padding_idx = 4}), Error);
}

TEST(Layers, BagsTakeWeightsWhereTheyAreSums) {
  const EmbeddingBag layer(uniform({3, 4}, -1, 1, Float64), sum);
  const Array data({2, 0, 1, 1}, {2, 2}), weights({0.5, 2.0, 1.0, -1.0}, {2, 2});
  const Array got = layer(data, {.weights = weights});
  const Array first = row(transpose(layer.weight), 2) * 0.5 + row(transpose(layer.weight), 0) * 2.0;
  EXPECT_TRUE(allclose(select(got, 1, 0), first));
  EXPECT_TRUE(allclose(layer(reshape(data, {4}), Array({0, 2}, {2}), {.weights = reshape(weights, {4})}), got));
  EXPECT_THROW(EmbeddingBag(4, 3)(data, {.weights = weights}), Error);
  EXPECT_THROW(layer(data, {.weights = slice(weights, 0, 0, 1)}), Error);
  layer_testing::check_function_gradient([&](const Array& w) { return layer(data, {.weights = w}); }, weights,
                                         "weights");
}

}  // namespace
}  // namespace rosin
