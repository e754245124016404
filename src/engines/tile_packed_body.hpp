// The body of the kernel of packed products, included after Vec and tile_body.hpp, with `packed_vectors`, the row
// vectors of a panel of A, and `packed_columns`, the columns of a panel of B: all sums of the two stay in registers.
#pragma once

/// What of column n of a tile is read or written: of row vector v, the last one in part.
template <class T, int V, class Visit> void each_packed_column(const PackedTile<T>& p, Visit visit) {
  constexpr int lanes = Vec<T>::lanes;
  const typename Vec<T>::Mask edge = Vec<T>::mask_of(p.rows - (V - 1) * lanes);
#pragma GCC unroll 16
  for (int n = 0; n < packed_columns; ++n) {
    if (n < p.columns) visit(n, p.c + n * p.c_column, edge);
  }
}

template <class T, int V> void multiply_packed_rows(const PackedTile<T>& p) {
  using R = Vec<T>;
  typename R::Register sums[packed_columns][V];
#pragma GCC unroll 16
  for (int n = 0; n < packed_columns; ++n) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sums[n][v] = R::zero();
  }
  if (p.accumulate) {
    each_packed_column<T, V>(p, [&](int n, const T* c, typename R::Mask edge) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[n][v] = load_rows<T, V, false>(c + v * R::lanes, v, edge);
    });
  }
  constexpr int ahead = 8;  // steps
  const T *a = p.a, *b = p.b;
#pragma GCC unroll 4
  for (int64_t step = 0; step < p.steps; ++step) {
    typename R::Register rows[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      rows[v] = R::load(a + v * R::lanes);
      __builtin_prefetch(a + (v + ahead * V) * R::lanes);
    }
#pragma GCC unroll 16
    for (int n = 0; n < packed_columns; ++n) {
      const typename R::Register factor = R::splat(b + n);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[n][v] = R::fma(rows[v], factor, sums[n][v]);
    }
    a += V * R::lanes;
    b += packed_columns;
  }
  each_packed_column<T, V>(p, [&](int n, T* c, typename R::Mask edge) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      typename R::Register sum = sums[n][v];
      if (p.bias != nullptr) sum = R::add(sum, load_rows<T, V, false>(p.bias + v * R::lanes, v, edge));
      if (p.relu) sum = R::positive(sum);
      store_rows<T, V, false>(c + v * R::lanes, sum, v, edge);
    }
  });
}

template <class T> void multiply_packed(const PackedTile<T>& p) {
  static_assert(packed_vectors == 3);
  const int64_t vectors = (p.rows + Vec<T>::lanes - 1) / Vec<T>::lanes;
  if (vectors == 3) multiply_packed_rows<T, 3>(p);
  else if (vectors == 2) multiply_packed_rows<T, 2>(p);
  else multiply_packed_rows<T, 1>(p);
}

constexpr PackedKernels packed_kernels() {
  return {packed_vectors, packed_columns, &multiply_packed<float>, &multiply_packed<double>};
}
