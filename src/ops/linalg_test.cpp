// Linear algebra against PyTorch, NumPy and SciPy (tests/oracles/linalg.txt), second gradients against differences, and
// what it says to wrong input.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include <rosin/approx.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/derivatives.hpp>
#include <rosin/einsum.hpp>
#include <rosin/index.hpp>
#include <rosin/linalg.hpp>
#include <rosin/matmul.hpp>
#include <rosin/move.hpp>
#include <rosin/random.hpp>
#include <rosin/stats.hpp>

#include "../tests/layer_testing.hpp"
#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using linalg::MatrixNorm;
using linalg::TriangularOptions;
using oracles::OracleCase;
using Inputs = std::vector<Array>;

Array symmetric(const Array& x) { return (x + transpose(x)) * 0.5; }

Inputs triangular(const OracleCase& e, const Inputs& x) {
  const TriangularOptions options{.upper = e.number("upper", 0) != 0,
                                  .unit_diagonal = e.number("unit", 0) != 0,
                                  .transposed = e.number("transposed", 0) != 0};
  return {linalg::triangular_solve(x[0], x[1], options)};
}

Inputs lu_of(const OracleCase&, const Inputs& x) {
  const linalg::LU found = linalg::lu(x[0]);
  return {found.lower, found.upper};
}

Inputs qr_of(const OracleCase&, const Inputs& x) {
  const linalg::QR found = linalg::qr(x[0]);
  return {found.q, found.r};
}

Inputs svd_of(const OracleCase&, const Inputs& x) {
  const linalg::SVD found = linalg::svd(x[0]);
  return {square(found.u), found.s, square(found.vt)};
}

Inputs eigh_of(const OracleCase&, const Inputs& x) {
  const linalg::Eigh found = linalg::eigh(symmetric(x[0]));
  return {found.values, square(found.vectors)};
}

Inputs slogdet_of(const OracleCase&, const Inputs& x) {
  const linalg::SignAndLog found = linalg::slogdet(x[0]);
  return {found.sign, found.logabsdet};
}

Inputs vector_norm(const OracleCase& e, const Inputs& x) {
  const double order = e.number("order", 2);
  return {e.has("dims") ? linalg::vector_norm(x[0], order, oracles::dims_of(e)) : linalg::vector_norm(x[0], order)};
}

Inputs matrix_norm(const OracleCase& e, const Inputs& x) {
  const std::string& order = e.attributes.at("order");
  if (order == "fro") return {linalg::matrix_norm(x[0])};
  return {order == "nuc" ? linalg::matrix_norm(x[0], MatrixNorm::nuclear)
                         : linalg::matrix_norm(x[0], e.number("order", 0))};
}

oracles::OracleCall one(Array (*f)(const Array&)) {
  return [f](const OracleCase&, const Inputs& x) { return Inputs{f(x[0])}; };
}

TEST(Linalg, AgreesWithTheOracles) {
  oracles::run_oracles(
      "linalg.txt",
      {{"cholesky", one(linalg::cholesky)},
       {"inv", one(linalg::inv)},
       {"det", one(linalg::det)},
       {"svdvals", one(linalg::svdvals)},
       {"pinv", one([](const Array& x) { return linalg::pinv(x); })},
       {"eigvalsh", one([](const Array& x) { return linalg::eigvalsh(symmetric(x)); })},
       {"solve", [](const OracleCase&, const Inputs& x) { return Inputs{linalg::solve(x[0], x[1])}; }},
       {"lstsq", [](const OracleCase&, const Inputs& x) { return Inputs{linalg::lstsq(x[0], x[1])}; }},
       {"matrix_power",
        [](const OracleCase& e, const Inputs& x) { return Inputs{linalg::matrix_power(x[0], e.integers("n")[0])}; }},
       {"triangular_solve", triangular},
       {"lu", lu_of},
       {"qr", qr_of},
       {"svd", svd_of},
       {"eigh", eigh_of},
       {"slogdet", slogdet_of},
       {"vector_norm", vector_norm},
       {"matrix_norm", matrix_norm}});
}

/// Numbers without pattern with a heavier diagonal, of Float64.
Array matrix(const Shape& shape) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.count(); ++i)
    values.push_back(std::fmod(0.618 * static_cast<double>(i + 1), 1.0) - 0.5);
  return Array(values, shape) + 2.0 * eye(shape[0], shape[1], Float64) * (1.0 + 0.3 * arange(shape[0], Float64));
}

/// Gradients of sum(gradient of weighed squares * direction), which need the second ones.
void check_second(const std::string& name, const std::function<Array(const Array&)>& f, const Array& x) {
  const auto slope = [&](const Array& at) {
    return gradient([&](const Array& a) { return layer_testing::weighed(square(f(a))); }, at);
  };
  layer_testing::check_function_gradient(slope, x, name);
}

