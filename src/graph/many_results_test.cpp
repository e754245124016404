// Nodes with several results, by the example of sort and topk: one step, of which each result lives for itself.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/gradient_rules.hpp>
#include <rosin/move.hpp>
#include <rosin/reduce.hpp>
#include <rosin/sort.hpp>

#include "../tests/test_device.hpp"
#include "graph/context.hpp"
#include "graph/record.hpp"
#include "plan/plan_testing.hpp"

namespace rosin {
namespace {

Array numbers() { return Array({3.0f, 1.0f, 5.0f, 2.0f, 4.0f}, {5}); }
using Floats = std::vector<float>;
using Places = std::vector<int32_t>;

TEST(SeveralResults, AreOneStep) {
  const Array x = numbers();
  EXPECT_EQ(launches([&] { return topk(x, 2); }), (Launched{.kernels = 0, .calls = 1}));
  EXPECT_EQ(launches([&] { return sort(x); }), (Launched{.kernels = 0, .calls = 1}));
  const TopK best = topk(x, 2);
  EXPECT_EQ(best.values.to_vector(), (Floats{5, 4}));
  EXPECT_EQ(best.indices.to_vector<int32_t>(), (Places{2, 4}));
  const Device device = some_device();
  const Array there = device(x);
  eval();
  EXPECT_EQ(launches([&] { return topk(there, 2); }), (Launched{.kernels = 0, .calls = 1}));
  const TopK least = topk(there, 3, 0, false);
  EXPECT_EQ(least.values.to_vector(), (Floats{1, 2, 3}));
  EXPECT_EQ(least.indices.to_vector<int32_t>(), (Places{1, 3, 0}));
}

TEST(SeveralResults, ThatNobodyReadsTakeNoMemory) {
  const Array x = ones({1000});
  eval();
  const auto written = [](auto&& f) { return counted(f).written_bytes; };
  EXPECT_EQ(written([&] { return topk(x, 100); }), 800);
  EXPECT_EQ(written([&] { return topk(x, 100).values; }), 400);
  EXPECT_EQ(written([&] { return topk(x, 100).indices; }), 400);
  for (const Device& device : {cpu_device(), some_device()}) {
    const Array y = device(numbers());
    EXPECT_EQ(topk(y, 3).values.to_vector(), (Floats{5, 4, 3}));
    EXPECT_EQ(topk(y, 3).indices.to_vector<int32_t>(), (Places{2, 4, 0}));
    EXPECT_EQ((topk(y, 3).values + topk(y, 3).indices).to_vector(), (Floats{7, 8, 3}));
  }
}

TEST(SeveralResults, TheirOpEndsWithTheLastOfThem) {
  const Array x = numbers();
  eval();
  const int64_t pending = Context::current().pending_count();
  {
    TopK best = topk(x, 2);
    EXPECT_EQ(Context::current().pending_count(), pending + 3);
    best.values = Array();
    EXPECT_EQ(Context::current().pending_count(), pending + 2);
  }
  EXPECT_EQ(Context::current().pending_count(), pending);
  EXPECT_EQ(x.node()->references(), 0u);
  const TopK best = topk(x, 2);
  eval();
  EXPECT_EQ(Context::current().pending_count(), pending);
  EXPECT_EQ(x.node()->references(), 0u);
}

TEST(SeveralResults, EachMayBeReadByAnotherThreadAtAnotherTime) {
  const Array x = numbers();
  TopK best = topk(x * 2.0f, 2);
  Floats read;
  std::thread([&] { read = best.values.to_vector(); }).join();
  EXPECT_EQ(read, (Floats{10, 8}));
  best.values = Array();
  EXPECT_EQ(best.indices.to_vector<int32_t>(), (Places{2, 4}));
  TopK left;
  std::thread([&] { left = topk(x * 2.0f, 2, 0, false); }).join();
  EXPECT_EQ(left.values.to_vector(), (Floats{2, 4}));
  EXPECT_EQ(left.indices.to_vector<int32_t>(), (Places{1, 3}));
}

TEST(SeveralResults, RecordedTwiceStandOnce) {
  const Array x = numbers();
  const auto both = [&] {
    const TopK best = topk(x, 2);
    const Array again = record_part(best.values.node()->in[0], 0, {Float32, {2}});
    return best.values * 10.0f + again;
  };
  EXPECT_EQ(launches(both), (Launched{.kernels = 1, .calls = 1}));
  EXPECT_EQ(both().to_vector(), (Floats{55, 44}));
}

// d sum(w * sort(x)) / dx = w at the place of each element.
TEST(SeveralResults, TheRuleOfTheirOpIsAskedOnce) {
  const Array weights({1.0f, 10.0f, 100.0f}, {3});
  const auto loss = [&](const Array& x) {
    const TopK best = topk(x, 3);
    return sum(best.values * weights) + sum(best.values * best.values) + sum(cast(best.indices, Float32));
  };
  EXPECT_EQ(gradient(loss, numbers()).to_vector(), (Floats{100 + 6, 0, 1 + 10, 0, 10 + 8}));
  const auto by_places = [](const Array& x) { return sum(cast(topk(x, 2).indices, Float32)) + sum(x) * 0.0f; };
  EXPECT_EQ(gradient(by_places, numbers()).to_vector(), (Floats{0, 0, 0, 0, 0}));
  EXPECT_EQ(gradient([](const Array& x) { return sum(sort(x)); }, numbers()).to_vector(), (Floats{1, 1, 1, 1, 1}));
}

TEST(SeveralResults, SecondGradientsPass) {
  const auto slope = [](const Array& x) {
    const auto cubes = [](const Array& y) {
      const Array z = topk(y, 2).values;
      return sum(z * z * z);
    };
    return sum(gradient(cubes, x) * Array({1.0f, 1.0f, 2.0f, 1.0f, 3.0f}, {5}));
  };
  EXPECT_EQ(gradient(slope, numbers()).to_vector(), (Floats{0, 0, 2 * 6 * 5, 0, 3 * 6 * 4}));
}

TEST(SeveralResults, AReadInsideAGradientCallChangesNothing) {
  const auto loss = [](bool reads) {
    return [reads](const Array& x) {
      const Array values = topk(x * 2.0f, 2).values;
      if (reads) {
        EXPECT_EQ(values.to_vector(), (Floats{10, 8}));
      }
      return sum(values * values);
    };
  };
  EXPECT_EQ(gradient(loss(false), numbers()).to_vector(), (Floats{0, 0, 40, 0, 32}));
  EXPECT_EQ(gradient(loss(true), numbers()).to_vector(), (Floats{0, 0, 40, 0, 32}));
}

TEST(SeveralResults, ACheckpointRecordsThemAgain) {
  const auto best = [](const Array& x) {
    const TopK found = topk(tanh(x), 3);
    return found.values * (found.indices + 1);
  };
  const auto plain = [&](const Array& x) { return sum(square(best(x))); };
  const auto saving = [&](const Array& x) { return sum(square(checkpoint(best)(x))); };
  EXPECT_EQ(gradient(plain, numbers()).to_vector(), gradient(saving, numbers()).to_vector());
}

TEST(SeveralResults, OfConstantsFollowToOtherDevices) {
  const Device device = some_device();
  const Array x = device(Array({1.0f, 2.0f}, {2}));
  const TopK best = topk(full({3}, 4.0f) * 2, 2);
  const Array made = x * best.values + best.indices;
  EXPECT_EQ(made.node()->device, x.node()->device);
  EXPECT_EQ(made.to_vector(), (Floats{8, 17}));
}

}  // namespace
}  // namespace rosin
