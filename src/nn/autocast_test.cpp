// Autocast scopes: values and gradients against PyTorch's (tests/oracles/autocast.txt), types by family, nesting.
#include <rosin/autocast.hpp>

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>

#include <rosin/activation.hpp>
#include <rosin/attention.hpp>
#include <rosin/chain.hpp>
#include <rosin/compose.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/einsum.hpp>
#include <rosin/embedding.hpp>
#include <rosin/gradient_rules.hpp>
#include <rosin/label_loss.hpp>
#include <rosin/log.hpp>
#include <rosin/loss.hpp>
#include <rosin/matmul.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/pool.hpp>
#include <rosin/random.hpp>
#include <rosin/recurrent.hpp>

#include "../tests/error_testing.hpp"
#include "../tests/op_oracles.hpp"
#include "graph/node.hpp"

namespace rosin {
namespace {

using oracles::OracleCase;
using Inputs = std::vector<Array>;

/// The scores and their loss.
Inputs with_loss(const Array& scores, const Array& labels) { return {scores, labelcrossentropy(scores, labels)}; }

Inputs mlp(const OracleCase& entry, const Inputs& in) {
  const auto scope = autocast(oracles::dtype_named(entry.dtype));
  return with_loss(Dense(in[3], in[4])(Dense(in[1], in[2], relu)(in[0])), in[5]);
}

Inputs convnet(const OracleCase& entry, const Inputs& in) {
  const auto scope = autocast(oracles::dtype_named(entry.dtype));
  BatchNorm norm(4, {.track_stats = false});
  norm.scale = in[3];
  norm.bias = in[4];
  norm.mode = LayerMode::train;
  const Array images = norm(CrossCor(in[1], in[2], relu, {.pad = 1})(in[0]));
  return with_loss(Dense(in[5], in[6])(flatten(maxpool(images, 2))), in[7]);
}

Inputs block(const OracleCase& entry, const Inputs& in) {
  const auto scope = autocast(oracles::dtype_named(entry.dtype));
  LayerNorm norm(8);
  norm.scale = in[1];
  norm.bias = in[2];
  const Array y = norm(in[0]);
  const auto projected = [&](size_t i) { return Dense(in[i], false)(y); };
  const Array z = in[0] + dot_product_attention(projected(3), projected(4), projected(5), {.heads = 2}).out;
  return {z + Dense(in[6], in[7], relu)(z)};
}

TEST(Autocast, GivesWhatPyTorchsGives) {
  const auto scope = autocast(BFloat16);  // the outputs of a case are of two types
  oracles::run_oracles("autocast.txt", {{"mlp", mlp}, {"convnet", convnet}, {"block", block}});
}

TEST(Autocast, ChoosesTypesByFamily) {
  const Array x = rand({4, 4}) + 0.5, b = cast(x, BFloat16), labels = ones({4}, Int32);
  const auto scope = autocast(BFloat16);
  EXPECT_EQ(autocast_type(), BFloat16);
  const std::map<std::string, Array> half = {{"matmul", matmul(x, x)},
                                             {"matmul of two types", matmul(x, b)},
                                             {"vector", matmul(x, select(x, 1, 0))},
                                             {"einsum", einsum("ij,jk->ik", {x, x})},
                                             {"einsum without matrices", einsum("ij,ij->j", {x, x})},
                                             {"conv", conv(reshape(x, {4, 4, 1, 1}), reshape(x, {2, 2, 1, 4}))},
                                             {"Dense", Dense(4, 2, tanh)(x)},
                                             {"attention", dot_product_attention(x, x, x).out},
                                             {"relu", relu(b)},
                                             {"product", b * b},
                                             {"BatchNorm", BatchNorm(4)(b)}};
  for (const auto& [name, y] : half) EXPECT_EQ(y.dtype(), BFloat16) << name;
  const std::map<std::string, Array> wide = {{"softmax", softmax(b)},
                                             {"logsoftmax", logsoftmax(b)},
                                             {"sum", sum(b)},
                                             {"mean", mean(b, 0)},
                                             {"var", var(b)},
                                             {"norm", norm(b)},
                                             {"cumsum", cumsum(b, 0)},
                                             {"logsumexp", logsumexp(b)},
                                             {"exp", exp(b)},
                                             {"pow", pow(b, 2)},
                                             {"mse", mse(b, b)},
                                             {"labelcrossentropy", labelcrossentropy(b, labels)},
                                             {"LayerNorm", LayerNorm(4)(b)},
                                             {"RMSNorm", RMSNorm(4)(b)},
                                             {"GroupNorm", GroupNorm(4, 2)(b)},
                                             {"sum of two types", x + b},
                                             {"where", where(x > 1, x, b)},
                                             {"concat", concat({x, b}, 0)},
                                             {"two halves", b + cast(x, Float16)},
                                             {"Embedding", Embedding(5, 4)(labels)}};
  for (const auto& [name, y] : wide) EXPECT_EQ(y.dtype(), Float32) << name;
  EXPECT_EQ(matmul(cast(x, Float64), cast(x, Float64)).dtype(), Float64);
  EXPECT_EQ(matmul(cast(x, Int32), cast(x, Int32)).dtype(), Int64);
  EXPECT_EQ((cast(x, Float64) + b).dtype(), Float64);
}

TEST(Autocast, TakesRecurrentLayers) {
  const Array x = rand({3, 4, 2});
  for (const Layer& layer : {Layer(RNN(3, 5)), Layer(LSTM(3, 5)), Layer(GRU(3, 5)), Layer(GRUv3(3, 5))}) {
    const Array exact = layer(x), y = with(autocast(BFloat16), [&] { return layer(x); });
    EXPECT_LT(maximum(abs(cast(y, Float32) - exact)).item(), 0.05);
  }
}

TEST(Autocast, MixedOperandsAreComputedInTheWiderType) {
  const Array x = Array({1.0f, 2.0f}, {2}) / 3, b = cast(x, BFloat16);
  const auto scope = autocast(BFloat16);
  EXPECT_EQ((x - b).to_vector<float>(), (x - cast(b, Float32)).to_vector<float>());
  const auto [dx, db] = gradient([](const Array& p, const Array& q) { return sum(p * q); }, x, b);
  EXPECT_EQ(dx.dtype(), Float32);
  EXPECT_EQ(db.dtype(), BFloat16);
  EXPECT_EQ(dx.to_vector<float>(), cast(b, Float32).to_vector<float>());
}

TEST(Autocast, ScopesNestAndBelongToTheThread) {
  const Array x = ones({2, 2});
  const auto type = [&] { return matmul(x, x).dtype(); };
  {
    const auto outer = autocast(BFloat16);
    EXPECT_EQ(with(autocast(Float16), type), Float16);
    EXPECT_EQ(with(autocast(nothing), type), Float32);
    EXPECT_EQ(type(), BFloat16);
    std::thread([&] { EXPECT_EQ(type(), Float32); }).join();
    EXPECT_THROW(with(autocast(Float16), []() -> int { throw Error(ErrorKind::argument, "x"); }), Error);
    EXPECT_EQ(autocast_type(), BFloat16);
  }
  EXPECT_EQ(type(), Float32);
  EXPECT_EQ(error_of([] { with(autocast(Float32), [] {}); }),
            "autocast: the type is BFloat16 or Float16; got Float32; for none write autocast(nothing)");
}

TEST(Autocast, GradientsHaveTheTypesOfTheirParameters) {
  seed(3);  // of weights drawn otherwise each time, one model in a hundred is off by more
  const Chain model(Dense(4, 8, gelu), LayerNorm(8), Dense(8, 2));
  const Array x = rand({4, 3});
  const auto loss = [&](const Chain& m) { return mean(square(m(x))); };
  const auto in = gradient([&](const Chain& m) { return with(autocast(BFloat16), [&] { return loss(m); }); }, model);
  const auto around = with(autocast(BFloat16), [&] { return gradient(loss, model); });
  const auto exact = gradient(loss, model);
  const auto a = fleaves(in), b = fleaves(around), c = fleaves(exact);
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].dtype(), Float32);
    EXPECT_EQ(a[i].to_vector<float>(), b[i].to_vector<float>());
    EXPECT_LT(norm(a[i] - c[i]).item(), 0.03 * norm(c[i]).item() + 1e-3);
  }
}

