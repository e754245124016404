// The seeds on training data, training and saving. Rows 15-19, 21, 45, 46, 48, and cases D18, D19, D36; see CASES.md.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "seeds.hpp"

namespace rosin::seeds {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// 150 points (2, 150), which of two classes each is in, and its number.
std::tuple<Array, Array> labelled_points() {
  const Array X = randn({2, 150});
  return {X, cast(select(X, 0, 0) > select(X, 0, 1), Float32)};
}

Chain classifier() {
  return Chain(Dense(2, 8, tanh), Dense(8, 1), [](const Array& x) { return flatten(x); });
}

Array loss_of(const Chain& m, const Array& x, const Array& y) {
  return logitbinarycrossentropy(reshape(m(x), {-1}), y);
}

// --- Transferring training data

TEST_F(Seeds, Row15BatchesAreMovedByHand) {
  const auto [X, Y] = labelled_points();
  DataLoader train_loader(std::tuple{X, Y}, {.batchsize = 64, .shuffle = true});
  Chain model = classifier() | gpu;
  State opt_state = setup(Adam{.eta = 0.05}, model);
  const double before = loss_of(cpu(model), X, Y).item();
  for (int epoch = 0; epoch < 4; ++epoch) {
    std::vector<int64_t> sizes;
    std::multiset<float> seen;
    for (auto [x_cpu, y_cpu] : train_loader) {
      const Array x = gpu(x_cpu), y = gpu(y_cpu);
      EXPECT_EQ(text_of(x.device()), gpu_text());
      const Chain grads = gradient([&](const Chain& m) { return loss_of(m, x, y); }, model);
      update(opt_state, model, grads);
      sizes.push_back(x_cpu.size(-1));
      for (float value : select(x_cpu, 0, 0).to_vector()) seen.insert(value);
    }
    EXPECT_EQ(sizes, (std::vector<int64_t>{64, 64, 22}));
    const std::vector<float> all = select(X, 0, 0).to_vector();
    EXPECT_EQ(seen, std::multiset<float>(all.begin(), all.end()));
  }
  EXPECT_LT(loss_of(cpu(model), X, Y).item(), before);
}

TEST_F(Seeds, Row16AMovedLoaderGivesTheSameBatchesOnTheDevice) {
  const auto [X, Y] = labelled_points();
  for (int64_t workers : {0, 2}) {
    DataLoader by_hand(std::tuple{X, Y}, {.batchsize = 64, .shuffle = true, .rng = Rng(3)});
    const LoaderOptions options{.batchsize = 64, .shuffle = true, .num_workers = workers, .rng = Rng(3)};
    auto gpu_train_loader = DataLoader(std::tuple{X, Y}, options) | gpu;
    EXPECT_EQ(gpu_train_loader.size(), by_hand.size());
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::vector<std::tuple<Array, Array>> expected;
      for (auto batch : by_hand) expected.push_back(batch);
      size_t i = 0;
      for (auto [x, y] : gpu_train_loader) {
        EXPECT_EQ(text_of(x.device()), gpu_text());
        expect_equal(cpu(x), std::get<0>(expected[i]));
        expect_equal(cpu(y), std::get<1>(expected[i++]));
      }
      EXPECT_EQ(i, expected.size());
    }
  }
}

TEST_F(Seeds, Row17AMovedLoaderIsALoaderOfDataThatIsMovedBatchByBatch) {
  const auto [X, Y] = labelled_points();
  int moves = 0;
  const auto counted = [&moves](const std::tuple<Array, Array>& batch) {
    ++moves;
    return gpu(batch);
  };
  DataLoader mapped(mapobs(counted, std::tuple{X, Y}), {.batchsize = 64, .shuffle = true, .rng = Rng(3)});
  auto piped = DataLoader(std::tuple{X, Y}, {.batchsize = 64, .shuffle = true, .rng = Rng(3)}) | gpu;
  EXPECT_EQ(moves, 0);
  std::vector<Array> expected;
  for (auto [x, y] : piped) expected.push_back(x);
  size_t i = 0;
  for (auto [x, y] : mapped) {
    EXPECT_EQ(moves, static_cast<int>(i) + 1);
    EXPECT_EQ(x.device(), expected[i].device());
    expect_equal(cpu(x), cpu(expected[i++]));
  }
  DataLoader plain(mapobs(gpu, std::tuple{X, Y}), {.batchsize = 32});
  for (auto [x, y] : plain) EXPECT_EQ(text_of(y.device()), gpu_text());
}

