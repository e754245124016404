// Tests of evaluation: what gets a value and when, what is computed once, what is overwritten, errors of kernels.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "../tests/sanitizer_testing.hpp"
#include "graph/context.hpp"
#include "graph/run_gate.hpp"

namespace rosin {
namespace {

using Values = std::vector<float>;

bool has_value(const Array& x) { return x.node()->ready(); }
const void* memory_of(const Array& x) { return x.node()->data(); }

/// An array with its values, made from numbers.
Array data(const Values& values) { return Array(values, {static_cast<int64_t>(values.size())}); }

/// Kernels and calls launched since it was made.
class Launches {
 public:
  Launches() : before_(stats()) {}
  int64_t kernels() const { return stats().kernels - before_.kernels; }
  int64_t calls() const { return stats().calls - before_.calls; }

 private:
  Stats before_;
};

int64_t resident_bytes() {
  long long pages = 0, resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "re");
  EXPECT_EQ(std::fscanf(file, "%lld %lld", &pages, &resident), 2);
  std::fclose(file);
  return static_cast<int64_t>(resident) * sysconf(_SC_PAGESIZE);
}

TEST(Evaluate, WhatOnlyAnotherThreadsNodeNeedsIsNotOverwritten) {
  for (const bool ends : {true, false}) {
    eval();
    Array x = data({1, 2, 3});
    Array shared = x * 2, inner = shared + 1;
    const Array here = shared * 3;
    Array there;
    std::atomic<bool> made{false}, done{false};
    std::thread other([&] {
      there = inner * 10;
      made = true;
      while (!ends && !done) std::this_thread::yield();
    });
    while (!made) std::this_thread::yield();
    if (ends) other.join();
    x = shared = inner = Array();
    eval();
    EXPECT_EQ(here.to_vector(), (Values{6, 12, 18}));
    EXPECT_EQ(there.to_vector(), (Values{30, 50, 70}));
    done = true;
    if (!ends) other.join();
  }
}

TEST(Evaluate, ALastUseKeepsNothingOfItsExpression) {
  eval();
  const Array x = data({1, 2, 3});
  const Array product = x * 2, wide = expand(x, {3, 2});
  EXPECT_EQ(sum(product + wide).item(), 36);
  EXPECT_FALSE(has_value(product)) << "as a temporary of the expression would not";
  EXPECT_FALSE(has_value(wide));
  EXPECT_EQ((product + 1).to_vector(), (Values{3, 5, 7}));
  EXPECT_TRUE(has_value(product)) << "it was there for an evaluation before";
  EXPECT_EQ(product.to_vector(), (Values{2, 4, 6}));
  EXPECT_EQ(wide.to_vector(), (Values{1, 2, 3, 1, 2, 3}));
}

TEST(Evaluate, ALastUseKeepsCallsAndWhatElseIsHeld) {
  eval();
  const Array x = data({1, 2, 3}), other = x - 1;
  const Array total = sum(x * 3), scaled = total * 2, copy = scaled;
  const Array twice = x * 2, again = twice;
  eval(exp(scaled) + twice);
  EXPECT_TRUE(has_value(total)) << "costs more than an element";
  EXPECT_TRUE(has_value(scaled)) << "needs what does";
  EXPECT_TRUE(has_value(twice)) << "has two handles";
  EXPECT_TRUE(has_value(other)) << "is no part of it";
  EXPECT_EQ(other.to_vector(), (Values{0, 1, 2}));
}

TEST(Evaluate, LastUsesInALoopComputeNothingMoreThanTwice) {
  eval();
  Array x = data({1, 2, 3});
  double total = 0;
  const int64_t before = Context::current().pending_count();
  for (int i = 0; i < 50; ++i) {
    x = x * 0.5 + 1;
    total += sum(x).item();
    EXPECT_LE(Context::current().pending_count(), before + 8) << i;
  }
  EXPECT_NEAR(total, 50 * 6, 1e-4);
  EXPECT_NEAR(x.item(0), 2, 1e-6);
}

TEST(Evaluate, WhatAPassedHandleReadsIsNotOverwritten) {
  eval();
  Array x = data({1, 2, 3});
  const Array product = x * 2;
  x = x + product;
  EXPECT_EQ((std::move(x) + 1).to_vector(), (Values{4, 7, 10}));
  EXPECT_EQ(product.to_vector(), (Values{2, 4, 6}));
}

TEST(Evaluate, OnlyWhatAHandleHoldsGetsAValue) {
  eval();
  const Array x = data({1, 2, 3});
  Node* inner = nullptr;
  Array y;
  {
    const Array dropped = x * 2;
    inner = dropped.node();
    y = dropped + 1;
  }
  const Array z = y * y;
  const Array outer = sum(z);
  const int64_t before = stats().live_bytes;
  EXPECT_FALSE(inner->ready());
  EXPECT_EQ(outer.item(), 9 + 25 + 49);
  EXPECT_TRUE(has_value(y) && has_value(z) && has_value(outer));
  EXPECT_EQ(stats().live_bytes - before, 3 * 128);  // y, z and outer; nothing for what nobody holds
}

TEST(Evaluate, ReadingOneValueComputesEverythingThatIsHeld) {
  const Array x = data({1, 2});
  const Array a = x + 1, b = exp(x), c = sum(x);
  a.item(0);
  EXPECT_TRUE(has_value(b) && has_value(c));
  const Launches launches;
  EXPECT_EQ(c.item(), 3);
  EXPECT_EQ(launches.kernels(), 0);
}

TEST(Evaluate, NothingIsComputedForHandlesThatWereDropped) {
  eval();
  const Launches launches;
  {
    const Array x = data({1, 2});
    Array y = matmul(reshape(x, {1, 2}), reshape(x, {2, 1}));
    y = exp(y);
  }
  eval();
  EXPECT_EQ(launches.kernels() + launches.calls(), 0);
}

TEST(Evaluate, AHeldIntermediateKeepsItsValueOverLaterSteps) {
  Array w = data({1, 1, 1});
  const Array x = data({1, 2, 3});
  Array middle = w * x, kept_view = slice(middle, 0, 1, 3), kept_alias = reshape(middle, {3, 1});
  for (int step = 0; step < 20; ++step) {
    const Array y = middle * w;
    w = w + y * 0.1;
    middle = w * x;
    if (step == 4) kept_view = slice(middle, 0, 1, 3), kept_alias = reshape(middle, {3, 1});
    eval();
    if (step == 4) {
      const Values view = kept_view.to_vector(), alias = kept_alias.to_vector();
      EXPECT_EQ(view, (Values{alias[1], alias[2]}));
    }
  }
  Array again = data({1, 1, 1}), other = again * x;
  for (int step = 0; step < 5; ++step) {
    again = again + other * again * 0.1;
    other = again * x;
    eval();
  }
  EXPECT_EQ(kept_alias.to_vector(), other.to_vector());
  EXPECT_EQ(kept_view.to_vector(), slice(other, 0, 1, 3).to_vector());
}

TEST(Evaluate, ALoopThatReadsNothingIsEvaluatedInWholeTurns) {
  const Array weight = full({3, 3}, 0.25f);
  Array state = ones({3, 1});
  eval(weight, state);
  constexpr int ops = 7;
  const auto turns = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const Array next = matmul(weight, exp(-state)) * 0.5f + square(state);
      state = next / (next + 1.0f);
    }
  };
  turns(3 * pending_limit / ops);
  const Stats before = stats();
  turns(2 * pending_limit / ops);
  EXPECT_EQ(stats().structures, before.structures);
  EXPECT_EQ(stats().layouts, before.layouts);
  EXPECT_GE(stats().evaluations - before.evaluations, 10);
  Array same = ones({3, 1});
  for (int i = 0; i < 3 * pending_limit / ops + 2 * pending_limit / ops; ++i) {
    const Array next = matmul(weight, exp(-same)) * 0.5f + square(same);
    same = next / (next + 1.0f);
    eval(same);
  }
  EXPECT_EQ(state.to_vector(), same.to_vector());
}

