// Gradients by several slices of one array, against sums that are written out.
#include "grad/joined_cuts.hpp"

#include <gtest/gtest.h>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "../tests/layer_testing.hpp"

namespace rosin {
namespace {

using Doubles = std::vector<double>;

/// The gradient at x of the sum of squares of slices, each weighed by its number, counted from 1.
struct Piece {
  int dim;
  int64_t start, stop;
};
Doubles gradient_by(const std::vector<Piece>& pieces, const Array& x) {
  const auto loss = [&](const Array& a) {
    Array total = 0.0;
    double weight = 1;
    for (const Piece& p : pieces) total = total + weight++ * sum(square(slice(a, p.dim, p.start, p.stop)));
    return total;
  };
  return gradient(loss, x).to_vector<double>();
}

/// The same element by element: 2 x times the weights of the slices that have it.
Doubles written_out(const std::vector<Piece>& pieces, const Array& x) {
  Doubles values = x.to_vector<double>();
  for (int64_t j = 0; j < x.size(1); ++j) {
    for (int64_t i = 0; i < x.size(0); ++i) {
      double weights = 0;
      for (size_t k = 0; k < pieces.size(); ++k) {
        const int64_t at = pieces[k].dim == 0 ? i : j;
        if (at >= pieces[k].start && at < pieces[k].stop) weights += static_cast<double>(k + 1);
      }
      values[static_cast<size_t>(i + j * x.size(0))] *= 2 * weights;
    }
  }
  return values;
}

TEST(JoinedCuts, AreRightForNeighboursGapsOverlapsAndSeveralDims) {
  const Array x = reshape(arange(1.0, 31.0, 1.0, Float64), {5, 6});
  const std::vector<Piece> cases[] = {
      {{1, 0, 2}, {1, 2, 6}},                        // all of it
      {{1, 4, 6}, {1, 0, 2}},                        // a gap, in another order
      {{1, 1, 3}, {1, 4, 5}},                        // gaps on both sides
      {{0, 0, 3}, {0, 2, 5}, {0, 1, 2}},             // overlaps
      {{0, 0, 2}, {1, 1, 3}, {0, 2, 5}, {1, 3, 4}},  // two dims
      {{1, 2, 4}},                                   // one
      {{0, 1, 1}, {0, 1, 2}, {0, 2, 2}},             // some without elements
      {{1, 2, 4}, {1, 2, 4}, {1, 2, 4}},             // the same one thrice
  };
  for (const auto& pieces : cases) EXPECT_EQ(gradient_by(pieces, x), written_out(pieces, x));
}

TEST(JoinedCuts, StandBesideOtherGradientsOfTheArrayAndHaveGradientsThemselves) {
  const auto f = [](const Array& a) {
    const Array y = a * a;
    return sum(exp(select(y, 1, 0)) * select(y, 1, 2) * select(y, 1, 1)) + sum(y * slice(y, 1, 1, 2));
  };
  layer_testing::check_function_gradient([&](const Array& a) { return f(a); }, 0.3 * randn({4, 3}), "first");
  layer_testing::check_function_gradient([&](const Array& a) { return gradient(f, a); }, 0.3 * randn({4, 3}), "second");
}

TEST(JoinedCuts, OfAllStepsOfASequenceAreOneCopy) {
  const Array x = randn({8, 40});
  const auto loss = [](const Array& a) {
    const Array shares = tanh(a);
    Array state = zeros({8});
    for (int64_t t = 0; t < a.size(1); ++t) state = 0.5 * state + select(shares, 1, t);
    return sum(square(state));
  };
  eval(gradient(loss, x));
  reset_stats();
  eval(gradient(loss, x));
  EXPECT_LE(stats().calls, 2) << "one array a step would be 40 calls, and as many sums";
}

}  // namespace
}  // namespace rosin
