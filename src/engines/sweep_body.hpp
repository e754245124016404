// Products of few columns, whose time is that of reading A: included once by each tile_*.cpp, as tile_body.hpp, with
// `sweep_steps`, the factors that registers have room for. Some columns of A at a time are read from end to end and
// added to the sums, which stay in the first cache. Each sum takes its steps in order, so that the result does not
// depend on how many are taken at a time.
#pragma once

/// The factors of S steps and N columns.
template <class W, int S, int N> struct Factors {
  typename Vec<W>::Register of[S][N];
};

/// A vector of rows; the first of it unless Whole.
template <class W, bool Whole, class A>
typename Vec<W>::Register load_some(const A* from, [[maybe_unused]] typename Vec<W>::Mask edge) {
  if constexpr (Whole) return Vec<W>::load(from);
  else return Vec<W>::load(from, edge);
}
template <class W, bool Whole>
void store_some(W* to, typename Vec<W>::Register value, [[maybe_unused]] typename Vec<W>::Mask edge) {
  if constexpr (Whole) Vec<W>::store(to, value);
  else Vec<W>::store(to, value, edge);
}

/// S steps of N columns for one vector of rows, whose A begins at `a` and whose sums at `sums`. `zero`: they begin
/// here.
template <class A, class W, int S, int N, bool Whole>
void add_steps(const Sweep<A>& p, const Factors<W, S, N>& factors, const A* a, W* sums, bool zero,
               typename Vec<W>::Mask edge) {
  using R = Vec<W>;
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(A)), ahead = 8;
  typename R::Register kept[N];
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) kept[n] = zero ? R::zero() : load_some<W, Whole>(sums + n * p.sums_column, edge);
#pragma GCC unroll 8
  for (int s = 0; s < S; ++s) {
    __builtin_prefetch(a + s * p.a_step + ahead * line);
    const typename R::Register value = load_some<W, Whole>(a + s * p.a_step, edge);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) kept[n] = R::fma(value, factors.of[s][n], kept[n]);
  }
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) store_some<W, Whole>(sums + n * p.sums_column, kept[n], edge);
}

/// S steps from `step` on, for `rows` rows from `row` on.
template <class A, class W, int S, int N>
void add_steps_to_rows(const Sweep<A>& p, int64_t row, int64_t rows, int64_t step) {
  constexpr int64_t lanes = Vec<W>::lanes;
  Factors<W, S, N> factors;
#pragma GCC unroll 8
  for (int s = 0; s < S; ++s) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      const W factor = static_cast<W>(p.b[(step + s) * p.b_step + n * p.b_column]);
      factors.of[s][n] = Vec<W>::splat(&factor);
    }
  }
  const A* a = p.a + row + step * p.a_step;
  W* sums = p.sums + row;
  const typename Vec<W>::Mask edge = Vec<W>::mask_of(rows % lanes);
  int64_t at = 0;
  for (; at + lanes <= rows; at += lanes) {
    add_steps<A, W, S, N, true>(p, factors, a + at, sums + at, step == 0, edge);
  }
  if (at < rows) add_steps<A, W, S, N, false>(p, factors, a + at, sums + at, step == 0, edge);
}

template <class A, int N> void sweep_columns(const Sweep<A>& p) {
  using W = typename Sweep<A>::Wide;
  constexpr int together = sweep_steps / N;
  constexpr int64_t most_rows = 16384 / static_cast<int64_t>(sizeof(W)) / N;
  for (int64_t row = 0; row < p.rows; row += most_rows) {
    const int64_t rows = std::min(most_rows, p.rows - row);
    int64_t step = 0;
    for (; step + together <= p.steps; step += together) add_steps_to_rows<A, W, together, N>(p, row, rows, step);
    for (; step < p.steps; ++step) add_steps_to_rows<A, W, 1, N>(p, row, rows, step);
  }
}

template <class A> void sweep(const Sweep<A>& p) {
  static_assert(most_swept == 2);
  if (p.columns == 1) sweep_columns<A, 1>(p);
  if (p.columns == 2) sweep_columns<A, 2>(p);
}
