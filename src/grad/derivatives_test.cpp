// Jacobians, Hessians, pullbacks and tangents against formulas and finite differences in Float64.
#include <rosin/derivatives.hpp>

#include <gtest/gtest.h>

#include <rosin/approx.hpp>
#include <rosin/chain.hpp>
#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/einsum.hpp>
#include <rosin/gradient_rules.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>

#include "../tests/layer_testing.hpp"

namespace rosin {
namespace {

Array doubles(const Shape& shape) { return cast(randn(shape), Float64); }
constexpr CloseOptions close{.rtol = 1e-9, .atol = 1e-11};

/// Columns by central differences.
Array differences(const ArrayFunction& f, const Array& x) {
  const double h = 1e-5;
  const std::vector<double> base = x.to_vector<double>();
  std::vector<Array> columns;
  for (size_t i = 0; i < base.size(); ++i) {
    std::vector<double> above = base, below = base;
    above[i] += h;
    below[i] -= h;
    columns.push_back(reshape((f(Array(above, x.shape())) - f(Array(below, x.shape()))) / (2 * h), {-1}));
  }
  return stack(columns, 1);
}

TEST(Derivatives, JacobiansAreRightWhicheverSideIsShorter) {
  const Array a = doubles({3, 5}), x = doubles({5});
  EXPECT_TRUE(allclose(jacobian([&](const Array& v) { return matmul(a, v); }, x), a, close));
  EXPECT_TRUE(
      allclose(jacobian([&](const Array& v) { return matmul(transpose(a), v); }, doubles({3})), transpose(a), close));
  const auto bent = [&](const Array& v) { return tanh(matmul(a, v * v)); };
  EXPECT_TRUE(allclose(jacobian(bent, x), differences(bent, x), {.rtol = 1e-6, .atol = 1e-8}));
  const auto wide = [](const Array& v) {
    return exp(reshape(v, {2, 1})) * reshape(arange(1.0, 7.0, 1.0, Float64), {2, 3});
  };
  const Array pair = doubles({2});
  EXPECT_EQ(jacobian(wide, pair).shape(), (Shape{6, 2}));
  EXPECT_TRUE(allclose(jacobian(wide, pair), differences(wide, pair), {.rtol = 1e-6, .atol = 1e-8}));
  EXPECT_EQ(jacobian([](const Array& v) { return slice(v, 0, 0, 0); }, x).shape(), (Shape{0, 5}));
  EXPECT_EQ(sum(abs(jacobian([](const Array&) { return ones({2}, Float64); }, x))).item(), 0) << "a constant";
}

/// Functions that vmap does not take are called for each row.
TEST(Derivatives, FunctionsMayLookAtValues) {
  const Array x = doubles({5});
  const auto bent = [](const Array& v) { return sum(v).item() > 1e9 ? v : square(v); };
  EXPECT_TRUE(allclose(jacobian(bent, x), diagm(2.0 * x), close));
  EXPECT_TRUE(allclose(hessian([&](const Array& v) { return sum(bent(v)); }, x), 2.0 * eye(5, Float64), close));
  const auto own = [](const Array& v) {
    return custom_gradient(square(v), {v}, [=](const Array& dy) { return 3.0 * dy * v; });
  };
  EXPECT_TRUE(allclose(jacobian(own, x), diagm(3.0 * x), close));
}

TEST(Derivatives, ComplexNumbersArePairsOfRealOnes) {
  const Array z = view_as_complex(doubles({2, 3})),
              v = view_as_complex(reshape(arange(6.0, 0.0, -1.0, Float64), {2, 3}));
  const auto square_of = [](const Array& a) { return a * a; };
  EXPECT_TRUE(allclose(jvp(square_of, z, v).tangent, 2.0 * z * v, close));
  const auto energy = [](const Array& a) { return sum(square(square(abs(a)))); };
  const auto of_pairs = [&](const Array& pairs) { return energy(view_as_complex(pairs)); };
  EXPECT_TRUE(allclose(view_as_real(hvp(energy, z, v)), hvp(of_pairs, view_as_real(z), view_as_real(v)), close));
  EXPECT_EQ(jacobian([](const Array& a) { return abs(a); }, z).shape(), (Shape{3, 3}));
  EXPECT_EQ(error_of([&] { jacobian(square_of, z); }),
            "jacobian: rows and columns are of real numbers; got ComplexF64; take view_as_real of it, or a product: "
            "jvp, hvp");
  EXPECT_EQ(error_of([&] { hessian(energy, z); }).substr(0, 8), "hessian:");
}

TEST(Derivatives, AreByFloats) {
  const Array whole({1, 2, 3}, {3});
  const auto twice = [](const Array& a) { return a * 2; };
  EXPECT_EQ(error_of([&] { jacobian(twice, whole); }), "jacobian: derivatives are by floats; got " +
                                                           std::string(to_string(whole.dtype())) +
                                                           "; convert them, for example with cast(x, Float32)");
  for (const auto& derive : {hessian, diaghessian}) EXPECT_THROW(derive(twice, whole), Error);
  EXPECT_THROW(hvp(twice, whole, whole), Error);
  EXPECT_THROW(jvp(twice, whole, whole), Error);
}

TEST(Derivatives, DiagonalsOfLargeHessiansAreMadeInBlocks) {
  const Array x = doubles({5000});
  EXPECT_TRUE(allclose(diaghessian([](const Array& v) { return sum(v * v * v); }, x), 6.0 * x, close));
}

TEST(Derivatives, HessiansAreRight) {
  const Array b = doubles({4, 4}), x = doubles({4});
  const auto quadratic = [&](const Array& v) { return sum(v * matmul(b, v)); };
  const Array want = b + transpose(b);
  EXPECT_TRUE(allclose(hessian(quadratic, x), want, close));
  EXPECT_TRUE(allclose(diaghessian(quadratic, x), reshape(2.0 * sum(b * eye(4, Float64), 1), {4}), close));
  const Array v = doubles({4});
  EXPECT_TRUE(allclose(hvp(quadratic, x, v), matmul(want, v), close));
  const auto waves = [](const Array& m) { return sum(sin(m) * exp(flip(m, 1))); };
  const Array m = doubles({2, 3});
  const auto slope = [&](const Array& at) { return gradient(waves, at); };
  EXPECT_TRUE(allclose(hessian(waves, m), differences(slope, m), {.rtol = 1e-6, .atol = 1e-8}));
  EXPECT_EQ(diaghessian(waves, m).shape(), (Shape{2, 3}));
}

TEST(Derivatives, FunctionsMayTakeSeveralArrays) {
  const Array w = doubles({2, 3}), x = doubles({3}), by_w = doubles({2, 3}), by_x = doubles({3});
  const auto f = [](const Array& a, const Array& b) { return sin(matmul(a, b)); };
  const auto [of_w, of_x] = jacobian(f, w, x);
  const auto at_w = [&](const Array& a) { return f(a, x); };
  const auto at_x = [&](const Array& b) { return f(w, b); };
  EXPECT_TRUE(allclose(of_w, differences(at_w, w), {.rtol = 1e-6, .atol = 1e-8}));
  EXPECT_TRUE(allclose(of_x, differences(at_x, x), {.rtol = 1e-6, .atol = 1e-8}));
  const auto [value, tangent] = jvp(f, std::tuple{w, x}, std::tuple{by_w, by_x});
  EXPECT_TRUE(allclose(value, f(w, x), close));
  EXPECT_TRUE(allclose(tangent, matmul(of_w, reshape(by_w, {-1})) + matmul(of_x, by_x), close));
  EXPECT_EQ(error_of([&] {
              jvp(f, std::tuple{w, x}, std::tuple{by_x, by_x});
            }),
            "jvp: the vector has the shape of x; got (3) and (2, 3); expand it");
  EXPECT_EQ(error_of([&] { jacobian(f, cast(w, Float32), x); }),
            "jacobian: the arrays have one type; got Float32 and Float64; convert one with cast");
}

TEST(Derivatives, TangentsAndPullbacksAreProductsWithTheJacobian) {
  const Array x = doubles({5}), a = doubles({3, 5}), v = doubles({5}), c = doubles({3});
  const auto f = [&](const Array& at) { return sin(matmul(a, at)); };
  const Array j = differences(f, x);
  const auto [value, tangent] = jvp(f, x, v);
  EXPECT_TRUE(allclose(value, f(x), close));
  EXPECT_TRUE(allclose(tangent, matmul(j, v), {.rtol = 1e-6, .atol = 1e-8}));
  const auto back = pullback(f, x);
  EXPECT_TRUE(allclose(back.value, f(x), close));
  EXPECT_TRUE(allclose(back(c), matmul(transpose(j), c), {.rtol = 1e-6, .atol = 1e-8}));
  EXPECT_EQ(error_of([&] { jvp(f, x, c); }), "jvp: the vector has the shape of x; got (3) and (5); expand it");
  EXPECT_EQ(error_of([&] { hvp(f, x, c); }), "hvp: the vector has the shape of x; got (3) and (5); expand it");
}

TEST(Derivatives, PullbacksTakeModelsAndSeveralArguments) {
  const Chain model(Dense(3, 4, tanh), Dense(4, 2));
  const Array x = randn({3, 5}), c = randn({2, 5});
  const auto back = pullback([](const Chain& m, const Array& in) { return m(in); }, model, x);
  const auto [by_model, by_x] = back(c);
  const auto [want_model, want_x] = gradient([&](const Chain& m, const Array& in) { return sum(m(in) * c); }, model, x);
  EXPECT_TRUE(allclose(by_model[1].get_if<Dense>()->weight, want_model[1].get_if<Dense>()->weight));
  EXPECT_TRUE(allclose(by_x, want_x));
  EXPECT_TRUE(allclose(back.value, model(x)));
}

TEST(Derivatives, Nest) {
  const auto f = [](const Array& v) { return v * v * v; };
  const Array x({2.0, 3.0}, {2});
  const auto trace_of_jacobian = [&](const Array& v) { return sum(jacobian(f, v) * eye(2, Float64)); };
  EXPECT_TRUE(allclose(gradient(trace_of_jacobian, x), 6.0 * x, close));
  const auto third = jvp([&](const Array& v) { return jvp(f, v, ones({2}, Float64)).tangent; }, x, ones({2}, Float64));
  EXPECT_TRUE(allclose(third.tangent, 6.0 * x, close));
}

}  // namespace
}  // namespace rosin
