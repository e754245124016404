// Gradients of ops on a float and an integer array, and derivatives of the gamma family of higher orders.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <rosin/conv.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/reduce.hpp>

#include "graph/record.hpp"

namespace rosin {
namespace {

using Binary = std::function<Array(const Array&, const Array&)>;

/// The gradient by `x` with `other` as it is has the values of that with `other` converted beforehand.
void expect_same_gradient(const Binary& f, const Array& x, const Array& other, const std::string& name) {
  SCOPED_TRACE(name + " of " + to_string(x.dtype()) + " and " + to_string(other.dtype()));
  const Array converted = cast(other, x.dtype());
  const auto slope = [&](const Array& with) {
    const Array g = gradient([&](const Array& at) { return sum(f(at, with)); }, x);
    return g.is_nothing() ? std::vector<double>() : g.to_vector<double>();  // trelu has none by its threshold
  };
  std::vector<double> mixed;
  ASSERT_NO_THROW(mixed = slope(other));
  const std::vector<double> expected = slope(converted);
  ASSERT_EQ(mixed.size(), expected.size());
  for (size_t i = 0; i < mixed.size(); ++i) {
    const bool same = mixed[i] == expected[i] || (std::isnan(mixed[i]) && std::isnan(expected[i]));
    EXPECT_TRUE(same || std::abs(mixed[i] - expected[i]) <= 2e-3 * std::abs(expected[i]))
        << "element " << i << ": " << mixed[i] << ", not " << expected[i];
  }
}

/// Every elementwise op of two operands in the registry, each operand in turn an array of integers. Squares of these
/// integers leave their types.
TEST(GradientTypes, IntegersBesideFloatsChangeNoGradient) {
  int ops = 0;
  for (const Op* op : registry()) {
    if (op->kind != Kind::elementwise || op->operands != 2 || op->gradient == nullptr) continue;
    ++ops;
    const Binary forward = [op](const Array& a, const Array& b) { return record(*op, a, b); };
    const Binary backward = [op](const Array& a, const Array& b) { return record(*op, b, a); };
    for (const DType type : {Float64, Float32, Float16}) {
      const Array x = cast(Array({0.5, 1.5, 2.0, 1.25}, {4}), type);
      for (const DType integer : {Int8, UInt8, Int32, Int64}) {
        const Array n = cast(Array({1, 2, 3, integer == Int32 && type != Float16 ? 70000 : 100}, {4}), integer);
        const bool power = op->name == "pow";
        const Array small = cast(Array({1, 2, 3, 5}, {4}), integer);
        expect_same_gradient(forward, x, power ? small : n, std::string(op->name));
        expect_same_gradient(backward, x, power ? small : n, std::string(op->name) + " turned");
      }
    }
  }
  EXPECT_GE(ops, 8);
}

TEST(GradientTypes, PowersByIntegerArraysHaveTheirGradient) {
  const Array n({1, 2, 0, -1}, {4});
  const Array g = gradient([&](const Array& x) { return sum(pow(x, n)); }, Array({2.0, 3.0, 5.0, 4.0}, {4}));
  EXPECT_EQ(g.to_vector<double>(), (std::vector<double>{1, 6, 0, -0.0625}));
}

TEST(GradientTypes, ProductsOfFloatsAndIntegersHaveTheirGradient) {
  const Array a({1.0, 2.0, 3.0, 4.0}, {2, 2}), n({5, 6, 7, 8}, {2, 2});
  const Array g = gradient([&](const Array& x) { return sum(matmul(x, n)); }, a);
  EXPECT_EQ(g.to_vector<double>(), (std::vector<double>{12, 12, 14, 14}));
  const Array line({1.0, 2.0, 3.0}, {3, 1, 1}), kernel({4, 5}, {2, 1, 1});
  const Array by_line = gradient([&](const Array& x) { return sum(crosscor(x, kernel)); }, line);
  EXPECT_EQ(by_line.to_vector<double>(), (std::vector<double>{4, 9, 5}));
}

using Function = std::function<Array(const Array&)>;

Array derivative(const Function& f, int order, const Array& x) {
  if (order == 0) return f(x);
  return gradient([&](const Array& at) { return sum(derivative(f, order - 1, at)); }, x);
}

/// Values of polygamma(order - 1, x): from zeta(3) = 1.2020569031595943, zeta(5) = 1.0369277551433699, pi^4 / 15 and
/// the recurrence in x.
TEST(GammaFamily, DerivativesOfHigherOrdersAreThoseOfTheZetaFunction) {
  const double zeta3 = 1.2020569031595943, zeta5 = 1.0369277551433699, pi4 = 97.40909103400244;
  const Array x({1.0, 2.0, 0.5, -0.5, -1.5}, {5});
  const std::vector<double> third = {-2 * zeta3, 2 - 2 * zeta3, -14 * zeta3, 16 - 14 * zeta3,
                                     16 + 16.0 / 27 - 14 * zeta3};
  const std::vector<double> fourth = {pi4 / 15, pi4 / 15 - 6, pi4, pi4 + 96, pi4 + 96 + 6 * 16.0 / 81};
  for (const DType type : {Float64, Float32}) {
    const double tolerance = type == Float64 ? 1e-12 : 1e-5;
    const auto expect = [&](int order, const std::vector<double>& expected) {
      const std::vector<double> found =
          derivative([](const Array& at) { return lgamma(at); }, order, cast(x, type)).to_vector<double>();
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(found[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "order " << order << ", " << i;
      }
    };
    expect(3, third);
    expect(4, fourth);
  }
  const Array fifth = derivative([](const Array& at) { return lgamma(at); }, 5, Array({1.0}, {1}));
  EXPECT_NEAR(fifth.item(), -24 * zeta5, 1e-10);
  const Array far = derivative([](const Array& at) { return lgamma(at); }, 3, Array({1e6}, {1}));
  EXPECT_NEAR(far.item() * 1e12, -1.000001, 1e-11);  // -1/x^2 - 1/x^3
  EXPECT_NEAR(derivative([](const Array& at) { return lgamma(at); }, 3, cast(Array(2.0), Float16)).item(), -0.404,
              1e-3);
}

TEST(ConvTranspose, RefusesImagesWithoutPixelsAtItsCall) {
  try {
    conv_transpose(zeros({0, 2, 1}), ones({2, 1, 2}));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::shape);
    EXPECT_STREQ(error.what(),
                 "conv_transpose: images must have at least one pixel in each spatial dim; got (0, 2, 1); an empty "
                 "batch is taken, empty images are not");
  }
  EXPECT_EQ(conv_transpose(zeros({3, 2, 0}), ones({2, 1, 2})).shape(), (Shape{4, 1, 0}));
}

}  // namespace
}  // namespace rosin
