// Constants go where they are used: models that make zeros, masks, positions and noise on the way run on any device
// with no change but the move of model and data; and functions that make arrays take a device. Read first:
// test_device.hpp.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/approx.hpp>
#include <rosin/attention.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/embedding.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/loss.hpp>
#include <rosin/matmul.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/onehot.hpp>
#include <rosin/optim.hpp>
#include <rosin/random.hpp>
#include <rosin/recurrent.hpp>
#include <rosin/reduce.hpp>
#include <rosin/transformer.hpp>

#include "error_testing.hpp"
#include "test_device.hpp"

namespace rosin {
namespace {

// --- Three models as one writes them for the CPU.

/// A block of attention over (features, time), with a causal mask and positions made on the way.
struct TinyGpt {
  static constexpr int64_t width = 8, time = 6, words = 11;
  Embedding tokens{words, width}, positions{time, width};
  Dense query{width, width}, key{width, width}, value{width, width}, out{width, words};
  LayerNorm norm{width};

  Array operator()(const Array& ids) const {
    const Array x = tokens(ids) + positions(arange(time));
    const Array h = norm(x);
    const Array scores = matmul(transpose(key(h)), query(h)) / std::sqrt(double(width));  // (time of key, of query)
    const Array mask = triu(ones({time, time}));
    const Array weights = softmax(where(mask > 0, scores, full({time, time}, -1e9f)));
    return out(x + matmul(value(h), weights));
  }
};

/// One layer of LSTM cells over the columns of x (features, time), from a state of zeros.
struct TinyLstm {
  static constexpr int64_t in = 3, size = 5;
  Dense gates{in + size, 4 * size};
  Dense out{size, 2};

  Array operator()(const Array& x) const {
    Array h = zeros({size}), c = zeros({size});
    for (int64_t t = 0; t < x.size(1); ++t) {
      const Array all = gates(concat({select(x, 1, t), h}, 0));
      const auto gate = [&](int64_t i) { return slice(all, 0, i * size, (i + 1) * size); };
      c = sigmoid(gate(0)) * c + sigmoid(gate(1)) * tanh(gate(2));
      h = sigmoid(gate(3)) * tanh(c);
    }
    return out(h);
  }
};

/// A variational autoencoder with its noise drawn on the way.
struct TinyVae {
  Dense encoder{6, 8, tanh}, mean{8, 2}, deviation{8, 2}, decoder{2, 6};

  Array operator()(const Array& x) const {
    const Array h = encoder(x), mu = mean(h), log_sigma = deviation(h);
    const Array z = mu + exp(log_sigma) * randn(mu.shape());
    const Array divergence = 0.5 * sum(exp(2 * log_sigma) + pow(mu, 2) - 1 - 2 * log_sigma);
    return sum(pow(decoder(z) - x, 2)) + divergence;
  }
};

/// The library's own layers over sequences; some sequences end before the others.
struct TinyReader {
  LSTM first{3, 8};
  Bidirectional<GRU> second{GRU(8, 4), GRU(8, 4)};
  TransformerEncoderLayer block{8, 2, 16, {.dropout = 0, .norm_first = true}};
  RMSNorm norm{8};