TEST(Linalg, SecondGradientsAgreeWithDifferences) {
  const Array x = matrix({3, 3}), batch = matrix({2, 2, 2}), tall = matrix({3, 2}), wide = matrix({2, 3});
  const Array b = matrix({3, 2});
  for (const Array& a : {x, batch}) {
    check_second(
        "cholesky",
        [](const Array& t) { return linalg::cholesky(matmul(t, transpose(t)) + 1.0 * eye(t.size(0), Float64)); }, a);
    check_second("inv", linalg::inv, a);
    check_second("det", linalg::det, a);
    check_second(
        "slogdet", [](const Array& t) { return linalg::slogdet(t).logabsdet; }, a);
    check_second(
        "eigh",
        [](const Array& t) {
          const linalg::Eigh found = linalg::eigh(symmetric(t));
          return square(found.vectors) * reshape(found.values, found.values.rank() == 1 ? Shape{1, 3} : Shape{1, 2, 2});
        },
        a);
  }
  for (const bool flag : {false, true}) {
    const TriangularOptions options{.upper = flag, .unit_diagonal = flag, .transposed = !flag};
    check_second(
        "triangular_solve by t", [&](const Array& t) { return linalg::triangular_solve(t, b, options); }, x);
    check_second(
        "triangular_solve by b", [&](const Array& t) { return linalg::triangular_solve(x, t, options); }, b);
  }
  check_second(
      "solve by a", [&](const Array& t) { return linalg::solve(t, b); }, x);
  check_second(
      "solve by b", [&](const Array& t) { return linalg::solve(x, t); }, b);
  for (const Array& a : {x, tall, wide, batch}) {
    check_second(
        "lu", [](const Array& t) { return linalg::lu(t).lower; }, a);
    check_second(
        "lu", [](const Array& t) { return linalg::lu(t).upper; }, a);
    check_second(
        "qr", [](const Array& t) { return linalg::qr(t).q; }, a);
    check_second(
        "qr", [](const Array& t) { return linalg::qr(t).r; }, a);
    check_second(
        "pinv", [](const Array& t) { return linalg::pinv(t); }, a);
    check_second(
        "svd", [](const Array& t) { return square(linalg::svd(t).u); }, a);
    check_second(
        "svd", [](const Array& t) { return square(linalg::svd(t).vt); }, a);
    check_second("svdvals", linalg::svdvals, a);
    check_second(
        "nuclear", [](const Array& t) { return linalg::matrix_norm(t, MatrixNorm::nuclear); }, a);
    check_second(
        "largest", [](const Array& t) { return linalg::matrix_norm(t, 2); }, a);
  }
}

TEST(Linalg, FactorsGiveTheMatrixAgain) {
  seed(3);
  for (const Shape& shape : {Shape{40, 40}, Shape{70, 20}, Shape{20, 70}, Shape{5, 5, 3}}) {
    const Array a = randn(shape);
    const linalg::LU lu = linalg::lu(a);
    const Shape order = shape.rank() == 2 ? Shape{shape[0], 1} : Shape{shape[0], 1, shape[2]};
    EXPECT_TRUE(
        allclose(take_along(a, expand(reshape(lu.rows, order), shape), 0), matmul(lu.lower, lu.upper), {.atol = 1e-4}));
    const linalg::QR qr = linalg::qr(a);
    EXPECT_TRUE(allclose(matmul(qr.q, qr.r), a, {.atol = 1e-4}));
    EXPECT_TRUE(allclose(qr.r, triu(qr.r)));
    const linalg::SVD svd = linalg::svd(a);
    const Array s = reshape(svd.s, shape.rank() == 2 ? Shape{1, svd.s.size(0)} : Shape{1, svd.s.size(0), shape[2]});
    EXPECT_TRUE(allclose(matmul(svd.u * s, svd.vt), a, {.atol = 1e-4}));
    EXPECT_TRUE(allclose(linalg::svdvals(a), svd.s, {.rtol = 1e-4}));
    const Array p = linalg::pinv(a);
    EXPECT_TRUE(allclose(matmul(a, matmul(p, a)), a, {.atol = 1e-3}));
    EXPECT_EQ(p.dtype(), Float32);
  }
}

/// The sum over all orders of the columns, of n rows.
double determinant(const double* a, int64_t n) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  double sum = 0;
  do {
    double term = 1;
    for (int64_t i = 0; i < n; ++i) {
      term *= a[order[static_cast<size_t>(i)] * n + i];
      for (int64_t j = 0; j < i; ++j)
        term = order[static_cast<size_t>(j)] > order[static_cast<size_t>(i)] ? -term : term;
    }
    sum += term;
  } while (std::next_permutation(order.begin(), order.end()));
  return sum;
}

