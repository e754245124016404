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

/// The columns of B, in a panel or along memory.
template <class T, bool along> struct PackedColumns {
  const T *first, *half;
  int64_t column, thrice;
  explicit PackedColumns(const PackedTile<T>& p)
      : first(p.b), half(p.b + packed_columns / 2 * p.b_column), column(p.b_column), thrice(3 * p.b_column) {}
  const T* at(int n) const {
    if (!along) return first + n;
    const T* const from = n < packed_columns / 2 ? first : half;
    switch (n % (packed_columns / 2)) {
      case 0: return from;
      case 1: return from + column;
      case 2: return from + 2 * column;
      default: return from + thrice;
    }
  }
  void step() {
    first += along ? 1 : packed_columns;
    half += along ? 1 : 0;
  }
};

template <class T, int V, bool along> void multiply_packed_rows(const PackedTile<T>& p) {
  using R = Vec<T>;
  static_assert(packed_columns == 8);
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
  if (p.next_c != nullptr) {
#pragma GCC unroll 16
    for (int n = 0; n < packed_columns; ++n) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) __builtin_prefetch(p.next_c + n * p.c_column + v * R::lanes, 1);
    }
  }
  constexpr int ahead = 8;  // steps
  const T* a = p.a;
  const int64_t a_step = p.a_step != 0 ? p.a_step : V * R::lanes;
  PackedColumns<T, along> b(p);
#pragma GCC unroll 4
  for (int64_t step = 0; step < p.steps; ++step) {
    typename R::Register rows[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      rows[v] = R::load(a + v * R::lanes);
      __builtin_prefetch(a + v * R::lanes + ahead * a_step);
    }
#pragma GCC unroll 16
    for (int n = 0; n < packed_columns; ++n) {
      const typename R::Register factor = R::splat(b.at(n));
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sums[n][v] = R::fma(rows[v], factor, sums[n][v]);
    }
    a += a_step;
    b.step();
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

template <class T, bool along> void multiply_packed_panels(const PackedTile<T>& p) {
  static_assert(packed_vectors == 3);
  const int64_t vectors = (p.rows + Vec<T>::lanes - 1) / Vec<T>::lanes;
  if (vectors == 3) multiply_packed_rows<T, 3, along>(p);
  else if (vectors == 2) multiply_packed_rows<T, 2, along>(p);
  else multiply_packed_rows<T, 1, along>(p);
}

template <class T> void multiply_packed(const PackedTile<T>& p) {
  p.b_column == 0 ? multiply_packed_panels<T, false>(p) : multiply_packed_panels<T, true>(p);
}

constexpr PackedKernels packed_kernels() {
  return {packed_vectors, packed_columns, &multiply_packed<float>, &multiply_packed<double>};
}
