// Gradients through ops of several results: a rule sees the gradient by each of them at once.
#include <gtest/gtest.h>

#include <vector>

#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/reduce.hpp>

#include "graph/record.hpp"

namespace rosin {
namespace {

/// As if the results were 2 x and 3 x.
void pair_gradient(Backward& b) {
  const Array& first = b.gradient_of(0);
  const Array& second = b.gradient_of(1);
  if (second.is_nothing()) return b.give(0, 2 * first);
  b.give(0, first.is_nothing() ? 3 * second : 2 * first + 3 * second);
}

// No executor knows it: tests below need no value of it.
const Op& pair_op = *register_op({.name = "test_pair",
                                  .kind = Kind::sort,
                                  .operands = 1,
                                  .results = 2,
                                  .doc = "for tests",
                                  .gradient = pair_gradient});

struct Pair {
  Array first, second;
};

Pair pair(const Array& x) {
  const Array* in[] = {&x};
  const ResultForm forms[] = {{x.dtype(), x.shape()}, {x.dtype(), x.shape()}};
  Array results[2];
  record(pair_op, in, forms, {}, results);
  return {results[0], results[1]};
}

using Values = std::vector<float>;

template <class F> Values slope(F f) {
  const Array g = gradient(f, Array({1.0f, 2.0f, 3.0f}, {3}));
  return g.to_vector<float>();
}

Array a() { return Array({1.0f, 10.0f, 100.0f}, {3}); }
Array b() { return Array({2.0f, 4.0f, 6.0f}, {3}); }

TEST(SeveralResults, AreAllInTheGradient) {
  const auto f = [](const Array& x) {
    const Pair p = pair(x);
    return sum(p.first * a()) + sum(p.second * b());
  };
  EXPECT_EQ(slope(f), (Values{8, 32, 218}));
}

TEST(SeveralResults, NeedNotAllBeUsed) {
  EXPECT_EQ(slope([](const Array& x) { return sum(pair(x).first * a()); }), (Values{2, 20, 200}));
  EXPECT_EQ(slope([](const Array& x) { return sum(pair(x).second * b()); }), (Values{6, 12, 18}));
}

TEST(SeveralResults, AddUpWhereTheyAreUsedAgain) {
  const auto f = [](const Array& x) {
    const Pair p = pair(x);
    return sum(p.first * a()) + sum(p.second * b()) + sum(p.first * b());
  };
  EXPECT_EQ(slope(f), (Values{12, 40, 230}));
}

TEST(SeveralResults, OfSeveralCallsEachHaveTheirOwn) {
  const auto f = [](const Array& x) {
    const Pair p = pair(x), q = pair(x + 1);
    return sum(p.first * a()) + sum(q.second * b());
  };
  EXPECT_EQ(slope(f), (Values{8, 32, 218}));
}

TEST(SeveralResults, OfAnotherCallAsOperandsChainTheirRules) {
  const auto f = [](const Array& x) { return sum(pair(pair(x).second).first * a()); };
  EXPECT_EQ(slope(f), (Values{6, 60, 600}));
}

TEST(SeveralResults, MeetGradientsThatAreNumbers) {
  const auto f = [](const Array& x) {
    const Pair p = pair(x);
    return sum(p.first) + sum(p.second * b());
  };
  EXPECT_EQ(slope(f), (Values{8, 14, 20}));
  EXPECT_EQ(slope([](const Array& x) { return sum(pair(x).first); }), (Values{2, 2, 2}));
}

}  // namespace
}  // namespace rosin
