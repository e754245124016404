// Models under PyTorch's names. The numbers were computed by PyTorch 2 from the same weights.
#include <gtest/gtest.h>

#include <rosin/activation.hpp>
#include <rosin/chain.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/embedding.hpp>
#include <rosin/io.hpp>
#include <rosin/movement.hpp>
#include <rosin/normalise_layers.hpp>

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

}  // namespace
}  // namespace rosin

#endif