TEST(Evaluate, ARunningMeanStaysFlatInMemoryAndWork) {
  Array mean = 0.0;
  const Array x = full({64}, 0.25);
  eval(x);
  double expected = 0;
  int64_t resident = 0, bytes = 0;
  for (int step = 0; step < 100000; ++step) {
    const Array loss = sum(x * (step % 7));
    mean = 0.9 * mean + 0.1 * loss;
    expected = 0.9 * expected + 0.1 * 16 * (step % 7);
    if (step % 5 == 0) eval();
    if (step == 30000) resident = resident_bytes(), bytes = stats().live_bytes;
  }
  EXPECT_LE(stats().live_bytes, bytes + 4096);
  if (counts_memory) {
    EXPECT_LE(resident_bytes(), resident + (2 << 20));
  }
  const Launches launches;
  EXPECT_NEAR(mean.item(), expected, 1e-3 * expected);
  EXPECT_LE(launches.kernels(), 8);  // the last few steps, not all of them
}

TEST(Evaluate, ALoopThatNeverReadsEvaluatesByItself) {
  Array mean = data({0, 0});
  double expected = 0;
  for (int step = 0; step < 100000; ++step) {
    mean = 0.5 * mean + step % 3;
    expected = 0.5 * expected + step % 3;
    ASSERT_LE(Context::current().pending_count(), 2 * 20000);
  }
  EXPECT_NEAR(mean.item(1), expected, 1e-5);
}

