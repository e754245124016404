// Slices that are looks at the memory of a whole: which ones are, and that nobody sees it.
#include <gtest/gtest.h>

#include <numeric>

#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/loss.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>
#include <rosin/rule.hpp>
#include <rosin/stats.hpp>

#include "graph/context.hpp"
#include "graph/leaf.hpp"

namespace rosin {
namespace {

using Values = std::vector<float>;

constexpr int64_t height = 3, width = 40;

/// (3, 40) with numbers from 0 on.
Array counted() {
  Values values(height * width);
  std::iota(values.begin(), values.end(), 0.0f);
  return Array(values, {height, width});
}

/// Where the part begins in the memory of the whole, in elements; -1: it has memory of its own.
int64_t place_of(const Array& part, const Array& whole) {
  eval(part);
  const auto* const first = static_cast<const float*>(whole.node()->data());
  const auto* const at = static_cast<const float*>(part.node()->data());
  return at >= first && at < first + whole.count() ? at - first : -1;
}

TEST(Parts, RangesOfTheLastDimAreLooks) {
  const Array x = counted(), part = slice(x, 1, 7, 9), column = slice(x, 1, 5, 6, 2);
  EXPECT_EQ(place_of(part, x), 7 * height);
  EXPECT_EQ(part.to_vector(), (Values{21, 22, 23, 24, 25, 26}));
  EXPECT_EQ(place_of(column, x), 5 * height);
  const Array of_part = slice(part, 1, 1, 2);
  EXPECT_EQ(place_of(of_part, x), 8 * height);
  EXPECT_EQ(of_part.to_vector(), (Values{24, 25, 26}));
}

TEST(Parts, OthersAreCopies) {
  const Array x = counted(), images = reshape(x, {height, width / 4, 4});
  eval(images);
  EXPECT_EQ(place_of(slice(x, 0, 0, 1), x), -1);
  EXPECT_EQ(place_of(slice(x, 1, 0, 8, 2), x), -1);
  EXPECT_EQ(place_of(slice(images, 1, 0, 2), images), -1);
  EXPECT_EQ(slice(x, 1, 9, 5, -1).to_vector(), slice(flip(x, 1), 1, 30, 34).to_vector());
  EXPECT_EQ(slice(x, 1, 4, 4).count(), 0);
}

TEST(Parts, DimsOfSizeOneMayFollow) {
  const Array x = reshape(counted(), {height, width, 1});
  eval(x);
  const Array part = slice(x, 1, 2, 4);
  EXPECT_EQ(place_of(part, x), 2 * height);
  EXPECT_EQ(part.shape(), (Shape{height, 2, 1}));
}

TEST(Parts, OneColumnIsOneInItsShapeToo) {
  const Array x = counted(), twice = x(slice(), 6);
  const Array both = slice(x, 1, 6, 7) + reshape(twice, {height, 1});
  EXPECT_EQ(both.to_vector(), (Values{36, 38, 40}));
  EXPECT_EQ(place_of(twice, x), 6 * height);
  EXPECT_EQ(twice.shape(), (Shape{height}));
}

TEST(Parts, WhatNobodyHoldsIsNotKeptForItsPart) {
  Array x = counted();
  Array part = slice(x, 1, 0, 1);
  x = Array();
  eval(part);
  EXPECT_FALSE(is_lent(*part.node()->buffer));
  EXPECT_EQ(part.to_vector(), (Values{0, 1, 2}));
}

TEST(Parts, WhatNoHandleHoldsIsReadByKernels) {
  const Array x = counted();
  const int64_t before = stats().read_bytes;
  EXPECT_EQ(sum(slice(x, 1, 0, 2)).item(), 15);
  EXPECT_EQ(stats().read_bytes - before, 2 * height * 4);
}

TEST(Parts, TheyOutliveTheWhole) {
  Array x = counted();
  const Array part = slice(x, 1, 38, 40);
  eval(part);
  x = Array();
  trim();
  EXPECT_EQ(part.to_vector(), (Values{114, 115, 116, 117, 118, 119}));
}

TEST(Parts, MemoryOfAUserMayChangeOnceItsArrayIsGone) {
  Values values(height * width, 5);
  Array part;
  {
    const Array x = Array::borrow(values.data(), {height, width}, nullptr);
    part = slice(x, 1, 1, 2);
    EXPECT_EQ(place_of(part, x), -1);
  }
  values.assign(values.size(), 6);
  EXPECT_EQ(part.to_vector(), Values(height, 5));
}

TEST(Parts, AnUpdateOfTheWholeLeavesThemAlone) {
  struct Model {
    Array weight = counted();
  } model;
  auto state = setup(Descent{1}, model);
  const Array part = slice(model.weight, 1, 0, 2);
  eval(part);
  for (int step = 0; step < 3; ++step) {
    update(state, model, gradient([](const Model& m) { return sum(m.weight); }, model));
    eval();
  }
  EXPECT_EQ(part.to_vector(), (Values{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(slice(model.weight, 1, 0, 1).to_vector(), (Values{-3, -2, -1}));
}

TEST(Parts, AnUpdateOfAPartLeavesTheWholeAlone) {
  struct Model {
    Array weight;
  };
  const Array x = counted();
  Model model{slice(x, 1, 0, 2)};
  auto state = setup(Descent{1}, model);
  update(state, model, gradient([](const Model& m) { return sum(m.weight); }, model));
  EXPECT_EQ(model.weight.to_vector(), (Values{-1, 0, 1, 2, 3, 4}));
  EXPECT_EQ(x.to_vector(), counted().to_vector());
}

TEST(Parts, BatchesOfADataSetShareAPlan) {
  const Array x = counted(), y = counted() * 2;
  eval(y);
  Dense model(height, height);
  auto state = setup(Descent{1e-6f}, model);
  const auto step = [&](int64_t first) {
    const Array images = slice(x, 1, first, first + 4), wanted = slice(y, 1, first, first + 4);
    const auto [loss, grad] = withgradient([&](const Dense& m) { return mse(m(images), wanted); }, model);
    update(state, model, grad);
    return loss.item();
  };
  step(0);
  step(4);
  const int64_t layouts = stats().layouts;
  for (int64_t first = 8; first < width; first += 4) step(first);
  EXPECT_EQ(stats().layouts, layouts);
}

}  // namespace
}  // namespace rosin
