// Tests of gradient calls: what they give, nesting, and evaluation inside them.
#include <rosin/grad.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/log.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "../tests/error_testing.hpp"
#include "graph/context.hpp"

namespace rosin {
namespace {

using Values = std::vector<float>;

Array data(const Values& values) { return Array(values, {static_cast<int64_t>(values.size())}); }

struct Layers {
  std::vector<Array> weights;
  Array bias;
};

Layers layers(int count) {
  Layers made{{}, data({0.1f, -0.2f, 0.3f, 0.4f})};
  for (int i = 0; i < count; ++i) made.weights.push_back(reshape(sin(cast(arange(16), Float32) + i), {4, 4}) * 0.4);
  eval();
  return made;
}

const auto no_read = [](const Array&) {};
const auto read_it = [](const Array& x) { x.to_vector(); };

/// A deep network's loss; `after` sees the result of every op.
template <class After> Array loss_of(const Layers& m, const Array& x, After after) {
  Array y = x;
  for (const Array& w : m.weights) {
    y = matmul(w, y);
    after(y);
    y = y + m.bias;
    after(y);
    y = tanh(y);
    after(y);
  }
  const Array loss = mean(y * y);
  after(loss);
  return loss;
}

TEST(GradientCall, ReadingEveryResultLeavesTheGradientAsItIs) {
  const Layers m = layers(6);
  const Array x = reshape(cos(cast(arange(20), Float32)), {4, 5});
  const auto plain = gradient([&](const Layers& q) { return loss_of(q, x, no_read); }, m);
  const auto read = gradient([&](const Layers& q) { return loss_of(q, x, read_it); }, m);
  const auto evaluated = gradient([&](const Layers& q) { return loss_of(q, x, [](const Array&) { eval(); }); }, m);
  for (size_t i = 0; i < m.weights.size(); ++i) {
    EXPECT_EQ(plain.weights[i].to_vector(), read.weights[i].to_vector()) << i;
    EXPECT_EQ(plain.weights[i].to_vector(), evaluated.weights[i].to_vector()) << i;
  }
  EXPECT_EQ(plain.bias.to_vector(), read.bias.to_vector());
}

/// Kernels and calls of one gradient of a network of this depth.
template <class After> int64_t launches(int depth, After after) {
  const Layers m = layers(depth);
  const Array x = ones({4, 5});
  eval();
  const Stats before = stats();
  const auto g = gradient([&](const Layers& q) { return loss_of(q, x, after); }, m);
  eval();
  return stats().kernels + stats().calls - before.kernels - before.calls;
}

TEST(GradientCall, ReadingEveryResultCostsLinearWork) {
  const int64_t eight = launches(8, read_it), sixteen = launches(16, read_it), thirty_two = launches(32, read_it);
  EXPECT_LE(sixteen - eight, 8 * 12);
  EXPECT_LE(thirty_two - sixteen, 2 * (sixteen - eight));
  EXPECT_LE(launches(16, no_read), sixteen);
}

TEST(GradientCall, AProductEvaluatedInsideIsNotComputedAgain) {
  const Layers m = layers(5);
  const Array x = ones({4, 5});
  eval();
  const auto calls = [&](bool read) {
    const Stats before = stats();
    const auto g = gradient(
        [&](const Layers& q) {
          const Array loss = loss_of(q, x, no_read);
          if (read) loss.item();
          return loss;
        },
        m);
    eval();
    return stats().calls - before.calls;
  };
  EXPECT_EQ(calls(true), calls(false));
  EXPECT_EQ(calls(false), 5 + 5 + 4);  // forward, by weights, by inputs
}

TEST(GradientCall, ADrawEvaluatedInsideIsTheSameDraw) {
  const Array x = ones({50});
  const auto run = [&](bool read) {
    seed(3);
    Array seen;
    const Array g = gradient(
        [&](const Array& a) {
          const Array mask = uniform({50});
          const Array loss = sum(a * a * mask);
          if (read) loss.item();
          seen = mask;
          return loss;
        },
        x);
    EXPECT_EQ(g.to_vector(), (seen * 2).to_vector());
    return g.to_vector();
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(GradientCall, NothingIsOverwrittenInsideIt) {
  Array w = data({1, 2, 3});
  const auto g = gradient(
      [](const Array& a) {
        Array y = a * 2;
        for (int i = 0; i < 3; ++i) {
          y = y * y;
          eval();
        }
        return sum(y);
      },
      w);
  EXPECT_EQ(g.to_vector(), (Values{8 * 256, 8 * 256 * 128, 8 * 256 * 2187}));
  EXPECT_EQ(w.to_vector(), (Values{1, 2, 3}));
}

TEST(GradientCall, AfterItsEndNothingOfItIsKept) {
  Layers m = layers(4);
  const Array x = ones({4, 5});
  const auto step = [&] {
    const auto g = gradient([&](const Layers& q) { return loss_of(q, x, read_it); }, m);
    for (size_t i = 0; i < m.weights.size(); ++i) m.weights[i] = m.weights[i] - 0.1 * g.weights[i];
    eval();
  };
  for (int i = 0; i < 3; ++i) step();
  const int64_t bytes = stats().live_bytes;
  for (int i = 0; i < 50; ++i) step();
  EXPECT_EQ(stats().live_bytes, bytes);
  EXPECT_EQ(Context::current().pending_count(), 0);
}

TEST(GradientCall, NumbersArraysModelsAndTuplesAreArguments) {
  const auto [a, b, c] = gradient([](const Array& x, const Array& y, const Array& z) { return x * y * z; }, 2, 3, 5);
  EXPECT_EQ(a.item(), 15);
  EXPECT_EQ(b.item(), 10);
  EXPECT_EQ(c.item(), 6);
  const auto g = gradient([](const std::tuple<Array, Array>& t) { return sum(std::get<0>(t) * std::get<1>(t)); },
                          std::tuple(data({1, 2}), data({3, 4})));
  EXPECT_EQ(std::get<0>(g).to_vector(), (Values{3, 4}));
  const auto [value, gradients] =
      withgradient([](const Array& x) { return std::tuple(sum(x * x), x + 1, 7); }, data({1, 2}));
  EXPECT_EQ(std::get<0>(value).item(), 5);
  EXPECT_EQ(std::get<1>(value).to_vector(), (Values{2, 3}));
  EXPECT_EQ(std::get<2>(value), 7);
  EXPECT_EQ(gradients.to_vector(), (Values{2, 4}));
}

TEST(GradientCall, OneArrayPassedTwiceHasTwoGradients) {
  const Array x = data({1, 2});
  const auto [a, b] = gradient([](const Array& p, const Array& q) { return sum(p * p + 3 * q); }, x, x);
  EXPECT_EQ(a.to_vector(), (Values{2, 4}));
  EXPECT_EQ(b.to_vector(), (Values{3, 3}));
}

TEST(GradientCall, ACapturedArrayIsAConstant) {
  const Array x = data({1, 2});
  const Array g = gradient([&](const Array& p) { return sum(p * x + x * x); }, x);
  EXPECT_EQ(g.to_vector(), (Values{1, 2}));
}

TEST(GradientCall, WhatIsPendingBeforeTheCallIsAConstantInside) {
  const Array x = data({1, 2});
  const Array y = x * x, z = y + 1;
  const Array g = gradient(
      [&](const Array& p) {
        y.item(0);  // evaluated inside although it was recorded outside
        return sum(p * z);
      },
      y);
  EXPECT_EQ(g.to_vector(), (Values{2, 5}));
}

TEST(GradientCall, GradientsNest) {
  const auto cube = [](const Array& x) { return sum(x * x * x); };
  const auto first = [&](const Array& x) { return gradient(cube, x); };
  const auto second = [&](const Array& x) { return gradient([&](const Array& p) { return sum(first(p)); }, x); };
  const auto third = [&](const Array& x) { return gradient([&](const Array& p) { return sum(second(p)); }, x); };
  const Array x = data({1, 2, -3});
  EXPECT_EQ(first(x).to_vector(), (Values{3, 12, 27}));
  EXPECT_EQ(second(x).to_vector(), (Values{6, 12, -18}));
  EXPECT_EQ(third(x).to_vector(), (Values{6, 6, 6}));
}

TEST(GradientCall, AnInnerGradientMayDependOnTheOuterArgument) {
  // d/dx of x * d/dy (x * y^2) at y = 3 is d/dx of 6 x^2.
  const auto outer = [](const Array& x) {
    const Array inner = gradient([&](const Array& y) { return x * y * y; }, 3.0);
    return x * inner;
  };
  EXPECT_EQ(gradient(outer, 2.0).item(), 24);
  // the inner argument is not the outer one, although both are the same array (perturbations do not mix)
  const auto mixed = [](const Array& x) { return x * gradient([&](const Array& y) { return x + y; }, x); };
  EXPECT_EQ(gradient(mixed, 5.0).item(), 1);
}

TEST(GradientCall, NestedGradientsSurviveReads) {
  const auto penalty = [](bool read) {
    return gradient(
               [&](const Array& w) {
                 const Array g = gradient(
                     [&](const Array& x) {
                       const Array y = sum(tanh(x * w) * w);
                       if (read) y.item();
                       return y;
                     },
                     data({0.5f, -1.0f}));
                 if (read) g.item(0);
                 const Array loss = sum(g * g) + sum(w);
                 if (read) loss.item();
                 return loss;
               },
               data({0.3f, 0.7f}))
        .to_vector();
  };
  EXPECT_EQ(penalty(true), penalty(false));
}

TEST(GradientCall, AThrowInsideEndsTheCall) {
  const Array x = data({1, 2});
  const auto bad = [](const Array& a) -> Array {
    const Array kept = a * 2;
    kept.item(0);
    gradient([](const Array& b) -> Array { throw std::runtime_error(b.is_nothing() ? "" : "inner"); }, a);
    return sum(kept);
  };
  EXPECT_THROW(gradient(bad, x), std::runtime_error);
  EXPECT_FALSE(in_gradient());
  EXPECT_EQ(gradient([](const Array& a) { return sum(a * a); }, x).to_vector(), (Values{2, 4}));
}

TEST(GradientCall, ALossOfManyElementsOrWithoutNumbersIsRefused) {
  const Array x = data({1, 2});
  EXPECT_EQ(error_of([&] { gradient([](const Array& a) { return a * 2; }, x); }),
            "gradient: the loss must have one element; got (2) Float32; reduce it with mean or sum");
  EXPECT_EQ(error_of([&] { gradient([](const Array& a) { return sum(cast(a, Int32)); }, x); }),
            "gradient: the loss must be a float; got Int64; convert it with cast(loss, Float32)");
  EXPECT_EQ(error_of([&] { gradient([](const Array&) { return Array(); }, x); }),
            "gradient: the loss is nothing; return an array of one element");
  EXPECT_EQ(gradient([](const Array& a) { return reshape(sum(a * 3), {1, 1}); }, x).to_vector(), (Values{3, 3}));
}

class Warnings : public testing::Test {
 protected:
  void SetUp() override {
    forget_said();
    set_log_sink(
        [](const LogMessage& m, void* said) { static_cast<std::vector<std::string>*>(said)->emplace_back(m.text); },
        &said_);
  }
  void TearDown() override { set_log_sink(nullptr); }
  std::vector<std::string> said_;
};

TEST_F(Warnings, ALossThatReachesNoArgumentSaysSo) {
  const Array x = data({1, 2}), other = data({3, 4});
  const Array g = gradient([&](const Array&) { return sum(other); }, x);
  EXPECT_TRUE(g.is_nothing());
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0], "gradient: the loss does not depend on any argument, so there is no gradient");
}

TEST_F(Warnings, AFunctionThatUsesTheCapturedModelIsTold) {
  const Layers m = layers(1);
  const Layers g = gradient([&](const Layers&) { return sum(m.weights[0]); }, m);
  EXPECT_TRUE(g.weights[0].is_nothing());
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_NE(said_[0].find("captured"), std::string::npos) << said_[0];
}

TEST(GradientCall, StopGradientStopsIt) {
  const Array g = gradient([](const Array& a) { return sum(a * stop_gradient(a)); }, data({3, 4}));
  EXPECT_EQ(g.to_vector(), (Values{3, 4}));
}

TEST(GradientCall, EqualGradientsComeInTheShapeOfTheirArgument) {
  const Array row = ones({1, 3}), column = data({1, 2});
  const auto [by_row, by_column] =
      gradient([](const Array& r, const Array& c) { return mean(-(r + c) / 4.0); }, row, column);
  EXPECT_EQ(by_row.shape(), Shape({1, 3}));
  EXPECT_EQ(by_row.to_vector(), Values(3, -1.f / 12));
  EXPECT_EQ(by_column.shape(), Shape{2});
  EXPECT_EQ(by_column.to_vector(), Values(2, -1.f / 8));
  const Array by_cube = gradient([](const Array& a) { return sum(reshape(a, {4, 2})); }, ones({2, 2, 2}));
  EXPECT_EQ(by_cube.shape(), Shape({2, 2, 2}));
  EXPECT_EQ(by_cube.to_vector(), Values(8, 1));
  const Array of_itself = gradient([](const Array& a) { return a; }, Array({3.0}, Shape{}));
  EXPECT_EQ(of_itself.dtype(), Float64);
  EXPECT_EQ(of_itself.rank(), 0);
  EXPECT_EQ(of_itself.item(), 1);
}

TEST(GradientCall, NumbersInItAreAsExactAsItsArrays) {
  const Array x({1.0, 2.0, 3.0}, {3});
  const auto third = [](const Array& a) { return sum(a) / 3.0; };
  EXPECT_EQ(gradient(third, x).to_vector<double>(), std::vector<double>(3, 1 / 3.0));
  EXPECT_EQ((ones({1}, Float64) * (Array(1.0) / 3.0)).item(), 1 / 3.0);
  const auto weighted = [](const Array& a) { return sum(a * arange(3)) / 3.0; };
  EXPECT_EQ(gradient(weighted, x).to_vector<double>(), (std::vector<double>{0, 1 / 3.0, 2 / 3.0}));
}

TEST(GradientCall, ALargeGraphIsWalkedWithoutRecursion) {
  const Array x = data({1, 1});
  const Array g = gradient(
      [](const Array& a) {
        Array y = a;
        for (int i = 0; i < 5000; ++i) y = y + a * 0.001;
        return sum(y);
      },
      x);
  EXPECT_NEAR(g.item(1), 6, 1e-3);
}

TEST(GradientCall, ThreadsShareOneConstModel) {
  const Layers m = layers(3);
  const Array x = ones({4, 5});
  eval();
  const auto expected = gradient([&](const Layers& q) { return loss_of(q, x, no_read); }, m).weights[1].to_vector();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 5; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        const bool read = (i + t) % 2 == 0;
        const auto f = [&](const Layers& q) { return read ? loss_of(q, x, read_it) : loss_of(q, x, no_read); };
        if (gradient(f, m).weights[1].to_vector() != expected) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace rosin
