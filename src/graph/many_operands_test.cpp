// Nodes with any number of operands: how they are recorded, counted, evaluated, differentiated and dropped.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/gradient_rules.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "../tests/test_device.hpp"
#include "graph/context.hpp"
#include "plan/plan_testing.hpp"

namespace rosin {
namespace {

constexpr int many = 1000;

/// (2 i, 2 i + 1) for each i.
std::vector<Array> pairs(int count) {
  std::vector<Array> made;
  for (int i = 0; i < count; ++i) {
    const float first = 2.0f * static_cast<float>(i);
    made.push_back(Array({first, first + 1}, {2}));
  }
  return made;
}

void expect_counts_up(const Array& x, int64_t count) {
  const std::vector<float> values = x.to_vector();
  ASSERT_EQ(static_cast<int64_t>(values.size()), count);
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<float>(i));
}

TEST(ManyOperands, AThousandArraysAreJoinedInOneStep) {
  const std::vector<Array> parts = pairs(many);
  EXPECT_EQ(launches([&] { return concat(parts, 0); }), (Launched{.kernels = 0, .calls = 1}));
  EXPECT_EQ(launches([&] { return stack(parts, 0); }), (Launched{.kernels = 0, .calls = 1}));
  EXPECT_EQ(launches([&] { return stack(parts, 1); }), (Launched{.kernels = 0, .calls = 1}));
  expect_counts_up(concat(parts, 0), 2 * many);
  expect_counts_up(stack(parts, 1), 2 * many);
  EXPECT_EQ(stack(parts, 0).shape(), (Shape{many, 2}));
  EXPECT_EQ(select(stack(parts, 0), 1, 1).to_vector()[many - 1], 2 * many - 1);
}

TEST(ManyOperands, SoAreTheyOnAnotherDevice) {
  const Device device = some_device();
  std::vector<Array> parts;
  for (const Array& x : pairs(many)) parts.push_back(x | device);
  eval();
  EXPECT_EQ(launches([&] { return concat(parts, 0); }), (Launched{.kernels = 0, .calls = 1}));
  expect_counts_up(concat(parts, 0), 2 * many);
  expect_counts_up(flatten(stack(parts, 1)), 2 * many);
}

TEST(ManyOperands, ConstantsFollowToTheDeviceOfTheOthers) {
  const Device device = some_device();
  std::vector<Array> parts = pairs(9);
  parts[2] = parts[2] | device;
  parts[5] = full({2}, 7.0f) * 2;
  const Array joined = concat(parts, 0);
  EXPECT_EQ(joined.node()->device, parts[2].node()->device);
  const std::vector<float> values = joined.to_vector();
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i / 2 == 5 ? 14.0f : static_cast<float>(i));
}

TEST(ManyOperands, EachIsCountedAndLetGoOf) {
  const std::vector<Array> parts = pairs(7);
  eval();
  const int64_t pending = Context::current().pending_count();
  {
    const Array joined = concat(parts, 0), twice = concat({parts[0], parts[0], parts[0], parts[0], parts[0]}, 0);
    EXPECT_EQ(parts[0].node()->references(), 6u);
    EXPECT_EQ(parts[6].node()->references(), 1u);
    EXPECT_EQ(joined.node()->arrays().size(), 7u);
    EXPECT_EQ(twice.node()->operand_count(), 5);
  }
  EXPECT_EQ(Context::current().pending_count(), pending);
  const Array joined = concat(parts, 0);
  for (const Array& x : parts) EXPECT_EQ(x.node()->references(), 1u);
  eval();
  for (const Array& x : parts) EXPECT_EQ(x.node()->references(), 0u);
  EXPECT_TRUE(joined.node()->arrays().empty());
}

TEST(ManyOperands, ALongChainOfThemEndsWithoutRecursion) {
  const Array empty = zeros({0});
  eval(empty);
  detail::GradientCall call;  // inside one nothing is evaluated by itself
  Array joined = empty;
  for (int i = 0; i < 200000; ++i) joined = concat({empty, empty, empty, empty, joined}, 0);
  joined = Array();
  EXPECT_EQ(empty.node()->references(), 0u);
}

TEST(ManyOperands, EqualPatternsOfOtherOperandsAreOtherPlans) {
  const Array a({1.0f}, {1}), b({2.0f}, {1});
  EXPECT_EQ(concat({a, b, a, b, b}, 0).to_vector(), (std::vector<float>{1, 2, 1, 2, 2}));
  EXPECT_EQ(concat({a, b, a, a, b}, 0).to_vector(), (std::vector<float>{1, 2, 1, 1, 2}));
  EXPECT_EQ(concat({a, b, a, b, b, a}, 0).to_vector(), (std::vector<float>{1, 2, 1, 2, 2, 1}));
  EXPECT_EQ(concat({a + 1, b, a, b, b}, 0).to_vector(), (std::vector<float>{2, 2, 1, 2, 2}));
}

