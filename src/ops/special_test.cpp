// Special functions made of others: their edges, and gradients of gradients where a formula would have none. Other
// values are PyTorch's, in tests/opinfo; those of ops stand in tests/oracles/special.txt.
#include <rosin/special.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <vector>

#include <rosin/approx.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/reduce.hpp>

namespace rosin {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double pi = std::numbers::pi;

using Function = std::function<Array(const Array&)>;

/// A number as a Float64 array.
Array number(double x) { return Array({x}, {1}); }

double slope(const Function& f, double at) {
  return gradient([&](const Array& x) { return sum(f(x)); }, number(at)).item();
}
double second_slope(const Function& f, double at) {
  const auto first = [&](const Array& x) { return gradient([&](const Array& y) { return sum(f(y)); }, x); };
  return slope(first, at);
}

TEST(Special, SincIsSmoothAtZero) {
  EXPECT_EQ(sinc(number(0.0)).item(), 1);
  EXPECT_EQ(slope(sinc, 0), 0);
  EXPECT_NEAR(second_slope(sinc, 0), -pi * pi / 3, 1e-14);
  EXPECT_NEAR(sinc(number(0.25 - 1e-12)).item(), sinc(number(0.25)).item(), 1e-11);  // where its two forms meet
  EXPECT_NEAR(slope(sinc, 0.25 - 1e-12), slope(sinc, 0.25), 1e-11);
  EXPECT_NEAR(sinc(number(1e6)).item(), 0, 1e-22);
  EXPECT_EQ(sinc(Array({1.0f, 2.0f}, {2})).dtype(), Float32);
}

TEST(Special, ProductsWithLogarithmsOfNumbersHaveTheTypeOfTheArray) {
  EXPECT_EQ(xlogy(2, number(0.5)).dtype(), Float64);
  EXPECT_NEAR(xlogy(2, number(0.5)).item(), 2 * std::log(0.5), 1e-15);
  EXPECT_NEAR(xlogy(number(0.5), 2).item(), 0.5 * std::log(2), 1e-15);
  EXPECT_NEAR(xlog1py(number(0.5), 2).item(), 0.5 * std::log(3), 1e-15);
  EXPECT_EQ(xlogy(2, Array({3, 4}, {2})).dtype(), Float32);
  EXPECT_NEAR(xlogy(2, 3).item(), 2 * std::log(3), 1e-6);
}

TEST(Special, ProductsWithLogarithmsVanishWithTheirFactor) {
  const Array x({0.0, 0.0, 0.0, 0.0, 2.0}, {5}), y({0.0, -1.0, infinite, 3.0, 1.0}, {5});
  EXPECT_EQ(xlogy(x, y).to_vector<double>(), (std::vector<double>{0, 0, 0, 0, 0}));
  EXPECT_TRUE(std::isnan(xlogy(number(0.0), number(nan)).item()));
  EXPECT_EQ(xlog1py(x, y - 1).to_vector<double>(), (std::vector<double>{0, 0, 0, 0, 0}));
  EXPECT_EQ(entr(Array({0.0, 1.0, -1.0}, {3})).to_vector<double>(), (std::vector<double>{0, 0, -infinite}));
  EXPECT_NEAR(slope([](const Array& a) { return xlogy(a, number(3.0)); }, 0), std::log(3.0), 1e-15);
  EXPECT_EQ(slope([](const Array& a) { return xlogy(a, number(0.0)); }, 0), 0);
}

TEST(Special, LogitIsTheInverseOfSigmoidWithinItsBounds) {
  const Array p({0.0, 0.25, 1.0}, {3});
  EXPECT_EQ(logit(p).to_vector<double>()[0], -infinite);
  EXPECT_TRUE(allclose(logit(p, 0.25), Array({-std::log(3.0), -std::log(3.0), std::log(3.0)}, {3})));
  EXPECT_EQ(slope([](const Array& a) { return logit(a, 0.1); }, 0.05), 0);
}

TEST(Special, PolygammaHasAnyOrder) {
  EXPECT_EQ(polygamma(0, number(2.5)).item(), digamma(number(2.5)).item());
  EXPECT_EQ(polygamma(1, number(2.5)).item(), trigamma(number(2.5)).item());
  EXPECT_NEAR(polygamma(3, number(1.0)).item(), std::pow(pi, 4) / 15, 1e-13);
  EXPECT_THROW(polygamma(-1, number(1.0)), Error);
}

TEST(Special, TheNormalDistributionIsAccurateInItsTail) {
  EXPECT_EQ(ndtr(number(0.0)).item(), 0.5);
  EXPECT_NEAR(ndtr(number(-10.0)).item() / 7.61985302416052606e-24, 1, 1e-13);
}

TEST(Special, RemaindersHaveTheSignOfTheDividend) {
  const Array a({7.5, -7.5, 7.5, -7.5, 0.0}, {5}), b({2.0, 2.0, -2.0, -2.0, 3.0}, {5});
  EXPECT_EQ(fmod(a, b).to_vector<double>(), (std::vector<double>{1.5, -1.5, 1.5, -1.5, 0}));
  constexpr int lowest = std::numeric_limits<int>::min();
  EXPECT_EQ(fmod(Array({-7, 7, lowest, lowest, -6}, {5}), Array({3, -3, 3, -1, 3}, {5})).to_vector<int>(),
            (std::vector<int>{-7 % 3, 7 % -3, lowest % 3, 0, 0}));
  const auto [by_a, by_b] = gradient([](const Array& x, const Array& y) { return sum(fmod(x, y)); }, a, b);
  EXPECT_EQ(by_a.to_vector<double>(), (std::vector<double>{1, 1, 1, 1, 1}));
  EXPECT_EQ(by_b.to_vector<double>(), (std::vector<double>{-3, 3, 3, -3, 0}));
  EXPECT_EQ(frac(Array({1.25, -1.25}, {2})).to_vector<double>(), (std::vector<double>{0.25, -0.25}));
}

/// Against the C library's, which are exact: numbers of all sizes, and quotients on both sides of 2^20.
TEST(Special, RemaindersAreExactWhateverTheQuotient) {
  std::vector<float> a, b;
  uint32_t bits = 1;
  const auto next = [&] { return bits = bits * 1664525 + 1013904223; };
  const auto finite = [](uint32_t from) {
    const auto x = std::bit_cast<float>(from);
    return std::isfinite(x) ? x : 1.5f;
  };
  for (int i = 0; i < 20000; ++i) {
    a.push_back(finite(next()));
    b.push_back(finite(next()));
    if (i % 2 == 0) b.back() = a.back() / static_cast<float>(1 + (next() >> (i % 20))) * 1.0000001f;
  }
  for (const float x : {0.0f, -0.0f, 1e-45f, 3e38f, 1.0f}) {
    for (const float y : {1e-45f, 3e38f, 1.0f, -1.0f, std::numeric_limits<float>::infinity()}) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const auto n = static_cast<int64_t>(a.size());
  const std::vector<float> rests = fmod(Array(a, {n}), Array(b, {n})).to_vector();
  for (size_t i = 0; i < a.size(); ++i) {
    const float wanted = std::fmod(a[i], b[i]);
    EXPECT_TRUE(rests[i] == wanted || (std::isnan(rests[i]) && std::isnan(wanted)))
        << a[i] << " by " << b[i] << " gives " << rests[i] << ", not " << wanted;
  }
}

TEST(Special, StepsAndSignsSeeZeros) {
  const Array x({-2.0, -0.0, 0.0, 3.0}, {4});
  EXPECT_EQ(heaviside(x, 0.5).to_vector<double>(), (std::vector<double>{0, 0.5, 0.5, 1}));
  EXPECT_EQ(signbit(Array({-1, 0, 1}, {3})).to_vector<uint8_t>(), (std::vector<uint8_t>{1, 0, 0}));
  EXPECT_EQ(slope([](const Array& a) { return hypot(a, a); }, 0), 0);
}

TEST(Special, NumbersTakeThePlaceOfWhatIsNone) {
  const Array x({nan, infinite, -infinite, 1.0}, {4});
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(nan_to_num(x).to_vector<double>(), (std::vector<double>{0, most, -most, 1}));
  EXPECT_EQ(nan_to_num(x, {.nan = 7, .posinf = 8, .neginf = -9}).to_vector<double>(),
            (std::vector<double>{7, 8, -9, 1}));
  EXPECT_EQ(nan_to_num(cast(x, Float16)).to_vector<double>()[1], 65504);
  EXPECT_EQ(gradient([](const Array& a) { return sum(nan_to_num(a)); }, x).to_vector<double>(),
            (std::vector<double>{0, 0, 0, 1}));
}

TEST(Special, SmallFormulas) {
  EXPECT_NEAR(deg2rad(number(180.0)).item(), pi, 1e-15);
  EXPECT_NEAR(rad2deg(number(pi)).item(), 180, 1e-13);
  EXPECT_EQ(lerp(number(2.0), number(4.0), number(0.25)).item(), 2.5);
}

TEST(Special, BesselFunctionsHaveSlopesAtZero) {
  EXPECT_EQ(slope(i1, 0), 0.5);
  EXPECT_NEAR(second_slope(i0, 0), 0.5, 1e-15);
  EXPECT_NEAR(second_slope(i1, 1e-3), 0.375e-3, 1e-9);
  EXPECT_NEAR(slope(i1e, 1e-9), 0.5, 1e-8);
}

}  // namespace
}  // namespace rosin
