// Memory of training steps, with operator new replaced: a steady step allocates nothing and memory stays flat, and a
// failed allocation, wherever it happens, leaves model and state as they were.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/autocast.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/device.hpp>
#include <rosin/dropout.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/embedding.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/loss.hpp>
#include <rosin/loss_scale.hpp>
#include <rosin/matmul.hpp>
#include <rosin/model.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>
#include <rosin/train.hpp>

namespace {

/// Counts what this thread takes from the heap, and lets one allocation fail.
struct Heap {
  bool counting = false;
  int64_t taken = 0;
  int64_t fail_at = 0;  // 0: never

  bool fails() {
    if (!counting) return false;
    return ++taken == fail_at;
  }
};
thread_local Heap heap;

void* take(size_t bytes, size_t alignment) noexcept {
  if (heap.fails()) return nullptr;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes > 0 ? bytes : 1);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
void* take_or_throw(size_t bytes, size_t alignment) {
  if (void* block = take(bytes, alignment)) return block;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t bytes) { return take_or_throw(bytes, 1); }
void* operator new[](size_t bytes) { return take_or_throw(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return take_or_throw(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return take(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete[](void* block, size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept { std::free(block); }

namespace rosin {
namespace {

struct Affine {
  Array weight, bias;
};
struct Net {
  Affine hidden, out;
  Array operator()(const Array& x) const {
    return matmul(out.weight, tanh(matmul(hidden.weight, x) + hidden.bias)) + out.bias;
  }
};

Array ramp(const Shape& shape) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.count(); ++i) values.push_back(static_cast<float>(i * 7 % 11) / 11.0f - 0.4f);
  return Array(values, shape);
}

struct Task {
  Net model{{ramp({5, 3}), ramp({5})}, {ramp({2, 5}), ramp({2})}};
  Array x = ramp({3, 4}), y = ramp({2, 4});
  State state = setup(Adam{.eta = 0.01}, model);

  Array loss(const Net& m) const { return mean(square(m(x) - y)); }
  void step() {
    const auto result = withgradient([this](const Net& m) { return loss(m); }, model);
    update(state, model, result.gradient);
  }
};

/// Every element of model and state, to the bit.
std::vector<double> elements(const Task& task) {
  std::vector<double> all;
  const auto append = [&](const Array& x) {
    const std::vector<double> values = x.to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  };
  for (const Array& x : fleaves(task.model)) append(x);
  for (const Array& x : fleaves(task.state)) append(x);
  return all;
}

// Steps until all that is kept for later steps is there.
constexpr int warm_up = 20;

TEST(Steady, StepsAllocateNothingAndMemoryStaysFlat) {
  Task task;
  for (int i = 0; i < warm_up; ++i) task.step();
  const Stats before = stats();
  heap = {.counting = true};
  for (int i = 0; i < 10000; ++i) task.step();
  heap.counting = false;
  const Stats after = stats();
  EXPECT_EQ(heap.taken, 0);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_EQ(after.pooled_bytes, before.pooled_bytes);
  EXPECT_EQ(after.cache_bytes, before.cache_bytes);
  EXPECT_EQ(after.structures, before.structures);
}

/// Joins few arrays, which stand in the node, and more, which do not.
struct Joining {
  Affine hidden;
  Array operator()(const Array& x) const {
    const Array h = matmul(hidden.weight, x) + hidden.bias;
    const Array few = concat({h, tanh(h), h}, 0);
    return mean(square(concat({few, h, few, h, few, tanh(few), h}, 0)));
  }
};

TEST(Steady, JoiningArraysAllocatesNothing) {
  Joining model{{ramp({5, 3}), ramp({5})}};
  State state = setup(Adam{.eta = 0.01}, model);
  const Array x = ramp({3, 4});
  const auto step = [&] {
    const auto result = withgradient([&](const Joining& m) { return m(x); }, model);
    update(state, model, result.gradient);
  };
  for (int i = 0; i < warm_up; ++i) step();
  const Stats before = stats();
  heap = {.counting = true};
  for (int i = 0; i < 1000; ++i) step();
  heap.counting = false;
  EXPECT_EQ(heap.taken, 0);
  EXPECT_EQ(stats().live_bytes, before.live_bytes);
}

TEST(Steady, TrainAllocatesNothing) {
  Task task;
  const std::vector<int> items(warm_up, 0), more(1000, 0);
  const auto loss = [&](const Net& m, int) { return task.loss(m); };
  train(loss, task.model, items, task.state);
  heap = {.counting = true};
  train(loss, task.model, more, task.state);
  heap.counting = false;
  EXPECT_EQ(heap.taken, 0);
}

TEST(Steady, AMeanOfLossesThatIsHeldStaysFlat) {
  Task task;
  Array average = 0.0f;
  const auto step = [&] {
    const auto result = withgradient([&](const Net& m) { return task.loss(m); }, task.model);
    average = 0.9 * average + 0.1 * result.value;
    update(task.state, task.model, result.gradient);
  };
  for (int i = 0; i < warm_up; ++i) step();
  const Stats before = stats();
  heap = {.counting = true};
  for (int i = 0; i < 1000; ++i) step();
  heap.counting = false;
  EXPECT_EQ(heap.taken, 0);
  EXPECT_EQ(stats().live_bytes, before.live_bytes);
  EXPECT_GT(average.item(), 0);
}

TEST(Steady, HalfTypesWithALossScaleAllocateNothing) {
  Task task;
  task.state = setup(LossScale{Adam{.eta = 0.01}}, task.model);
  const auto step = [&] {
    const auto result = withgradient(
        [&](const Net& m) {
          const auto scope = autocast(Float16);
          return scaled_loss(task.state, task.loss(m));
        },
        task.model);
    update(task.state, task.model, result.gradient);
  };
  for (int i = 0; i < warm_up; ++i) step();
  const Stats before = stats();
  heap = {.counting = true};
  for (int i = 0; i < 1000; ++i) step();
  heap.counting = false;
  EXPECT_EQ(heap.taken, 0);
  EXPECT_EQ(stats().live_bytes, before.live_bytes);
  EXPECT_EQ(stats().structures, before.structures);
}

/// Lets the first, second, ... allocation of a step fail until a step needs no more; returns how many there were.
int fail_everywhere(bool cached) {
  Task reference;
  reference.step();
  reference.step();
  const std::vector<double> expected = elements(reference);
  for (int n = 1;; ++n) {
    Task task;
    task.step();
    const std::vector<double> before = elements(task);
    if (!cached) trim();
    bool failed = false;
    heap = {.counting = true, .fail_at = n};
    try {
      task.step();
    } catch (const std::bad_alloc&) {
      failed = true;
    } catch (const Error& error) {
      failed = error.kind() == ErrorKind::memory;
    }
    const bool reached = heap.taken >= n;
    heap.counting = false;
    if (!reached) return n - 1;
    if (failed) {
      EXPECT_EQ(elements(task), before) << "allocation " << n;
      task.step();
    }
    EXPECT_EQ(elements(task), expected) << "allocation " << n;
    if (::testing::Test::HasFailure()) return n;
  }
}

TEST(Steady, AFailedAllocationLeavesModelAndStateAsTheyWere) {
  EXPECT_GT(fail_everywhere(false), 50);
  fail_everywhere(true);
}

TEST(Steady, AFailedAllocationInCompilingLeavesModelAndStateAsTheyWere) {
  set_plan_cache(false);
  EXPECT_GT(fail_everywhere(false), 100);
  set_plan_cache(true);
}

// ---- On a device that computes nothing and counts what it is asked for ----

class NullDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (!functional("null")) GTEST_SKIP() << why_not("null");
    device_ = get_device("null", 0);
    const auto file = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "rosin" / "librosin_null.so";
    void* plugin = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(plugin, nullptr) << dlerror();
    counts_ = reinterpret_cast<uint64_t (*)(const char*)>(dlsym(plugin, "rosin_null_counts"));
    ASSERT_NE(counts_, nullptr);
  }

  /// What many steady steps ask of the device and of the heap.
  template <class Step> void expect_one_graph_a_step(Step step, uint64_t most_updates) {
    constexpr uint64_t steps = 100;
    for (int i = 0; i < 100; ++i) step();  // streams have their events by then
    constexpr const char* none[] = {"launch",       "stream_sync", "alloc",    "alloc_pinned", "event_create",
                                    "graph_create", "graph_add",   "copy_out", "compile"};
    std::vector<uint64_t> before;
    for (const char* name : none) before.push_back(counts_(name));
    const uint64_t graphs = counts_("graph_launch"), updates = counts_("graph_update");
    heap = {.counting = true};
    for (uint64_t i = 0; i < steps; ++i) step();
    heap.counting = false;
    EXPECT_EQ(heap.taken, 0);
    EXPECT_EQ(counts_("graph_launch") - graphs, steps);
    EXPECT_LE(counts_("graph_update") - updates, most_updates * steps);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(counts_(none[i]), before[i]) << none[i];
  }

  Device device_;
  uint64_t (*counts_)(const char*) = nullptr;
};

struct MLP {
  Dense hidden{784, 256, relu}, out{256, 10};
  Array operator()(const Array& x) const { return out(hidden(x)); }
};

TEST_F(NullDevice, AStepIsOneGraphWithOneUpdate) {
  MLP model = MLP{} | device_;
  State state = setup(Adam{}, model);
  const Array x = ramp({784, 8}) | device_, y = ramp({10, 8}) | device_;
  // Adam's powers of beta change.
  expect_one_graph_a_step(
      [&] {
        const auto result = withgradient([&](const MLP& m) { return logitcrossentropy(m(x), y); }, model);
        update(state, model, result.gradient);
      },
      1);
}

TEST_F(NullDevice, AStepOnABatchThatIsCopiedToTheDeviceIsOneGraphWithThreeUpdates) {
  MLP model = MLP{} | device_;
  State state = setup(Adam{}, model);
  const Array x = ramp({784, 8}), y = ramp({10, 8});
  Array last;
  expect_one_graph_a_step(
      [&] {
        const Array batch = x | device_, wanted = y | device_;
        const auto result = withgradient([&](const MLP& m) { return logitcrossentropy(m(batch), wanted); }, model);
        update(state, model, result.gradient);
      },
      3);
}

/// Letters in, letters out.
struct Reader {
  Embedding letters{30, 16};
  Dropout first{0.1}, second{0.2};
  Dense hidden{16, 32, tanh}, out{32, 30};
  Array operator()(const Array& x) const { return out(second(hidden(first(letters(x))))); }
};

TEST_F(NullDevice, AStepOfTrainWithAnEmbeddingDropoutAndClippingIsOneGraph) {
  Reader model = Reader{} | device_;
  State state = setup(OptimiserChain(ClipNorm{1.0}, Adam{}), model);
  const Array x = full({8}, 3, Int32) | device_, y = ramp({30, 8}) | device_;
  const auto loss = [&](const Reader& m, int) { return logitcrossentropy(m(x), y); };
  const std::vector<int> warm(200, 0), items(100, 0);
  train(loss, model, warm, state);
  const char* none[] = {"launch", "stream_sync", "alloc", "alloc_pinned", "graph_create", "graph_add"};
  std::vector<uint64_t> before;
  for (const char* name : none) before.push_back(counts_(name));
  const uint64_t events = counts_("event_create"), waits = counts_("event_sync"), copies = counts_("copy_out");
  const uint64_t graphs = counts_("graph_launch"), updates = counts_("graph_update");
  heap = {.counting = true};
  train(loss, model, items, state);
  heap.counting = false;
  // (At the end it waits for its last step, by a copy of the loss with an event.)
  EXPECT_LE(heap.taken, 1);
  EXPECT_LE(counts_("event_create") - events, 1u);
  EXPECT_LE(counts_("copy_out") - copies, 1u);  // (the guard comes back by a node of the graph)
  EXPECT_EQ(counts_("event_sync") - waits, 1u);
  EXPECT_EQ(counts_("graph_launch") - graphs, items.size());
  EXPECT_LE(counts_("graph_update") - updates, 3 * items.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(counts_(none[i]), before[i]) << none[i];
}

}  // namespace
}  // namespace rosin
