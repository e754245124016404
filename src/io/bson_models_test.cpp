// Models of BSON files: real ones with the figures that their authors had, and our own there and back.
#include <gtest/gtest.h>

#include <cmath>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/combine_layers.hpp>
#include <rosin/compose.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/dropout.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/idx.hpp>
#include <rosin/io.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/pool_layers.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "io/real_files_testing.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;

std::string data_folder(const std::string& name) {
  const char* root = std::getenv("ROSIN_DATA");
  return (root ? std::string(root) : std::string(ROSIN_SOURCE_DIR) + "/../shared/data") + "/" + name;
}

#define SKIP_WITHOUT(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path << " (set ROSIN_FILES, ROSIN_DATA)"

/// Rows first ... last of Boston.csv: features (13, n) and prices (1, n).
std::pair<Array, Array> boston(int64_t first, int64_t last) {
  std::ifstream file(data_folder("housing/Boston.csv"));
  std::vector<double> features, prices;
  std::string line;
  std::getline(file, line);
  for (int64_t row = 1; std::getline(file, line); ++row) {
    if (row < first || row > last) continue;
    const auto cells = split_text(line, ',');
    for (size_t c = 1; c <= 13; ++c) features.push_back(std::stod(cells[c]));
    prices.push_back(std::stod(cells[14]));
  }
  const auto n = static_cast<int64_t>(prices.size());
  return {Array(features, {13, n}), Array(prices, {1, n})};
}

TEST(BsonModels, HousePredictionHasTheLossOfItsNotebook) {
  const std::string path = real_files("bson/houseprediction.bson");
  SKIP_WITHOUT(path);
  SKIP_WITHOUT(data_folder("housing/Boston.csv"));
  Dense model(13, 1);
  load(path, model);
  const Dense wide = f64(model);
  const auto loss = [&](int64_t first, int64_t last) {
    const auto [x, y] = boston(first, last);
    return mean(square(wide(x) - y)).item<double>();
  };
  EXPECT_NEAR(loss(1, 355) / 4.3577601021121094e14, 1, 1e-14);
  EXPECT_NEAR(loss(356, 506) / 7.499446651503031e14, 1, 1e-14);
}

TEST(BsonModels, HousePredictionIsAnEntryToo) {
  const std::string path = real_files("bson/houseprediction.bson");
  SKIP_WITHOUT(path);
  Dense model(13, 1), other(13, 1);
  load(path, model);
  load(path, {{"model", other}});
  EXPECT_EQ(other.weight.to_vector(), model.weight.to_vector());
  const SavedFile file = load(path);
  EXPECT_EQ(file["model.weight"].shape(), (Shape{1, 13}));
  EXPECT_EQ(file["model.weight"].to_vector(), model.weight.to_vector());
  loadmodel(other, file.part("model"));
}

TEST(BsonModels, TheAutoencoderReachesItsLossOnMnist) {
#ifndef ROSIN_HAVE_ZLIB
  GTEST_SKIP() << "the images are packed, and this rosin was built without zlib";
#endif
  const std::string path = real_files("bson/modelzoo_vae_mnist.bson");
  SKIP_WITHOUT(path);
  SKIP_WITHOUT(data_folder("mnist"));
  struct Encoder {
    Dense linear{784, 500, tanh}, mu{500, 2}, logsigma{500, 2};
  } encoder;
  Chain decoder(Dense(2, 500, tanh), Dense(500, 784));
  load(path, {{"encoder", encoder}, {"decoder", decoder}});
  const LabelledImages test = read_image_folder(data_folder("mnist")).test;
  const Array x = cast(Array(std::span<const uint8_t>(test.pixels), {784, test.count}), Float32) / 255;
  const Array hidden = encoder.linear(x), mu = encoder.mu(hidden), logsigma = encoder.logsigma(hidden);
  const Array logits = decoder(mu);
  const double n = static_cast<double>(test.count);
  const double bce = sum(softplus(logits) - x * logits).item<double>() / n;
  const double kl = sum(exp(2 * logsigma) + square(mu) - 1 - 2 * logsigma).item<double>() / 2 / n;
  EXPECT_NEAR(bce, 153.25, 0.005);
  EXPECT_NEAR(kl, 6.01, 0.005);
}

Chain down(int64_t in, int64_t out) {
  return Chain(MaxPool(2), Conv({3, 3}, in, out, {.pad = 1}), BatchNorm(out, relu), Conv({3, 3}, out, out, {.pad = 1}),
               BatchNorm(out, relu));
}

