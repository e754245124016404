// Chain, Layer and Activation: building, indexing, walking, printing.
#include <rosin/chain.hpp>

#include <gtest/gtest.h>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/dense.hpp>
#include <rosin/matmul.hpp>
#include <rosin/pool_layers.hpp>

#include "../tests/layer_testing.hpp"
#include "graph/op.hpp"

namespace rosin {
namespace {

TEST(Chain, PrintsAsFluxDoes) {
  EXPECT_EQ(to_string(Chain(Dense(1, 256, tanh), Dense(256, 1))),
            "Chain(\n"
            "  Dense(1 => 256, tanh),                # 512 parameters\n"
            "  Dense(256 => 1),                      # 257 parameters\n"
            ")                   # Total: 4 arrays, 769 parameters, 3.004 KiB.");
  EXPECT_EQ(to_string(Dense(10, 5)), "Dense(10 => 5)      # 55 parameters");
  EXPECT_EQ(to_string(Dense(2, 3)), "Dense(2 => 3)       # 9 parameters");
  EXPECT_EQ(to_string(Chain(Dense(10, 5, sigmoid), Dense(5, 2), softmax)),
            "Chain(\n"
            "  Dense(10 => 5, σ),                    # 55 parameters\n"
            "  Dense(5 => 2),                        # 12 parameters\n"
            "  softmax,\n"
            ")                   # Total: 4 arrays, 67 parameters, 268 bytes.");
}

TEST(Chain, PrintsNamesAndLambdas) {
  EXPECT_EQ(to_string(Chain({{"enc", Dense(4, 3)}, {"dec", [](const Array& x) { return x; }}})),
            "Chain(\n"
            "  enc = Dense(4 => 3),                  # 15 parameters\n"
            "  dec = lambda,\n"
            ")");
}

TEST(Chain, AppliesLayersInOrder) {
  const Array w({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2});
  const Chain chain(Dense(w, false, relu), [](const Array& x) { return x * 10; });
  layer_testing::expect_near(chain(Array({1.0f, -1.0f}, {2})), {0, 0}, 0);
  layer_testing::expect_near(chain(Array({1.0f, 1.0f}, {2})), {40, 60}, 0);
  const Array x = rand({3});
  EXPECT_TRUE(same(Chain()(x), x));
}

TEST(Chain, TakesListsVectorsAndSixteenLayers) {
  EXPECT_EQ(Chain({Dense(2, 3), Dense(3, 4)}).size(), 2);
  EXPECT_EQ(Chain(std::vector<Layer>(40, relu)).size(), 40);
  EXPECT_EQ(
      Chain(relu, relu, relu, relu, relu, relu, relu, relu, relu, relu, relu, relu, relu, relu, relu, tanh).size(), 16);
  const Chain one(Dense(2, 3));
  const Chain copy(one);
  EXPECT_EQ(copy.size(), 1);
  EXPECT_EQ(Chain(one, relu).size(), 2);
}

TEST(Chain, IndexesSlicesAndNames) {
  Chain chain({{"a", Dense(2, 3)}, {"b", Dense(3, 4)}, {"c", relu}});
  EXPECT_EQ(chain[-2].get_if<Dense>()->weight.shape(), (Shape{4, 3}));
  EXPECT_EQ(chain["a"].get_if<Dense>()->weight.shape(), (Shape{3, 2}));
  EXPECT_EQ(chain["c"].get_if<Dense>(), nullptr);
  const Chain last = chain.slice(1, 3);
  EXPECT_EQ(last.size(), 2);
  EXPECT_EQ(last.name(0), "b");
  EXPECT_EQ(chain.slice(0, -1).size(), 2);
  EXPECT_EQ(
      error_of([&] { chain[3]; }),
      "Chain: an index must be below the number of layers; got 3 for 3 layers; count from 0, or from the end with -1");
  EXPECT_EQ(error_of([&] { chain["d"]; }), "Chain: no layer has that name; got \"d\"; the names are a, b, c");
  EXPECT_EQ(
      error_of([] {
        Chain({{"layers", relu}});
      }),
      "Chain: names of layers must be different, not empty and not \"layers\"; got \"layers\"; choose another name");
}

TEST(Chain, PathsNameLayersByIndexOrName) {
  std::vector<std::string> names;
  for (const NamedArray& array : state(Chain(Dense(2, 2), Chain({{"in", Dense(2, 2, {.bias = false})}})))) {
    names.push_back(array.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.1.layers.in.weight"}));
}

TEST(Chain, ActivationsGiveWhatEachLayerGives) {
  const Chain chain(Dense(2, 3, tanh), Dense(3, 1));
  const Array x = rand({2, 4});
  const Arrays all_values = activations(chain, x);
  ASSERT_EQ(all_values.size(), 2u);
  EXPECT_EQ(all_values[0].shape(), (Shape{3, 4}));
  EXPECT_TRUE(all(all_values[1] == chain(x)).item<bool>());
}

TEST(Chain, SeveralArraysGoThroughLayersThatTakeThem) {
  const auto both = [](const Array& a, const Array& b) { return a - b; };
  const auto twice = [](std::span<const Array> in) { return Arrays{in[0], in[0] * 2}; };
  const Chain chain(twice, both);
  EXPECT_EQ(chain(Array(3.0)).item(), -3);
  const Array inputs[] = {Array(5.0), Array(3.0)};
  EXPECT_EQ(Chain(both)(std::span<const Array>(inputs))[0].item(), 2);
  EXPECT_EQ(error_of([&] { static_cast<void>(Chain{relu}(std::span<const Array>(inputs))); }),
            "layers[0]: FunctionLayer: a layer takes as many arrays as its call operator; got 2; use Parallel to split "
            "them, or another "
            "layer");
}

TEST(Activation, KnowsItsName) {
  EXPECT_EQ(Activation().name(), "identity");
  EXPECT_TRUE(Activation(identity).is_identity());
  EXPECT_EQ(Activation(relu).name(), "relu");
  EXPECT_EQ(Activation(leakyrelu).name(), "leakyrelu");
  EXPECT_EQ(Activation([](const Array& x) { return x; }).name(), "lambda");
  const double slope = 0.5;
  const Activation steep([slope](const Array& x) { return leakyrelu(x, slope); });
  const Activation copy = steep;
  EXPECT_EQ(copy(Array(-2.0)).item(), -1);
}

TEST(Activation, NamesAreThoseOfTheRecordedOps) {
  // Names of functions that are one op, but for those that Flux writes with a Greek letter.
  for (UnaryFunction function :
       {UnaryFunction{hardtanh}, UnaryFunction{relu}, UnaryFunction{relu6}, UnaryFunction{gelu},
        UnaryFunction{gelu_sigmoid}, UnaryFunction{gelu_erf}, UnaryFunction{swish}, UnaryFunction{hardswish},
        UnaryFunction{lisht}, UnaryFunction{softsign}, UnaryFunction{softplus}, UnaryFunction{logcosh},
        UnaryFunction{mish}, UnaryFunction{tanhshrink}, UnaryFunction{tanh}, UnaryFunction{exp}}) {
    const Array y = function(ones({2}));
    EXPECT_EQ(function_name(function), y.node()->op->name);
  }
}

TEST(Dense, ComputesTheExampleOfFlux) {
  const Dense layer(10, 2, {.init = ones32});
  const Array x = concat({ones({10, 1}), ones({10, 1}) * 2}, 1);
  layer_testing::expect_near(layer(x), {10, 10, 20, 20}, 0);
  EXPECT_EQ(layer(ones({10})).shape(), (Shape{2}));
  EXPECT_EQ(layer(ones({10, 3, 4})).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(layer(ones({10, 1, 2, 3})).shape(), (Shape{2, 1, 2, 3}));
}

TEST(Dense, SaysWhichSizeIsWrong) {
  EXPECT_EQ(
      error_of([] {
        Dense(10, 5)(ones({64, 10}));
      }),
      "layer Dense(10 => 5) expects size(input, 0) == 10, but got 64×10 Array{Float32}; arrays are (features, batch), "
      "with the features first: transpose(x) exchanges the two");
  EXPECT_EQ(
      error_of([] {
        Dense(784, 5)(ones({28, 28, 1, 3}));
      }),
      "layer Dense(784 => 5) expects size(input, 0) == 784, but got 28×28×1×3 Array{Float32}; arrays are (features, "
      "batch): flatten(x) makes them of images");
  EXPECT_EQ(error_of([] {
              Dense(ones({3, 2}), ones({4}));
            }),
            "Dense: expected bias of size (3); got size (4); give true, false or an array of that size");
}

TEST(Dense, BiasFollowsTheTypeOfTheWeight) {
  EXPECT_EQ(Dense(ones({2, 2}, Float64), true).bias.dtype(), Float64);
  EXPECT_EQ(Dense(ones({2, 2}, Float64), ones({2})).bias.dtype(), Float64);
  EXPECT_TRUE(Dense(ones({2, 2}), false).bias.is_nothing());
}

TEST(Dense, InitialisesDifferentLayersDifferently) {
  const std::vector<Dense> layers(3, Dense(4, 4));
  EXPECT_TRUE(all(layers[0].weight == layers[1].weight).item<bool>());
  EXPECT_FALSE(all(Dense(4, 4).weight == Dense(4, 4).weight).item<bool>());
}

TEST(Scale, ComputesTheExampleOfFlux) {
  const Scale layer(Array({1.0f, 2.0f, 3.0f, 4.0f}, {1, 4}), false, [](const Array& x) { return square(abs(x)); });
  layer_testing::expect_near(layer(Array({1.0f, 10.0f}, {2})), {1, 100, 4, 400, 9, 900, 16, 1600}, 0);
}

TEST(Bilinear, IsAProductOfBothInputs) {
  const Bilinear layer(3, 2, 4);
  const Array x = rand({3, 5}), y = rand({2, 5});
  const std::vector<double> got = layer_testing::values(layer(x, y));
  const std::vector<double> w = layer_testing::values(layer.weight), a = layer_testing::values(x),
                            b = layer_testing::values(y);
  for (size_t n = 0; n < 5; ++n) {
    for (size_t k = 0; k < 4; ++k) {
      double want = 0;
      for (size_t i = 0; i < 3; ++i) {
        for (size_t j = 0; j < 2; ++j) want += w[k + 4 * (i + 3 * j)] * a[i + 3 * n] * b[j + 2 * n];
      }
      EXPECT_NEAR(got[k + 4 * n], want, 1e-5);
    }
  }
  EXPECT_EQ(to_string(Bilinear(3, 2, 4)).substr(0, 21), "Bilinear((3, 2) => 4)");
}

}  // namespace
}  // namespace rosin
