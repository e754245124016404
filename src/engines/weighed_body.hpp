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

/// Row j, whatever counts for it.
template <class T> void weigh_row(const WeighedRows<T>& run, int64_t j) {
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

/// Rows that so many others count for, each of which but the last reaches into the next one.
template <int taps, class T> void weigh_by_few(const WeighedRows<T>& run) {
  using V = Vec<T>;
  const int64_t whole = run.count / V::lanes * V::lanes;
  const auto edge = V::mask_of(run.count - whole);
  for (int64_t j = 0; j < run.rows; ++j) {
    const T* const weights = run.weights + j * taps;
    if (std::count(weights, weights + taps, T(0)) > 0) {
      weigh_row(run, j);
      continue;
    }
    const T* from[taps];
    typename V::Register by[taps];
    for (int t = 0; t < taps; ++t) {
      from[t] = run.from + (run.places[j * taps + t] - run.first) * run.count;
      by[t] = V::splat(weights + t);
    }
    const auto sum = [&](int64_t i, auto... mask) {
      auto all = V::mul(by[0], V::load(from[0] + i, mask...));
      for (int t = 1; t < taps; ++t) all = V::add(all, V::mul(by[t], V::load(from[t] + i, mask...)));
      return all;
    };
    T* const to = run.to + j * run.count;
    for (int64_t i = 0; i < whole; i += V::lanes) V::store(to + i, sum(i));
    if (whole == run.count) continue;
    const auto last = sum(whole, edge);
    if (j + 1 < run.rows && run.count >= V::lanes) V::store(to + whole, last);
    else V::store(to + whole, last, edge);
  }
}

template <class T> void weigh_rows(const WeighedRows<T>& run) {
  if (run.taps == 1) return weigh_by_few<1>(run);
  if (run.taps == 2) return weigh_by_few<2>(run);
  for (int64_t j = 0; j < run.rows; ++j) weigh_row(run, j);
}

/// One tap of a register of results, in registers.
template <class T> struct NearTap {
  int64_t begin;
  typename Vec<T>::Picks picks;
  typename Vec<T>::Register weights;

  NearTap() = default;
  NearTap(const LaneTap<T>& tap)
      : begin(tap.begin), picks(Vec<T>::picks(tap.lanes)), weights(Vec<T>::load(tap.weights)) {}
};

/// What neighbours of one line give to a register of results. `whole`: they fill a register; else those `held` do.
template <bool whole, class T, class Tap>
typename Vec<T>::Register near_sum(const Tap* taps, int64_t count, const T* from,
                                   [[maybe_unused]] typename Vec<T>::Mask held) {
  using V = Vec<T>;
  static constexpr T nothing = T(-0.0);
  typename V::Register sum = V::splat(&nothing);
#pragma GCC unroll 2
  for (int64_t t = 0; t < count; ++t) {
    const NearTap<T> tap = taps[t];
    typename V::Register near;
    if constexpr (whole) near = V::load(from + tap.begin);
    else near = V::load(from + tap.begin, held);
    sum = V::add(sum, V::mul(tap.weights, V::picked(near, tap.picks)));
  }
  return sum;
}

/// `together` registers of results of the lines from `first` to `last`, from result `group` on. `whole`: they and what
/// they take fill registers. `known`: how many taps there are, if not 0. `by_row`: each line is one of run.rows.
template <bool whole, int known, bool by_row, int together, class T>
void weigh_lanes(const WeighedLines<T>& run, int64_t group, const T* from, T* to, int64_t first, int64_t last) {
  using V = Vec<T>;
  static constexpr T nothing = T(-0.0);
  const int64_t in = run.in, out = run.out, count = known > 0 ? known : run.taps_each;
  const int32_t* const rows = run.rows;
  const T* const row_weights = run.row_weights;
  const auto held = V::mask_of(std::min<int64_t>(in, V::lanes));
  [[maybe_unused]] const auto made = V::mask_of(std::min<int64_t>(out, V::lanes));
  const LaneTap<T>* const taps = run.taps + group / V::lanes * count;
  int64_t begins[together];
  NearTap<T> kept[together][known > 0 ? known : 1];  // no result can lie upon them
  for (int g = 0; g < together; ++g) {
    begins[g] = run.begin_of(group + g * V::lanes, V::lanes);
    for (int t = 0; t < known; ++t) kept[g][t] = taps[g * count + t];
  }
  for (int64_t line = first; line < last; ++line) {
    const T* const near = from + (by_row ? rows[line] : line) * in;
    [[maybe_unused]] const T weight = by_row ? row_weights[line] : T(1);
#pragma GCC unroll 4
    for (int g = 0; g < together; ++g) {
      typename V::Register sum;
      if constexpr (known > 0) sum = near_sum<whole>(kept[g], count, near, held);
      else sum = near_sum<whole>(taps, count, near, held);
      if constexpr (by_row) sum = weight == 0 ? V::splat(&nothing) : V::mul(V::splat(&weight), sum);
      if constexpr (whole) V::store(to + line * out + begins[g], sum);
      else V::store(to + line * out + begins[g], sum, made);
    }
  }
}

/// The lines from `first` to `last`, as many registers of a line at a time as have room for their taps.
template <bool whole, int known, bool by_row, class T>
void weigh_block(const WeighedLines<T>& run, const T* from, T* to, int64_t first, int64_t last) {
  using V = Vec<T>;
  int64_t group = 0;
  const auto all = [&]<int together>(std::integral_constant<int, together>) {
    for (; group + (together - 1) * V::lanes < run.out; group += together * V::lanes)
      weigh_lanes<whole, known, by_row, together>(run, group, from, to, first, last);
  };
  if constexpr (whole && known == 1) all(std::integral_constant<int, 4>());
  if constexpr (whole && known > 0) all(std::integral_constant<int, 2>());
  all(std::integral_constant<int, 1>());
}

template <int known, bool by_row, class T> void weigh_known_lines(const WeighedLines<T>& run) {
  constexpr int64_t most = 4096;  // results that stay in the cache meanwhile
  const int64_t step = std::max<int64_t>(16, most / run.out);
  const bool whole = std::min(run.in, run.out) >= Vec<T>::lanes;
  for (int64_t plane = 0; plane < run.planes; ++plane) {
    const T* const from = run.from + plane * run.plane;
    T* const to = run.to + plane * run.lines * run.out;
    for (int64_t line = 0; line < run.lines; line += step) {
      const int64_t last = std::min(line + step, run.lines);
      if (whole) weigh_block<true, known, by_row>(run, from, to, line, last);
      else weigh_block<false, known, by_row>(run, from, to, line, last);
    }
  }
}

template <class T> void weigh_lines(const WeighedLines<T>& run) {
  if (run.rows != nullptr) weigh_known_lines<1, true>(run);
  else if (run.taps_each == 1) weigh_known_lines<1, false>(run);
  else if (run.taps_each == 2) weigh_known_lines<2, false>(run);
  else weigh_known_lines<0, false>(run);
}