  Array operator()(const Array& x) const {
    const Array h = second(first(x, {.lengths = Array({5, 2}, {2})}));
    return norm(block(rotary_embedding(h, {.heads = 2}), {.bias = alibi_bias(2, 5, 5), .causal = true}));
  }
};

/// Losses of three steps of Adam on a device.
template <class Model, class Loss> std::vector<double> losses(const Device& device, const Array& data, Loss loss_of) {
  seed(11);
  Model model = Model{} | device;
  State state = setup(Adam{.eta = 1e-2}, model);
  const Array x = data | device;
  std::vector<double> values;
  for (int i = 0; i < 3; ++i) {
    const auto [loss, g] = withgradient([&](const Model& m) { return loss_of(m, x); }, model);
    update(state, model, g);
    values.push_back(loss.item());
  }
  return values;
}

template <class Model, class Loss> void expect_the_losses_of_the_cpu(const Array& data, Loss loss_of) {
  const auto here = losses<Model>(Device(), data, loss_of), there = losses<Model>(some_device(), data, loss_of);
  EXPECT_LT(here.back(), here.front());
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 2e-5 * std::abs(here[i])) << "step " << i;
}

TEST(ConstantsDeviceSteps, AGptWrittenForTheCpuTrainsAnywhere) {
  const Array text({3, 1, 4, 1, 5, 9}, {6});
  expect_the_losses_of_the_cpu<TinyGpt>(text, [](const TinyGpt& m, const Array& ids) {
    return logitcrossentropy(m(ids), cast(onehot(ids, TinyGpt::words), Float32));
  });
}

TEST(ConstantsDeviceSteps, AnLstmWrittenForTheCpuTrainsAnywhere) {
  const Array x = reshape(sin(arange(0.0, 12.0, 1.0)), {3, 4});
  eval(x);
  expect_the_losses_of_the_cpu<TinyLstm>(x, [](const TinyLstm& m, const Array& input) {
    return mse(m(input), Array({0.5f, -0.5f}, {2}));
  });
}

TEST(ConstantsDeviceSteps, LayersOverSequencesTrainAnywhere) {
  const Array x = reshape(sin(arange(0.0, 30.0, 1.0)), {3, 5, 2});
  eval(x);
  expect_the_losses_of_the_cpu<TinyReader>(x, [](const TinyReader& m, const Array& input) {
    return mse(m(input), ones({8, 5, 2}));
  });
}

TEST(ConstantsDeviceSteps, ACacheOfKeysStandsWhereTheModelDoes) {
  const MultiHeadAttention here(8, {.nheads = 2});
  const MultiHeadAttention there = here | some_device();
  const Array x = randn({8, 4, 1});
  KeyValueCache cache = here.cache(6, 1), moved = there.cache(6, 1);
  eval();
  for (int64_t t = 0; t < 4; ++t) {
    const Array in = slice(x, 1, t, t + 1);
    EXPECT_TRUE(allclose(there.next(in | some_device(), moved) | Device(), here.next(in, cache), {.atol = 1e-5}));
  }
  EXPECT_EQ(moved.keys.device(), some_device());
}

TEST(ConstantsDeviceSteps, AnAutoencoderWrittenForTheCpuTrainsAnywhere) {
  const Array x = reshape(cos(arange(0.0, 24.0, 1.0)), {6, 4});
  eval(x);
  expect_the_losses_of_the_cpu<TinyVae>(x, [](const TinyVae& m, const Array& input) { return m(input); });
}

// --- What follows, and what does not.

TEST(ConstantsDeviceSteps, NumbersRangesDrawsAndValuesInBracesFollow) {
  const Array x = (ones({3, 3}) * 2) | some_device();
  const std::vector<Array> sums = {x + zeros({3, 1}),
                                   arange(3) + x,
                                   x * Array({1.0f, 2.0f, 3.0f}, {3}),
                                   matmul(eye(3), x),
                                   matmul(x, linspace(0, 1, 3)),
                                   where(tril(ones({3, 3})) > 0, x, 0),
                                   concat({full({1, 3}, 7), x}, 0),
                                   gather(x, Array({2, 0}, {2}), 1)};
  for (const Array& y : sums) EXPECT_EQ(y.device(), some_device());
  EXPECT_EQ((sums[1] | cpu_device()).to_vector(), (std::vector<float>{2, 3, 4, 2, 3, 4, 2, 3, 4}));
  EXPECT_EQ((sums[2] | cpu_device()).to_vector(), (std::vector<float>{2, 4, 6, 2, 4, 6, 2, 4, 6}));
  EXPECT_EQ((sums[5] | cpu_device()).to_vector(), (std::vector<float>{2, 2, 2, 0, 2, 2, 0, 0, 2}));
}

TEST(ConstantsDeviceSteps, WhatIsComputedInFloat64OnTheWayFollows) {
  const Array x = (ones({3}) * 2) | some_device();
  const std::vector<Array> sums = {x + cast(arange(0.0, 3.0, 1.0, Float64) * 0.5, Float32), x + linspace(0, 1, 3),
                                   x + cast(linspace(0, 1, 3, Float16), Float32)};
  for (const Array& y : sums) EXPECT_EQ(y.device(), some_device());
  EXPECT_EQ((sums[0] | cpu_device()).to_vector(), (std::vector<float>{2, 2.5f, 3}));
  for (size_t i : {1, 2}) EXPECT_EQ((sums[i] | cpu_device()).to_vector(), (std::vector<float>{2, 2.5f, 3}));
}

TEST(ConstantsDeviceSteps, AConstantThatIsHeldKeepsItsOwnValueAndDrawsTheSameNumbers) {
  const Array x = zeros({4}, some_device());
  const Array noise = randn({4});
  const Array there = x + noise;
  EXPECT_EQ(noise.device(), cpu_device());
  EXPECT_TRUE(allclose(there | cpu_device(), noise, {.rtol = 1e-6, .atol = 1e-6}));
}

TEST(ConstantsDeviceSteps, OneConstantMayBeSharedByWhatIsComputedFromIt) {
  const Array x = ones({2}, some_device()), base = ones({2});
  const Array twice = base + base, other = base * 3;
  EXPECT_EQ(((x + twice + other) | cpu_device()).to_vector(), (std::vector<float>{6, 6}));
  EXPECT_EQ(base.to_vector(), (std::vector<float>{1, 1}));
}

TEST(ConstantsDeviceSteps, DataAndParametersDoNotFollow) {
  const Array x = ones({2}, some_device());
  const Array data(std::vector<float>{1, 2}, {2}), used = ones({2});
  eval(used);
  for (const Array& stays : {data, used, data * 2, data + ones({2})}) {
    EXPECT_NE(error_of([&] { x + stays; }, ErrorKind::device).find("; move one with x | device"), std::string::npos);
  }
  const Dense layer(2, 2);
  error_of([&] { layer(x); }, ErrorKind::device);
}

TEST(ConstantsDeviceSteps, WhatAGradientIsAskedForDoesNotFollow) {
  const Array x = ones({2}, some_device());
  error_of([&] { gradient([&](const Array& w) { return sum(w * x); }, ones({2})); }, ErrorKind::device);
}

// --- Functions that make arrays take a device.

TEST(ConstantsDeviceSteps, EveryFunctionThatMakesArraysTakesADevice) {
  const Device d = some_device();
  const ArrayOptions half(Float16, d);
  Rng rng(3);
  const std::vector<Array> made = {zeros({2}, d),
                                   ones({2}, half),
                                   full({2}, 5, d),
                                   arange(4, d),
                                   arange(1, 4, 1, {Int64, d}),
                                   arange(0.0, 1.0, 0.25, d),
                                   linspace(0, 1, 3, d),
                                   eye(2, d),
                                   eye(2, 3, half),
                                   rand({2}, d),
                                   rand(rng, {2}, d),
                                   randn({2}, half),
                                   randn(rng, {2}, d),
                                   uniform({2}, 1, 2, d),
                                   normal({2}, 1, 2, d),
                                   bernoulli(0.5, {2}, {Float32, d}),
                                   randint(0, 5, {2}, d),
                                   permutation(5, d)};
  for (const Array& x : made) EXPECT_EQ(x.device(), d);
  EXPECT_EQ(made[1].dtype(), Float16);
  EXPECT_EQ(made[4].dtype(), Int64);
  EXPECT_EQ(made[15].dtype(), Float32);
  EXPECT_EQ((made[2] | cpu_device()).to_vector<int>(), (std::vector<int>{5, 5}));
  EXPECT_EQ((made[4] | cpu_device()).to_vector<int>(), (std::vector<int>{1, 2, 3}));
}

TEST(ConstantsDeviceSteps, DrawsOnADeviceAreThoseOfTheCpu) {
  seed(4);
  const Array here = rand({50});
  seed(4);
  const Array there = rand({50}, some_device());
  EXPECT_EQ((there | cpu_device()).to_vector(), here.to_vector());
}

}  // namespace
}  // namespace rosin