/// With rows that change places in some and not in others.
TEST(Linalg, SmallMatricesSideBySideAreEachByItself) {
  for (int64_t n = 1; n <= 9; ++n) {
    for (const int64_t count : {1, 2, 3, 4, 5, 700}) {
      Rng rng(static_cast<uint64_t>(n));
      const Array a =
          round(uniform(rng, {n, n, count}, -3, 3, Float64)) + 0.25 * uniform(rng, {n, n, count}, -1, 1, Float64);
      const Array identity = expand(eye(n, Float64), {n, n, count}), inverses = linalg::inv(a);
      const Array size = maximum(abs(inverses), {0, 1});
      EXPECT_LT(maximum(abs(matmul(a, inverses) - identity) / size).item(), 1e-13) << n << " rows, " << count;
      const std::vector<double> elements = a.to_vector<double>(), found = linalg::det(a).to_vector<double>();
      const std::vector<float> rounded = linalg::det(cast(a, Float32)).to_vector();
      for (int64_t b = 0; n <= 5 && b < count; ++b) {
        const double wanted = determinant(elements.data() + b * n * n, n);
        EXPECT_NEAR(found[static_cast<size_t>(b)], wanted, 1e-11);
        EXPECT_NEAR(rounded[static_cast<size_t>(b)], wanted, 1e-3);
      }
      for (const int threads : {1, 2, 3, 7}) {
        set_num_threads(threads);
        EXPECT_EQ(linalg::inv(a).to_vector<double>(), inverses.to_vector<double>());
      }
      set_num_threads(0);
    }
  }
}

TEST(Linalg, OneOfManyIsSingular) {
  std::vector<double> ones_but_one(7, 1.0);
  ones_but_one[5] = 0;
  const Array factors = reshape(Array(ones_but_one, {7}), {1, 1, 7}),
              some = expand(eye(3, Float64), {3, 3, 7}) * factors;
  EXPECT_EQ(linalg::det(some).to_vector<double>(), ones_but_one);
  EXPECT_EQ(error_of([&] { linalg::inv(some).item(0, 0, 0); }, ErrorKind::numeric),
            "inv: the matrix must be invertible; got a singular one; use pinv or lstsq");
  const Array strange = where(eq(factors, 0), std::nan(""), some);
  const std::vector<double> found = linalg::inv(strange).to_vector<double>();
  EXPECT_EQ(std::count_if(found.begin(), found.end(), [](double x) { return std::isnan(x); }), 9);
}

/// Of Moore and Penrose, whatever the rank.
TEST(Linalg, PseudoInversesFulfilTheirFourEquations) {
  for (const auto& [m, n, rank] : std::initializer_list<std::array<int64_t, 3>>{
           {40, 5, 5}, {40, 5, 3}, {5, 40, 5}, {5, 40, 2}, {12, 12, 12}, {12, 12, 7}, {9, 1, 1}, {6, 4, 0}}) {
    const Array a = matmul(matrix({m, rank}), matrix({rank, n})), p = linalg::pinv(a);
    const Array left = matmul(p, a), right = matmul(a, p);
    const auto near = [&](const Array& x, const Array& y) {
      EXPECT_TRUE(allclose(x, y, {.atol = 1e-9})) << m << "x" << n;
    };
    near(matmul(a, left), a);
    near(matmul(left, p), p);
    near(transpose(left), left);
    near(transpose(right), right);
  }
  const Array steps = diagm(Array({1.0, 1e-3, 1e-6}, {3}));
  EXPECT_TRUE(allclose(linalg::pinv(steps), diagm(Array({1.0, 1e3, 1e6}, {3}))));
  EXPECT_TRUE(allclose(linalg::pinv(steps, 1e-4), diagm(Array({1.0, 1e3, 0.0}, {3}))));
  EXPECT_TRUE(allclose(linalg::pinv(steps, 1e-2), diagm(Array({1.0, 0.0, 0.0}, {3}))));
  for (const Shape& shape : {Shape{4, 2}, Shape{2, 4}}) {
    error_of([&] { eval(linalg::pinv(full(shape, std::nan(""), Float64))); }, ErrorKind::numeric);
  }
}

