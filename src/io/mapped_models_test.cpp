// load(path, model, {.map = true}): parameters that stand on the file.
#include <gtest/gtest.h>

#include <fstream>

#include <rosin/activation.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/io.hpp>
#include <rosin/matmul.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/npy.hpp>
#include <rosin/optim.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "io/real_files_testing.hpp"

#ifdef ROSIN_HAVE_JSON

namespace rosin {
namespace {

using namespace rosin::testing;

struct SavedNet {
  Dense first{40, 60, relu};
  Dense last{60, 5};
  Array operator()(const Array& x) const { return last(first(x)); }
};

double greatest_difference(const Array& a, const Array& b) { return maximum(abs(a - b)).item<double>(); }

bool is_on_file(const Array& x) {
  return is_look_at_file(*x.node()) || (x.node()->ready() && is_lent(*x.node()->buffer));
}

/// MiB that the process has written itself, as the system counts them; -1 where it does not.
double own_memory() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Anonymous:")) return std::stod(line.substr(10)) / 1024;
  }
  return -1;
}

class MappedModels : public ScratchFolder {
 protected:
  void SetUp() override {
    ScratchFolder::SetUp();
    save(path("net.safetensors"), saved);
  }
  Rng rng{3};
  SavedNet saved{};
  Array x = randn(rng, {40, 7});
};

TEST_F(MappedModels, ComputeWhatLoadedOnesDo) {
  SavedNet loaded, mapped;
  load(path("net.safetensors"), loaded);
  load(path("net.safetensors"), mapped, {.map = true});
  for (const auto& [name, value] : state(mapped)) EXPECT_TRUE(is_on_file(value)) << name;
  for (int i = 0; i < 3; ++i) EXPECT_LT(greatest_difference(mapped(x), loaded(x)), 1e-6);
  for (const auto& [name, value] : state(mapped)) EXPECT_TRUE(is_on_file(value)) << name << " after computing";
  const auto loss = [&](const SavedNet& m) { return sum(m(x) * m(x)); };
  const auto [a, of_loaded] = withgradient(loss, loaded);
  const auto [b, of_mapped] = withgradient(loss, mapped);
  EXPECT_NEAR(a.item<double>(), b.item<double>(), 1e-5 * a.item<double>());
  const std::vector<NamedArray> expected = state(of_loaded), found = state(of_mapped);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT(greatest_difference(found[i].value, expected[i].value),
              1e-5 * maximum(abs(expected[i].value)).item<double>())
        << expected[i].name;
  }
  EXPECT_EQ(mapped.first.weight.to_vector(), loaded.first.weight.to_vector());
}

TEST_F(MappedModels, OutliveTheirFile) {
  SavedNet mapped;
  load(path("net.safetensors"), mapped, {.map = true});
  std::filesystem::remove(path("net.safetensors"));
  EXPECT_LT(greatest_difference(mapped(x), saved(x)), 1e-6);
}

TEST_F(MappedModels, LeaveTheirFileAsItIsWhenTheyAreTrained) {
  const std::string before = bytes_of_file("net.safetensors");
  SavedNet loaded, mapped;
  load(path("net.safetensors"), loaded);
  load(path("net.safetensors"), mapped, {.map = true});
  for (SavedNet* net : {&loaded, &mapped}) {
    State steps = setup(Adam{.eta = 0.01}, *net);
    for (int i = 0; i < 3; ++i) {
      const auto [loss, gradient] = withgradient([&](const SavedNet& m) { return sum(m(x) * m(x)); }, *net);
      update(steps, *net, gradient);
    }
  }
  for (const auto& [name, value] : state(mapped)) EXPECT_FALSE(is_on_file(value)) << name;
  EXPECT_LT(greatest_difference(mapped(x), loaded(x)), 1e-4);
  EXPECT_GT(greatest_difference(mapped(x), saved(x)), 1e-2);
  EXPECT_EQ(bytes_of_file("net.safetensors"), before);
}

TEST_F(MappedModels, ComeFromSeveralFilesAndFromEntries) {
  save(path("net.safetensors.index.json"), saved, {.shard_bytes = 4000});
  SavedNet mapped;
  load(path("net.safetensors.index.json"), mapped, {.map = true});
  for (const auto& [name, value] : state(mapped)) EXPECT_TRUE(is_on_file(value)) << name;
  EXPECT_LT(greatest_difference(mapped(x), saved(x)), 1e-6);
  int64_t step = 12, read_step = 0;
  save(path("run.safetensors"), {{"model", saved}, {"step", step}});
  SavedNet entry;
  load(path("run.safetensors"), {{"model", entry}, {"step", read_step}}, {.map = true});
  EXPECT_EQ(read_step, 12);
  EXPECT_TRUE(is_on_file(entry.first.weight));
  EXPECT_LT(greatest_difference(entry(x), saved(x)), 1e-6);
}

TEST_F(MappedModels, HaveInMemoryWhatMustBeConverted) {
  SavedNet narrow = f16(saved);
  load(path("net.safetensors"), narrow, {.map = true});
  EXPECT_FALSE(is_on_file(narrow.first.weight));
  EXPECT_EQ(narrow.first.weight.to_vector(), cast(saved.first.weight, Float16).to_vector());
  struct Pictures {
    Conv conv{{3, 3}, 2, 4};
    Dense last{8, 3};
  } pictures, read;
  save(path("torch.safetensors"), pictures, {.names = torch});
  load(path("torch.safetensors"), read, {.names = torch, .map = true});  // its kernels do not flip
  EXPECT_FALSE(is_on_file(read.conv.weight));
  EXPECT_TRUE(is_on_file(read.last.weight));
  EXPECT_EQ(read.conv.weight.to_vector(), pictures.conv.weight.to_vector());
  EXPECT_EQ(read.last.weight.to_vector(), pictures.last.weight.to_vector());
}

TEST_F(MappedModels, AreRefusedWhereTheFormatCannotBeMapped) {
  save(path("net.npz"), saved);
  save(path("net.bson"), saved);
  SavedNet net;
  const std::string before = to_string(sum(net.first.weight));
  for (const char* name : {"net.npz", "net.bson"}) {
    const std::string text = error_here([&] { load(path(name), net, {.map = true}); });
    EXPECT_NE(text.find("can be mapped; got 'DIR/net."), std::string::npos) << text;
  }
  EXPECT_EQ(to_string(sum(net.first.weight)), before);
}

TEST_F(MappedModels, TakeMemoryOfTheirOwnForNothingThatIsNotUsed) {
  struct Layers {
    std::vector<Array> layers;
  } large, mapped;
  for (int i = 0; i < 4; ++i) {
    large.layers.push_back(full({2048, 1024}, 1.0f + static_cast<float>(i)));  // 8 MiB
    mapped.layers.push_back(zeros({1, 1}));
  }
  save(path("large.safetensors"), large);
  large = {};
  for (Array& layer : mapped.layers) layer = zeros({2048, 1024});
  load(path("large.safetensors"), mapped, {.map = true});
  const double before = own_memory();
  if (before < 0) GTEST_SKIP() << "no /proc/self/smaps_rollup";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(sum(mapped.layers[1]).item<double>(), 2048.0 * 1024 * 2);
    eval(ones({3}) + 1);
  }
  EXPECT_LT(own_memory() - before, 8);
  EXPECT_TRUE(is_on_file(mapped.layers[0]));
}

}  // namespace
}  // namespace rosin

#endif
