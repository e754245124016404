// Training steps on a device: what they compile, how much memory they take, several threads and several devices.
// Read first: test_device.hpp.
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include <rosin/activation.hpp>
#include <rosin/approx.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/loss.hpp>
#include <rosin/matmul.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/pool.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "../examples/demo/models.hpp"
#include "error_testing.hpp"
#include "graph/device_facts.hpp"
#include "graph/node.hpp"
#include "run/device_pool.hpp"
#include "run/early.hpp"
#include "test_device.hpp"

namespace rosin {
namespace {

struct Network {
  Dense hidden{12, 20, relu};
  Dense out{20, 10};
  Array operator()(const Array& x) const { return out(hidden(x)); }
};

/// A network with its data, on a device.
template <class Model> struct Training {
  Training(const Device& device, const Shape& input) : shape(input), where(device) {
    seed(3);
    model = Model{} | device;
    state = setup(Adam{.eta = 1e-2}, model);
  }

  Array step(int64_t batch) {
    std::vector<int64_t> sizes(shape.begin(), shape.end());
    sizes.push_back(batch);
    seed(static_cast<uint64_t>(batch));
    const Array x = randn(Shape(std::span<const int64_t>(sizes))) | where;
    const Array y = cast(randn({10, batch}) > 1, Float32) | where;
    const auto [loss, g] = withgradient([&](const Model& m) { return logitcrossentropy(m(x), y); }, model);
    update(state, model, g);
    return loss;
  }

  Shape shape;
  Device where;
  Model model;
  State state;
};

DeviceKernels::Counts counts(const Device& device) {
  return DeviceTable::instance().open(device.position()).kernels.counts();
}

/// For who wants to know (tools/run_tests.py): the device of ROSIN_TEST_DEVICE works.
TEST(TestDevice, IsThere) { EXPECT_EQ(sum(there(ones({3})) + 1).item(), 6); }

TEST(DeviceSteps, GiveTheLossesOfTheCpu) {
  Training<Network> there(some_device(), {12}), here(Device(), {12});
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(there.step(16).item(), here.step(16).item(), 1e-5) << "step " << i;
}

TEST(DeviceSteps, AStateLeftBehindAndAGradientFromElsewhereAreNamed) {
  Network model;
  State state = setup(Adam{}, model);
  Network there = model | some_device();
  const auto loss = [](const Network& m) { return sum(m(ones({12, 1}))); };
  const Network g = gradient(loss, there);
  const std::string place = device_text(some_device().position());
  EXPECT_EQ(error_of([&] { update(state, there, g); }, ErrorKind::device),
            "update: a parameter and its state must be on one device; hidden.weight is on " + place +
                ", its state on CPU; move it along: state = state | device");
  EXPECT_EQ(error_of([&] { update(state, model, g); }, ErrorKind::device),
            "update: a parameter and its gradient must be on one device; hidden.weight is on CPU, its gradient on " +
                place + "; compute it with the moved model");
  state = state | some_device();
  update(state, there, g);
}

TEST(DeviceSteps, TrimUnloadsTheKernelsThatNoPlanUses) {
  const Array x = ones({7}) | some_device();
  const auto compute = [&] { return sum(x * 2 - 1).item(); };
  EXPECT_EQ(compute(), 7);
  trim(some_device());
  const DeviceKernels::Counts before = counts(some_device());
  EXPECT_GT(before.loaded, 0);  // the plan is cached
  trim();
  trim(some_device());
  EXPECT_EQ(counts(some_device()).loaded, 0);
  EXPECT_EQ(compute(), 7);
  EXPECT_GT(counts(some_device()).kernels, before.kernels);
}

TEST(DeviceSteps, DrawsStandWithTheirBounds) {
  const Array low({0.0f, 1.0f, 2.0f}, {3}), high({1.0f, 3.0f, 2.5f}, {3}), p({0.0f, 1.0f, 0.5f}, {3});
  const auto draw = [](const Array& a, const Array& b, const Array& c) {
    seed(5);
    return std::array{uniform({3, 4}, a, b), normal({3, 4}, 1, b), bernoulli(c, {3, 4})};
  };
  const auto here = draw(low, high, p);
  const auto there = draw(low | some_device(), high | some_device(), p | some_device());
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_EQ(device_of(there[i]), some_device());
    EXPECT_TRUE(allclose(cast(there[i] | Device(), Float32), cast(here[i], Float32), {.rtol = 1e-6, .atol = 1e-6}));
  }
}

TEST(DeviceSteps, ANewBatchSizeCompilesNothing) {
  Training<Network> training(some_device(), {12});
  for (const int64_t batch : {16, 300, 5}) training.step(batch);
  const auto before = counts(some_device());
  const Stats planned = stats();
  for (const int64_t batch : {7, 100, 64}) training.step(batch);
  EXPECT_EQ(counts(some_device()).kernels, before.kernels);
  EXPECT_EQ(stats().structures, planned.structures);
}

TEST(DeviceSteps, ANewLearningRateMissesNothing) {
  Training<Network> training(some_device(), {12});
  for (int i = 0; i < 3; ++i) training.step(16);
  const Stats before = stats();
  const auto compiled = counts(some_device());
  adjust(training.state, {.eta = 1e-4});
  training.step(16);
  EXPECT_EQ(stats().layouts, before.layouts);
  EXPECT_EQ(counts(some_device()).kernels, compiled.kernels);
}

TEST(SlowDeviceSteps, AThousandBatchSizesStayInsideTheBudget) {
  const int64_t budget = int64_t{1} << (compiles_there() ? 20 : 22);
  trim();
  set_plan_cache_limit(budget);
  {
    Training<Network> training(some_device(), {12});
    for (int64_t batch = 1; batch <= (compiles_there() ? 100 : 1000); ++batch) training.step(batch);
    EXPECT_LE(stats().cache_bytes, budget);
    EXPECT_GT(stats().evicted, 0);
  }
  set_plan_cache_limit(int64_t{64} << 20);
}

TEST(SlowDeviceSteps, TenThousandStepsTakeNoMoreMemoryThanAFew) {
  Training<Network> training(some_device(), {12});
  for (int i = 0; i < 5; ++i) training.step(8);
  synchronize(some_device());
  const MemoryStats before = memory_stats(some_device());
  const int steps = compiles_there() ? 300 : 10000;
  for (int i = 0; i < steps; ++i) training.step(8);
  const MemoryStats after = memory_stats(some_device());
  EXPECT_EQ(after.live, before.live);
  EXPECT_EQ(after.cached, before.cached);
}

TEST(DeviceSteps, AStepOfLeNetTakesAtMostFortyLaunches) {
  Training<demo::LeNet> training(some_device(), {28, 28, 1});
  for (int i = 0; i < 2; ++i) training.step(4);
  const Stats before = stats();
  training.step(4);
  // (Copies of the batch are no launches.)
  EXPECT_LE(stats().launches - before.launches, 40);
}

TEST(DeviceSteps, SeveralThreadsGiveWhatOneGives) {
  const Device device = some_device();
  const auto work = [&](uint64_t key) {
    Rng rng(key);
    Array x = normal(rng, {30, 40}, 0, 1, Float32) | device;
    for (int i = 0; i < 20; ++i) x = x * 0.5 + mean(exp(min(x, 2)), 0) + sum(matmul(transpose(x), x), 0) * 0.001;
    return x.to_vector<float>();
  };
  std::vector<std::vector<float>> want, got(4);
  for (uint64_t key = 0; key < got.size(); ++key) want.push_back(work(key));
  std::vector<std::thread> threads;
  for (uint64_t key = 0; key < got.size(); ++key) threads.emplace_back([&, key] { got[key] = work(key); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(got, want);
}

/// Wants the first two arrays together, and each other one alone.
struct PairFirst final : EarlyResults::Listener {
  void written(size_t, const void*) noexcept override { ADD_FAILURE() << "that is told by runs of the CPU"; }
  void failed() noexcept override { ADD_FAILURE() << "the run has failed"; }
  int32_t group(size_t i) const noexcept override { return i < 2 ? 0 : static_cast<int32_t>(i); }
};

TEST(DeviceSteps, ResultsThatAreWantedEarlyHaveTicketsOfTheirOwn) {
  const Array x = full({24, 24}, 0.25f) | some_device();
  for (int run = 0; run < 5; ++run) {  // the last ones are graphs, where the device has them
    std::vector<Array> wanted{matmul(x, x)};
    for (int i = 0; i < 4; ++i) wanted.push_back(matmul(wanted.back(), x));
    PairFirst listener;
    const EarlyResults early(wanted, listener);
    eval();
    std::vector<uint64_t> written, made;
    for (const Array& y : wanted) {
      const auto& block = static_cast<const DeviceBlock&>(*y.node()->buffer);
      written.push_back(block.written_by.load().number());
      made.push_back(block.made_by.load().number());
    }
    const uint64_t last = made.back();
    EXPECT_EQ(made, std::vector<uint64_t>(5, last));
    EXPECT_EQ(written, (std::vector<uint64_t>{last - 3, last - 3, last - 2, last - 1, last}));
    EXPECT_EQ(wanted[1].to_vector(), (matmul(wanted[0], x)).to_vector());
  }
}

TEST(DeviceSteps, AnArrayOutlivesTheThreadThatMadeIt) {
  const Device device = some_device();
  Array evaluated, pending;
  std::thread([&] {
    const Array x = Array({1.0f, 2.0f, 3.0f}, {3}) | device;
    evaluated = x * 2;
    eval(evaluated);
    pending = evaluated + 1;
  }).join();
  EXPECT_EQ((evaluated + 0).to_vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(pending.to_vector<float>(), (std::vector<float>{3, 5, 7}));
}

TEST(DeviceSteps, ArraysOfTwoDevicesInOneOpAreRefused) {
  const Array there = ones({2}) | some_device(), here = ones({2});
  eval();
  try {
    there + here;
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_NE(std::string(error.what()).find(to_string(Device()).substr(0, 3)), std::string::npos) << error.what();
  }
  EXPECT_EQ((there + 1).to_vector<float>(), (std::vector<float>{2, 2}));
}

TEST(DeviceSteps, AnIndexOutOfRangeIsTheErrorOfTheCpu) {
  const auto text_on = [](const Device& device) -> std::string {
    const Array x = arange(6) | device;
    const Array at = Array({1, 9}, {2}) | device;
    try {
      eval(gather(x, at, 0));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(text_on(some_device()), text_on(Device()));
}

TEST(DeviceSteps, AStepThatFailsLeavesModelAndState) {
  struct Table {
    Array w;
  };
  const auto run = [](const Device& device) {
    Table model = Table{reshape(cast(arange(12), Float32), {3, 4})} | device;
    State state = setup(Adam{.eta = 0.1}, model);
    const auto step = [&](const Array& at) {
      const auto g = gradient([&](const Table& t) { return sum(square(gather(t.w, at, 1))); }, model);
      update(state, model, g);
    };
    step(Array({0, 2}, {2}) | device);
    const std::vector<double> before = model.w.to_vector<double>();
    EXPECT_THROW(
        {
          step(Array({1, 7}, {2}) | device);
          synchronize(device);  // a step on a device does not wait for what it finds
        },
        Error);
    EXPECT_EQ(model.w.to_vector<double>(), before);
    step(Array({1, 3}, {2}) | device);
    return model.w.to_vector<double>();
  };
  const std::vector<double> there = run(some_device()), here = run(Device());
  ASSERT_EQ(there.size(), here.size());
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-5);
}

TEST(DeviceMemory, UnusedBlocksAreGivenBackBeforeMemoryRunsOut) {
  const Device device = some_device();
  trim();
  trim(device);
  const int64_t live = memory_stats(device).live;
  set_memory_limit(device, live + (int64_t{3} << 20));
  for (int i = 1; i <= 8; ++i) eval((ones({i * 30000}) | device) + 1);  // of ever other sizes
  EXPECT_LE(memory_stats(device).live + memory_stats(device).cached, live + (int64_t{3} << 20));
  set_memory_limit(device, 0);
}

/// The sum of a chain whose middle stands in an arena.
double chain(const Array& w, const Array& x) {
  const auto product = [&] { return sum(tanh(matmul(w, tanh(matmul(w, x))))); };
  return product().item();
}

TEST(DeviceMemory, PlansInTurnShareOneArenaAndPlanNothingAnew) {
  const Device device = some_device();
  const Array w = full({16, 16}, 0.1f) | device, a = full({16, 3000}, 0.5f) | device,
              b = full({16, 2600}, 0.5f) | device;
  const double first = chain(w, a), second = chain(w, b);
  const Stats before = stats();
  const MemoryStats memory = memory_stats(device);
  // (An arena of its own would want some 100 KiB more.)
  set_memory_limit(device, memory.live + memory.cached + (int64_t{16} << 10));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(chain(w, a), first);
    EXPECT_EQ(chain(w, b), second);
  }
  set_memory_limit(device, 0);
  EXPECT_EQ(stats().layouts, before.layouts);
  EXPECT_EQ(stats().structures, before.structures);
  EXPECT_EQ(stats().allocations, before.allocations);
  EXPECT_EQ(memory_stats(device).live, memory.live);
}

TEST(DeviceMemory, ARunThatFailsGivesItsArenaBack) {
  const Device device = some_device();
  const Array w = full({16, 16}, 0.1f) | device, x = full({16, 300}, 0.5f) | device;
  const auto pick = [&](int column) {
    const Array at = Array(std::vector<int>{column}, {1}) | device;  // no constant, which would stay there
    const auto picked = [&] { return sum(gather(tanh(matmul(w, x)), at, 1)); };
    return picked().item();
  };
  const double good = pick(3);
  const Stats before = stats();
  const int64_t live = memory_stats(device).live;
  for (int i = 0; i < 5; ++i) {
    EXPECT_THROW(pick(300), Error);
    EXPECT_EQ(memory_stats(device).live, live);
  }
  EXPECT_EQ(pick(3), good);
  EXPECT_EQ(stats().allocations, before.allocations);
}

TEST(DeviceMemory, TrimGivesIdleArenasBackAndPlansStay) {
  const Device device = some_device();
  const Array w = full({16, 16}, 0.1f) | device, x = full({16, 300}, 0.5f) | device;
  const double want = chain(w, x);
  const Stats before = stats();
  EXPECT_GT(memory_stats(device).cached, 0);
  trim(device);
  EXPECT_EQ(memory_stats(device).cached, 0);
  EXPECT_EQ(chain(w, x), want);
  EXPECT_EQ(stats().layouts, before.layouts);
}

TEST(DeviceMemory, RunningOutNamesTheLargestArraysAndTheDeviceWorksOn) {
  struct Two {
    Array small, large;
  };
  const Device device = some_device();
  trim();
  trim(device);
  const Two model = Two{ones({1000}), ones({300000})} | device;
  set_memory_limit(device, memory_stats(device).live + (int64_t{1} << 20));
  try {
    eval((ones({3000000}) | device) + 1);
    ADD_FAILURE() << "there was memory";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    for (const char* part : {"out of memory on ", "requested ", "live ", "cached ", "largest live arrays: ", "large "})
      EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  set_memory_limit(device, 0);
  EXPECT_EQ(sum(model.large + 1).item(), 600000);
}

}  // namespace
}  // namespace rosin