struct XY {
  Array x, y;
};

TEST_F(Seeds, Row18ACuIteratorKeepsTheElementType) {
  const DType type = here.float64 ? Float64 : Float32;
  DataLoader train_loader(XY{cast(rand<double>({3, 20}), type), arange(20)}, {.batchsize = 8});
  if (!cu_works()) {
    EXPECT_THROW(CuIterator batches(train_loader), Error);
    return;
  }
  int64_t seen = 0;
  for (const XY& batch : CuIterator(train_loader)) {
    EXPECT_EQ(text_of(batch.x.device()), "CUDA:0");
    EXPECT_EQ(batch.x.dtype(), type);
    seen += batch.y.count();
  }
  EXPECT_EQ(seen, 20);
}

TEST_F(Seeds, Row19AllDataMayBeMovedAtOnce) {
  const auto [X, Y] = labelled_points();
  DataLoader gpu_train_loader(std::tuple{X, Y} | gpu, {.batchsize = 32});
  EXPECT_EQ(text_of(std::get<0>(gpu_train_loader.data()).device()), gpu_text());
  int64_t first = 0;
  for (auto [x, y] : gpu_train_loader) {
    EXPECT_EQ(text_of(x.device()), gpu_text());
    EXPECT_EQ(text_of(y.device()), gpu_text());
    expect_equal(cpu(x), slice(X, 1, first, first + x.size(1)));
    first += x.size(1);
  }
  EXPECT_EQ(first, 150);
}

// --- Saving

TEST_F(Seeds, Row21AModelIsSavedFromTheHostAndLoadsWithoutAGpu) {
  const TemporaryFolder folder;
  for (const char* extension : {".bson", ".safetensors"}) {
    const auto file = [&](const char* name) { return folder.file(std::string(name) + extension); };
    const Chain trained = Chain(Dense(4, 3, tanh), BatchNorm(3), Dense(3, 2)) | gpu;
    {
      const Chain model = cpu(trained);
      save(file("first"), {{"model", model}});
    }
    save(file("second"), {{"model", cpu(trained)}});
    EXPECT_EQ(text_of(device_of(trained)), gpu_text());
    save(file("third"), {{"model", trained}});
    const std::string bytes = bytes_of(file("first"));
    EXPECT_FALSE(bytes.empty());
    EXPECT_EQ(bytes_of(file("second")), bytes);
    EXPECT_EQ(bytes_of(file("third")), bytes);

    Chain fresh(Dense(4, 3, tanh), BatchNorm(3), Dense(3, 2));
    load(file("third"), {{"model", fresh}});
    EXPECT_EQ(device_of(fresh), cpu_device());
    const Array x = rand({4, 5});
    expect_close(fresh(x), cpu(trained)(x), 1e-6);

    // A model on a device stays there, whatever it is loaded from.
    Chain there = Chain(Dense(4, 3, tanh), BatchNorm(3), Dense(3, 2)) | gpu;
    load(file("third"), {{"model", there}});
    EXPECT_EQ(text_of(device_of(there)), gpu_text());
    loadmodel(there, fresh);
    EXPECT_EQ(text_of(device_of(there)), gpu_text());
    loadmodel(fresh, there);
    EXPECT_EQ(device_of(fresh), cpu_device());
    for (size_t i = 0; i < fleaves(fresh).size(); ++i) expect_equal(cpu(fleaves(there)[i]), fleaves(fresh)[i]);
  }
}

