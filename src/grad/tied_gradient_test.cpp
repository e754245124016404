// The gradient of a model with tied places: it is tied itself, and stays so in every walk over it.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/destructure.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/functor.hpp>
#include <rosin/grad.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/reduce.hpp>

namespace rosin {
namespace {

using Values = std::vector<float>;

struct TiedPair {
  Array a, b;  // tied
  Array free;
};

TiedPair tied_pair() {
  TiedPair m;
  m.a = m.b = tied(Array({1.f, 2.f}, {2}));
  m.free = Array({5.f, 6.f}, {2});
  return m;
}

/// By a and b together 7, by free 7: the gradients are equal, but free is not tied to the others.
Array loss_of(const TiedPair& m) { return sum(3 * m.a + 4 * m.b + 7 * m.free); }
TiedPair gradient_of(const TiedPair& m) {
  return gradient([](const TiedPair& k) { return loss_of(k); }, m);
}

void expect_tied(const TiedPair& g) {
  EXPECT_TRUE(same(g.a, g.b));
  EXPECT_TRUE(is_tied(g.a));
  EXPECT_FALSE(is_tied(g.free));
  EXPECT_EQ(trainables(g).size(), 2u);
  EXPECT_EQ(parameter_count(g), 4);
  EXPECT_EQ(state(g).size(), 2u);
}

TEST(TiedGradient, IsTied) {
  const TiedPair g = gradient_of(tied_pair());
  expect_tied(g);
  EXPECT_EQ(g.a.to_vector(), (Values{7, 7}));
  EXPECT_EQ(g.free.to_vector(), (Values{7, 7}));
}

TEST(TiedGradient, StaysTiedInMapsAndCopies) {
  const TiedPair g = gradient_of(tied_pair());
  expect_tied(fmap([](const Array& x) { return x * 1.0f; }, g));
  expect_tied(fmap([](const Array& x) { return x; }, g));
  expect_tied(fmap([](const Array& x, const Array& y) { return x + y; }, g, tied_pair()));
  expect_tied(clone(g));
  expect_tied(f64(g));
  expect_tied(g);
}

TEST(TiedGradient, AStepCountsItOnceAfterAnyMap) {
  const auto step = [](auto change) {
    TiedPair m = tied_pair();
    State state = setup(Descent{0.1}, m);
    update(state, m, change(gradient_of(m)));
    EXPECT_TRUE(same(m.a, m.b));
    return m.a.to_vector();
  };
  const Values want = step([](const TiedPair& g) { return g; });
  EXPECT_FLOAT_EQ(want[0], 0.3f);
  EXPECT_EQ(step([](const TiedPair& g) { return fmap([](const Array& x) { return x * 1.0f; }, g); }), want);
  EXPECT_EQ(step([](const TiedPair& g) { return clone(g); }), want);
  EXPECT_EQ(step([](const TiedPair& g) {
              const auto [flat, rebuild] = destructure(g);
              return rebuild(flat * 1.0f);
            }),
            want);
}

TEST(TiedGradient, IsInAVectorOnceAsTheModelIs) {
  const TiedPair m = tied_pair(), g = gradient_of(m);
  const auto [flat, rebuild] = destructure(m);
  const auto [slope, rebuild_slope] = destructure(g);
  EXPECT_EQ(slope.shape(), flat.shape());
  EXPECT_EQ(rebuild(flat - 0.5f * slope).a.to_vector(), (Values{-2.5f, -1.5f}));
}

TEST(TiedGradient, TiesCountInsideTheFunctionToo) {
  // Half the squared norm of all parameters: its gradient is the parameter itself, once.
  const TiedPair g = gradient(
      [](const TiedPair& m) {
        Array total = 0;
        for (const Array& x : trainables(m)) total = total + sum(x * x) * 0.5f;
        return total;
      },
      tied_pair());
  EXPECT_EQ(g.a.to_vector(), (Values{1, 2}));
  expect_tied(g);
}

TEST(TiedGradient, SecondGradientsPassThroughTies) {
  const TiedPair g = gradient(
      [](const TiedPair& m) {
        const TiedPair inner = gradient([](const TiedPair& k) { return sum(k.a * k.b * k.a); }, m);  // 3 a^2
        return sum(inner.a);
      },
      tied_pair());
  EXPECT_EQ(g.a.to_vector(), (Values{6, 12}));
}

TEST(Ties, AMapToOneArrayTiesNothingElse) {
  const Array c = zeros({2});
  TiedPair m = tied_pair();
  const TiedPair mapped = fmap([&](const Array&) { return c; }, m);
  expect_tied(mapped);
  EXPECT_FALSE(is_tied(c));
}

TEST(Ties, TheVectorOfAModelIsNotTied) {
  TiedPair m = tied_pair();
  m.free = Array();
  const auto [flat, rebuild] = destructure(m);
  const Array vector = Array({3.f, 4.f}, {2});
  const TiedPair made = rebuild(vector);
  EXPECT_TRUE(is_tied(made.a));
  EXPECT_TRUE(same(made.a, made.b));
  EXPECT_FALSE(is_tied(vector));
}

}  // namespace
}  // namespace rosin
