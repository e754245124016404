// The body of the kernel of weighed_rows.hpp, included once by each tile_*.cpp after its Vec. Lanes are neighbours of a
// row.
#pragma once

constexpr int64_t most_together = 8;  // rows that are added in one walk along them

/// The rows that count for one row of the result.
template <class T> struct Counted {
  const T* rows[most_together];
  T weights[most_together];
};

template <int known, class T, class... Mask>
typename Vec<T>::Register blend(const Counted<T>& from, int64_t n, int64_t i, typename Vec<T>::Register sum,
                                Mask... mask) {
  using V = Vec<T>;
  const auto product = [&](int64_t t) {
    return V::mul(V::splat(from.weights + t), V::load(from.rows[t] + i, mask...));
  };
  if constexpr (known > 0) {
#pragma GCC unroll 4
    for (int t = 0; t < known; ++t) sum = V::add(sum, product(t));
  } else {
    for (int64_t t = 0; t < n; ++t) sum = V::add(sum, product(t));
  }
  return sum;
}

/// to += the rows, or where it is the `first` time: -0 + the rows, which changes nothing in one. `known`: n, where it
/// is not 0.
template <int known, class T> void add_rows(const Counted<T>& from, int64_t n, bool first, T* to, int64_t count) {
  using V = Vec<T>;
  static constexpr T nothing = T(-0.0);
  int64_t i = 0;
  for (; i + V::lanes <= count; i += V::lanes)
    V::store(to + i, blend<known, T>(from, n, i, first ? V::splat(&nothing) : V::load(to + i)));
  if (i == count) return;
  const auto edge = V::mask_of(count - i);
  V::store(to + i, blend<known, T>(from, n, i, first ? V::splat(&nothing) : V::load(to + i, edge), edge), edge);
}

template <class T> void weigh_rows(const WeighedRows<T>& run) {
  for (int64_t j = 0; j < run.rows; ++j) {
    T* const to = run.to + j * run.count;
    Counted<T> counted;
    int64_t n = 0;
    bool first = true;
    const auto add = [&] {
      if (n == 1) add_rows<1>(counted, n, first, to, run.count);
      else if (n == 2) add_rows<2>(counted, n, first, to, run.count);
      else add_rows<0>(counted, n, first, to, run.count);
      n = 0;
      first = false;
    };
    for (int64_t entry = j * run.taps; entry < (j + 1) * run.taps; ++entry) {
      if (run.weights[entry] == 0) continue;
      if (n == most_together) add();
      counted.rows[n] = run.from + (run.places[entry] - run.first) * run.count;
      counted.weights[n++] = run.weights[entry];
    }
    if (n > 0 || first) add();
  }
}