TEST_F(Seeds, OptimiserStateIsSavedAndLoadedOnItsDevice) {
  const TemporaryFolder folder;
  Chain model = Chain(Dense(3, 2), Dense(2, 1)) | gpu;
  State state = setup(Adam{.eta = 0.01}, model);
  const Array x = rand({3, 4}) | gpu;
  const auto step = [&](Chain& m, State& s) {
    update(s, m, gradient([&](const Chain& each) { return sum(square(each(x))); }, m));
  };
  step(model, state);
  save(folder.file("run.safetensors"), {{"model", model}, {"state", state}});
  Chain other = Chain(Dense(3, 2), Dense(2, 1)) | gpu;
  State other_state = setup(Adam{.eta = 0.01}, other);
  load(folder.file("run.safetensors"), {{"model", other}, {"state", other_state}});
  EXPECT_EQ(text_of(device_of(other_state)), gpu_text());
  step(model, state);
  step(other, other_state);
  for (size_t i = 0; i < fleaves(model).size(); ++i) expect_close(cpu(fleaves(model)[i]), cpu(fleaves(other)[i]), 1e-7);
  EXPECT_EQ(text_of(device_of(state | cpu)), "CPU");
  EXPECT_EQ(text_of(device_of(state)), gpu_text());
}

// --- Training is the same on every device

TEST_F(Seeds, RunningStatisticsAndDropoutAreTheSameOnEveryDevice) {
  // Without a bias before the normalisation: its gradient is 0, and Adam would make steps of how that is rounded.
  const Chain start(Dense(4, 6, {.bias = false}), BatchNorm(6, relu), Dropout(0.5), Dense(6, 1));
  const Array x = randn({4, 16});
  const auto trained = [&](const Device& device) {
    seed(7);
    Chain model = start | device;
    State state = setup(Adam{.eta = 0.01}, model);
    const Array input = x | device;
    for (int step = 0; step < 5; ++step) {
      update(state, model, gradient([&](const Chain& m) { return mean(square(m(input))); }, model));
    }
    EXPECT_EQ(device_of(model), device);
    EXPECT_EQ(device_of(state), device);
    return cpu(model);
  };
  const Chain expected = trained(cpu_device());
  EXPECT_FALSE(isapprox(getkeypath(expected, "layers[1].mean"), getkeypath(start, "layers[1].mean")));
  for (const Device& device : gpus()) {
    const Chain found = trained(device);
    for (const NamedArray& entry : state(expected)) {
      SCOPED_TRACE(entry.name);
      expect_close(getkeypath(found, entry.name), entry.value, 1e-4);
    }
  }
}

// --- The distributed example, as one rank; tests/ranks_test.py runs several

distributed::LaunchedBackend one_rank() {
  distributed::initialize();
  return distributed::get_distributed_backend();
}

TEST_F(Seeds, Row40ABackendIsThereOnceItIsInitialized) {
  EXPECT_EQ(error_of([] { distributed::get_distributed_backend<distributed::NCCLBackend>(); }, ErrorKind::distributed),
            "get_distributed_backend: NCCLBackend is not initialized; call "
            "distributed::initialize<NCCLBackend>() first");
  const auto backend = one_rank();
  EXPECT_TRUE(distributed::initialized());
  EXPECT_EQ(distributed::local_rank(backend), 0);
  EXPECT_EQ(distributed::total_workers(backend), 1);
  EXPECT_EQ(to_string(backend), "local backend: rank 0 of 1");
}