TEST(Evaluate, AReadInTheMiddleOfAStepChangesNothing) {
  const auto step = [](bool read) {
    Array w = data({1, 2, 3, 4});
    for (int i = 0; i < 10; ++i) {
      const Array y = tanh(w * 0.3), z = exp(-y);
      if (read) y.item(2), z.item(0);
      w = w - z * y * 0.1;
      if (read) sum(w).item();
    }
    return w.to_vector();
  };
  EXPECT_EQ(step(false), step(true));
}

TEST(Evaluate, AnAlreadyEvaluatedGraphCostsNothing) {
  const Array x = data({1, 2});
  const Array y = x * 3;
  eval();
  const Stats before = stats();
  for (int i = 0; i < 10; ++i) eval(), eval(y), y.item(0);
  EXPECT_EQ(stats().evaluations, before.evaluations);
}

TEST(Donation, AnArrayThatNobodyElseHoldsIsOverwritten) {
  Array w = data({1, 2, 3});
  const void* memory = memory_of(w);
  for (int i = 0; i < 5; ++i) {
    w = w * 2 - 1;
    eval();
    EXPECT_EQ(memory_of(w), memory);
  }
  EXPECT_EQ(w.to_vector(), (Values{1, 33, 65}));
}

TEST(Donation, ASnapshotKeepsItsValues) {
  Array w = data({1, 2, 3});
  const Array snapshot = w;
  w = w * 2;
  eval();
  EXPECT_NE(memory_of(w), memory_of(snapshot));
  w = w + 1;
  eval();
  EXPECT_EQ(snapshot.to_vector(), (Values{1, 2, 3}));
  EXPECT_EQ(w.to_vector(), (Values{3, 5, 7}));
}

TEST(Donation, AnAliasThatIsHeldKeepsItsValues) {
  Array w = data({1, 2, 3, 4});
  const Array alias = reshape(w, {2, 2}), view = slice(w, 0, 1, 3), turned = transpose(reshape(w, {2, 2}));
  w = w * 10;  // the views are still pending here
  eval();
  EXPECT_EQ(alias.to_vector(), (Values{1, 2, 3, 4}));
  EXPECT_EQ(view.to_vector(), (Values{2, 3}));
  EXPECT_EQ(turned.to_vector(), (Values{1, 3, 2, 4}));
  Array v = data({1, 2, 3, 4});
  const Array first = reshape(v, {2, 2});
  eval();  // from now on both stand in one memory
  EXPECT_EQ(memory_of(first), memory_of(v));
  v = v + 1;
  eval();
  EXPECT_EQ(first.to_vector(), (Values{1, 2, 3, 4}));
  EXPECT_EQ(v.to_vector(), (Values{2, 3, 4, 5}));
}

TEST(Donation, ALeafThatAnotherPendingNodeReadsIsNotOverwritten) {
  Array w = data({1, 2, 3});
  Array later = w + 100;
  w = w * 2;
  eval(w);
  EXPECT_EQ(later.to_vector(), (Values{101, 102, 103}));
  Array v = data({1, 2, 3});
  const Array product = matmul(reshape(v, {1, 3}), reshape(v, {3, 1}));
  v = v * product.item();
  EXPECT_EQ(v.to_vector(), (Values{14, 28, 42}));
}

TEST(Donation, AnUpdateThatReadsOtherElementsOfItselfIsRight) {
  Array w = data({1, 2, 3, 4});
  for (int i = 0; i < 3; ++i) {
    w = w + flip(w, 0);
    eval();
  }
  EXPECT_EQ(w.to_vector(), (Values{20, 20, 20, 20}));
  Array v = data({1, 2, 3, 4});
  v = v - sum(v) / 4;
  EXPECT_EQ(v.to_vector(), (Values{-1.5, -0.5, 0.5, 1.5}));
  Array m = Array({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2});
  m = m + transpose(m);
  EXPECT_EQ(m.to_vector(), (Values{2, 5, 5, 8}));
  Array n = Array({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2});
  n = matmul(n, n) + n;
  EXPECT_EQ(n.to_vector(), (Values{8, 12, 18, 26}));
}