/// The layers of a U-Net of which the file says the types and sizes alone; fields in the order of its struct.
struct UNet {
  Chain first, second, third, up, last;
};

TEST(BsonModels, AUserStructIsFilledInTheOrderOfItsFields) {
  const std::string path = real_files("bson/vdl_diffusion_trained_model.bson");
  SKIP_WITHOUT(path);
  UNet model;
  const auto block = [](int64_t in, int64_t out) {
    return std::vector<Layer>{Conv({3, 3}, in, out, {.pad = 1}), BatchNorm(out, relu),
                              Conv({3, 3}, out, out, {.pad = 1}), BatchNorm(out, relu)};
  };
  model.first = Chain(block(129, 64));
  model.second = down(64, 128);
  model.third = Chain(block(128, 128));
  model.up = Chain(ConvTranspose({2, 2}, 128, 64, {.stride = 2}), Conv({3, 3}, 64, 64, {.pad = 1}), BatchNorm(64, relu),
                   Conv({3, 3}, 64, 64, {.pad = 1}), BatchNorm(64, relu));
  model.last = Chain(block(128, 64));
  load(path, model, {.strict = false});
  const auto rows = table_rows(real_files("bson/EXPECTED.tsv"));
  int compared = 0;
  const auto expect_sum = [&](const Array& x, const std::string& place) {
    for (const auto& row : rows) {
      if (row[0] != "vdl_diffusion_trained_model.bson" || row[1] != place) continue;
      EXPECT_NEAR(sum(cast(x, Float64)).item<double>(), std::stod(row[4]), 1e-9 * (1 + std::abs(std::stod(row[4]))));
      ++compared;
    }
  };
  expect_sum(model.first[0].get_if<Conv>()->weight, "model.1.1(1).2");
  expect_sum(model.first[1].get_if<BatchNorm>()->bias, "model.1.1(2).2");
  expect_sum(model.first[1].get_if<BatchNorm>()->scale, "model.1.1(2).3");
  expect_sum(model.first[1].get_if<BatchNorm>()->mean.value(), "model.1.1(2).4");
  expect_sum(model.first[1].get_if<BatchNorm>()->variance.value(), "model.1.1(2).5");
  expect_sum(model.up[0].get_if<ConvTranspose>()->weight, "model.4.1(1).2");
  expect_sum(model.last[3].get_if<BatchNorm>()->scale, "model.5.1(4).3");
  EXPECT_EQ(compared, 7);
}

TEST(BsonModels, TrackedParametersOfOldFilesAreTheirData) {
  const std::string path = real_files("bson/modelzoo_ppo_cartpole_policy_cat.bson");
  SKIP_WITHOUT(path);
  Chain policy(Dense(4, 30, relu), Dense(30, 2), softmax);
  load(path, policy);
  EXPECT_FLOAT_EQ(policy[0].get_if<Dense>()->weight.to_vector()[0], -0.0013756436528638005f);
  EXPECT_FLOAT_EQ(policy[1].get_if<Dense>()->bias.to_vector()[1], 0.026346130296587944f);
  EXPECT_EQ(load(path).arrays().size(), 4u);
}

// --- Our own files.

class BsonFiles : public ScratchFolder {};

Chain lenet() {
  return Chain(Conv({5, 5}, 1, 6, relu, {.stride = {2, 1}, .pad = {1, 2}}), MaxPool(2), BatchNorm(6, relu),
               Conv({3, 3}, 6, 8, {.bias = false}), flatten, Dropout(0.3), Dense(24, 5, tanh), LayerNorm(5), softmax);
}

TEST_F(BsonFiles, AModelComesBackBitForBit) {
  seed(3);
  const Chain model = lenet();
  save(path("m.bson"), model);
  Chain other = lenet();
  load(path("m.bson"), other);
  const auto values = [](const Chain& m) {
    std::vector<std::vector<float>> all;
    for (const NamedArray& entry : state(m)) {
      if (!entry.value.is_nothing()) all.push_back(entry.value.to_vector());
    }
    return all;
  };
  EXPECT_EQ(values(other), values(model));
  Chain named = lenet();
  save(path("n.bson"), {{"model", model}, {"step", 12345678901}});
  int64_t step = 0;
  load(path("n.bson"), {{"model", named}, {"step", step}});
  EXPECT_EQ(values(named), values(model));
  EXPECT_EQ(step, 12345678901);
  EXPECT_EQ(names_in_folder(), (std::vector<std::string>{"m.bson", "n.bson"}));
}