// NumPy: concatenate along each axis of x[i] = i + reshape(0.5 * arange(6), ...) gives these elements.
TEST(ManyOperands, StridedEmptyAndConvertedOnesStandInTheirPlaces) {
  std::vector<Array> parts;
  for (int i = 0; i < 9; ++i) {
    const Array x = cast(reshape(arange(6), {3, 2}), Float32) * 0.5f + static_cast<float>(i);
    parts.push_back(i == 4 ? zeros({2, 0}) : i % 3 == 1 ? transpose(x) : permute(x, {1, 0}));
  }
  parts.push_back(cast(reshape(arange(4), {2, 2}), Int32));
  const Array along = concat(parts, 1);
  ASSERT_EQ(along.shape(), (Shape{2, 26}));
  const std::vector<float> values = along.to_vector();
  for (size_t i = 0; i < 24; ++i) {
    const size_t part = i / 3 < 4 ? i / 3 : i / 3 + 1;
    for (size_t row = 0; row < 2; ++row) {
      EXPECT_EQ(values[2 * i + row], static_cast<float>(part) + 0.5f * static_cast<float>(i % 3 + 3 * row));
    }
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(values[48 + i], static_cast<float>(i));
}

TEST(ManyOperands, JoinedRowsOfStridedOnesAreFoundFromAnyPlace) {
  std::vector<Array> parts;
  for (int i = 0; i < 6; ++i) parts.push_back(transpose(cast(reshape(arange(40), {8, 5}), Float32) + 100 * i));
  const std::vector<float> values = concat(parts, 0).to_vector();
  for (int64_t column = 0; column < 8; ++column) {
    for (int64_t row = 0; row < 30; ++row) {
      const auto wanted = static_cast<float>(100 * (row / 5) + column + 8 * (row % 5));
      ASSERT_EQ(values[static_cast<size_t>(column * 30 + row)], wanted);
    }
  }
}

TEST(ManyOperands, EachGetsItsPartOfTheGradient) {
  const Array weights = cast(arange(2 * many), Float32);
  const std::vector<Array> parts = pairs(many);
  const auto slope = [&](size_t which, size_t also) {
    return gradient(
        [&](const Array& x) {
          std::vector<Array> all = parts;
          all[which] = x * 3.0f;
          all[also] = x;
          return sum(concat(all, 0) * weights);
        },
        parts[which]);
  };
  EXPECT_EQ(slope(0, 1).to_vector(), (std::vector<float>{2, 3 + 3}));
  EXPECT_EQ(slope(many - 1, 7).to_vector(), (std::vector<float>{3 * 1998 + 14, 3 * 1999 + 15}));
}

TEST(ManyOperands, AllOfThemAreArgumentsAndSecondGradientsPass) {
  const std::vector<Array> parts = pairs(9);
  const auto cubes = [](const std::vector<Array>& x) {
    const Array joined = concat(x, 0);
    return sum(joined * joined * joined);
  };
  const std::vector<Array> slopes = gradient(cubes, parts);
  ASSERT_EQ(slopes.size(), 9u);
  EXPECT_EQ(slopes[8].to_vector(), (std::vector<float>{3 * 16 * 16, 3 * 17 * 17}));
  const auto first = [&](const std::vector<Array>& x) { return sum(gradient(cubes, x)[3]); };
  EXPECT_EQ(gradient(first, parts)[3].to_vector(), (std::vector<float>{6 * 6, 6 * 7}));
}

TEST(ManyOperands, ACheckpointRecordsThemAgain) {
  const Array x = cast(arange(4), Float32);
  const auto joined = [](const Array& y) { return tanh(concat({y, y * 2.0f, y, tanh(y), y * y, y}, 0)); };
  const auto plain = [&](const Array& y) { return sum(square(joined(y))); };
  const auto saving = [&](const Array& y) { return sum(square(checkpoint(joined)(y))); };
  EXPECT_EQ(gradient(plain, x).to_vector(), gradient(saving, x).to_vector());
}

TEST(ManyOperands, PassFromThreadToThread) {
  const std::vector<Array> parts = pairs(6);
  Array joined;
  std::vector<Array> pending;
  std::thread([&] {
    for (const Array& x : parts) pending.push_back(x * 2.0f);
    joined = concat(pending, 0) / 2.0f;
  }).join();
  expect_counts_up(joined, 12);
  for (Array& x : pending) x = x / 2.0f;
  const Array here = concat(pending, 0);
  std::thread([&] { expect_counts_up(here, 12); }).join();
  Array left;
  std::thread([&] { left = concat(pending, 0); }).join();
  left = Array();
  eval();  // this thread lets go of what another one has evaluated for it
  for (const Array& x : pending) EXPECT_EQ(x.node()->references(), 0u);
}

TEST(ManyOperands, AnEmptyOneIsRefused) {
  const Array x({1.0f}, {1});
  EXPECT_THROW(concat({x, x, x, x, x, Array()}, 0), Error);
}

}  // namespace
}  // namespace rosin