TEST(Donation, TwoUpdatesOfOneArrayAreBothRight) {
  Array w = data({1, 2, 3});
  const Array a = w * 2, b = w * 3;
  w = Array();
  eval();
  EXPECT_EQ(a.to_vector(), (Values{2, 4, 6}));
  EXPECT_EQ(b.to_vector(), (Values{3, 6, 9}));
}

TEST(Donation, AnotherTypeOrShapeTakesNewMemory) {
  Array w = data({1.6f, 2.4f, 3.2f});
  w = cast(w, Int32);
  EXPECT_EQ(w.to_vector<int32_t>(), (std::vector<int32_t>{1, 2, 3}));
  w = w + reshape(w, {1, 3});
  EXPECT_EQ(w.to_vector<int32_t>(), (std::vector<int32_t>{2, 3, 4, 3, 4, 5, 4, 5, 6}));
}

TEST(KernelErrors, AreThrownAgainAtTheNextReadAndLeaveTheRestUsable) {
  const Array table = data({1, 2, 3}), indices = Array({0, 7}, {2});
  Array w = data({5, 6});
  const Values before = w.to_vector();
  {
    const Array bad = gather(table, indices);
    const Array after = bad + w;
    Array next = w * 2;
    for (int i = 0; i < 3; ++i) {
      try {
        after.item(0);
        ADD_FAILURE() << "nothing was thrown";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::argument);
        EXPECT_NE(std::string(error.what()).find("7"), std::string::npos) << error.what();
      }
    }
    EXPECT_THROW(eval(), Error);
    EXPECT_EQ(w.to_vector(), before);
  }
  eval();
  w = w + gather(table, Array({0, 1}, {2}));
  EXPECT_EQ(w.to_vector(), (Values{6, 8}));
}

TEST(KernelErrors, OverwriteNothing) {
  Array w = data({5, 6});
  const void* memory = memory_of(w);
  Array bad = gather(data({1, 2, 3}), Array({0, 3}, {2}));
  w = w * 2;
  EXPECT_THROW(eval(), Error);
  EXPECT_EQ(static_cast<const float*>(memory)[0], 5);
  bad = Array();
  EXPECT_EQ(w.to_vector(), (Values{10, 12}));
  EXPECT_EQ(memory_of(w), memory);
}

