// The bodies of the kernels of plane_run.hpp, included once by each tile_*.cpp after its Vec and dot_body.hpp, with
// `filter_rows`, how many rows are computed at a time. Lanes are neighbouring windows of a row; a sum stays in one
// register.
#pragma once

template <class R, size_t... i> R every_second(R a, R b, std::index_sequence<i...>) {
  return __builtin_shufflevector(a, b, 2 * i...);
}

/// to[i] = from[2 * i].
template <class T> void copy_every_second(const T* from, T* to, int64_t count) {
  using V = Vec<T>;
  constexpr auto places = std::make_index_sequence<V::lanes>();
  const auto part = [](int64_t left) { return V::mask_of(std::clamp<int64_t>(left, 0, V::lanes)); };
  int64_t i = 0;
  for (; i + V::lanes < count; i += V::lanes)
    V::store(to + i, every_second(V::load(from + 2 * i), V::load(from + 2 * i + V::lanes), places));
  const int64_t read = 2 * (count - i) - 1;
  const auto low = V::load(from + 2 * i, part(read)), high = V::load(from + 2 * i + V::lanes, part(read - V::lanes));
  V::store(to + i, every_second(low, high, places), part(count - i));
}

template <class T> void copy_rows(const CopiedRows<T>& run) {
  using V = Vec<T>;
  const int64_t whole = run.count / V::lanes * V::lanes;
  const typename V::Mask edge = V::mask_of(run.count - whole);
  for (int64_t row = 0; row < run.rows; ++row) {
    const T* from = run.from + row * run.from_row;
    T* to = run.to + row * run.to_row;
    if (run.step == 2) {
      copy_every_second(from, to, run.count);
      continue;
    }
    for (int64_t i = 0; i < whole; i += V::lanes) V::store(to + i, V::load(from + i));
    if (whole < run.count) V::store(to + whole, V::load(from + whole, edge), edge);
  }
}

/// Stores R rows of one register of windows.
template <int R, class T>
void finish_windows(const PlaneRun<T>& run, const typename Vec<T>::Register* sums, int64_t row, int64_t window) {
  using V = Vec<T>;
  T* y = run.y + row * run.y_row + window;
  const int64_t left = run.windows - window;
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    typename V::Register sum = sums[r];
    if (run.bias != nullptr) sum = V::add(sum, V::splat(run.bias));
    if (run.relu) sum = V::positive(sum);
    if (left >= V::lanes) V::store(y + r * run.y_row, sum);
    else V::store(y + r * run.y_row, sum, V::mask_of(left));
  }
}

/// All windows, R rows at a time; the last rows may be computed twice.
template <int R, class T> void sum_taps(const PlaneRun<T> run) {
  using V = Vec<T>;
  for (int64_t next = 0; next < run.rows; next += R) {
    const int64_t row = std::min(next, run.rows - R);
    const T* x = run.x + row * run.x_row;
    for (int64_t window = 0; window < run.windows; window += V::lanes, x += V::lanes) {
      typename V::Register sums[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sums[r] = V::zero();
      for (int64_t t = 0; t < run.taps; ++t) {
        const typename V::Register weight = V::splat(run.weights + t);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) sums[r] = V::fma(V::load(x + run.offsets[t] + r * run.x_row), weight, sums[r]);
      }
      finish_windows<R>(run, sums, row, window);
    }
  }
}

/// The same of three by three taps: each row of x is read once for all rows of windows that it belongs to.
template <int R, class T> void sum_square(const PlaneRun<T> run) {
  using V = Vec<T>;
  const int64_t offsets[] = {run.offsets[0], run.offsets[1], run.offsets[2]};
  typename V::Register weights[9];
#pragma GCC unroll 9
  for (int t = 0; t < 9; ++t) weights[t] = V::splat(run.weights + t);
  for (int64_t next = 0; next < run.rows; next += R) {
    const int64_t row = std::min(next, run.rows - R);
    const T* x = run.x + row * run.x_row;
    for (int64_t window = 0; window < run.windows; window += V::lanes, x += V::lanes) {
      typename V::Register sums[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sums[r] = V::zero();
#pragma GCC unroll 6
      for (int above = 0; above < R + 2; ++above) {
#pragma GCC unroll 3
        for (int t = 0; t < 3; ++t) {
          const typename V::Register value = V::held(V::load(x + offsets[t] + above * run.x_row));
#pragma GCC unroll 4
          for (int r = 0; r < R; ++r) {
            if (above >= r && above - r < 3) sums[r] = V::fma(value, weights[(above - r) * 3 + t], sums[r]);
          }
        }
      }
      finish_windows<R>(run, sums, row, window);
    }
  }
}

template <class T> void filter_plane(const PlaneRun<T>& run) {
  if constexpr (filter_rows > 1) {
    if (run.rows >= filter_rows) return run.square ? sum_square<filter_rows>(run) : sum_taps<filter_rows>(run);
  }
  sum_taps<1>(run);
}

/// N taps from `tap` on.
template <int N, class T> void sum_products(const PlaneDots<T>& run, int64_t tap) {
  using V = Vec<T>;
  PartialSums<T> sums[N];
  for (PartialSums<T>& of_tap : sums) {
    for (auto& part : of_tap.parts) part = V::zero();
  }
  for (int64_t row = 0; row < run.rows; ++row) {
    const T* x = run.x + row * run.x_row;
    const T* y = run.y + row * run.y_row;
    const auto add = [&](int part, int64_t at, auto&&... edge) {
      const typename V::Register factor = V::held(V::load(y + at, edge...));
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n)
        sums[n].parts[part] = V::fma(V::load(x + run.offsets[tap + n] + at, edge...), factor, sums[n].parts[part]);
    };
    int64_t at = 0;
    for (; at + dot_parts<T> * V::lanes <= run.windows; at += dot_parts<T> * V::lanes) {
#pragma GCC unroll 4
      for (int part = 0; part < dot_parts<T>; ++part) add(part, at + part * V::lanes);
    }
#pragma GCC unroll 4
    for (int part = 0; part < dot_parts<T>; ++part) {
      const int64_t left = run.windows - at - part * V::lanes;
      if (left > 0) add(part, at + part * V::lanes, V::mask_of(left < V::lanes ? left : V::lanes));
    }
  }
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) run.sums[tap + n] += total(sums[n]);
}

template <class T> void dot_planes(const PlaneDots<T>& run) {
  constexpr int together = filter_rows > 1 ? 3 : 1;
  int64_t tap = 0;
  for (; tap + together <= run.taps; tap += together) sum_products<together>(run, tap);
  for (; tap < run.taps; ++tap) sum_products<1>(run, tap);
}
