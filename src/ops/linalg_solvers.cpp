// Cholesky, triangles, LU, solutions, inverses and determinants; see rosin/linalg.hpp. Gradients are written in array
// ops, of the same family too, so that they have gradients.
#include <cmath>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/sort.hpp>

#include "graph/refuse_type.hpp"
#include "ops/linalg_parts.hpp"

namespace rosin::linalg {
namespace {

Array halved_diagonal(const Array& x) { return (tril(x) + tril(x, -1)) * 0.5; }

const Op& cholesky_op = routine_op("cholesky", Routine::cholesky, 1, 1, "lower factor of a positive definite matrix")
                            .called(cholesky)
                            .with_gradient([](Backward& b) {
                              const Array l = b.out(), inner = halved_diagonal(matmul(transpose(l), b.gradient));
                              const Array left = triangle_solved(l, inner, transposed(lower_triangle));
                              b.give(0, symmetric(triangle_solved_right(left, l, lower_triangle)));
                            });

/// The part of a gradient that belongs to the triangle.
Array in_triangle(const Array& g, const TriangularAttributes& how) {
  return how.upper ? triu(g, how.unit) : tril(g, -how.unit);
}

const Op& triangular_op =
    routine_op("triangular_solve", Routine::triangular, 2, 1, "x with t x = b for a triangular t")
        .with_gradient([](Backward& b) {
          const auto how = b.attributes<TriangularAttributes>();
          const Array t = b.in(0), x = b.out(), by_b = triangle_solved(t, b.gradient, transposed(how));
          b.give(1, by_b);
          if (!b.needs(0)) return;
          const Array product = how.transposed ? matmul(x, transpose(by_b)) : matmul(by_b, transpose(x));
          b.give(0, -in_triangle(product, how));
        });

/// x with a x = b, or a' x = b.
Array solved(const Array& a, const Array& b, bool is_transposed);

const Op& solve_op = routine_op("solve", Routine::solve, 2, 1, "x with a x = b").with_gradient([](Backward& b) {
  const bool is_transposed = b.attributes<TriangularAttributes>().transposed != 0;
  const Array x = b.out(), by_b = solved(b.in(0), b.gradient, !is_transposed);
  b.give(1, by_b);
  if (b.needs(0)) b.give(0, -(is_transposed ? matmul(x, transpose(by_b)) : matmul(by_b, transpose(x))));
});

Array solved(const Array& a, const Array& b, bool is_transposed) {
  const Array* in[] = {&a, &b};
  const TriangularAttributes how{.transposed = is_transposed};
  return record(solve_op, in, b.dtype(), b.shape(), Attributes::of(how));
}

const Op& inv_op =
    routine_op("inv", Routine::inverse, 1, 1, "inverse matrix").called(inv).with_gradient([](Backward& b) {
      const Array y = transpose(b.out());
      b.give(0, -matmul(y, matmul(b.gradient, y)));
    });

Array inverse(const Array& a) { return record_one(inv_op, a, a.dtype(), a.shape()); }

/// The inverse of an order of rows (m, batch...), applied to the rows of x.
Array rows_put_back(const Array& x, const Array& rows) {
  return take_along(x, expand(as_column(argsort(rows, 0)), x.shape()), 0);
}

/// The gradient by l u, of square factors, from those by both.
Array by_product(const Array& l, const Array& u, const Array& by_l, const Array& by_u) {
  const Array inner = tril(matmul(transpose(l), by_l), -1) + triu(matmul(by_u, transpose(u)));
  return triangle_solved_right(triangle_solved(l, inner, transposed(unit_lower_triangle)), u,
                               transposed(upper_triangle));
}

void lu_gradient(Backward& b) {
  if (b.gradient_of(0).is_nothing()) return;  // the order of the rows has none
  const Array a = b.in(0), both = b.out(0, a.dtype(), a.shape()), g = b.gradient_of(0);
  const int64_t m = a.size(0), n = a.size(1), k = std::min(m, n);
  const Array rows = b.out(1, Int32, with_vector(a, m));
  const Array square = slice(slice(both, 0, 0, k), 1, 0, k), l = tril(square, -1) + eye(k, a.dtype()), u = triu(square);
  const Array inner = slice(slice(g, 0, 0, k), 1, 0, k);
  Array by_l = tril(inner, -1), by_u = triu(inner), by_rows;
  if (m > k) {  // the rows below are a u^-1
    const Array below = slice(both, 0, k, m),
                by_a = triangle_solved_right(slice(g, 0, k, m), u, transposed(upper_triangle));
    by_u = by_u - triu(matmul(transpose(below), by_a));
    by_rows = concat({by_product(l, u, by_l, by_u), by_a}, 0);
  } else {  // the columns to the right are l^-1 a
    const Array right = slice(both, 1, k, n),
                by_a = triangle_solved(l, slice(g, 1, k, n), transposed(unit_lower_triangle));
    by_l = by_l - tril(matmul(by_a, transpose(right)), -1);
    by_rows = concat({by_product(l, u, by_l, by_u), by_a}, 1);
  }
  b.give(0, rows_put_back(by_rows, rows));
}

const Op& lu_op =
    routine_op("lu", Routine::lu, 1, 2, "both triangular factors in one matrix, and the order of the rows")
        .with_gradient(lu_gradient);

const Op& cofactors_op =
    routine_op("cofactors", Routine::cofactors, 1, 1, "the gradient of the determinant").with_gradient([](Backward& b) {
      const Array y = transpose(inverse(b.in(0))), c = b.out();
      b.give(0, sum(b.gradient * y, {0, 1}) * c - matmul(c, matmul(transpose(b.gradient), y)));
    });

const Op& det_op =
    routine_op("det", Routine::determinant, 1, 1, "determinant").called(det).with_gradient([](Backward& b) {
      const Array a = b.in(0);
      b.give(0, as_matrix(b.gradient) * record_one(cofactors_op, a, a.dtype(), a.shape()));
    });

const Op& slogdet_op =
    routine_op("slogdet", Routine::logarithm, 1, 2, "sign of the determinant and logarithm of its size")
        .with_gradient([](Backward& b) {
          if (b.gradient_of(1).is_nothing()) return;
          b.give(0, as_matrix(b.gradient_of(1)) * transpose(inverse(b.in(0))));
        });

}  // namespace

Op& routine_op(std::string_view name, Routine routine, int operands, int results, std::string_view doc) {
  return *register_op({.name = name,
                       .kind = Kind::routine,
                       .operands = operands,
                       .results = results,
                       .doc = doc,
                       .routine = routine,
                       .attribute_words = 1});
}

Array matrix_of(const Op& op, const Array& x) {
  require(op, x);
  if (x.dtype() != Float32 && x.dtype() != Float64) {
    refuse(ErrorKind::dtype, op.name, "matrices are of Float32 or Float64", to_string(x.dtype()),
           "convert it with cast(x, Float32)");
  }
  if (x.rank() < 2) {
    refuse(ErrorKind::shape, op.name, "it takes matrices (m, n, batch...)", to_string(x.shape()),
           "reshape to two dims");
  }
  return transferred(x, 0);
}

Array square_of(const Op& op, const Array& x) {
  Array a = matrix_of(op, x);
  if (a.size(0) != a.size(1)) {
    refuse(ErrorKind::shape, op.name, "it takes square matrices", to_string(a.shape()), "lstsq and pinv take others");
  }
  return a;
}

Operands operands_of(const Op& op, const Array& a, const Array& b) {
  require(op, b);
  const Array left = matrix_of(op, a), right = matrix_of(op, b.rank() == 1 ? reshape(b, {b.size(0), 1}) : b);
  if (left.dtype() != right.dtype()) {
    refuse(ErrorKind::dtype, op.name, "both operands have one type",
           std::string(to_string(left.dtype())) + " and " + to_string(right.dtype()), "cast one of them");
  }
  if (left.size(0) != right.size(0)) {
    refuse(ErrorKind::shape, op.name, "both operands have as many rows",
           to_string(a.shape()) + " and " + to_string(b.shape()), "transpose one of them");
  }
  const Shape batch = broadcast_shapes(op.name, without_matrix(left), without_matrix(right));
  const auto widened = [&](const Array& x) {
    const Shape shape = with_dims(batch, 0, 0, {x.size(0), x.size(1)});
    return x.shape() == shape ? x : expand(x, shape);
  };
  return {widened(left), widened(right)};
}

Array solution_for(const Array& b, const Array& x) {
  return beside(b, b.rank() == 1 ? reshape(x, with_dims(x.shape(), 1, 1, {})) : x);
}

Array triangle_solved(const Array& t, const Array& b, const TriangularAttributes& how) {
  const Array* in[] = {&t, &b};
  return record(triangular_op, in, b.dtype(), b.shape(), Attributes::of(how));
}

Array cholesky(const Array& a) {
  const Array x = square_of(cholesky_op, a);
  return beside(a, record_one(cholesky_op, x, x.dtype(), x.shape()));
}

Array triangular_solve(const Array& t, const Array& b, const TriangularOptions& options) {
  square_of(triangular_op, t);
  const auto [left, right] = operands_of(triangular_op, t, b);
  const TriangularAttributes how{options.upper, options.unit_diagonal, options.transposed, 0};
  return solution_for(b, triangle_solved(left, right, how));
}

Array solve(const Array& a, const Array& b) {
  square_of(solve_op, a);
  const auto [left, right] = operands_of(solve_op, a, b);
  return solution_for(b, solved(left, right, false));
}

Array inv(const Array& a) { return beside(a, inverse(square_of(inv_op, a))); }

LU lu(const Array& a) {
  const Array x = matrix_of(lu_op, a);
  const int64_t m = x.size(0), n = x.size(1), k = std::min(m, n);
  const Array* in[] = {&x};
  const ResultForm forms[] = {{x.dtype(), x.shape()}, {Int32, with_vector(x, m)}};
  Array results[2];
  record(lu_op, in, forms, {}, results);
  const Array lower = tril(slice(results[0], 1, 0, k), -1) + eye(m, k, x.dtype());
  return {beside(a, results[1]), beside(a, lower), beside(a, triu(slice(results[0], 0, 0, k)))};
}

Array det(const Array& a) {
  const Array x = square_of(det_op, a);
  return beside(a, record_one(det_op, x, x.dtype(), without_matrix(x)));
}

SignAndLog slogdet(const Array& a) {
  const Array x = square_of(slogdet_op, a);
  const Array* in[] = {&x};
  const ResultForm form = {x.dtype(), without_matrix(x)}, forms[] = {form, form};
  Array results[2];
  record(slogdet_op, in, forms, {}, results);
  return {beside(a, results[0]), beside(a, results[1])};
}

Array matrix_power(const Array& a, int64_t exponent) {
  const Array x = square_of(inv_op, a);
  Array power = exponent < 0 ? inv(a) : a, result;
  for (auto left = static_cast<uint64_t>(std::abs(exponent)); left > 0; left /= 2) {
    if (left % 2 == 1) result = result.is_nothing() ? power : matmul(result, power);
    if (left > 1) power = matmul(power, power);
  }
  return result.is_nothing() ? beside(a, expand(eye(x.size(0), x.dtype()), x.shape())) : result;
}

}  // namespace rosin::linalg
