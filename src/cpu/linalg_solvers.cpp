// Cholesky, LU and what is solved by them. Read first: routine.hpp.
#if ROSIN_HAVE_EIGEN

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/workers.hpp"
#include "cpu/blocked_factors.hpp"
#include "cpu/call.hpp"

namespace rosin::cpu {

void multiply(DType type, const ProductPart& a, const ProductPart& b, void* room) {
  static const Op& matmul_op = *find_op("matmul");
  const auto operand = [&](const ProductPart& x) {
    CallArray array;
    array.type = type;
    array.shape = {x.rows, x.columns};
    array.strides[0] = x.transposed ? x.stride : 1;
    array.strides[1] = x.transposed ? 1 : x.stride;
    return array;
  };
  CallSpec spec;
  spec.op = &matmul_op;
  spec.attributes = Attributes::of(MatmulAttributes{});
  spec.operands = {operand(a), operand(b)};
  spec.result = operand({room, a.rows, b.columns, a.rows});
  const std::unique_ptr<Call> call = prepare(spec);
  std::vector<std::max_align_t> scratch(call->scratch_bytes() / sizeof(std::max_align_t) + 8);
  CallData data;
  data.operands[0] = a.data;
  data.operands[1] = b.data;
  data.result = room;
  const auto from = reinterpret_cast<uintptr_t>(scratch.data());
  data.scratch = reinterpret_cast<void*>((from + 63) / 64 * 64);
  call->begin(data);
  parallel_for(call->chunks(), [&](int64_t chunk) { call->run(chunk, data); });
  call->finish(data);
}

namespace {

template <class T> void cholesky(const Problem& p, const Matrices& m) {
  auto factor = matrix<T>(m.out[0], p.rows, p.rows);
  factor = first_matrix<T>(p, m);
  if (!factor_cholesky<T>(factor)) {
    throw Error(ErrorKind::numeric,
                "cholesky: the matrix must be positive definite; got one that is not; add a "
                "multiple of the identity, or use eigh");
  }
  factor.template triangularView<Eigen::StrictlyUpper>().setZero();
}

template <class T> void triangular(const Problem& p, const Matrices& m) {
  const auto how = p.attributes.as<TriangularAttributes>();
  if (p.columns_of_b == 0) return;
  auto x = matrix<T>(m.out[0], p.rows, p.columns_of_b);
  x = matrix<T>(m.in[1], p.rows, p.columns_of_b);
  auto a = matrix<T>(const_cast<void*>(m.in[0]), p.rows, p.rows);  // (nobody writes it)
  solve_triangle<T>(a, {how.upper != 0, how.transposed != 0, how.unit != 0}, x);
}

/// Error (numeric): a pivot is 0.
template <class T> Factors<T> invertible(const Problem& p, const Matrices& m) {
  Factors<T> factors(first_matrix<T>(p, m));
  if ((factors.both().diagonal().array() == T{0}).any()) refuse_singular(p);
  return factors;
}

template <class T> void solve(const Problem& p, const Matrices& m) {
  auto factors = invertible<T>(p, m);
  if (p.columns_of_b == 0) return;
  auto x = matrix<T>(m.out[0], p.rows, p.columns_of_b);
  x = matrix<T>(m.in[1], p.rows, p.columns_of_b);
  factors.solve(p.attributes.as<TriangularAttributes>().transposed != 0, x);
}

template <class T> void inverse(const Problem& p, const Matrices& m) {
  auto factors = invertible<T>(p, m);
  auto x = matrix<T>(m.out[0], p.rows, p.rows);
  x.setIdentity();
  factors.solve(false, x);
}

template <class T> void lu(const Problem& p, const Matrices& m) {
  const Factors<T> factors(first_matrix<T>(p, m));
  if (m.out[0]) matrix<T>(m.out[0], p.rows, p.columns) = factors.both();
  if (m.out[1]) std::copy(factors.order().begin(), factors.order().end(), static_cast<int32_t*>(m.out[1]));
}

template <class T> void determinant(const Problem& p, const Matrices& m) {
  const Factors<T> factors(first_matrix<T>(p, m));
  *static_cast<T*>(m.out[0]) = factors.sign() * factors.both().diagonal().prod();
}

template <class T> void logarithm(const Problem& p, const Matrices& m) {
  const Factors<T> factors(first_matrix<T>(p, m));
  T sign = factors.sign(), sum = 0;
  for (int64_t i = 0; i < p.rows; ++i) {
    const T pivot = factors.both()(i, i);
    sign *= pivot > 0 ? T{1} : pivot < 0 ? T{-1} : pivot;  // 0, or NaN
    sum += std::log(std::abs(pivot));
  }
  if (m.out[0]) *static_cast<T*>(m.out[0]) = sign;
  if (m.out[1]) *static_cast<T*>(m.out[1]) = sum;
}

template <class T> Work solver(Routine routine) {
  switch (routine) {
    case Routine::cholesky: return cholesky<T>;
    case Routine::triangular: return triangular<T>;
    case Routine::solve: return solve<T>;
    case Routine::inverse: return inverse<T>;
    case Routine::lu: return lu<T>;
    case Routine::determinant: return determinant<T>;
    case Routine::logarithm: return logarithm<T>;
    default: return nullptr;
  }
}

}  // namespace

Work solver_of(Routine routine, DType type) {
  return type == DType::Float64 ? solver<double>(routine) : solver<float>(routine);
}

}  // namespace rosin::cpu

#endif
