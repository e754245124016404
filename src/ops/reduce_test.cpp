// Reductions and scans against NumPy (tests/oracles/reduce.txt), and what they refuse.
#include <rosin/reduce.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include <rosin/create.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>

#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::dim_of;
using oracles::dims_of;
using oracles::OracleCase;
using oracles::place;
using oracles::reduction;
using oracles::running;
using Arrays = std::vector<Array>;

Array variance(const OracleCase& e, const Array& x) {
  const bool corrected = e.number("corrected", 1) != 0;
  return e.has("dims") ? var(x, dims_of(e), corrected) : var(x, corrected);
}

Array deviation(const OracleCase& e, const Array& x) {
  const bool corrected = e.number("corrected", 1) != 0;
  return e.has("dims") ? stddev(x, dims_of(e), corrected) : stddev(x, corrected);
}

Array size_of_all(const Array& x, double p) {
  return p == 2 ? norm(x) : reshape(norm(reshape(x, {x.count()}), 0, p), Shape{});
}

TEST(Reduce, AgreesWithNumPy) {
  oracles::run_oracles("reduce.txt",
                       {{"sum", reduction(sum, sum)},
                        {"prod", reduction(prod, prod)},
                        {"mean", reduction(mean, mean)},
                        {"maximum", reduction(maximum, maximum)},
                        {"minimum", reduction(minimum, minimum)},
                        {"any", reduction(any, any)},
                        {"all", reduction(all, all)},
                        {"logsumexp", reduction(logsumexp, logsumexp)},
                        {"argmax", place(argmax, argmax)},
                        {"argmin", place(argmin, argmin)},
                        {"var", [](const OracleCase& e, const Arrays& x) { return Arrays{variance(e, x[0])}; }},
                        {"stddev", [](const OracleCase& e, const Arrays& x) { return Arrays{deviation(e, x[0])}; }},
                        {"norm",
                         [](const OracleCase& e, const Arrays& x) {
                           const double p = e.number("p", 2);
                           return Arrays{e.has("dims") ? norm(x[0], dims_of(e), p) : size_of_all(x[0], p)};
                         }},
                        {"cumsum", running(cumsum)},
                        {"cumprod", running(cumprod)},
                        {"cummax", running(cummax)},
                        {"cummin", running(cummin)},
                        {"logcumsumexp", running(logcumsumexp)}});
}

TEST(Reduce, SumsOverBroadcastDimsGiveTheOperandsShape) {
  const Array x = ones({2, 3, 4});
  EXPECT_EQ(sum_to(x, {2, 1}).to_vector(), (std::vector<float>{12, 12}));
  EXPECT_EQ(sum_to(x, {2, 1}).shape(), (Shape{2, 1}));
  EXPECT_EQ(sum_to(x, Shape{}).item<float>(), 24);
  EXPECT_THROW(sum_to(x, {3}), Error);
}

/// Euclid's norm of values of each magnitude, as numbers of Float64 (of Float64: divided by the largest) give it.
void expect_norm(const std::vector<double>& values, DType type, double magnitude) {
  std::vector<double> scaled;
  for (const double x : values) scaled.push_back(x * magnitude);
  const auto n = static_cast<int64_t>(values.size());
  const Array x = cast(Array(scaled, {n}), type), exact = cast(x, Float64);
  const double unit = type == Float64 ? magnitude : 1;
  double squares = 0;
  for (const double v : exact.to_vector<double>()) squares += v / unit * (v / unit);
  const double expected = unit * std::sqrt(squares), share = type == Float64 ? 1e-13 : 1e-6;
  EXPECT_NEAR(norm(x).item(), expected, share * expected) << magnitude << ' ' << n;
  EXPECT_NEAR(norm(reshape(x, {n, 1}), 0).item(), expected, share * expected) << magnitude << ' ' << n;
  const std::vector<double> slopes =
      cast(gradient([](const Array& v) { return norm(v); }, x), Float64).to_vector<double>();
  const std::vector<double> held = exact.to_vector<double>();
  for (size_t i = 0; i < held.size(); i += 97) EXPECT_NEAR(slopes[i], held[i] / expected, 1e-6) << magnitude;
}

TEST(Reduce, NormNeitherOverflowsNorVanishes) {
  for (const size_t n : {size_t{1}, size_t{7}, size_t{1000}, size_t{40000}}) {
    std::vector<double> values;
    for (size_t i = 0; i < n; ++i) values.push_back(std::sin(static_cast<double>(i + 1)));
    for (const double magnitude : {1e-35, 1e-25, 1e-20, 1e-10, 1.0, 1e10, 1e18, 1e20, 1e30, 1e35}) {
      expect_norm(values, Float32, magnitude);
    }
    for (const double magnitude : {1e-300, 1e-200, 1e-100, 1.0, 1e100, 1e160, 1e300}) {
      expect_norm(values, Float64, magnitude);
    }
  }
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  EXPECT_EQ(norm(Array({1.0f, -infinity}, {2})).item<float>(), infinity);
  EXPECT_TRUE(std::isnan(norm(Array({1e30f, nan}, {2})).item<float>()));
  EXPECT_EQ(norm(zeros({5})).item<float>(), 0);
}

TEST(Reduce, NormOfNothingHasTheTypeOfTheArray) {
  for (const DType type : {Float16, BFloat16, Float32, Float64}) {
    for (const double p : {1.0, 2.0, 3.0, std::numeric_limits<double>::infinity()}) {
      const Array x = zeros({0, 3}, type), y = norm(x, 0, p);
      EXPECT_EQ(y.dtype(), type);
      EXPECT_EQ(y.to_vector(), (std::vector<float>{0, 0, 0}));
      const auto loss = [&](const Array& v) { return sum(norm(v, 0, p) * ones({1, 3}, type)); };
      EXPECT_EQ(gradient(loss, x).shape(), x.shape());
    }
  }
}

TEST(Reduce, NoResultsAreOfEveryType) {
  for (const DType type : {Bool, UInt8, Int8, Int16, Int32, UInt64, BFloat16, Float64}) {
    for (const Array& none : {maximum(zeros({0, 3, 5}, type), 1), minimum(zeros({0, 3, 5}, type), {1, 2})}) {
      EXPECT_EQ(none.dtype(), type);
      EXPECT_EQ(none.count(), 0);
    }
  }
}

TEST(Reduce, NothingToChooseFromIsRefused) {
  EXPECT_THROW(maximum(zeros({0, 3}), 0), Error);
  EXPECT_THROW(argmax(zeros({0})), Error);
  EXPECT_THROW(sum(zeros({2}), 1), Error);
}

/// As NumPy: the mean, the variance and the deviation of nothing are NaN, whatever is subtracted from the count.
TEST(Reduce, StatisticsOfNothingAreNaN) {
  for (const Array& x : {zeros({0}), zeros({0}, Float64), zeros({0}, Float16), zeros({0}, Int32)}) {
    for (const Array& value : {mean(x), var(x), stddev(x), var(x, false), stddev(x, 0, false)}) {
      EXPECT_TRUE(std::isnan(value.item())) << to_string(x.dtype());
    }
  }
  EXPECT_TRUE(std::isnan(var(Array({2.0f}, {1})).item()));
  EXPECT_EQ(var(Array({2.0f}, {1}), false).item(), 0);
  const Array rows = var(zeros({2, 0}), 1);
  EXPECT_EQ(rows.shape(), Shape({2, 1}));
  EXPECT_TRUE(std::isnan(rows.to_vector()[1]));
}

}  // namespace
}  // namespace rosin