/// The text of the error that computing throws, or nothing.
template <class Compute> std::string error_of(Compute compute) {
  try {
    compute();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(KernelErrors, OfAHeldArrayStopNoReadOfAnother) {
  const Array bad = gather(data({1, 2, 3}), Array({9}, {1}));
  const Array first = data({1, 2}) * 2;
  EXPECT_EQ(first.to_vector(), (Values{2, 4}));
  const Array second = first + 1, needs = bad * 2;
  EXPECT_EQ(second.to_vector(), (Values{3, 5}));
  EXPECT_EQ(error_of([&] { needs.item(0); }).substr(0, 8), "gather: ");
  EXPECT_EQ(error_of([&] { bad.item(0); }).substr(0, 8), "gather: ");
  EXPECT_EQ((second * 2).to_vector(), (Values{6, 10}));
}

TEST(KernelErrors, OfAHeldArrayAreThrownAtOneBoundaryWithItsName) {
  for (const bool read_before : {false, true}) {
    const Array bad = gather(data({1, 2, 3}), Array({9}, {1}));
    const Array good = data({1, 2}) * 2;
    if (read_before) good.item(0);
    const std::string text = error_of([] { eval(); });
    EXPECT_NE(text.find("got 9"), std::string::npos) << text;
    EXPECT_NE(text.find("a result of gather, (1) Float32"), std::string::npos) << text;
    eval();
    EXPECT_TRUE(has_value(good));
    EXPECT_EQ(error_of([&] { bad.item(0); }).find("a result of"), std::string::npos);  // who asked knows the array
  }
}

TEST(KernelErrors, OfADroppedArrayAreThrownNowhere) {
  Array bad = gather(data({1, 2, 3}), Array({9}, {1}));
  EXPECT_EQ((data({1, 2}) * 2).to_vector(), (Values{2, 4}));
  bad = Array();
  eval();
}

TEST(KernelErrors, OfSeveralArraysAreThrownOneAtATime) {
  const Array table = data({1, 2, 3});
  std::vector<Array> held;
  for (int i = 0; i < 20; ++i) held.push_back(i % 7 == 3 ? gather(table, Array({i + 10}, {1})) : table * i);
  for (const char* came : {"got 13", "got 20", "got 27"}) {
    const std::string text = error_of([] { eval(); });
    EXPECT_NE(text.find(came), std::string::npos) << text;
  }
  eval();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(has_value(held[static_cast<size_t>(i)]), i % 7 != 3);
}

TEST(KernelErrors, OfAHeldArrayChangeNothingOfWhatSharesItsOperands) {
  Array w = data({5, 6});
  const Array inner = w * 3;
  const Array bad = gather(inner + 1, Array({9}, {1}));
  w = w + inner;
  EXPECT_EQ(w.to_vector(), (Values{20, 24}));
  EXPECT_THROW(bad.item(0), Error);
  w = w * 2;
  EXPECT_EQ(w.to_vector(), (Values{40, 48}));
  EXPECT_EQ(inner.to_vector(), (Values{15, 18}));
}

TEST(KernelErrors, OfManyHeldArraysDoNotMakeRecordingEvaluateAtEachOp) {
  const Array bad = gather(data({1, 2, 3}), Array({9}, {1}));
  std::vector<Array> held;
  EXPECT_THROW(
      {
        for (int64_t i = 0; i < pending_limit + 10; ++i) held.push_back(bad + 1);
      },
      Error);
  const int64_t before = stats().evaluations;
  for (int i = 0; i < 100; ++i) held.push_back(bad + 1);
  EXPECT_EQ(stats().evaluations, before);
}

TEST(KernelErrors, OfMemoryStopNoReadOfAnother) {
  const Array huge = zeros({int64_t{1} << 46}) + 1;
  const Array good = data({1, 2}) * 2;
  EXPECT_EQ(good.to_vector(), (Values{2, 4}));
  try {
    eval();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find("(70368744177664) Float32"), std::string::npos) << error.what();
  }
  eval();
  EXPECT_THROW(huge.item(0), Error);
}

TEST(KernelErrors, InAGradientCallLeaveTheThreadUsable) {
  const Array w = data({1, 2, 3});
  const auto f = [](const Array& x) {
    const Array y = gather(x, Array({5}, {1}));
    y.item(0);
    return sum(y);
  };
  EXPECT_THROW(gradient(f, w), Error);
  EXPECT_FALSE(in_gradient());
  EXPECT_EQ(gradient([](const Array& x) { return sum(x * x); }, w).to_vector(), (Values{2, 4, 6}));
}

TEST(Random, DrawsDoNotDependOnWhenTheyAreEvaluated) {
  const auto draw = [](int way) {
    seed(7);
    Array a = uniform({5}), b = normal({4}), c;
    if (way == 1) b.item(0);
    if (way == 2) eval();
    c = uniform({3}) + a.item(0) * 0;
    const Values x = a.to_vector(), y = b.to_vector(), z = c.to_vector();
    Values all(x);
    all.insert(all.end(), y.begin(), y.end());
    all.insert(all.end(), z.begin(), z.end());
    return all;
  };
  EXPECT_EQ(draw(0), draw(1));
  EXPECT_EQ(draw(0), draw(2));
}

TEST(Random, ADroppedDrawThatIsUsedTwiceIsTheSameDraw) {
  const Array x = uniform({100});
  Array y;
  {
    const Array noise = uniform({100});
    y = (x + noise) - noise - x;
  }
  for (float value : y.to_vector()) EXPECT_NEAR(value, 0, 1e-6);
}

/// Opens, or is closed as long as others are not ready.
class Gate final : public RunGate {
 public:
  explicit Gate(bool opens) : opens_(opens) {}
  void memory_is_there(size_t bytes) override {
    ++times;
    fresh = bytes;
    if (!opens_) throw Error(ErrorKind::memory, "another process has no memory");
    is_open_ = true;
  }
  int times = 0;
  size_t fresh = 0;

 private:
  bool opens_;
};

TEST(RunGate, EndsARunBeforeItOverwritesAnything) {
  Array x = data({1, 2, 3});
  const void* const memory = memory_of(x);
  const Array zero = data({0}), other = exp(zero);
  x = x + 1;
  {
    Gate gate(false);
    EXPECT_THROW(eval(), Error);
    EXPECT_EQ(gate.times, 1) << "it is not tried in parts";
  }
  EXPECT_FALSE(has_value(x));
  EXPECT_FALSE(has_value(other));
  EXPECT_EQ(static_cast<const float*>(memory)[0], 1);
  Gate gate(true);
  eval();
  EXPECT_EQ(gate.times, 1);
  EXPECT_EQ(gate.fresh, 64u) << "only `other` takes memory, in whole lines";
  EXPECT_EQ(memory_of(x), memory);
  EXPECT_EQ(x.to_vector(), (Values{2, 3, 4}));
  EXPECT_EQ(other.to_vector(), Values{1});
}

}  // namespace
}  // namespace rosin