TEST_F(BsonFiles, AllElementTypesAndKindsOfEntriesComeBack) {
  std::vector<NamedArray> arrays;
  for (DType type : {Bool, UInt8, Int8, Int16, UInt16, Int32, UInt32, Int64, UInt64, Float16, BFloat16, Float32,
                     Float64, ComplexF32, ComplexF64}) {
    arrays.push_back({std::string("x.") + to_string(type), cast(cast(reshape(arange(6), {2, 3}), Float32) > 2, type)});
  }
  save(path("all.bson"), arrays);
  const SavedFile file = load(path("all.bson"));
  ASSERT_EQ(file.arrays().size(), arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    const Array& x = file.arrays()[i].value;
    EXPECT_EQ(file.arrays()[i].name, arrays[i].name);
    EXPECT_EQ(x.dtype(), arrays[i].value.dtype());
    EXPECT_EQ(x.shape(), (Shape{2, 3}));
    if (is_complex(x.dtype())) continue;
    EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{0, 0, 0, 1, 1, 1}));
  }
  std::vector<std::string> words{"the", "and"}, words_back;
  std::vector<int64_t> widths{64, 10}, widths_back;
  std::string text = "{\"p\": 0.2}", text_back;
  Rng rng(7), rng_back(1);
  double rate = 0.125, rate_back = 0;
  bool flag = true, flag_back = false;
  save(path("e.bson"),
       {{"words", words}, {"widths", widths}, {"text", text}, {"rng", rng}, {"rate", rate}, {"flag", flag}});
  load(path("e.bson"), {{"words", words_back},
                        {"widths", widths_back},
                        {"text", text_back},
                        {"rng", rng_back},
                        {"rate", rate_back},
                        {"flag", flag_back}});
  EXPECT_EQ(words_back, words);
  EXPECT_EQ(widths_back, widths);
  EXPECT_EQ(text_back, text);
  EXPECT_EQ(rate_back, rate);
  EXPECT_EQ(flag_back, flag);
  EXPECT_EQ(uniform(rng, {4}, 0, 1).to_vector(), uniform(rng_back, {4}, 0, 1).to_vector());
}

struct Tied {
  Array in = tied(randn({3, 2}));
  Array out = in;
};

TEST_F(BsonFiles, TiedArraysAreStoredOnceAndStayTied) {
  const Tied model;
  save(path("tied.bson"), model);
  const SavedFile file = load(path("tied.bson"));
  EXPECT_TRUE(same(file["model_state.in"], file["model_state.out"]));
  EXPECT_TRUE(is_tied(file["model_state.in"]));
  Tied other;
  load(path("tied.bson"), other);
  EXPECT_TRUE(same(other.in, other.out));
  EXPECT_EQ(other.in.to_vector(), model.in.to_vector());
}

TEST_F(BsonFiles, AnAbsentBiasSetsABiasToZero) {
  save(path("m.bson"), Dense(3, 2, {.bias = false}));
  Dense with(3, 2, {.bias = ones({2})}), without(3, 2, {.bias = false});
  load(path("m.bson"), with);
  load(path("m.bson"), without);
  EXPECT_EQ(with.bias.to_vector(), (std::vector<float>{0, 0}));
  EXPECT_TRUE(without.bias.is_nothing());
}

TEST_F(BsonFiles, NamesThatDoNotMatchAreErrors) {
  save(path("m.bson"), Chain(Dense(3, 2), Dense(2, 1)));
  Chain shorter(Dense(3, 2)), longer(Dense(3, 2), Dense(2, 1), Dense(1, 1));
  EXPECT_EQ(error_here([&] { load(path("m.bson"), shorter); }),
            "load: 'DIR/m.bson': every entry of the source must have its place; layers.1.bias is in the source only; "
            "load into what was saved (a state: of the same rule), or with {.strict = false}");
  EXPECT_TRUE(error_here([&] { load(path("m.bson"), longer); }).find("layers.2.weight is missing there") !=
              std::string::npos);
}

TEST_F(BsonFiles, OtherLayersKeepTheirPlaces) {
  seed(5);
  const auto make = [] {
    return Chain(SkipConnection(Dense(3, 3), add), Parallel(add, Chain(Dense(3, 2), Dense(3, 2))), Scale(2),
                 Chain({{"a", Dense(2, 2)}, {"b", Dense(2, 1)}}));
  };
  const Chain model = make();
  save(path("m.bson"), model);
  Chain other = make();
  load(path("m.bson"), other);
  const Array x = randn({3, 4});
  EXPECT_EQ(other(x).to_vector(), model(x).to_vector());
}

}  // namespace
}  // namespace rosin
