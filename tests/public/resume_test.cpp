// A training that is stopped, saved and gone on with by new objects ends with the weights of one that was never
// stopped.
#include <rosin/rosin.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

namespace rosin {
namespace {

std::tuple<Array, Array> with_noise(const std::tuple<Array, Array>& batch) {
  const auto& [x, y] = batch;
  return {x + 0.1 * randn(x.shape()), y};
}

auto training_data() {
  Rng rng(3);
  const std::tuple all{rand(rng, {4, 50}), onehot(randint(rng, 0, 3, {50}), 3)};
  return splitobs(mapobs(with_noise, all), {.at = 0.8}).first;
}

/// All that a training is, made as a program makes it when it is started.
struct Training {
  Chain model{Dense(4, 16, relu), BatchNorm(16), Dropout(0.3), Dense(16, 3)};
  State state = setup(OptimiserChain(ClipNorm{10.0}, AdamW{.eta = 1e-2, .lambda = 1e-2}), model);
  DataLoader<decltype(training_data())> loader;
  int64_t steps = 0;

  explicit Training(int64_t workers)
      : loader(training_data(), {.batchsize = 9, .shuffle = true, .num_workers = workers, .rng = Rng(7)}) {
    adjust(state, {.lambda = 0}, "*.bias");
  }

  /// Goes on to the end of the third epoch, or saves after so many steps and stops.
  void run(const std::string& file, int64_t stop) {
    while (loader.epoch() < 3) {
      for (auto [x, y] : loader) {
        const auto [loss, grad] = withgradient([&](const Chain& m) { return logitcrossentropy(m(x), y); }, model);
        update(state, model, grad);
        if (++steps != stop) continue;
        return save(file, {{"model", model},
                           {"state", state},
                           {"rng", default_rng()},
                           {"steps", steps},
                           {"epoch", loader.epoch()},
                           {"batch", loader.batch()}});
      }
    }
  }
  void resume(const std::string& file) {
    int64_t epoch = 0, batch = 0;
    load(file, {{"model", model},
                {"state", state},
                {"rng", default_rng()},
                {"steps", steps},
                {"epoch", epoch},
                {"batch", batch}});
    loader.seek(epoch, batch);
  }
  std::vector<std::vector<float>> values() const {
    std::vector<std::vector<float>> all;
    for (const Array& x : fleaves(model)) all.push_back(x.to_vector());
    return all;
  }
};

class Resume : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "rosin-resume-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    try {
      save(file(), {{"step", 1}});
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();  // built without nlohmann-json
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file() const { return folder_ + "/run.safetensors"; }

 private:
  std::string folder_;
};

TEST_F(Resume, EndsWithTheWeightsOfATrainingThatWasNeverStopped) {
  seed(5);
  Training whole(0);
  whole.run(file(), -1);
  ASSERT_EQ(whole.steps, 15);
  for (int64_t workers : {0, 3}) {
    for (int64_t stop : {1, 5, 8, 15}) {  // 5 batches an epoch
      seed(5);
      Training first(workers);
      first.run(file(), stop);
      seed(99);  // a new process draws other weights, and its generator is elsewhere
      Training second(workers);
      second.resume(file());
      second.run(file(), -1);
      EXPECT_EQ(second.steps, 15);
      EXPECT_EQ(second.values(), whole.values()) << workers << " workers, stopped after " << stop << " steps";
    }
  }
}

}  // namespace
}  // namespace rosin
