// Products whose sums run along memory in both operands: included once by each tile_*.cpp, as tile_body.hpp, with the
// tile's sizes `dot_rows` and `dot_columns`. Sums are kept in the same sixty-four bytes of partial sums, joined in the
// same tree, on every processor.
#pragma once

template <class T> constexpr int dot_parts = 64 / static_cast<int>(sizeof(T)) / Vec<T>::lanes;

/// The partial sums of one element.
template <class T> struct PartialSums {
  typename Vec<T>::Register parts[dot_parts<T>];
};

template <class T> constexpr bool has_halves = requires(const PartialSums<T>& sums) { Vec<T>::first_half(sums.parts); };

/// By halves.
template <class T> T total(const PartialSums<T>& sums) {
  if constexpr (has_halves<T>) {
    return total(Vec<T>::first_half(sums.parts));
  } else {
    constexpr int lanes = dot_parts<T> * Vec<T>::lanes;
    T values[lanes];
#pragma GCC unroll 4
    for (int p = 0; p < dot_parts<T>; ++p) Vec<T>::store(values + p * Vec<T>::lanes, sums.parts[p]);
#pragma GCC unroll 4
    for (int half = lanes / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) values[i] += values[i + half];
    }
    return values[0];
  }
}

/// Of N elements, four at a time.
template <int N, class T> void totals(const PartialSums<T> (&sums)[N], T (&out)[N]) {
  int n = 0;
  if constexpr (has_halves<T>) {
    const auto half = [&](int i) { return Vec<T>::first_half(sums[i].parts); };
    for (; n + 4 <= N; n += 4) totals(half(n), half(n + 1), half(n + 2), half(n + 3), out + n);
  }
  for (; n < N; ++n) out[n] = total(sums[n]);
}

/// R elements of a column.
template <int R, class A, class B, class T>
void store_dots(const DotProduct<A, B>& p, int64_t row, int64_t column, T* sums) {
  T* const c = p.c + row + column * p.c_column;
  for (int r = 0; p.accumulate && r < R; ++r) sums[r] += c[r];
  for (int r = 0; p.bias != nullptr && r < R; ++r) sums[r] += p.bias[row + r];
  for (int r = 0; p.relu && r < R; ++r) sums[r] = sums[r] < T(0) ? T(0) : sums[r];
  for (int r = 0; r < R; ++r) c[r] = sums[r];
}

/// R rows and N columns. `edge`: of the registers that the last, incomplete step fills.
template <int R, int N, class A, class B> void run_dots(const DotProduct<A, B>& p, int64_t row, int64_t column) {
  using T = typename DotProduct<A, B>::T;
  using V = Vec<T>;
  constexpr int64_t whole = dot_parts<T> * V::lanes;
  const A* a = p.a + row * p.a_row;
  const B* b = p.b + column * p.b_column;
  PartialSums<T> sums[N * R];  // column by column
#pragma GCC unroll 16
  for (auto& sum : sums) {
#pragma GCC unroll 4
    for (auto& part : sum.parts) part = V::zero();
  }
  const auto add = [&](int part, auto&& load) {
    typename V::Register factors[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) factors[n] = load(b + n * p.b_column);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const typename V::Register x = load(a + r * p.a_row);
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) sums[n * R + r].parts[part] = V::fma(x, factors[n], sums[n * R + r].parts[part]);
    }
  };
  int64_t step = 0;
  for (; step + whole <= p.steps; step += whole) {
#pragma GCC unroll 4
    for (int part = 0; part < dot_parts<T>; ++part) {
      add(part, [at = step + part * V::lanes](const auto* from) { return V::load(from + at); });
    }
  }
#pragma GCC unroll 4
  for (int part = 0; part < dot_parts<T>; ++part) {
    const int64_t at = step + part * V::lanes, left = p.steps - at;
    if (left <= 0) break;
    const auto edge = V::mask_of(left < V::lanes ? left : V::lanes);
    add(part, [at, edge](const auto* from) { return V::load(from + at, edge); });
  }
  T values[N * R];
  totals(sums, values);
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n) store_dots<R>(p, row, column + n, values + n * R);
}

/// All columns of R rows.
template <int R, class A, class B> void run_dot_columns(const DotProduct<A, B>& p, int64_t row) {
  int64_t column = 0;
  for (; column + dot_columns <= p.columns; column += dot_columns) run_dots<R, dot_columns>(p, row, column);
  for (; column < p.columns; ++column) run_dots<R, 1>(p, row, column);
}

/// All rows of N columns.
template <int N, class A, class B> void run_dot_rows(const DotProduct<A, B>& p, int64_t column) {
  int64_t row = 0;
  for (; row + dot_rows <= p.rows; row += dot_rows) run_dots<dot_rows, N>(p, row, column);
  for (; row < p.rows; ++row) run_dots<1, N>(p, row, column);
}

template <class A, class B> void dots_of_rows(const DotProduct<A, B>& p) {
  int64_t row = 0;
  for (; row + dot_rows <= p.rows; row += dot_rows) run_dot_columns<dot_rows>(p, row);
  for (; row < p.rows; ++row) run_dot_columns<1>(p, row);
}

template <class A, class B> void dots_of_columns(const DotProduct<A, B>& p) {
  int64_t column = 0;
  for (; column + dot_columns <= p.columns; column += dot_columns) run_dot_rows<dot_columns>(p, column);
  for (; column < p.columns; ++column) run_dot_rows<1>(p, column);
}

/// The larger operand is read once.
template <class T> void multiply_dots(const DotProduct<T>& p) {
  if (p.rows > p.columns) dots_of_rows(p);
  else dots_of_columns(p);
}
