// Memory of training steps, with operator new replaced: a steady step allocates nothing and memory stays flat, and a
// failed allocation, wherever it happens, leaves model and state as they were.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/model.hpp>
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

// Steps until all that is kept for later steps is there. On a busy machine the first run behind its thread comes late.
constexpr int warm_up = 500;

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

}  // namespace
}  // namespace rosin