TEST(Autocast, ConvertsAParameterOnceInAGradientCall) {
  const Array w = rand({3, 3}), x = rand({3, 2});
  const auto scope = autocast(BFloat16);
  Array first, second;
  const auto twice = [&](const Array& p) {
    first = matmul(p, x);
    second = matmul(p, first);
    return sum(second);
  };
  const Array g = gradient(twice, w);
  EXPECT_EQ(first.node()->in[0], second.node()->in[0]);
  EXPECT_EQ(g.dtype(), Float32);
  EXPECT_NE(matmul(w, x).node()->in[0], matmul(w, x).node()->in[0]);
  EXPECT_THROW(
      gradient([&](const Array& p) -> Array { throw Error(ErrorKind::numeric, to_string(matmul(p, x).shape())); }, w),
      Error);
  EXPECT_EQ(gradient(twice, w).to_vector<float>(), g.to_vector<float>());
}

TEST(Autocast, HoldsInCheckpointedPartsAndSecondGradients) {
  const Array w = rand({3, 3}), x = rand({3, 2});
  const auto scope = autocast(BFloat16);
  const auto layer = [&](const Array& p) { return tanh(matmul(p, x)); };
  const Array plain = gradient([&](const Array& p) { return sum(layer(p)); }, w);
  const Array again = gradient([&](const Array& p) { return sum(checkpoint(layer)(p)); }, w);
  EXPECT_EQ(plain.to_vector<float>(), again.to_vector<float>());
  const auto slope = [&](const Array& p) {
    return sum(square(gradient([&](const Array& q) { return sum(layer(q)); }, p)));
  };
  const Array second = gradient(slope, w);
  const Array exact = with(autocast(nothing), [&] { return gradient(slope, w); });
  EXPECT_LT(norm(second - exact).item(), 0.05 * norm(exact).item());
}

TEST(Autocast, LayersTakeBothTypesWithoutAWarning) {
  int said = 0;
  set_log_sink([](const LogMessage&, void* count) { ++*static_cast<int*>(count); }, &said);
  const Chain model(Dense(4, 4), Dense(4, 4), BatchNorm(4), Dense(4, 2));
  with(autocast(Float16), [&] { return model(rand({4, 2})); });
  set_log_sink(nullptr);
  EXPECT_EQ(said, 0);
}

}  // namespace
}  // namespace rosin
