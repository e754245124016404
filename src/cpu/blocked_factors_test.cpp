// Large matrices, which are factored in halves: what they are factored into gives them back, and what is solved fits.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include <rosin/approx.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/index.hpp>
#include <rosin/linalg.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

namespace rosin {
namespace {

/// The largest difference, of the largest element.
double distance(const Array& x, const Array& wanted) {
  return (maximum(abs(x - wanted)) / maximum(abs(wanted))).item();
}

Array random_matrix(int64_t rows, int64_t columns, DType type, uint64_t seed) {
  Rng rng(seed);
  return normal(rng, {rows, columns}, 0, 1, type);
}

/// A well conditioned one.
Array square_matrix(int64_t n, DType type, uint64_t seed = 1) {
  return random_matrix(n, n, type, seed) * 0.3 + 4 * std::sqrt(static_cast<double>(n)) * eye(n, type);
}

double rounding(DType type) { return type == Float64 ? 1e-14 : 1e-5; }

class BlockedFactors : public testing::TestWithParam<std::tuple<int64_t, DType>> {
 protected:
  int64_t n = std::get<0>(GetParam());
  DType type = std::get<1>(GetParam());
};

TEST_P(BlockedFactors, CholeskyGivesTheMatrixBack) {
  const Array g = random_matrix(n, n, type, 2), a = matmul(g, transpose(g)) / static_cast<double>(n) + eye(n, type);
  const Array l = linalg::cholesky(a);
  EXPECT_LT(distance(matmul(l, transpose(l)), a), rounding(type));
  EXPECT_EQ(maximum(abs(triu(l, 1))).item(), 0);
  const Array indefinite = a - 2 * eye(n, type) * cast(reshape(eq(arange(n), n - 1), {n, 1}), type) * maximum(a);
  EXPECT_THROW(eval(linalg::cholesky(indefinite)), Error);
}

TEST_P(BlockedFactors, WhatIsSolvedFits) {
  const Array a = square_matrix(n, type), b = random_matrix(n, 40, type, 3);
  EXPECT_LT(distance(matmul(a, linalg::solve(a, b)), b), rounding(type));
  EXPECT_LT(distance(matmul(a, linalg::solve(a, slice(b, 1, 0, 1))), slice(b, 1, 0, 1)), rounding(type));
  EXPECT_LT(distance(matmul(linalg::inv(a), a), eye(n, type)), rounding(type));
  // Rows that must be exchanged, and the gradient, which solves with the transposed matrix.
  const Array turned = flip(a, 0);
  EXPECT_LT(distance(matmul(turned, linalg::solve(turned, b)), b), rounding(type));
}

TEST_P(BlockedFactors, TrianglesAreSolvedOfAllKinds) {
  const Array a = square_matrix(n, type), b = random_matrix(n, 40, type, 3);
  for (const bool upper : {false, true}) {
    for (const bool unit : {false, true}) {
      // With ones on the diagonal, elements beside it are small.
      const Array given = unit ? a / (4.0 * static_cast<double>(n)) : a;
      Array t = upper ? triu(given) : tril(given);
      if (unit) t = t * (1 - eye(n, type)) + eye(n, type);
      for (const bool transposed : {false, true}) {
        const Array x =
            linalg::triangular_solve(given, b, {.upper = upper, .unit_diagonal = unit, .transposed = transposed});
        EXPECT_LT(distance(matmul(transposed ? transpose(t) : t, x), b), rounding(type)) << upper << unit << transposed;
      }
    }
  }
}

TEST_P(BlockedFactors, LuOfAnyShapeGivesTheMatrixBack) {
  for (const auto& [rows, columns] : {std::pair{n, n}, {n, n + 70}, {n + 70, n}, {n, int64_t{20}}, {int64_t{20}, n}}) {
    const Array a = random_matrix(rows, columns, type, 5);
    const linalg::LU made = linalg::lu(a);
    EXPECT_LT(distance(matmul(made.lower, made.upper), gather(a, made.rows, 0)), rounding(type));
    EXPECT_LE(maximum(abs(made.lower)).item(), 1);
  }
}

TEST_P(BlockedFactors, DeterminantsAgreeWithTheTriangle) {
  const Array u = triu(random_matrix(n, n, type, 6) * 0.01) + eye(n, type) * 1.5;
  const Array l = tril(random_matrix(n, n, type, 7) * 0.01, -1) + eye(n, type);
  const Array a = flip(matmul(l, u), 0);  // whose rows are in the order of n / 2 exchanges
  const linalg::SignAndLog found = linalg::slogdet(a);
  const Array pivots = sum(u * eye(n, type), 0);
  EXPECT_EQ(found.sign.item(), (n / 2 % 2 == 0 ? 1 : -1) * (sum(lt(pivots, 0)).item<int32_t>() % 2 == 0 ? 1 : -1));
  EXPECT_NEAR(found.logabsdet.item() / sum(log(abs(pivots))).item(), 1, 10 * rounding(type));
}

TEST_P(BlockedFactors, SingularMatricesAreRefused) {
  const Array a = square_matrix(n, type) * cast(reshape(ne(arange(n), n - 1), {1, n}), type);
  EXPECT_THROW(eval(linalg::solve(a, ones({n, 2}, type))), Error);
  EXPECT_EQ(linalg::slogdet(a).sign.item(), 0);
}

TEST_P(BlockedFactors, AreTheSameForAnyNumberOfThreads) {
  const Array a = square_matrix(n, type), b = random_matrix(n, 40, type, 3);
  const auto solved = [&](int threads) {
    set_num_threads(threads);
    return linalg::solve(a, b).to_vector<double>();
  };
  const std::vector<double> one = solved(1);
  for (const int threads : {2, 3}) EXPECT_EQ(solved(threads), one);
  set_num_threads(0);
}

INSTANTIATE_TEST_SUITE_P(, BlockedFactors,
                         testing::Combine(testing::Values(int64_t{64}, 65, 150, 337),
                                          testing::Values(Float64, Float32)));

}  // namespace
}  // namespace rosin