TEST(Linalg, VectorsAndNothing) {
  const Array a = matrix({3, 3}), b = matrix({3, 1});
  EXPECT_TRUE(allclose(linalg::solve(a, reshape(b, {3})), reshape(linalg::solve(a, b), {3})));
  EXPECT_EQ(linalg::lstsq(matrix({4, 2}), ones({4}, Float64)).shape(), (Shape{2}));
  EXPECT_TRUE(allclose(linalg::matrix_power(matrix({2, 2, 3}), 0), expand(eye(2, Float64), {2, 2, 3})));
  EXPECT_EQ(linalg::det(zeros({0, 0})).item(), 1);
  EXPECT_EQ(linalg::det(zeros({0, 0, 2})).to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(linalg::slogdet(zeros({0, 0})).logabsdet.item(), 0);
  EXPECT_EQ(linalg::slogdet(zeros({2, 2})).sign.item(), 0);
  EXPECT_EQ(linalg::slogdet(zeros({2, 2})).logabsdet.item(), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(linalg::inv(zeros({0, 0})).shape(), (Shape{0, 0}));
  std::vector<int32_t> order(300);  // more than what an earlier test left in memory
  std::iota(order.begin(), order.end(), 0);
  EXPECT_EQ(linalg::lu(zeros({300, 0})).rows.to_vector<int32_t>(), order);
  EXPECT_EQ(linalg::svd(zeros({0, 3})).vt.shape(), (Shape{0, 3}));
  EXPECT_EQ(linalg::solve(zeros({2, 2, 0}), zeros({2, 1})).shape(), (Shape{2, 1, 0}));
  EXPECT_EQ(linalg::pinv(zeros({2, 3})).to_vector<float>(), std::vector<float>(6));
  EXPECT_EQ(linalg::vector_norm(zeros({0}), 0).item(), 0);
}

TEST(Linalg, ArraysOfADeviceComeBackThere) {
  const Device device = some_device();
  const Array a = cast(matrix({3, 3}), Float32), there = device(a);
  const auto loss = [](const Array& x) { return sum(square(linalg::inv(x))) + linalg::slogdet(x).logabsdet; };
  EXPECT_EQ(linalg::svd(there).u.device().position(), device.position());
  const Array slope = gradient(loss, there);
  EXPECT_EQ(slope.device().position(), device.position());
  EXPECT_EQ(slope.to_vector<float>(), gradient(loss, a).to_vector<float>());
}

TEST(Linalg, SaysWhatItTakes) {
  EXPECT_EQ(error_of(
                [] {
                  linalg::inv(ones({2, 3}));
                },
                ErrorKind::shape),
            "inv: it takes square matrices; got (2, 3); lstsq and pinv take others");
  EXPECT_EQ(error_of([] { linalg::svd(ones({2})); }, ErrorKind::shape),
            "svd: it takes matrices (m, n, batch...); got (2); reshape to two dims");
  EXPECT_EQ(error_of(
                [] {
                  linalg::det(ones({2, 2}, Float16));
                },
                ErrorKind::dtype),
            "det: matrices are of Float32 or Float64; got Float16; convert it with cast(x, Float32)");
  EXPECT_EQ(error_of([] { linalg::solve(eye(2), ones({3})); }, ErrorKind::shape),
            "solve: both operands have as many rows; got (2, 2) and (3); transpose one of them");
  EXPECT_EQ(error_of([] { linalg::solve(eye(2), ones({2}, Float64)); }, ErrorKind::dtype),
            "solve: both operands have one type; got Float32 and Float64; cast one of them");
  error_of([] { linalg::solve(ones({2, 2, 3}), ones({2, 2, 2})); }, ErrorKind::shape);
  error_of([] { linalg::matrix_norm(eye(2), 3); }, ErrorKind::argument);
}

TEST(Linalg, ValuesWithoutAResultAreErrorsWhenTheyAreRead) {
  const Array singular = zeros({2, 2}), indefinite = -eye(2), strange = full({2, 2}, std::nanf(""));
  EXPECT_EQ(error_of([&] { linalg::inv(singular).item(0, 0); }, ErrorKind::numeric),
            "inv: the matrix must be invertible; got a singular one; use pinv or lstsq");
  EXPECT_EQ(error_of([&] { linalg::cholesky(indefinite).item(0, 0); }, ErrorKind::numeric),
            "cholesky: the matrix must be positive definite; got one that is not; add a multiple of the identity, or "
            "use eigh");
  EXPECT_EQ(
      error_of([&] { linalg::svd(strange).s.item(0); }, ErrorKind::numeric),
      "svd: the elements must be finite; got a matrix for which no values were found; look for NaN and Inf in it");
  error_of([&] { linalg::eigh(strange).values.item(0); }, ErrorKind::numeric);
  error_of([&] { linalg::solve(singular, ones({2})).item(0); }, ErrorKind::numeric);
  EXPECT_TRUE(std::isnan(linalg::det(strange).item()));
}

}  // namespace
}  // namespace rosin
