// Lanes added up by halves, as dot_body.hpp has them, on x86: included by tile_fma.cpp and tile_wide.cpp before their
// Vec, which have the first half of the way.
#pragma once

inline float total(__m256 a) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline double total(__m256d a) {
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/// Their halves added up, side by side.
inline __m256 joined(__m256 x, __m256 y) {
  return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
}
inline __m256d joined(__m256d x, __m256d y) {
  return _mm256_add_pd(_mm256_permute2f128_pd(x, y, 0x20), _mm256_permute2f128_pd(x, y, 0x31));
}

/// Of four registers.
inline void totals(__m256 a, __m256 b, __m256 c, __m256 d, float* out) {
  const __m256d ab = _mm256_castps_pd(joined(a, b)), cd = _mm256_castps_pd(joined(c, d));
  const __m256 pairs = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd)),
                                     _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd)));  // of a and c, of b and d
  const __m256 sums = _mm256_add_ps(pairs, _mm256_permute_ps(pairs, 0xb1));          // each twice
  _mm_storeu_ps(out, _mm_blend_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1), 0xa));
}
inline void totals(__m256d a, __m256d b, __m256d c, __m256d d, double* out) {
  const __m256d ab = joined(a, b), cd = joined(c, d);
  const __m256d sums = _mm256_add_pd(_mm256_unpacklo_pd(ab, cd), _mm256_unpackhi_pd(ab, cd));  // of a, c, b, d
  _mm256_storeu_pd(out, _mm256_permute4x64_pd(sums, 0xd8));
}
