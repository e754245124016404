// The tile kernel for AVX2 with FMA. Read after tile_body.hpp.
#include "engines/tile_kernel.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <limits>
#include <utility>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif

namespace rosin::engines {

namespace {

constexpr int full_columns = 6, narrow_columns = 12;
constexpr int dot_rows = 2, dot_columns = 3;
constexpr int sweep_steps = 8;
constexpr int distance_columns = 4;
constexpr int filter_rows = 4;

/// The first `count` lanes. Masked stores take a dozen cycles on AMD's processors: parts are stored by halves instead.
struct FirstLanes {
  __m256i bits;
  int count;
};

constexpr bool may_ask = false;
[[maybe_unused]] constexpr bool asking_pays() { return false; }

#include "engines/totals_body.hpp"

template <class T> struct Vec;

template <> struct Vec<float> {
  using Register = __m256;
  using Mask = FirstLanes;
  static constexpr int lanes = 8;
  static Register first_half(const Register (&a)[2]) { return _mm256_add_ps(a[0], a[1]); }
  static Mask mask_of(int64_t count) {
    const int lanes_of_mask = static_cast<int>(count);
    return {_mm256_cmpgt_epi32(_mm256_set1_epi32(lanes_of_mask), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
            lanes_of_mask};
  }
  static Register load(const float* from, Mask mask) { return _mm256_maskload_ps(from, mask.bits); }
  static void store(float* to, Register value, Mask mask) {
    if (mask.count >= lanes) return _mm256_storeu_ps(to, value);
    __m128 left = _mm256_castps256_ps128(value);
    if (mask.count & 4) {
      _mm_storeu_ps(to, left);
      left = _mm256_extractf128_ps(value, 1);
      to += 4;
    }
    if (mask.count & 2) {
      _mm_storel_pi(reinterpret_cast<__m64*>(to), left);
      left = _mm_movehl_ps(left, left);
      to += 2;
    }
    if (mask.count & 1) _mm_store_ss(to, left);
  }
  static Register load(const float* from) { return _mm256_loadu_ps(from); }
  static Register value_of(__m128i bits, const Half*) { return _mm256_cvtph_ps(bits); }
  static Register value_of(__m128i bits, const BFloat*) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  template <class H> static Register load(const H* from) {
    return value_of(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)), from);
  }
  template <class H> static Register load(const H* from, Mask mask) {
    H first[lanes] = {};
    std::copy_n(from, mask.count, first);
    return load(first);
  }
  static void store(float* to, Register value) { _mm256_storeu_ps(to, value); }
  static Register splat(const float* from) { return _mm256_broadcast_ss(from); }
  static Register zero() { return _mm256_setzero_ps(); }
  static Register held(Register a) {
    asm("" : "+v"(a));
    return a;
  }
  static Register fma(Register a, Register b, Register c) { return _mm256_fmadd_ps(a, b, c); }
  static Register add(Register a, Register b) { return _mm256_add_ps(a, b); }
  static Register sub(Register a, Register b) { return _mm256_sub_ps(a, b); }
  static Register mul(Register a, Register b) { return _mm256_mul_ps(a, b); }
  static Register most(Register a, Register b) { return _mm256_max_ps(a, b); }
  static Register root(Register a) { return _mm256_sqrt_ps(a); }
  static bool all_between(Register a, float least, float end) {
    return _mm256_movemask_ps(_mm256_and_ps(_mm256_cmp_ps(a, _mm256_set1_ps(least), _CMP_GE_OQ),
                                            _mm256_cmp_ps(a, _mm256_set1_ps(end), _CMP_LT_OQ))) == 0xff;
  }
  static Register power(Register a) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(a), 23)); }
  /// Which lane is taken for each lane: none where it is less than 0.
  struct Picks {
    __m256i places;
    __m256 none;
  };
  static Picks picks(const int32_t* lanes_taken) {
    const __m256i places = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes_taken));
    return {places, _mm256_castsi256_ps(_mm256_srai_epi32(places, 31))};
  }
  /// The lanes that are taken, 0 where none is.
  static Register picked(Register a, const Picks& which) {
    return _mm256_andnot_ps(which.none, _mm256_permutevar8x32_ps(a, which.places));
  }
  static Register larger(Register kept, Register value) {
    const Register taken =
        _mm256_or_ps(_mm256_cmp_ps(value, kept, _CMP_GT_OQ), _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    return _mm256_blendv_ps(kept, value, taken);
  }
  static Register larger_number(Register kept, Register value) { return _mm256_max_ps(value, kept); }
  static Register not_numbers(Register a, Register b) { return _mm256_cmp_ps(a, b, _CMP_UNORD_Q); }
  static Register either(Register a, Register b) { return _mm256_or_ps(a, b); }
  static bool any(Register a) { return _mm256_movemask_ps(a) != 0; }
  static Register where_equal(Register a, Register b, Register value) {
    return _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ), value);
  }
  static Register where_other(Register a, Register b, Register value) {
    return _mm256_andnot_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ), value);
  }
  static Register taken(Register a, Register b) {
    return _mm256_or_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ), _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  }
  static Register where_taken(Register a, Register b, Register value) { return _mm256_and_ps(taken(a, b), value); }
  static Register where_left(Register a, Register b, Register value) { return _mm256_andnot_ps(taken(a, b), value); }
  static Register positive(Register a) { return _mm256_max_ps(_mm256_setzero_ps(), a); }
  static Register at_most(Register a, Register most) { return _mm256_min_ps(most, a); }
};

