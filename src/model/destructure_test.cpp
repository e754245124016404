// Tests of destructure. The cases m1, m2, m4 and the wrong lengths are those of Optimisers.jl's test/destructure.jl
// (with ties made by tied()).
#include <rosin/destructure.hpp>

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/show.hpp>

namespace rosin {
namespace {

using Values = std::vector<double>;

Array range(double first, double last) { return arange(first, last + 1, 1.0, Float32); }

TEST(Destructure, AnArrayIsItsOwnVector) {
  const auto [flat, re] = destructure(range(1, 3));
  EXPECT_EQ(flat.to_vector<double>(), (Values{1, 2, 3}));
  EXPECT_EQ(re(range(7, 9)).to_vector<double>(), (Values{7, 8, 9}));
  EXPECT_EQ(re.size(), 3);
}

TEST(Destructure, SeveralArraysFollowOneAnother) {
  const auto [flat, re] = destructure(std::tuple{range(1, 3), range(4, 6)});
  EXPECT_EQ(flat.to_vector<double>(), (Values{1, 2, 3, 4, 5, 6}));
  const auto [x, y] = re(flat * 10);
  EXPECT_EQ(x.to_vector<double>(), (Values{10, 20, 30}));
  EXPECT_EQ(y.to_vector<double>(), (Values{40, 50, 60}));
}

TEST(Destructure, ATieIsInTheVectorOnceAndStays) {
  const Array shared = tied(range(1, 3));
  const auto [flat, re] = destructure(std::tuple{shared, shared, range(4, 6)});
  EXPECT_EQ(flat.to_vector<double>(), (Values{1, 2, 3, 4, 5, 6}));
  const auto [x, y, z] = re(flat * 10);
  EXPECT_TRUE(same(x, y));
  EXPECT_TRUE(is_tied(x));
  EXPECT_EQ(y.to_vector<double>(), (Values{10, 20, 30}));
  EXPECT_EQ(z.to_vector<double>(), (Values{40, 50, 60}));
}

TEST(Destructure, TypesComeBackAndIntegersAreNoPartOfIt) {
  const std::tuple model{cast(range(1, 2), Float16), range(3, 4), arange(5)};
  const auto [flat, re] = destructure(model);
  EXPECT_EQ(flat.dtype(), Float32);
  EXPECT_EQ(flat.to_vector<double>(), (Values{1, 2, 3, 4}));
  const auto [half, single, whole] = re(flat + 1);
  EXPECT_EQ(half.dtype(), Float16);
  EXPECT_EQ(half.to_vector<double>(), (Values{2, 3}));
  EXPECT_EQ(whole.to_vector<double>(), (Values{0, 1, 2, 3, 4}));
}

TEST(Destructure, WrongLengthsAreErrors) {
  const auto made = destructure(range(1, 3));
  EXPECT_THROW(made.second(range(1, 4)), Error);
  EXPECT_THROW(made.second(range(1, 2)), Error);
  EXPECT_THROW(made.second(reshape(range(1, 3), {1, 3})), Error);
}

TEST(Destructure, BothWaysAreDifferentiable) {
  const std::tuple model{range(1, 2), range(3, 4)};
  const auto made = destructure(model);
  const auto& re = made.second;
  const Array g = gradient(
      [&](const Array& flat) {
        const auto [x, y] = re(flat);
        return sum(x * y);
      },
      made.first);
  EXPECT_EQ(g.to_vector<double>(), (Values{3, 4, 1, 2}));
  const auto [gx, gy] =
      gradient([](const std::tuple<Array, Array>& m) { return sum(pow(destructure(m).first, 2)); }, model);
  EXPECT_EQ(gx.to_vector<double>(), (Values{2, 4}));
  EXPECT_EQ(gy.to_vector<double>(), (Values{6, 8}));
}

TEST(Destructure, ComplexArraysKeepBothPartsAndRealOnesStayReal) {
  const auto [flat, re] = destructure(std::tuple{complex(Array({1.f}, {1}), 2.0), Array({3.f}, {1})});
  EXPECT_EQ(view_as_real(flat).to_vector(), (std::vector<float>{1, 2, 3, 0}));
  const auto [z, x] = re(flat * 2.0);
  EXPECT_EQ(view_as_real(z).to_vector(), (std::vector<float>{2, 4}));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{6}));
}

TEST(Destructure, PrintsTheModelAndTheLength) {
  EXPECT_EQ(to_string(destructure(Dense(2, 3)).second), "Restructure(Dense, ..., 9)");
}

}  // namespace
}  // namespace rosin