TEST_F(Seeds, Row43OneRankHasAllObservations) {
  const distributed::DataContainer data(one_rank(), rand({1, 16}));
  EXPECT_EQ(numobs(data), 16);
  EXPECT_EQ(data.indices(), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
  expect_equal(getobs(data, {3}), getobs(data.data(), {3}));
}

TEST_F(Seeds, Row44ASynchronizedModelIsAPlainOne) {
  const Chain model = Chain(Dense(1, 256, tanh), Dense(256, 1)) | gpu;
  const Chain same = distributed::synchronize(one_rank(), distributed::FluxDistributedModel(model), {.root = 0});
  EXPECT_EQ(to_string(same), to_string(model));
  EXPECT_EQ(text_of(device_of(same)), gpu_text());
  for (size_t i = 0; i < fleaves(same).size(); ++i) expect_equal(cpu(fleaves(same)[i]), cpu(fleaves(model)[i]));
}

TEST_F(Seeds, Row45TheRulePrintsItself) {
  EXPECT_EQ(to_string(Adam{0.001}), "Adam(0.001, (0.9, 0.999), 1.0e-8)");
  EXPECT_EQ(to_string(distributed::Optimizer(one_rank(), Adam{0.001})),
            "Optimizer(local backend, Adam(0.001, (0.9, 0.999), 1.0e-8))");
}

TEST_F(Seeds, Row46TheStateTreeMirrorsTheModel) {
  const Chain model = Chain(Dense(1, 256, tanh), Dense(256, 1)) | gpu;
  const State state = setup(distributed::Optimizer(one_rank(), Adam{0.001}), model);
  const std::string leaf = "Leaf(Optimizer(local backend, Adam(0.001, (0.9, 0.999), 1.0e-8)), ";
  const std::string powers = "(0.9, 0.999)))";
  const std::string tall = "Float32[0.0; 0.0; … ; 0.0; 0.0;;], ", flat = "Float32[0.0 0.0 … 0.0 0.0], ";
  const std::string list =
      "Float32[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0  …  0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "
      "0.0, 0.0, 0.0, 0.0], ";
  EXPECT_EQ(to_string(state), "(layers = ((weight = " + leaf + "(" + tall + tall + powers + ", bias = " + leaf + "(" +
                                  list + list + powers + ", σ = ()), (weight = " + leaf + "(" + flat + flat + powers +
                                  ", bias = " + leaf + "(Float32[0.0], Float32[0.0], " + powers + ", σ = ())),)");
  EXPECT_EQ(text_of(device_of(state)), gpu_text());
}

TEST_F(Seeds, Row47ASynchronizedStateIsTheSameTree) {
  const auto backend = one_rank();
  const Chain model = Chain(Dense(1, 4, tanh), Dense(4, 1)) | gpu;
  const State state = setup(distributed::Optimizer(backend, Adam{0.001}), model);
  const State same = distributed::synchronize(backend, state, {.root = 0});
  EXPECT_EQ(to_string(same), to_string(state));
  EXPECT_EQ(text_of(device_of(same)), gpu_text());
}

TEST_F(Seeds, Row48AHundredEpochsLowerTheLoss) {
  Chain model = Chain(Dense(1, 16, tanh), Dense(16, 1)) | gpu;
  const Array x = rand({1, 16}) | gpu, y = pow(x, 3);
  const auto loss = [&](const Chain& m) { return mean(square(m(x) - y)); };
  State st_opt = setup(distributed::Optimizer(one_rank(), Adam{0.01}), model);
  Lines lines;
  double first = 0, last = 0;
  for (int epoch = 1; epoch <= 100; ++epoch) {
    const auto [l, grad] = withgradient(loss, model);
    last = l.item();
    if (epoch == 1) first = last;
    lines.push_back("Epoch " + std::to_string(epoch) + ": Loss " + number_text(l.item<float>()));
    auto [next_state, next_model] = updated(st_opt, model, grad);
    st_opt = next_state;
    model = next_model;
  }
  ASSERT_EQ(lines.size(), 100u);
  EXPECT_TRUE(lines[0].starts_with("Epoch 1: Loss 0.")) << lines[0];
  EXPECT_TRUE(std::isfinite(last));
  EXPECT_LT(last, first);
  EXPECT_EQ(text_of(device_of(model)), gpu_text());
}

// --- Cases of the upstream suites

TEST_F(Seeds, D18LoadersOfMovedDataAndMovedLoadersAgree) {
  const Array X = randn<double>({3, 33});
  DataLoader pre(gpu(X), {.batchsize = 13, .shuffle = false});
  auto post = gpu(DataLoader(X, {.batchsize = 13, .shuffle = false}));
  auto rev = cpu(pre);
  const DType type = gpu_text() == "CPU" ? Float64 : Float32;
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<Array> p, q, r;
    for (const Array& batch : pre) p.push_back(batch);
    for (const Array& batch : post) q.push_back(batch);
    for (const Array& batch : rev) r.push_back(batch);
    ASSERT_EQ(p.size(), 3u);
    ASSERT_EQ(q.size(), 3u);
    ASSERT_EQ(r.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(text_of(p[i].device()), gpu_text());
      EXPECT_EQ(text_of(q[i].device()), gpu_text());
      EXPECT_EQ(text_of(r[i].device()), "CPU");
      EXPECT_EQ(p[i].dtype(), type);
      EXPECT_EQ(q[i].dtype(), type);
      EXPECT_EQ(r[i].dtype(), type);
      expect_close(cpu(p[i]), cpu(q[i]), 1e-7);
      expect_close(cpu(p[i]), r[i], 1e-7);
    }
  }
  auto named = gpu(DataLoader(XY{X, arange(33)}, {.batchsize = 7}));
  int64_t first = 0;
  for (const XY& batch : named) {
    expect_close(cpu(batch.x), slice(X, 1, first, first + batch.x.size(1)), 1e-6);
    first += batch.x.size(1);
  }
  EXPECT_EQ(first, 33);
}