template <> struct Vec<double> {
  using Register = __m256d;
  using Mask = FirstLanes;
  static constexpr int lanes = 4;
  static Register first_half(const Register (&a)[2]) { return _mm256_add_pd(a[0], a[1]); }
  static Mask mask_of(int64_t count) {
    return {_mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3)), static_cast<int>(count)};
  }
  static Register load(const double* from, Mask mask) { return _mm256_maskload_pd(from, mask.bits); }
  static void store(double* to, Register value, Mask mask) {
    if (mask.count >= lanes) return _mm256_storeu_pd(to, value);
    __m128d left = _mm256_castpd256_pd128(value);
    if (mask.count & 2) {
      _mm_storeu_pd(to, left);
      left = _mm256_extractf128_pd(value, 1);
      to += 2;
    }
    if (mask.count & 1) _mm_store_sd(to, left);
  }
  static Register load(const double* from) { return _mm256_loadu_pd(from); }
  static void store(double* to, Register value) { _mm256_storeu_pd(to, value); }
  static Register splat(const double* from) { return _mm256_broadcast_sd(from); }
  static Register zero() { return _mm256_setzero_pd(); }
  static Register held(Register a) {
    asm("" : "+v"(a));
    return a;
  }
  static Register fma(Register a, Register b, Register c) { return _mm256_fmadd_pd(a, b, c); }
  static Register add(Register a, Register b) { return _mm256_add_pd(a, b); }
  static Register sub(Register a, Register b) { return _mm256_sub_pd(a, b); }
  static Register mul(Register a, Register b) { return _mm256_mul_pd(a, b); }
  struct Picks {
    __m256i halves;
    __m256d none;
  };
  static Picks picks(const int32_t* lanes_taken) {
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(lanes_taken));
    const __m256i first = _mm256_slli_epi64(_mm256_cvtepi32_epi64(words), 1);  // of two halves
    const __m256i second = _mm256_or_si256(first, _mm256_set1_epi64x(1));
    const __m256i halves = _mm256_or_si256(first, _mm256_slli_epi64(second, 32));
    return {halves, _mm256_castsi256_pd(_mm256_cvtepi32_epi64(_mm_srai_epi32(words, 31)))};
  }
  static Register picked(Register a, const Picks& which) {
    const __m256 halves = _mm256_permutevar8x32_ps(_mm256_castpd_ps(a), which.halves);
    return _mm256_andnot_pd(which.none, _mm256_castps_pd(halves));
  }
  static Register larger(Register kept, Register value) {
    const Register taken =
        _mm256_or_pd(_mm256_cmp_pd(value, kept, _CMP_GT_OQ), _mm256_cmp_pd(value, value, _CMP_UNORD_Q));
    return _mm256_blendv_pd(kept, value, taken);
  }
  static Register larger_number(Register kept, Register value) { return _mm256_max_pd(value, kept); }
  static Register not_numbers(Register a, Register b) { return _mm256_cmp_pd(a, b, _CMP_UNORD_Q); }
  static Register either(Register a, Register b) { return _mm256_or_pd(a, b); }
  static bool any(Register a) { return _mm256_movemask_pd(a) != 0; }
  static Register where_equal(Register a, Register b, Register value) {
    return _mm256_and_pd(_mm256_cmp_pd(a, b, _CMP_EQ_OQ), value);
  }
  static Register where_other(Register a, Register b, Register value) {
    return _mm256_andnot_pd(_mm256_cmp_pd(a, b, _CMP_EQ_OQ), value);
  }
  static Register taken(Register a, Register b) {
    return _mm256_or_pd(_mm256_cmp_pd(a, b, _CMP_EQ_OQ), _mm256_cmp_pd(a, a, _CMP_UNORD_Q));
  }
  static Register where_taken(Register a, Register b, Register value) { return _mm256_and_pd(taken(a, b), value); }
  static Register where_left(Register a, Register b, Register value) { return _mm256_andnot_pd(taken(a, b), value); }
  static Register positive(Register a) { return _mm256_max_pd(_mm256_setzero_pd(), a); }
  static Register at_most(Register a, Register most) { return _mm256_min_pd(most, a); }
};

#include "engines/attention_body.hpp"
#include "engines/distance_body.hpp"
#include "engines/dot_body.hpp"
#include "engines/epilogue_body.hpp"
#include "engines/fourier_body.hpp"
#include "engines/plane_body.hpp"
#include "engines/pool_body.hpp"
#include "engines/pull_body.hpp"
#include "engines/sweep_body.hpp"
#include "engines/tile_body.hpp"
#include "engines/weighed_body.hpp"
#include "engines/winograd_body.hpp"

#include "engines/kernel_table.hpp"

}  // namespace

constinit const TileKernels fma_tile_kernels = kernels_of("avx2", 32);

}  // namespace rosin::engines

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
