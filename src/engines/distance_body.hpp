// Euclidean distances between points, included by each tile_*.cpp after tile_body.hpp; it defines `distance_columns`,
// the columns that are computed together, and of Vec<float> also sub, root and all_between. Differences are squared as
// they are, since a product of points would lose what near ones have in common. Squares are added up in blocks, blocks
// in groups: no element of a sum meets more than three times the cube root of its length.
#pragma once

constexpr int distance_rows = 2;  // vectors

template <int N> struct DistanceSums {
  typename Vec<float>::Register of[distance_rows][N];

  DistanceSums() {
#pragma GCC unroll 16
    for (int n = 0; n < N; ++n) of[0][n] = of[1][n] = Vec<float>::zero();
  }
  void add(const DistanceSums& other) {
#pragma GCC unroll 16
    for (int n = 0; n < N; ++n) {
      of[0][n] = Vec<float>::add(of[0][n], other.of[0][n]);
      of[1][n] = Vec<float>::add(of[1][n], other.of[1][n]);
    }
  }
};

/// The squares of features [first, end).
template <int N>
DistanceSums<N> squares_of(const float* panel, const float* const* points, int64_t first, int64_t end) {
  using R = Vec<float>;
  DistanceSums<N> sums;
  for (int64_t k = first; k < end; ++k) {
    const float* a = panel + k * distance_rows * R::lanes;
    const typename R::Register above = R::load(a), below = R::load(a + R::lanes);
#pragma GCC unroll 16
    for (int n = 0; n < N; ++n) {
      const typename R::Register point = R::splat(points[n] + k);
      const typename R::Register x = R::sub(above, point), y = R::sub(below, point);
      sums.of[0][n] = R::fma(x, x, sums.of[0][n]);
      sums.of[1][n] = R::fma(y, y, sums.of[1][n]);
    }
  }
  return sums;
}

/// Whether all distances are sure.
template <int N> bool distance_tile(const DistanceTile& t, int64_t first, int64_t block) {
  using R = Vec<float>;
  const float* b[N];
#pragma GCC unroll 16
  for (int n = 0; n < N; ++n) b[n] = t.b + std::min(first + n, t.columns - 1) * t.features;
  DistanceSums<N> totals;
  for (int64_t begin = 0; begin < t.features;) {
    DistanceSums<N> group;
    const int64_t group_end = std::min(begin + block * block, t.features);
    for (; begin < group_end; begin += block) {
      group.add(squares_of<N>(t.a, b, begin, std::min(begin + block, t.features)));
    }
    totals.add(group);
    begin = group_end;
  }
  bool sure = true;
#pragma GCC unroll 16
  for (int n = 0; n < N; ++n) {
    if (first + n >= t.columns) break;
    float* c = t.c + (first + n) * t.c_column;
#pragma GCC unroll 2
    for (int v = 0; v < distance_rows; ++v) {
      const typename R::Register distance = R::root(totals.of[v][n]);
      R::store(c + v * R::lanes, distance);
      sure &= R::all_between(distance, least_sure_distance, std::numeric_limits<float>::infinity());
    }
  }
  return sure;
}

inline bool distances(const DistanceTile& t) {
  bool sure = true;
  int64_t block = 4;
  while (block * block * block < t.features) ++block;
  for (int64_t first = 0; first < t.columns; first += distance_columns) {
    sure &= distance_tile<distance_columns>(t, first, block);
  }
  return sure;
}