TEST_F(Seeds, D19ALoaderInsideATupleIsLeftAloneWithAWarning) {
  const DataLoader loader(ones({2, 4}), {.batchsize = 2});
  auto [same_loader, y] = std::tuple{loader, ones({2})} | cpu;
  EXPECT_EQ(heard(),
            Lines{"the walk does not know the fields of the class DataLoader at [0]; what it holds is not moved, "
                  "trained or saved; state them in the class: static constexpr auto rosin_fields = "
                  "rosin::fields<&DataLoader::member>{}; or static constexpr bool rosin_leaf = true; where it "
                  "holds no arrays"});
  for (const Array& batch : same_loader) EXPECT_EQ(text_of(batch.device()), "CPU");
}

TEST_F(Seeds, D36BatchesOfADeviceIteratorStayValidAndTheirMemoryComesBack) {
  for (const Device& device : gpus()) {
    const Array X = cast(arange(512), Float32);
    DataLoader loader(std::map<std::string, Array>{{"x", reshape(X, {8, 64})}}, {.batchsize = 16});
    DeviceIterator batches(device, loader);
    EXPECT_EQ(batches.size(), 4);
    std::vector<Array> kept;
    for (const auto& batch : batches) kept.push_back(batch.at("x"));
    ASSERT_EQ(kept.size(), 4u);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(kept[i].device(), device);
      expect_equal(cpu(kept[i]),
                   slice(reshape(X, {8, 64}), 1, static_cast<int64_t>(i) * 16, static_cast<int64_t>(i + 1) * 16));
    }
    const auto pooled = [&] { return memory_stats(device).live + memory_stats(device).cached; };
    const int64_t before = pooled();
    for (int epoch = 0; epoch < 250; ++epoch) {
      for (const auto& batch : batches) EXPECT_EQ(batch.at("x").size(1), 16);
    }
    EXPECT_LE(pooled(), before + 4096);
    expect_equal(cpu(kept[0]), slice(reshape(X, {8, 64}), 1, 0, 16));
  }
}

}  // namespace
}  // namespace rosin::seeds
