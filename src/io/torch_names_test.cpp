// Models under PyTorch's names. The numbers were computed by PyTorch 2 from the same weights.
#include <gtest/gtest.h>

#include <rosin/activation.hpp>
#include <rosin/approx.hpp>
#include <rosin/attention.hpp>
#include <rosin/chain.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/embedding.hpp>
#include <rosin/io.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/recurrent.hpp>
#include <rosin/transformer.hpp>

#include "io/real_files_testing.hpp"

#ifdef ROSIN_HAVE_JSON

namespace rosin {
namespace {

using namespace rosin::testing;

class TorchNames : public ScratchFolder {};

struct BurnNet {
  Conv conv1{{3, 3}, 3, 4, {.pad = 1}};
  BatchNorm norm1{4, relu};
  Dense fc1{256, 16};
  Array operator()(const Array& x) const { return fc1(flatten(norm1(conv1(x)))); }
};

TEST_F(TorchNames, ARealFileOfPyTorchLayersComputesTheSame) {
  const std::string file = real_files("safetensors/burn_multi_layer.safetensors");
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no " << file << " (set ROSIN_FILES)";
  BurnNet net;
  load(file, net, {.names = torch});
  const double expected[] = {0.049715586, -0.168497324, 0.0518284813,  -0.18032679,   0.231383651,  0.0504186675,
                             0.130059093, -0.322029293, -0.0791569054, -0.0323245674, -0.197902918, -0.174765289,
                             -0.19627589, -0.217576891, -0.313764393,  0.0837783739};
  const std::vector<float> y = net(ones({8, 8, 3, 1})).to_vector();
  for (size_t i = 0; i < 16; ++i) EXPECT_NEAR(y[i], expected[i], 1e-6) << i;
}

TEST_F(TorchNames, AFileWithThemSaysSoWhereItIsReadWithoutThem) {
  const std::string file = path("names.safetensors");
  save(file, Chain(Dense(2, 3), Dense(3, 1)), {.names = torch});
  Chain model(Dense(2, 3), Dense(3, 1)), other(Dense(2, 3));
  EXPECT_EQ(error_of([&] { load(file, model); }, ErrorKind::argument),
            "load: '" + file + "': its names are those that PyTorch uses; load it with {.names = torch}");
  struct Plain {
    Dense hidden{2, 3};
  } plain, smaller{{2, 2}};
  save(file, plain, {.names = torch});  // these names are the same in both
  EXPECT_NE(error_of([&] { load(file, smaller); }, ErrorKind::shape).find("sizes must match"), std::string::npos);
}

TEST_F(TorchNames, WhatWasSavedForPyTorchComesBack) {
  Chain saved(Conv({3, 3}, 1, 2), BatchNorm(2, relu), CrossCor({2, 3}, 2, 3), ConvTranspose({2, 2}, 3, 2));
  save(path("m.safetensors"), saved, {.names = torch});
  const SavedFile file = load(path("m.safetensors"));
  std::vector<std::string> names;
  for (const NamedArray& entry : file.arrays()) names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.bias", "0.weight", "1.bias", "1.running_mean", "1.running_var",
                                             "1.weight", "2.bias", "2.weight", "3.bias", "3.weight"}));
  EXPECT_EQ(file["2.weight"].shape(), (Shape{3, 2, 3, 2}));
  EXPECT_EQ(file["3.weight"].shape(), (Shape{3, 2, 2, 2}));
  Chain m(Conv({3, 3}, 1, 2), BatchNorm(2, relu), CrossCor({2, 3}, 2, 3), ConvTranspose({2, 2}, 3, 2));
  load(path("m.safetensors"), m, {.names = torch});
  const auto before = state(saved), after = state(m);
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].value.to_vector(), after[i].value.to_vector());
}

