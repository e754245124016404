// Trainings that are killed at random moments, also while they write, and started again, end with the very file of one
// that was never stopped. ROSIN_ALL_KILLS=1: twenty kills of every kind of training.
#include <rosin/rosin.hpp>

#include <gtest/gtest.h>

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace rosin {
namespace {

namespace fs = std::filesystem;

using Batch = std::tuple<Array, Array>;

Batch with_noise(const Batch& batch) {
  const auto& [x, y] = batch;
  return {x + 0.1 * randn(x.shape()), y};
}

/// Half of the pictures turned over, and noise.
Batch augmented(const Batch& batch) {
  const auto& [x, y] = batch;
  return {where(bernoulli(0.5, {1, 1, 1, x.size(-1)}), flip(x, 0), x) + 0.05 * randn(x.shape()), y};
}

/// The end of a process: the file that is compared.
template <class Model> void finish(const Model& model, const State& state, int64_t step) {
  save("final.safetensors", {{"model", model}, {"state", state}, {"step", step}, {"rng", default_rng()}});
}

void train_mlp(int64_t workers) {
  Rng source(3);
  const std::tuple data{rand(source, {8, 60}), onehot(randint(source, 0, 3, {60}), 3)};
  Chain model(Dense(8, 32, relu), Dropout(0.4), Dense(32, 3));
  State state = setup(OptimiserChain(ClipNorm{1.0}, AdamW{.eta = 1e-2, .lambda = 1e-2}), model);
  DataLoader loader(mapobs(with_noise, data), {.batchsize = 9, .shuffle = true, .num_workers = workers});
  int64_t step = 0;
  Checkpoint checkpoint("run.safetensors", {{"model", model}, {"state", state}, {"loader", loader}, {"step", step}});
  checkpoint.resume();
  while (loader.epoch() < 12) {
    for (auto [x, y] : loader) {
      if (step == 30) adjust(state, {.eta = 3e-3, .lambda = 0}, "*.bias");  // kept by the file alone afterwards
      if (step == 50) freeze(state, "layers[2].bias");
      auto [loss, grad] = withgradient([&](const Chain& m) { return logitcrossentropy(m(x), y); }, model);
      update(state, model, grad);
      if (++step % 3 == 0) checkpoint.save_behind();
    }
  }
  checkpoint.wait();
  finish(model, state, step);
}

void train_lenet(int64_t workers) {
  const ImageArrays digits = image_arrays(draw_digits(40, 5));
  const std::tuple data{digits.images, onehotbatch(digits.labels, 10)};
  Chain model(Conv({5, 5}, 1, 4, relu), MaxPool(2), BatchNorm(4), Conv({3, 3}, 4, 8, relu), MaxPool(2), flatten,
              Dense(200, 10));
  State state = setup(Adam{.eta = 3e-3}, model);
  DataLoader loader(mapobs(augmented, data), {.batchsize = 8, .shuffle = true, .num_workers = workers});
  int64_t step = 0;
  double loss_sum = 0;
  Checkpoint checkpoint("run.safetensors",
                        {{"model", model}, {"state", state}, {"loader", loader}, {"step", step}, {"loss", loss_sum}});
  checkpoint.resume();
  while (loader.epoch() < 8) {
    for (auto [x, y] : loader) {
      auto [loss, grad] = withgradient([&](const Chain& m) { return logitcrossentropy(m(x), y); }, model);
      update(state, model, grad);
      loss_sum += loss.item();
      if (++step % 2 == 0) checkpoint.rotate({.keep = 2, .best = loss.item(), .behind = step % 4 == 0});
    }
  }
  checkpoint.wait();
  finish(model, state, step);
}

constexpr int64_t width = 8, times = 6, letters = 11;

struct Gpt {
  Embedding tokens{letters, width}, positions{times, width};
  LayerNorm norm{width}, last{width};
  Dense query{width, width}, key{width, width}, value{width, width}, wide{width, 4 * width, gelu},
      narrow{4 * width, width};
  Dropout dropout{0.1};
  Dense out{width, letters};

  /// ids is (times, batch) -> (letters, times, batch).
  Array operator()(const Array& ids) const {
    const Array x = tokens(ids) + positions(arange(times));
    const Array h = norm(x);
    const Array scores = matmul(permute(key(h), {1, 0, 2}), query(h)) / std::sqrt(double(width));
    const Array weights = softmax(where(triu(ones({times, times})) > 0, scores, -1e9));
    const Array y = x + dropout(matmul(value(h), weights));
    return out(last(y + narrow(wide(y))));
  }
};

/// Twice as large after ten steps, as programs with half types have it.
struct LossScale {
  double factor = 4;
  int64_t good = 0;
  void count() {
    if (++good % 10 == 0 && factor < 1024) factor *= 2;
  }
};

void train_gpt(int64_t workers) {
  Rng source(3);
  const std::tuple data{randint(source, 0, letters, {times, 32}), randint(source, 0, letters, {times, 32})};
  Gpt model;
  State state = setup(OptimiserChain(ClipNorm{1.0}, AdamW{.eta = 1e-2, .lambda = 1e-2}), model);
  DataLoader loader(data, {.batchsize = 5, .shuffle = true, .num_workers = workers});
  auto rate = warmup(10, CosineRate{.start = 1e-2, .end = 1e-4, .steps = 60});
  LossScale scale;
  int64_t step = 0;
  Checkpoint checkpoint(
      "run.safetensors",
      {{"model", model}, {"state", state}, {"loader", loader}, {"rate", rate}, {"scale", scale}, {"step", step}});
  checkpoint.resume();
  while (loader.epoch() < 10) {
    for (auto [x, y] : loader) {
      adjust(state, rate(step));
      auto [loss, grad] = withgradient(
          [&](const Gpt& m) { return scale.factor * logitcrossentropy(m(x), onehotbatch(y, letters)); }, model);
      update(state, model, fmap([&](const Array& d) { return d / scale.factor; }, grad));
      scale.count();
      if (step == 20) rate.then.start = 5e-3;
      if (++step % 3 == 0) checkpoint.save();
    }
  }
  finish(model, state, step);
}

/// What another process of this program does, in the folder that it is started in.
TEST(DISABLED_KilledTraining, InAProcessOfItsOwn) {
  const std::string model = std::getenv("KILLED_TRAINING_MODEL");
  const int64_t workers = std::atoi(std::getenv("KILLED_TRAINING_WORKERS"));
  fs::current_path(std::getenv("KILLED_TRAINING_FOLDER"));
  seed(11);
  if (model == "mlp") train_mlp(workers);
  else if (model == "lenet") train_lenet(workers);
  else train_gpt(workers);
}

struct Kind {
  std::string model;
  int workers, threads;
};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A process that trains, until it ends or is killed.
class Process {
 public:
  Process(const Kind& kind, const std::string& folder) : log_(folder + ".log") {
    fs::create_directories(folder);
    // (Threads of a pool are at work until the process ends, which a leak checker cannot look at.)
    const std::string command =
        "exec env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX ASAN_OPTIONS=detect_leaks=0"
        " KILLED_TRAINING_MODEL=" +
        kind.model + " KILLED_TRAINING_WORKERS=" + std::to_string(kind.workers) + " KILLED_TRAINING_FOLDER='" + folder +
        "' ROSIN_NUM_THREADS=" + std::to_string(kind.threads) + " '" + fs::read_symlink("/proc/self/exe").string() +
        "' --gtest_also_run_disabled_tests"
        " --gtest_filter='DISABLED_KilledTraining.*' >'" +
        log_ + "' 2>&1";
    const char* arguments[] = {"sh", "-c", command.c_str(), nullptr};
    EXPECT_EQ(posix_spawn(&id_, "/bin/sh", nullptr, nullptr, const_cast<char**>(arguments), environ), 0);
  }
  bool has_ended() { return ended_ || (ended_ = waitpid(id_, &status_, WNOHANG) == id_); }
  /// Whether it ended by itself, which it must do well.
  bool wait() {
    if (!ended_) waitpid(id_, &status_, 0);
    ended_ = true;
    const bool killed = WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL;
    EXPECT_TRUE(killed || (WIFEXITED(status_) && WEXITSTATUS(status_) == 0)) << bytes_of(log_);
    return !killed;
  }
  void kill_now() {
    if (!has_ended()) kill(id_, SIGKILL);
    wait();
  }

 private:
  std::string log_;
  pid_t id_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

bool is_writing(const std::string& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (entry->path().filename().native().starts_with(".rosin-unfinished-")) return true;
  }
  return false;
}

class KilledTraining : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rosin-killed-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    try {
      save(folder_ + "/probe.safetensors", {{"step", 1}});
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();  // built without nlohmann-json
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// What a training that nobody stops ends with.
  std::string whole(const std::string& model) {
    const double begin = seconds();
    EXPECT_TRUE(Process({model, 0, 1}, folder_ + "/whole").wait());
    time_ = seconds() - begin;
    return bytes_of(folder_ + "/whole/final.safetensors");
  }
  /// Lets it run for a random time, then kills it, every other time when it writes; whether it had ended before.
  bool ends_before_kill(const Kind& kind, const std::string& place, bool while_writing) {
    Process process(kind, place);
    const double until = seconds() + time_ * std::uniform_real_distribution<double>(0.2, 0.9)(random_);
    while (!process.has_ended() && seconds() < until) std::this_thread::sleep_for(std::chrono::microseconds(300));
    while (while_writing && !process.has_ended() && !is_writing(place)) std::this_thread::yield();
    if (process.has_ended()) return process.wait();
    process.kill_now();
    return false;
  }
  void kill_and_compare(const Kind& kind, int kills, const std::string& expected) {
    const std::string place = folder_ + "/killed";
    for (int killed = 0; killed < kills;) {
      if (!ends_before_kill(kind, place, killed % 2 == 1)) ++killed;
      else check_end(place, expected);
    }
    EXPECT_TRUE(Process(kind, place).wait());
    check_end(place, expected);
  }
  /// This kind a few times; or each kind of the model many times.
  void kill_kinds(const Kind& kind) {
    const std::string expected = whole(kind.model);
    ASSERT_FALSE(expected.empty());
    if (!std::getenv("ROSIN_ALL_KILLS")) return kill_and_compare(kind, 3, expected);
    for (int workers : {0, 3}) {
      for (int threads : {1, 2}) kill_and_compare({kind.model, workers, threads}, 20, expected);
    }
  }

 private:
  /// Compares, and makes room for the next one.
  void check_end(const std::string& place, const std::string& expected) {
    EXPECT_TRUE(bytes_of(place + "/final.safetensors") == expected);
    fs::remove_all(place);
  }

  std::string folder_;
  double time_ = 0;
  std::mt19937 random_{std::random_device()()};
};

TEST_F(KilledTraining, OfAnMlpWithDropoutEndsWithTheSameFile) { kill_kinds({"mlp", 0, 2}); }
TEST_F(KilledTraining, OfALeNetWithBatchNormAndAugmentationEndsWithTheSameFile) { kill_kinds({"lenet", 3, 2}); }
TEST_F(KilledTraining, OfAGptWithScheduleAndLossScaleEndsWithTheSameFile) { kill_kinds({"gpt", 3, 1}); }

}  // namespace
}  // namespace rosin
