// The body of the tile kernel, included once by each tile_*.cpp that defines, for its processor and in an unnamed
// namespace, `template <class T> struct Vec` (a register: lanes, Mask, mask_of, load (floats: of halves too), store,
// splat, zero, fma, add, mul, positive, larger, where_taken (a equals b, or is NaN), where_left (the others)) and the
// tile sizes `full_columns` (columns of a tile two vectors high) and `narrow_columns` (columns of a tile one vector
// high); and `may_ask`, whether there is an `asking_pays()`, which says that rows of A are best asked for some steps
// before they are read. Templates here are compiled for that processor.
#pragma once

template <class T, int V, int N> struct Accumulators {
  typename Vec<T>::Register sums[V][N];
};

/// Row vector v of V. The last one is masked unless Whole.
template <class T, int V, bool Whole>
typename Vec<T>::Register load_rows(const T* from, int v, typename Vec<T>::Mask edge) {
  return Whole || v < V - 1 ? Vec<T>::load(from) : Vec<T>::load(from, edge);
}
template <class T, int V, bool Whole>
void store_rows(T* to, typename Vec<T>::Register value, int v, typename Vec<T>::Mask edge) {
  if (Whole || v < V - 1) Vec<T>::store(to, value);
  else Vec<T>::store(to, value, edge);
}

constexpr int64_t steps_ahead = 6;

/// One tile of V row vectors and N columns. The last row vector is masked unless Whole: a masked load costs a second
/// instruction, on a port that the multiplications need. Asks: for rows of A before they are read.
template <class T, int V, int N, bool UnitColumns, bool Whole, bool Asks>
void run_tile(const TileProduct<T>& p, int64_t first_row, int64_t first_column, typename Vec<T>::Mask edge) {
  using R = Vec<T>;
  const int64_t b_column = UnitColumns ? 1 : p.b_column;
  const int64_t c_column = p.c_column;
  T* c = p.c + first_row + first_column * c_column;
  Accumulators<T, V, N> acc;
#pragma GCC unroll 16
  for (int n = 0; n < N; ++n) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) acc.sums[v][n] = R::zero();
  }
  if (p.accumulate) {
#pragma GCC unroll 16
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) acc.sums[v][n] = load_rows<T, V, Whole>(c + n * c_column + v * R::lanes, v, edge);
    }
  }
  for (int64_t r = 0; r < p.outer; ++r) {
    const T* a = p.a + first_row + r * p.a_outer;
    const T* b = p.b + p.b_offsets[r] + first_column * b_column;
    for (int64_t j = 0; j < p.inner; ++j) {
      typename R::Register av[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        av[v] = load_rows<T, V, Whole>(a + v * R::lanes, v, edge);
        if constexpr (Asks) __builtin_prefetch(a + steps_ahead * p.a_inner + v * R::lanes);
      }
#pragma GCC unroll 16
      for (int n = 0; n < N; ++n) {
        const typename R::Register factor = R::splat(b + n * b_column);
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) acc.sums[v][n] = R::fma(av[v], factor, acc.sums[v][n]);
      }
      a += p.a_inner;
      b += p.b_inner;
    }
  }
  if (p.bias != nullptr) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      const typename R::Register shift = load_rows<T, V, Whole>(p.bias + first_row + v * R::lanes, v, edge);
#pragma GCC unroll 16
      for (int n = 0; n < N; ++n) acc.sums[v][n] = R::add(acc.sums[v][n], shift);
    }
  }
  if (p.relu) {
#pragma GCC unroll 16
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) acc.sums[v][n] = R::positive(acc.sums[v][n]);
    }
  }
#pragma GCC unroll 16
  for (int n = 0; n < N; ++n) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) store_rows<T, V, Whole>(c + n * c_column + v * R::lanes, acc.sums[v][n], v, edge);
  }
}

template <class T> using TileFunction = void (*)(const TileProduct<T>&, int64_t, int64_t, typename Vec<T>::Mask);

template <class T, int V, bool UnitColumns, bool Whole, bool Asks, int... N>
TileFunction<T> tile_of(int columns, std::integer_sequence<int, N...>) {
  static constexpr TileFunction<T> table[] = {&run_tile<T, V, N + 1, UnitColumns, Whole, Asks>...};
  return table[columns - 1];
}

/// All columns for V row vectors, in tiles of nearly equal width.
template <class T, int V, int Most, bool UnitColumns, bool Whole, bool Asks = false>
void run_columns(const TileProduct<T>& p, int64_t first_row, typename Vec<T>::Mask edge) {
  const int64_t tiles = (p.columns + Most - 1) / Most;
  for (int64_t tile = 0, first = 0; tile < tiles; ++tile) {
    const int64_t next = p.columns * (tile + 1) / tiles;
    const auto run = tile_of<T, V, UnitColumns, Whole, Asks>(static_cast<int>(next - first),
                                                             std::make_integer_sequence<int, Most>());
    run(p, first_row, first, edge);
    first = next;
  }
}