TEST_F(TorchNames, KernelsOfTransposedConvolutionsAreFlipped) {
  // torch.nn.ConvTranspose2d(2, 3, (2, 3), stride=2), weight = arange(36), input = arange(8) as (1, 2, 2, 2)
  struct Net {
    ConvTranspose up{{3, 2}, 2, 3, {.stride = 2, .bias = false}};
  } net;
  const Array weight = permute(reshape(arange(0.0, 36.0, 1.0), {3, 2, 3, 2}), {3, 2, 1, 0});
  save(path("m.safetensors"), {{"up.weight", weight}});
  load(path("m.safetensors"), net, {.names = torch});
  const std::vector<float> y = net.up(reshape(arange(0.0, 8.0, 1.0), {2, 2, 2, 1})).to_vector();
  const std::vector<float> first = {72,  76,  170, 96,  102, 84,  88,  200, 114,
                                    120, 108, 116, 250, 136, 146, 132, 140, 304};
  ASSERT_EQ(y.size(), 60u);
  EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 18), first);
  EXPECT_EQ(y.back(), 296);
}

TEST_F(TorchNames, EmbeddingsAreTransposed) {
  struct Net {
    Embedding words{3, 2};
  } net;
  const Array weight = permute(reshape(arange(0.0, 6.0, 1.0), {2, 3}), {1, 0});
  save(path("m.safetensors"), {{"words.weight", weight}});
  load(path("m.safetensors"), net, {.names = torch});
  EXPECT_EQ(net.words.weight.to_vector(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

/// sin(0), sin(1), ... / 2 in PyTorch's order of elements.
Array waves(const std::vector<int64_t>& sizes, double begin = 0) {
  std::vector<int64_t> back(sizes.rbegin(), sizes.rend());
  int64_t count = 1;
  std::vector<int> order;
  for (const int64_t size : sizes) count *= size, order.insert(order.begin(), static_cast<int>(order.size()));
  return permute(reshape(sin(begin + arange(0.0, static_cast<double>(count), 1.0)) / 2, back), order);
}

void expect_values(const Array& y, const std::vector<double>& want) {
  const std::vector<float> got = y.to_vector();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-6) << i;
}

/// What PyTorch saves of such a model, the i-th array being waves(its sizes, i).
using Sizes = std::vector<std::pair<std::string, std::vector<int64_t>>>;
std::vector<NamedArray> all_waves(const Sizes& sizes) {
  std::vector<NamedArray> entries;
  for (const auto& [name, size] : sizes) entries.push_back({name, waves(size, static_cast<double>(entries.size()))});
  return entries;
}

/// The model computes `want` when it has read the entries, and writes the same arrays; but for `but`.
template <class Model, class Call>
void expect_read(const std::string& file, const std::vector<NamedArray>& entries, Model model, const Call& call,
                 const std::vector<double>& want, std::string_view but = "no name") {
  save(file, entries);
  load(file, model, {.names = torch});
  expect_values(call(model), want);
  save(file, model, {.names = torch});
  const SavedFile written = load(file);
  EXPECT_EQ(written.arrays().size(), entries.size());
  for (const NamedArray& entry : entries) {
    if (entry.name.find(but) == std::string::npos) {
      EXPECT_TRUE(allclose(written[entry.name], entry.value)) << entry.name;
    }
  }
  Model again = model;
  load(file, again, {.names = torch});
  expect_values(call(again), want);
}

/// (features, steps, 1) of waves(steps, 1, features).
Array sequence(int64_t features, int64_t steps) { return permute(waves({steps, 1, features}), {2, 0, 1}); }

// torch.nn.LSTM(2, 2, bidirectional=True), RNN(2, 2) and GRU(2, 2) of waves(3, 1, 2)
TEST_F(TorchNames, RecurrentLayersHaveTwoBiases) {
  std::vector<NamedArray> of_lstm;
  for (const double begin : {0.0, 10.0}) {
    const std::string end = begin == 0 ? "_l0" : "_l0_reverse";
    of_lstm.push_back({"weight_ih" + end, waves({8, 2}, begin)});
    of_lstm.push_back({"weight_hh" + end, waves({8, 2}, begin + 1)});
    of_lstm.push_back({"bias_ih" + end, waves({8}, begin + 2)});
    of_lstm.push_back({"bias_hh" + end, waves({8}, begin + 3)});
  }
  const auto call = [](const auto& model) { return model(sequence(2, 3)); };
  expect_read(path("m.safetensors"), of_lstm, Bidirectional(LSTM(2, 2), LSTM(2, 2)), call,
              {0.1222478, 0.1196252, -0.2709837, -0.3936392, 0.1967784, 0.1737598, -0.2394692, -0.3215357, 0.0306303,
               0.1540446, -0.1263436, -0.3453141},
              "bias");
  const auto entries = [](int64_t rows) {
    return all_waves(
        {{"weight_ih_l0", {rows, 2}}, {"weight_hh_l0", {rows, 2}}, {"bias_ih_l0", {rows}}, {"bias_hh_l0", {rows}}});
  };
  expect_read(path("m.safetensors"), entries(2), RNN(2, 2), call,
              {0.6057795, -0.2711958, 0.5957094, 0.0491679, 0.5345345, -0.4544415}, "bias");
  GRU gru(2, 2);
  EXPECT_NE(error_of(
                [&] {
                  save(path("m.safetensors"), entries(6));
                  load(path("m.safetensors"), gru, {.names = torch});
                },
                ErrorKind::argument)
                .find("give the cell one first: cell.reset_bias = zeros({out})"),
            std::string::npos);
  gru.cell.reset_bias = zeros({2});
  expect_read(path("m.safetensors"), entries(6), gru, call,
              {0.1226204, 0.1975527, 0.2507223, 0.2815043, -0.0635707, 0.5109905}, "bias");
}

// torch.nn.TransformerEncoderLayer(4, 2, 5) of waves(3, 1, 4); torch.nn.MultiheadAttention(4, 2, kdim=3, vdim=2) of
// waves(3, 1, 4), waves(2, 1, 3), waves(2, 1, 2)
TEST_F(TorchNames, ProjectionsOfAttentionAreOneArrayThere) {
  expect_read(path("m.safetensors"),
              all_waves({{"self_attn.in_proj_weight", {12, 4}},
                         {"self_attn.in_proj_bias", {12}},
                         {"self_attn.out_proj.weight", {4, 4}},
                         {"self_attn.out_proj.bias", {4}},
                         {"linear1.weight", {5, 4}},
                         {"linear1.bias", {5}},
                         {"linear2.weight", {4, 5}},
                         {"linear2.bias", {4}},
                         {"norm1.weight", {4}},
                         {"norm1.bias", {4}},
                         {"norm2.weight", {4}},
                         {"norm2.bias", {4}}}),
              TransformerEncoderLayer(4, 2, 5), [](const auto& model) { return model(sequence(4, 3)); },
              {-0.8899679, -0.4170835, 0.3289180, 0.2246476, -0.8278967, -0.4934718, 0.2450728, 0.1748357, -0.9069419,
               -0.3622548, 0.3306219, 0.2359097});
  expect_read(path("m.safetensors"),
              all_waves({{"q_proj_weight", {4, 4}},
                         {"k_proj_weight", {4, 3}},
                         {"v_proj_weight", {4, 2}},
                         {"in_proj_bias", {12}},
                         {"out_proj.weight", {4, 4}},
                         {"out_proj.bias", {4}}}),
              MultiHeadAttention({4, 3, 2, 4, 4, 4}, {.nheads = 2, .bias = true}),
              [](const auto& model) { return model(sequence(4, 3), sequence(3, 2), sequence(2, 2)); },
              {0.0819272, -0.8339676, 0.6747010, 0.7363460, 0.0747790, -0.8243885, 0.6693266, 0.7337929, 0.0696552,
               -0.8282983, 0.6795617, 0.7243225});
}

}  // namespace
}  // namespace rosin

#endif
