// Euclidean distances between points, included by each tile_*.cpp after tile_body.hpp; it defines `distance_columns`,
// the columns that are computed together, and of Vec<float> also sub, root and all_between. Differences are squared as
// they are, since a product of points would lose what near ones have in common. The squares of `block` features are
// added up by themselves: sums of many features lose little.
#pragma once

/// Whether all distances are sure.
template <int N> bool distance_tile(const DistanceTile& t, int64_t first) {
  using R = Vec<float>;
  constexpr int rows = 2, block = 16;
  const float* b[N];
#pragma GCC unroll 16
  for (int n = 0; n < N; ++n) b[n] = t.b + std::min(first + n, t.columns - 1) * t.features;
  typename R::Register totals[rows][N];
#pragma GCC unroll 16
  for (int n = 0; n < N; ++n) totals[0][n] = totals[1][n] = R::zero();
  const float* a = t.a;
  for (int64_t begin = 0; begin < t.features; begin += block) {
    const int64_t end = std::min(begin + block, t.features);
    typename R::Register sums[rows][N];
#pragma GCC unroll 16
    for (int n = 0; n < N; ++n) sums[0][n] = sums[1][n] = R::zero();
    for (int64_t k = begin; k < end; ++k, a += rows * R::lanes) {
      const typename R::Register above = R::load(a), below = R::load(a + R::lanes);
#pragma GCC unroll 16
      for (int n = 0; n < N; ++n) {
        const typename R::Register point = R::splat(b[n] + k);
        const typename R::Register x = R::sub(above, point), y = R::sub(below, point);
        sums[0][n] = R::fma(x, x, sums[0][n]);
        sums[1][n] = R::fma(y, y, sums[1][n]);
      }
    }
#pragma GCC unroll 16
    for (int n = 0; n < N; ++n) {
      totals[0][n] = R::add(totals[0][n], sums[0][n]);
      totals[1][n] = R::add(totals[1][n], sums[1][n]);
    }
  }
  bool sure = true;
#pragma GCC unroll 16
  for (int n = 0; n < N; ++n) {
    if (first + n >= t.columns) break;
    float* c = t.c + (first + n) * t.c_column;
#pragma GCC unroll 2
    for (int v = 0; v < rows; ++v) {
      const typename R::Register distance = R::root(totals[v][n]);
      R::store(c + v * R::lanes, distance);
      sure &= R::all_between(distance, least_sure_distance, std::numeric_limits<float>::infinity());
    }
  }
  return sure;
}

inline bool distances(const DistanceTile& t) {
  bool sure = true;
  for (int64_t first = 0; first < t.columns; first += distance_columns) {
    sure &= distance_tile<distance_columns>(t, first);
  }
  return sure;
}
