// Checkpoints: what they hold, what they refuse and leave unchanged, rows of files, writing behind the program. That a
// killed program goes on bit for bit: tests/public/killed_training_test.cpp.
#include <rosin/checkpoint.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/array_rules.hpp>
#include <rosin/chain.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/device.hpp>
#include <rosin/dropout.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/io.hpp>
#include <rosin/log.hpp>
#include <rosin/move.hpp>
#include <rosin/reduce.hpp>
#include <rosin/schedule.hpp>
#include <rosin/train.hpp>

#include "io/real_files_testing.hpp"
#include "tests/error_testing.hpp"

#ifdef ROSIN_HAVE_JSON

namespace rosin {
namespace {

using namespace rosin::testing;

enum class Phase : uint8_t { warm, full };

struct Settings {
  double rate = 0.5;
  int64_t width = 3;
  bool wide = false;
  Phase phase = Phase::warm;
  std::string name = "first";
  std::array<double, 2> limits = {1, 2};
  Rng rng{4};
  Array (*act)(const Array&) = nullptr;
};

struct Scale {
  Array weight;
  Array operator()(const Array& x) const { return weight * x; }
};

Scale scale_of(float value) { return {full({3}, value)}; }

void take_step(State& state, Scale& model) {
  update(state, model, gradient([](const Scale& m) { return sum(square(m(full({3}, 2.0f)))); }, model));
}

class Checkpoints : public ScratchFolder {
 protected:
  std::string file() const { return path("run.safetensors"); }
  std::vector<std::string> files() const {
    std::vector<std::string> names = names_in_folder();
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(Checkpoints, HoldSchedulesAndOtherStructsFieldByField) {
  auto rate = warmup(10, CosineRate{.start = 0.1, .end = 1e-300, .steps = int64_t{1} << 60});
  Settings settings{0.1, -7, true, Phase::full, "Größe", {1e-9, std::numeric_limits<double>::infinity()}, Rng(8), {}};
  settings.rng.take(5);
  Checkpoint(file(), {{"rate", rate}, {"settings", settings}}).save();
  auto other_rate = warmup(1, CosineRate{});
  Settings other;
  ASSERT_TRUE(Checkpoint(file(), {{"rate", other_rate}, {"settings", other}}).resume());
  EXPECT_EQ(other_rate.steps, 10);
  EXPECT_EQ(other_rate.then.start, 0.1);
  EXPECT_EQ(other_rate.then.end, 1e-300);
  EXPECT_EQ(other_rate.then.steps, int64_t{1} << 60);
  EXPECT_EQ(other.rate, 0.1);
  EXPECT_EQ(other.width, -7);
  EXPECT_TRUE(other.wide);
  EXPECT_EQ(other.phase, Phase::full);
  EXPECT_EQ(other.name, "Größe");
  EXPECT_EQ(other.limits[0], 1e-9);
  EXPECT_EQ(other.limits[1], std::numeric_limits<double>::infinity());
  EXPECT_EQ(other.rng, settings.rng);
}

struct Agent {
  Scale net;
  int64_t step = 0;
  double epsilon = 1;
  Phase phase = Phase::warm;
  std::vector<Settings> plans;
  std::string name;
  LayerMode mode = LayerMode::automatic;
  const int inputs = 3;
};

TEST_F(Checkpoints, HoldNumbersThatStandBesideArrays) {
  std::vector<Agent> agents;
  agents.push_back({scale_of(2), 7, 0.25, Phase::full, {Settings{.width = 5}}, "first"});
  agents.push_back({scale_of(3), 8, 0.5, Phase::warm, {Settings{.width = 6}}, "second"});
  AveragedModel average(scale_of(0));
  average.add(scale_of(1));
  average.add(scale_of(2));
  Checkpoint(file(), {{"agents", agents}, {"average", average}}).save();
  std::vector<Agent> others;
  for (int i = 0; i < 2; ++i) others.push_back({scale_of(0), 0, 0, Phase::warm, {Settings{}}, ""});
  AveragedModel other_average(scale_of(0));
  ASSERT_TRUE(Checkpoint(file(), {{"agents", others}, {"average", other_average}}).resume());
  EXPECT_EQ(others[0].step, 7);
  EXPECT_EQ(others[0].phase, Phase::full);
  EXPECT_EQ(others[0].net.weight.item(0), 2);
  EXPECT_EQ(others[1].epsilon, 0.5);
  EXPECT_EQ(others[1].plans[0].width, 6);
  EXPECT_EQ(others[1].name, "second");
  EXPECT_EQ(other_average.count, 2);
  average.add(scale_of(6));
  other_average.add(scale_of(6));
  EXPECT_EQ(other_average.model.weight.to_vector(), average.model.weight.to_vector());
}

TEST_F(Checkpoints, AnEnumTakesOnlyNumbersOfItsType) {
  enum class Small : uint8_t { off, on };
  struct Numbers {
    int64_t phase;
  } numbers{257};
  struct Phases {
    Small phase;
  } phases{Small::off};
  Checkpoint(file(), {{"settings", numbers}}).save();
  const auto load = [&] { Checkpoint(file(), {{"settings", phases}}).resume(); };
  const std::string text = error_here(load);
  EXPECT_EQ(text,
            "load: 'DIR/run.safetensors': a value of an enum fits its integer type; settings.phase of a checkpoint is "
            "257; load what this program saved, or give the enum the type that it had");
  numbers.phase = 1;
  Checkpoint(file(), {{"settings", numbers}}).save();
  load();
  EXPECT_EQ(phases.phase, Small::on);
}

TEST_F(Checkpoints, SavedAfterAStepOfTrainGoOnInTheMiddleOfAnEpoch) {
  struct Run {
    Chain model{Dense(3, 4, tanh, {.init = ones32}), Dropout(0.5), Dense(4, 1, {.init = ones32})};
    State state = setup(Adam{}, model);
    DataLoader<Array> loader{rand({3, 20}), {.batchsize = 3, .shuffle = true, .rng = Rng(1)}};
    static Array loss(const Chain& m, const Array& x) { return mean(square(m(x) - sum(x))); }
    std::vector<float> weights() const { return model[0].get_if<Dense>()->weight.template to_vector<float>(); }
  };
  seed(3);
  Run whole;
  for (int epoch = 0; epoch < 2; ++epoch) train(Run::loss, whole.model, whole.loader, whole.state);
  seed(3);
  Run first;
  Checkpoint checkpoint(file(), {{"model", first.model}, {"state", first.state}, {"loader", first.loader}});
  std::vector<int64_t> items;
  const auto stop = [&](const TrainStep& step) {
    items.push_back(step.item);
    EXPECT_TRUE(std::isfinite(step.loss.item()));
    if (step.item < 4) return;
    checkpoint.save();
    throw std::runtime_error("killed");
  };
  EXPECT_THROW(train(Run::loss, first.model, first.loader, first.state, stop), std::runtime_error);
  EXPECT_EQ(items, (std::vector<int64_t>{1, 2, 3, 4}));
  seed(3);
  Run again;
  Checkpoint(file(), {{"model", again.model}, {"state", again.state}, {"loader", again.loader}}).resume();
  while (again.loader.epoch() < 2) train(Run::loss, again.model, again.loader, again.state);
  EXPECT_EQ(again.weights(), whole.weights());
}

TEST_F(Checkpoints, HoldTheLossScaleOfAState) {
  Array x = ones({2}), other = ones({2});
  State state = setup(LossScale{Adam{}}, x), restored = setup(LossScale{Adam{}}, other);
  update(state, x, Array({std::numeric_limits<float>::infinity(), 1.0f}, {2}));
  update(state, x, Array({1.0f, 1.0f}, {2}));
  Checkpoint(file(), {{"model", x}, {"state", state}}).save();
  Checkpoint(file(), {{"model", other}, {"state", restored}}).resume();
  const LossScaleStatus now = loss_scale(restored);
  EXPECT_EQ(now.scale, 32768);
  EXPECT_EQ(now.good, 1);
  EXPECT_EQ(now.skipped, 1);
  EXPECT_EQ(other.to_vector<float>(), x.to_vector<float>());
}

TEST_F(Checkpoints, HoldTheModesOfLayers) {
  struct Drops {
    Dropout first{0.5}, second{0.5};
    Chain third{Dropout(0.5), Dense(2, 2)};
  } model, other;
  trainmode(model.first);
  testmode(model.third);
  Checkpoint(file(), {{"model", model}}).save();
  trainmode(other);
  Checkpoint(file(), {{"model", other}}).resume();
  EXPECT_EQ(other.first.mode, LayerMode::train);
  EXPECT_EQ(other.second.mode, LayerMode::automatic);
  const Array x = ones({2, 50});
  const auto loss = [&](const Drops& m) { return sum(square(m.third(x))); };
  EXPECT_EQ(withgradient(loss, other).value.item(), loss(model).item());  // no dropout in a gradient call
}

TEST_F(Checkpoints, HoldHowFarTriggersAre) {
  const auto score = [](double now) { return now; };
  auto stop = early_stopping(score, 3);
  auto still = plateau(score, 2);
  for (double now : {5.0, 2.0, 4.0}) stop(now), still(now);
  still(4.0);
  Checkpoint(file(), {{"stop", stop}, {"still", still}}).save();
  auto other_stop = early_stopping(score, 9);
  auto other_still = plateau(score, 9);
  Checkpoint(file(), {{"stop", other_stop}, {"still", other_still}}).resume();
  EXPECT_FALSE(other_stop(3.0));  // 2 stays the best: the second call in a row without a gain
  EXPECT_TRUE(other_stop(2.5));
  EXPECT_TRUE(other_still(4.0));
}

TEST_F(Checkpoints, HoldHyperParametersAndWhatIsFrozen) {
  const auto rule = OptimiserChain(ClipNorm{10.0}, AccumGrad{2}, AdamW{.eta = 1e-2, .lambda = 1e-2});
  Chain model(Dense(2, 3), Dense(3, 1));
  State state = setup(rule, model);
  adjust(state, {.beta = {0.8, 0.7}, .lambda = 0}, "*.bias");
  adjust(state, 0.125);
  freeze(state, "layers[1]");
  Checkpoint(file(), {{"state", state}}).save();
  State other = setup(OptimiserChain(ClipNorm{1.0, 2, false}, AccumGrad{5}, AdamW{}), model);
  Checkpoint(file(), {{"state", other}}).resume();
  EXPECT_EQ(to_string(other), to_string(state));
  thaw(state, "layers[1].bias");
  EXPECT_NE(to_string(other), to_string(state));
}

TEST_F(Checkpoints, GoOnWithTheGeneratorsOfThisAndLaterThreads) {
  seed(31);
  rand({3});
  float in_thread = 0, resumed_in_thread = 0;
  std::thread([] { rand({1}).item(); }).join();
  Checkpoint checkpoint(file(), {});
  checkpoint.save();
  const float next = rand({1}).item<float>();
  std::thread([&] { in_thread = rand({1}).item<float>(); }).join();
  seed(5);
  ASSERT_TRUE(checkpoint.resume());
  EXPECT_EQ(rand({1}).item<float>(), next);
  std::thread([&] { resumed_in_thread = rand({1}).item<float>(); }).join();
  EXPECT_EQ(resumed_in_thread, in_thread);
}

TEST_F(Checkpoints, GoOnWithTheLoadersOrderAndPlace) {
  DataLoader loader(arange(20), {.batchsize = 3, .shuffle = true, .rng = Rng(1)});
  std::vector<float> rest;
  Checkpoint checkpoint(file(), {{"loader", loader}});
  for (auto& x : loader) {
    if (loader.batch() < 4) continue;
    if (loader.batch() == 4) checkpoint.save();
    else
      for (float value : x.template to_vector<float>()) rest.push_back(value);
  }
  DataLoader other(arange(20), {.batchsize = 3, .shuffle = true, .num_workers = 2, .rng = Rng(2)});
  Checkpoint(file(), {{"loader", other}}).resume();
  std::vector<float> resumed;
  for (auto& x : other) {
    for (float value : x.template to_vector<float>()) resumed.push_back(value);
  }
  EXPECT_EQ(resumed, rest);
}

TEST_F(Checkpoints, AreNoneBeforeTheFirstIsSaved) {
  int64_t step = 3;
  EXPECT_FALSE(Checkpoint(file(), {{"step", step}}).resume());
  EXPECT_FALSE(Checkpoint(path("nowhere/run.safetensors"), {{"step", step}}).resume());
  EXPECT_EQ(step, 3);
}

/// A training with all kinds of entries, to see whether a load that fails changes any.
struct Training {
  Scale model = scale_of(1);
  State state = setup(Adam{}, model);
  DataLoader<Array> loader;
  int64_t step = 0;
  CosineRate rate;
  std::string note = "old";

  explicit Training(int64_t batchsize = 3) : loader(arange(20), {.batchsize = batchsize, .rng = Rng(1)}) {}
  std::string text() const {
    return to_string(model.weight) + to_string(state) + std::to_string(loader.epoch()) + to_string(default_rng()) +
           std::to_string(step) + std::to_string(rate.start) + note + to_string(fleaves(state)[0]);
  }
  static std::string to_string(const Rng& rng) {
    return std::to_string(rng.key()) + "/" + std::to_string(rng.counter());
  }
  static std::string to_string(const Array& x) { return rosin::to_string(x); }
  static std::string to_string(const State& x) { return rosin::to_string(x); }
};

/// A file of another training beside one that it does not fit.
class UnfitCheckpoints : public Checkpoints {
 protected:
  void SetUp() override {
    Checkpoints::SetUp();
    Training saved;
    saved.model = scale_of(7);
    saved.step = 12;
    saved.rate.start = 5;
    saved.note = "new";
    take_step(saved.state, saved.model);
    adjust(saved.state, 0.5);
    saved.loader.seek(3);
    Checkpoint(file(), {{"model", saved.model},
                        {"state", saved.state},
                        {"loader", saved.loader},
                        {"step", saved.step},
                        {"rate", saved.rate},
                        {"note", saved.note}})
        .save();
    seed(77);
  }

  /// What is said when these entries are resumed.
  std::string refused(std::initializer_list<CheckpointEntry> entries, ErrorKind kind = ErrorKind::argument) const {
    const std::string before = t.text();
    const std::string text = error_of([&] { Checkpoint(file(), entries).resume(); }, kind);
    EXPECT_EQ(t.text(), before) << text;
    EXPECT_NE(text.find("'" + file() + "'"), std::string::npos) << text;
    return text;
  }

  Training t;
};

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_F(UnfitCheckpoints, ChangeNothingAndSayWhy) {
  EXPECT_TRUE(has(refused({{"model", t.model}}), "state"));
  Scale wide{zeros({4})};
  const std::string shapes = refused(
      {{"state", t.state}, {"loader", t.loader}, {"step", t.step}, {"rate", t.rate}, {"note", t.note}, {"model", wide}},
      ErrorKind::shape);
  EXPECT_TRUE(has(shapes, "model.weight")) << shapes;
  double extra = 0;
  const std::string names = refused({{"model", t.model},
                                     {"state", t.state},
                                     {"loader", t.loader},
                                     {"step", t.step},
                                     {"rate", t.rate},
                                     {"note", t.note},
                                     {"best", extra}});
  EXPECT_TRUE(has(names, "best")) << names;
  State descent = setup(Descent{}, t.model);
  const std::string rules = refused({{"model", t.model}, {"state", descent}});
  EXPECT_TRUE(has(rules, "it is Descent(eta), the file has Adam(eta, beta, beta, epsilon)")) << rules;
  Training other(4);
  const std::string loaders = refused({{"model", t.model}, {"state", t.state}, {"loader", other.loader}});
  EXPECT_TRUE(has(loaders, "batchsize=3")) << loaders;
}

TEST_F(UnfitCheckpoints, FitWhatTheyWereSavedOf) {
  EXPECT_TRUE(Checkpoint(file(), {{"model", t.model},
                                  {"state", t.state},
                                  {"loader", t.loader},
                                  {"step", t.step},
                                  {"rate", t.rate},
                                  {"note", t.note}})
                  .resume());
  EXPECT_EQ(t.step, 12);
  EXPECT_EQ(t.rate.start, 5);
  EXPECT_EQ(t.note, "new");
  EXPECT_EQ(t.loader.epoch(), 3);
}

TEST_F(Checkpoints, ThatAreDamagedChangeNothing) {
  Training saved;
  Checkpoint(file(), {{"model", saved.model}, {"state", saved.state}, {"loader", saved.loader}}).save();
  const std::string whole = bytes_of_file("run.safetensors");
  Training t;
  const std::string before = t.text();
  for (size_t length : {size_t{0}, size_t{7}, size_t{100}, whole.size() / 2, whole.size() - 1}) {
    write("run.safetensors", whole.substr(0, length));
    const auto load = [&] {
      Checkpoint(file(), {{"model", t.model}, {"state", t.state}, {"loader", t.loader}}).resume();
    };
    EXPECT_NE(error_of(load, ErrorKind::io).find(file()), std::string::npos);
    EXPECT_EQ(t.text(), before);
  }
  save(file(), {{"model", saved.model}});
  const std::string text = error_of([&] { Checkpoint(file(), {{"model", t.model}}).resume(); }, ErrorKind::io);
  EXPECT_NE(text.find("say nothing of one"), std::string::npos) << text;
}

TEST_F(Checkpoints, WithAnyBitOfTheirFirstPartTurnedAreRefusedOrTaken) {
  Training saved;
  const auto entries_of = [](Training& t) {
    return std::vector<CheckpointEntry>{{"model", t.model}, {"state", t.state}, {"loader", t.loader}, {"step", t.step}};
  };
  const auto checkpoint_of = [&](Training& t) {
    const std::vector<CheckpointEntry> all = entries_of(t);
    return std::make_unique<Checkpoint>(file(), std::initializer_list<CheckpointEntry>{all[0], all[1], all[2], all[3]});
  };
  checkpoint_of(saved)->save();
  const std::string whole = bytes_of_file("run.safetensors");
  int refused = 0;
  for (size_t i = 0; i < whole.size() && i < 4096; ++i) {
    std::string turned = whole;
    turned[i] = static_cast<char>(turned[i] ^ 1 << i % 8);
    write("run.safetensors", turned);
    Training t;
    const std::string before = t.text();
    try {
      checkpoint_of(t)->resume();
    } catch (const Error& error) {
      ++refused;
      ASSERT_EQ(t.text(), before) << error.what();
      ASSERT_NE(std::string(error.what()).find(file()), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(refused, 500);
}

TEST_F(Checkpoints, NamesAndPathsThatCannotBeAreRefused) {
  int64_t a = 0, b = 0;
  EXPECT_EQ(error_of(
                [&] {
                  Checkpoint("run.bson", {{"a", a}});
                },
                ErrorKind::argument),
            "checkpoint: its files are safetensors; got 'run.bson'; write \"run.safetensors\"");
  EXPECT_EQ(error_of(
                [&] {
                  Checkpoint(file(), {{"a", a}, {"a", b}});
                },
                ErrorKind::argument),
            "checkpoint: every entry needs a name of its own, which is not rosin; got 'a' twice; rename it");
  EXPECT_EQ(error_of(
                [&] {
                  Checkpoint(file(), {{"rosin", a}});
                },
                ErrorKind::argument),
            "checkpoint: every entry needs a name of its own, which is not rosin; got 'rosin'; rename it");
  EXPECT_EQ(error_of(
                [&] {
                  Checkpoint(file(), {{"a", a}}).rotate({.keep = 0});
                },
                ErrorKind::argument),
            "checkpoint: rotate keeps at least 1 file; got 0; for one file use save");
}

TEST_F(Checkpoints, RotateKeepsTheNewestAndTheBest) {
  int64_t step = 0;
  Checkpoint checkpoint(file(), {{"step", step}});
  for (double loss : {5.0, 1.0, 4.0, std::numeric_limits<double>::quiet_NaN(), 3.0}) {
    ++step;
    checkpoint.rotate({.keep = 2, .best = loss});
  }
  using Names = std::vector<std::string>;
  EXPECT_EQ(files(), (Names{"run.000002.safetensors", "run.000004.safetensors", "run.000005.safetensors"}));
  EXPECT_EQ(checkpoint.newest(), path("run.000005.safetensors"));
  EXPECT_EQ(checkpoint.best(), path("run.000002.safetensors"));
  checkpoint.load(checkpoint.best());
  EXPECT_EQ(step, 2);
  Checkpoint again(file(), {{"step", step}});  // another process goes on with the row
  again.rotate({.keep = 2, .best = 0.5, .behind = true});
  again.wait();
  EXPECT_EQ(files(), (Names{"run.000005.safetensors", "run.000006.safetensors"}));
  again.save();  // a plain one is the newest now
  EXPECT_EQ(again.newest(), file());
  again.rotate({.keep = 1, .best = 9, .higher = true});
  EXPECT_EQ(again.newest(), path("run.000008.safetensors"));
  EXPECT_EQ(again.best(), path("run.000008.safetensors"));
}

TEST_F(Checkpoints, WrittenBehindHoldWhatWasThereAtTheCall) {
  Scale model = scale_of(1);
  State state = setup(Adam{.eta = 0.5}, model);
  int64_t step = 0;
  Checkpoint checkpoint(file(), {{"model", model}, {"state", state}, {"step", step}});
  for (; step < 8; ++step) {
    take_step(state, model);
    const std::vector<float> there = model.weight.to_vector();
    checkpoint.save_behind();
    take_step(state, model);  // in place, but for what is still to be written
    take_step(state, model);
    checkpoint.wait();
    EXPECT_EQ(rosin::load(file())["model.weight"].to_vector(), there);
    EXPECT_EQ(rosin::load(file())["step"].item<int64_t>(), step);
  }
}

TEST_F(Checkpoints, OfATrainingOnADeviceGoOnThere) {
  const Device device = get_device("reference", 0);
  const auto run = [&](int64_t steps, bool resumes) {
    seed(resumes ? 9 : 4);
    Rng source(3);
    Chain model = Chain(Dense(4, 8, relu), Dropout(0.3), Dense(8, 2)) | device;
    State state = setup(OptimiserChain(ClipNorm{1.0}, Adam{.eta = 1e-2}), model);
    auto loader = DataLoader(rand(source, {4, 80}), {.batchsize = 8, .shuffle = true}) | device;
    int64_t step = 0;
    Checkpoint checkpoint(file(), {{"model", model}, {"state", state}, {"loader", loader}, {"step", step}});
    if (resumes) checkpoint.resume();
    while (step < steps) {
      for (auto& x : loader) {
        update(state, model, gradient([&](const Chain& m) { return mean(square(m(x))); }, model));
        if (++step % 5 == 0) checkpoint.save_behind();
        if (step == steps) break;
      }
    }
    std::vector<std::vector<float>> values;
    for (const Array& x : fleaves(model)) values.push_back(x.to_vector());
    return values;
  };
  const auto whole = run(26, false);
  std::filesystem::remove(file());
  run(18, false);
  EXPECT_EQ(run(26, true), whole);
}

TEST_F(Checkpoints, ErrorsOfWritingBehindComeWithTheNextCall) {
  int64_t step = 1;
  const std::string there = path("sub/run.safetensors");
  Checkpoint checkpoint(there, {{"step", step}});
  checkpoint.save_behind();
  EXPECT_NE(error_of([&] { checkpoint.wait(); }, ErrorKind::io).find("'" + there + "'"), std::string::npos);
  checkpoint.wait();
  checkpoint.save_behind();
  EXPECT_NE(error_of([&] { checkpoint.save(); }, ErrorKind::io).find(there), std::string::npos);
  std::filesystem::create_directory(path("sub"));
  checkpoint.save();
  step = 2;
  EXPECT_TRUE(checkpoint.resume());
  EXPECT_EQ(step, 1);
}

TEST_F(Checkpoints, AnErrorThatNobodyAsksForIsAWarning) {
  std::string said;
  set_log_sink([](const LogMessage& message, void* data) { *static_cast<std::string*>(data) = message.id; }, &said);
  int64_t step = 1;
  Checkpoint(path("none/run.safetensors"), {{"step", step}}).save_behind();
  set_log_sink(nullptr);
  EXPECT_EQ(said, "checkpoint-lost");
}

TEST(Checkpoint, HasTheHyperParametersOfEachPathsRule) {
  struct Pair {
    Scale a, b;
  };
  const std::string file = ::testing::TempDir() + "path_rules.safetensors";
  Pair model{{ones({2})}, {ones({2})}};
  State state = setup(Adam{0.25}, model, {{"b", Momentum{0.125, 0.5}}});
  update(state, model, model);
  Checkpoint(file, {{"model", model}, {"state", state}}).save();
  Pair other{{zeros({2})}, {zeros({2})}};
  State loaded = setup(Adam{}, other, {{"b", Momentum{}}});
  Checkpoint(file, {{"model", other}, {"state", loaded}}).load(file);
  EXPECT_EQ(to_string(loaded), to_string(state));
  State wrong = setup(Adam{}, other);
  EXPECT_NE(error_of([&] {
              Checkpoint(file, {{"model", other}, {"state", wrong}}).load(file);
            }).find("Momentum"),
            std::string::npos);
}

}  // namespace
}  // namespace rosin

#endif
