// An allocation fails at every point of a step, one after the other: nothing is lost, and the same step then succeeds.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

namespace {

// Allocations until one fails; negative: none does.
std::atomic<int64_t> until_failure{-1};

bool fails() {
  if (until_failure.load(std::memory_order_relaxed) < 0) return false;
  return until_failure.fetch_sub(1) == 0;
}

void* allocate(size_t bytes, size_t alignment) noexcept {
  if (fails()) return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(size_t bytes, size_t alignment) {
  void* memory = allocate(bytes == 0 ? 1 : bytes, alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

[[gnu::noinline]] void release(void* memory) noexcept { std::free(memory); }

constexpr size_t usual = alignof(std::max_align_t);

}  // namespace

void* operator new(size_t bytes) { return allocate_or_throw(bytes, usual); }
void* operator new[](size_t bytes) { return allocate_or_throw(bytes, usual); }
void* operator new(size_t bytes, std::align_val_t a) { return allocate_or_throw(bytes, static_cast<size_t>(a)); }
void* operator new[](size_t bytes, std::align_val_t a) { return allocate_or_throw(bytes, static_cast<size_t>(a)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, usual); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, usual); }
void* operator new(size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<size_t>(a));
}
void* operator new[](size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<size_t>(a));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { release(memory); }

namespace rosin {
namespace {

using Values = std::vector<float>;

struct Model {
  Array w, b, v;
};

/// A model, its running means and what one step gives.
struct Training {
  Model model, mean;
  Array x, loss;
};

Training fresh(int64_t batch) {
  const auto wave = [](const Shape& shape) { return reshape(sin(cast(arange(shape.count()), Float32)), shape) * 0.3; };
  Training t{{wave({40, 30}), wave({40}), wave({7, 40})}, {}, wave({30, batch}), {}};
  t.mean = {zeros({40, 30}), zeros({40}), zeros({7, 40})};
  eval();
  return t;
}

/// Records a step; the training changes only when all of it is recorded.
void record_step(Training& t) {
  const auto loss = [&](const Model& m) {
    return -mean(sum(logsoftmax(matmul(m.v, relu(matmul(m.w, t.x) + m.b))), 0)) + mean(transpose(m.w) * 0.1);
  };
  auto [value, g] = withgradient(loss, t.model);
  const auto moved = [](const Array& average, const Array& by) { return 0.9 * average + 0.1 * by; };
  Model mean{moved(t.mean.w, g.w), moved(t.mean.b, g.b), moved(t.mean.v, g.v)};
  Model next{t.model.w - 0.1 * mean.w, t.model.b - 0.1 * mean.b, t.model.v - 0.1 * mean.v};
  t.mean = std::move(mean);
  t.model = std::move(next);
  t.loss = std::move(value);
}

Values values_of(const Training& t) {
  Values all;
  for (const Array* x : {&t.model.w, &t.model.b, &t.model.v, &t.mean.w, &t.mean.b, &t.mean.v}) {
    const Values part = x->to_vector();
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

enum class Failed { nothing, recording, evaluation };

/// One step in which the n-th allocation fails. (An evaluation may do without: it tries once more, in parts.)
Failed step_with_failure(Training& t, int64_t n) {
  bool recorded = false;
  until_failure = n;
  try {
    record_step(t);
    recorded = true;
    eval();
  } catch (const std::bad_alloc&) {
    EXPECT_FALSE(recorded) << "an evaluation throws Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory) << error.what();
  }
  const bool failed = until_failure.exchange(-1) < 0;
  return !failed ? Failed::nothing : recorded ? Failed::evaluation : Failed::recording;
}

class Allocation : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_num_threads(GetParam()); }
  void TearDown() override {
    until_failure = -1;
    set_num_threads(0);
  }
};

TEST_P(Allocation, AFailureAtAnyPointOfAFirstStepLosesNothing) {
  constexpr int64_t batch = 300;
  Training reference = fresh(batch);
  record_step(reference);
  eval();
  const Values expected = values_of(reference);
  const Values before = values_of(fresh(batch));
  int64_t failures = 0, in_evaluation = 0;
  for (int64_t n = 0; n < 5000; n += n < 1500 ? 1 : 7) {
    trim();  // a first step: plans are made, memory comes from the system
    Training t = fresh(batch);
    trim();
    const Failed failed = step_with_failure(t, n);
    if (failed == Failed::recording) {
      ASSERT_EQ(values_of(t), before) << "allocation " << n;
      record_step(t);
    }
    eval();
    ASSERT_EQ(values_of(t), expected) << "allocation " << n << " failed in " << static_cast<int>(failed);
    failures += failed != Failed::nothing;
    in_evaluation += failed == Failed::evaluation;
  }
  EXPECT_GT(failures, 100);
  EXPECT_GT(in_evaluation, 100);
}

TEST_P(Allocation, AFailureInASteadyStepLosesNothing) {
  constexpr int64_t batch = 300;
  Training reference = fresh(batch);
  for (int i = 0; i < 3; ++i) record_step(reference), eval();
  const Values expected = values_of(reference);
  for (int64_t n = 0; n < 60; ++n) {
    Training t = fresh(batch);
    for (int i = 0; i < 2; ++i) record_step(t), eval();
    if (step_with_failure(t, n) == Failed::recording) record_step(t);
    eval();
    ASSERT_EQ(values_of(t), expected) << "allocation " << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, Allocation, testing::Values(1, 3));

}  // namespace
}  // namespace rosin