/// `rows` rows from `first_row` on, as V row vectors.
template <class T, int V, int Most, bool UnitColumns>
void run_panel(const TileProduct<T>& p, int64_t first_row, int64_t rows) {
  if constexpr (V == 2 && sizeof(T) == 4 && may_ask) {
    constexpr int64_t far_apart = 256;  // from here on columns of A are more than the processor foresees
    if (rows == V * Vec<T>::lanes && p.a_inner >= far_apart && asking_pays()) {
      return run_columns<T, V, Most, UnitColumns, true, true>(p, first_row, Vec<T>::mask_of(Vec<T>::lanes));
    }
  }
  if (rows == V * Vec<T>::lanes) {
    run_columns<T, V, Most, UnitColumns, true>(p, first_row, Vec<T>::mask_of(Vec<T>::lanes));
  } else {
    run_columns<T, V, Most, UnitColumns, false>(p, first_row, Vec<T>::mask_of(rows - (V - 1) * Vec<T>::lanes));
  }
}

/// Rows from `row` on, in panels of V row vectors, for products of at most `Most` columns: tiles of so few columns are
/// taller, as each sum waits for its last step. The first row that is left.
template <class T, int V, int Most> int64_t run_tall(const TileProduct<T>& p, int64_t row) {
  constexpr int64_t height = V * Vec<T>::lanes;
  for (; row + height <= p.rows; row += height) {
    run_columns<T, V, Most, false, true>(p, row, Vec<T>::mask_of(Vec<T>::lanes));
  }
  return row;
}

template <class T, bool UnitColumns> void run_rows(const TileProduct<T>& p, int64_t first_row) {
  constexpr int64_t lanes = Vec<T>::lanes;
  for (int64_t row = first_row; row < p.rows; row += 2 * lanes) {
    const int64_t left = p.rows - row;
    if (left > lanes) {
      run_panel<T, 2, full_columns, UnitColumns>(p, row, left < 2 * lanes ? left : 2 * lanes);
    } else {
      run_panel<T, 1, narrow_columns, UnitColumns>(p, row, left);
    }
  }
}

template <class T> void multiply_tiles(const TileProduct<T>& product) {
  int64_t row = 0;
  if (product.columns == 1) row = run_tall<T, 8, 1>(product, row);
  if (product.columns <= 3) row = run_tall<T, 4, 3>(product, row);
  if (product.b_column == 1) {
    run_rows<T, true>(product, row);
  } else {
    run_rows<T, false>(product, row);
  }
}

/// The tile that a product consists of; null: it has several.
template <class T> TileFunction<T> only_tile(const TileProduct<T>& p) {
  if (p.rows > Vec<T>::lanes || p.columns > narrow_columns) return nullptr;
  constexpr auto columns = std::make_integer_sequence<int, narrow_columns>();
  const int count = static_cast<int>(p.columns);
  return p.rows == Vec<T>::lanes ? tile_of<T, 1, false, true, false>(count, columns)
                                 : tile_of<T, 1, false, false, false>(count, columns);
}

/// Products of one tile are chosen once for all: to choose takes longer than a few multiplications.
template <class T> void multiply_items(const TileProduct<T>& product) {
  TileProduct<T> p = product;
  const TileFunction<T> tile = only_tile<T>(p);
  const typename Vec<T>::Mask edge = Vec<T>::mask_of(p.rows < Vec<T>::lanes ? p.rows : Vec<T>::lanes);
  for (int64_t item = 0; item < p.items; ++item) {
    if (tile != nullptr) tile(p, 0, 0, edge);
    else multiply_tiles(p);
    p.a += p.a_item;
    p.b += p.b_item;
    p.c += p.c_item;
  }
}

/// Zero times what is not finite is NaN, and stays so in a sum.
template <class T> bool all_finite(const T* x, int64_t count) {
  using R = Vec<T>;
  constexpr int64_t vectors = 4;
  const typename R::Mask full = R::mask_of(R::lanes);
  typename R::Register sums[vectors] = {R::zero(), R::zero(), R::zero(), R::zero()};
  int64_t i = 0;
  for (; i + vectors * R::lanes <= count; i += vectors * R::lanes) {
#pragma GCC unroll 4
    for (int64_t v = 0; v < vectors; ++v) sums[v] = R::fma(R::load(x + i + v * R::lanes, full), R::zero(), sums[v]);
  }
  for (; i < count; i += R::lanes) {
    const int64_t left = count - i;
    sums[0] = R::fma(R::load(x + i, R::mask_of(left < R::lanes ? left : R::lanes)), R::zero(), sums[0]);
  }
  T lanes[R::lanes];
  R::store(lanes, R::add(R::add(sums[0], sums[1]), R::add(sums[2], sums[3])), full);
  T sum = T(0);
  for (int64_t lane = 0; lane < R::lanes; ++lane) sum += lanes[lane];
  return sum == T(0);
}
