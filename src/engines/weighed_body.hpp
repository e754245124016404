// The bodies of the kernels of weighed_rows.hpp, included once by each tile_*.cpp after its Vec. Lanes are neighbours
// of a row, or of a line.
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

/// Rows of one element each: scaled copies, each of which but the last reaches into the next one.
template <class T> void scale_rows(const WeighedRows<T>& run) {
  using V = Vec<T>;
  static constexpr T nothing = T(-0.0);
  const int64_t whole = run.count / V::lanes * V::lanes;
  const auto edge = V::mask_of(run.count - whole);
  for (int64_t j = 0; j < run.rows; ++j) {
    const T* const from = run.from + (run.places[j] - run.first) * run.count;
    T* const to = run.to + j * run.count;
    const bool counts = run.weights[j] != 0;
    const auto weight = V::splat(run.weights + j), zero = V::splat(&nothing);
    const auto scaled = [&](auto x) { return counts ? V::add(zero, V::mul(weight, x)) : zero; };
    for (int64_t i = 0; i < whole; i += V::lanes) V::store(to + i, scaled(V::load(from + i)));
    if (whole == run.count) continue;
    const auto last = scaled(V::load(from + whole, edge));
    if (j + 1 < run.rows && run.count >= V::lanes) V::store(to + whole, last);
    else V::store(to + whole, last, edge);
  }
}

template <class T> void weigh_rows(const WeighedRows<T>& run) {
  if (run.taps == 1) return scale_rows(run);
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

/// A register of results of some lines, whose first ones these are. `whole`: they and what they take fill registers.
/// `known`: how many taps there are, if not 0.
template <bool whole, int known, class T>
void weigh_lanes(const WeighedLines<T>& run, const LaneTap<T>* given, const T* from, T* to, int64_t lines,
                 [[maybe_unused]] typename Vec<T>::Mask held, [[maybe_unused]] typename Vec<T>::Mask made) {
  using V = Vec<T>;
  static constexpr T nothing = T(-0.0);
  LaneTap<T> kept[known > 0 ? known : 1];  // which no result can lie upon: they stay in registers
  if constexpr (known > 0) std::copy_n(given, known, kept);
  const LaneTap<T>* const taps = known > 0 ? kept : given;
  const int64_t count = known > 0 ? known : run.taps_each;
  for (int64_t line = 0; line < lines; ++line, from += run.in, to += run.out) {
    typename V::Register sum = V::splat(&nothing);
    for (int64_t t = 0; t < count; ++t) {
      typename V::Register near;
      if constexpr (whole) near = V::load(from + taps[t].begin);
      else near = V::load(from + taps[t].begin, held);
      sum = V::add(sum, V::mul(V::load(taps[t].weights), V::picked(near, taps[t].lanes)));
    }
    if constexpr (whole) V::store(to, sum);
    else V::store(to, sum, made);
  }
}

template <int known, class T> void weigh_known_lines(const WeighedLines<T>& run) {
  using V = Vec<T>;
  constexpr int64_t together = 16;  // lines that stay in the cache meanwhile
  const auto held = V::mask_of(std::min<int64_t>(run.in, V::lanes));
  for (int64_t line = 0; line < run.lines; line += together) {
    const int64_t lines = std::min(together, run.lines - line);
    for (int64_t at = 0; at < run.out; at += V::lanes) {
      const LaneTap<T>* const taps = run.taps + at / V::lanes * run.taps_each;
      const T* const from = run.from + line * run.in;
      T* const to = run.to + line * run.out + at;
      const int64_t left = std::min<int64_t>(run.out - at, V::lanes);
      if (left == V::lanes && run.in >= V::lanes) weigh_lanes<true, known>(run, taps, from, to, lines, held, held);
      else weigh_lanes<false, known>(run, taps, from, to, lines, held, V::mask_of(left));
    }
  }
}

template <class T> void weigh_lines(const WeighedLines<T>& run) {
  if (run.taps_each == 1) weigh_known_lines<1>(run);
  else if (run.taps_each == 2) weigh_known_lines<2>(run);
  else weigh_known_lines<0>(run);
}
