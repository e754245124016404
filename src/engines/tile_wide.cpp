// The tile kernel for AVX-512. Read after tile_body.hpp.
#include "engines/tile_kernel.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/instruction_set.hpp"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))), \
                                 apply_to = function)
#else
#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")
#endif

namespace rosin::engines {

namespace {

constexpr int full_columns = 12, narrow_columns = 14;
constexpr int dot_rows = 4, dot_columns = 4;
constexpr int sweep_steps = 8;
constexpr int distance_columns = 6;
constexpr int filter_rows = 4;
constexpr int packed_vectors = 3, packed_columns = 8;

/// Measured on Granite Rapids: products of an A in the second cache take 0.85 to 0.95 of the time.
constexpr bool may_ask = true;
bool asking_pays() { return multiplies_widest_in_pairs(); }

#include "engines/totals_body.hpp"

template <class T> struct Vec;

template <> struct Vec<float> {
  using Register = __m512;
  using Mask = __mmask16;
  static constexpr int lanes = 16;
  static __m256 first_half(const Register (&a)[1]) {
    return _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, a[0], 0), _mm512_maskz_extractf32x8_ps(0xff, a[0], 1));
  }
  static Mask mask_of(int64_t count) { return static_cast<Mask>((1u << count) - 1u); }
  static Register load(const float* from, Mask mask) { return _mm512_maskz_loadu_ps(mask, from); }
  static void store(float* to, Register value, Mask mask) { _mm512_mask_storeu_ps(to, mask, value); }
  static Register load(const float* from) { return _mm512_loadu_ps(from); }
  static Register value_of(__m256i bits, const Half*) { return _mm512_maskz_cvtph_ps(0xffff, bits); }
  static Register value_of(__m256i bits, const BFloat*) {
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, bits), 16));
  }
  template <class H> static Register load(const H* from) {
    return value_of(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)), from);
  }
  template <class H> static Register load(const H* from, Mask mask) {
    return value_of(_mm256_maskz_loadu_epi16(mask, from), from);
  }
  static void store(float* to, Register value) { _mm512_storeu_ps(to, value); }
  static Register splat(const float* from) { return _mm512_set1_ps(*from); }
  static Register zero() { return _mm512_setzero_ps(); }
  static Register held(Register a) {
    asm("" : "+v"(a));
    return a;
  }
  static Register fma(Register a, Register b, Register c) { return _mm512_fmadd_ps(a, b, c); }
  static Register add(Register a, Register b) { return _mm512_add_ps(a, b); }
  static Register sub(Register a, Register b) { return _mm512_sub_ps(a, b); }
  static Register mul(Register a, Register b) { return _mm512_mul_ps(a, b); }
  static Register most(Register a, Register b) { return _mm512_maskz_max_ps(0xffff, a, b); }
  static Register root(Register a) { return _mm512_maskz_sqrt_ps(0xffff, a); }
  static bool all_between(Register a, float least, float end) {
    return (_mm512_cmp_ps_mask(a, _mm512_set1_ps(least), _CMP_GE_OQ) &
            _mm512_cmp_ps_mask(a, _mm512_set1_ps(end), _CMP_LT_OQ)) == 0xffff;
  }
  static Register power(Register a) {
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_castps_si512(a), 23));
  }
  /// Which lane is taken for each lane: none where it is less than 0.
  struct Picks {
    __m512i places;
    Mask taken;
  };
  static Picks picks(const int32_t* lanes_taken) {
    const __m512i places = _mm512_loadu_si512(lanes_taken);
    return {places, static_cast<Mask>(~_mm512_movepi32_mask(places))};
  }
  /// The lanes that are taken, 0 where none is.
  static Register picked(Register a, const Picks& which) {
    return _mm512_maskz_permutexvar_ps(which.taken, which.places, a);
  }
  static Register larger(Register kept, Register value) {
    const Mask taken =
        static_cast<Mask>(_mm512_cmp_ps_mask(value, kept, _CMP_GT_OQ) | _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q));
    return _mm512_mask_mov_ps(kept, taken, value);
  }
  static Register larger_number(Register kept, Register value) { return _mm512_maskz_max_ps(0xffff, value, kept); }
  static Mask not_numbers(Register a, Register b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
  static Mask either(Mask a, Mask b) { return static_cast<Mask>(a | b); }
  static bool any(Mask a) { return a != 0; }
  static Register where_equal(Register a, Register b, Register value) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), value);
  }
  static Register where_other(Register a, Register b, Register value) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ), value);
  }
  static Mask taken(Register a, Register b) {
    return static_cast<Mask>(_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ) | _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q));
  }
  static Register where_taken(Register a, Register b, Register value) {
    return _mm512_maskz_mov_ps(taken(a, b), value);
  }
  static Register where_left(Register a, Register b, Register value) {
    return _mm512_maskz_mov_ps(static_cast<Mask>(~taken(a, b)), value);
  }
  static Register positive(Register a) { return _mm512_maskz_max_ps(0xffff, _mm512_setzero_ps(), a); }
  static Register at_most(Register a, Register most) { return _mm512_maskz_min_ps(0xffff, most, a); }
};

template <> struct Vec<double> {
  using Register = __m512d;
  using Mask = __mmask8;
  static constexpr int lanes = 8;
  static __m256d first_half(const Register (&a)[1]) {
    return _mm256_add_pd(_mm512_maskz_extractf64x4_pd(0xf, a[0], 0), _mm512_maskz_extractf64x4_pd(0xf, a[0], 1));
  }
  static Mask mask_of(int64_t count) { return static_cast<Mask>((1u << count) - 1u); }
  static Register load(const double* from, Mask mask) { return _mm512_maskz_loadu_pd(mask, from); }
  static void store(double* to, Register value, Mask mask) { _mm512_mask_storeu_pd(to, mask, value); }
  static Register load(const double* from) { return _mm512_loadu_pd(from); }
  static void store(double* to, Register value) { _mm512_storeu_pd(to, value); }
  static Register splat(const double* from) { return _mm512_set1_pd(*from); }
  static Register zero() { return _mm512_setzero_pd(); }
  static Register held(Register a) {
    asm("" : "+v"(a));
    return a;
  }
  static Register fma(Register a, Register b, Register c) { return _mm512_fmadd_pd(a, b, c); }
  static Register add(Register a, Register b) { return _mm512_add_pd(a, b); }
  static Register sub(Register a, Register b) { return _mm512_sub_pd(a, b); }
  static Register mul(Register a, Register b) { return _mm512_mul_pd(a, b); }
  struct Picks {
    __m512i places;
    Mask taken;
  };
  static Picks picks(const int32_t* lanes_taken) {
    const __m256i places = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes_taken));
    return {_mm512_maskz_cvtepi32_epi64(0xff, places), static_cast<Mask>(~_mm256_movepi32_mask(places))};
  }
  static Register picked(Register a, const Picks& which) {
    return _mm512_maskz_permutexvar_pd(which.taken, which.places, a);
  }
  static Register larger(Register kept, Register value) {
    const Mask taken =
        static_cast<Mask>(_mm512_cmp_pd_mask(value, kept, _CMP_GT_OQ) | _mm512_cmp_pd_mask(value, value, _CMP_UNORD_Q));
    return _mm512_mask_mov_pd(kept, taken, value);
  }
  static Register larger_number(Register kept, Register value) { return _mm512_maskz_max_pd(0xff, value, kept); }
  static Mask not_numbers(Register a, Register b) { return _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q); }
  static Mask either(Mask a, Mask b) { return static_cast<Mask>(a | b); }
  static bool any(Mask a) { return a != 0; }
  static Register where_equal(Register a, Register b, Register value) {
    return _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ), value);
  }
  static Register where_other(Register a, Register b, Register value) {
    return _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(a, b, _CMP_NEQ_UQ), value);
  }
  static Mask taken(Register a, Register b) {
    return static_cast<Mask>(_mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ) | _mm512_cmp_pd_mask(a, a, _CMP_UNORD_Q));
  }
  static Register where_taken(Register a, Register b, Register value) {
    return _mm512_maskz_mov_pd(taken(a, b), value);
  }
  static Register where_left(Register a, Register b, Register value) {
    return _mm512_maskz_mov_pd(static_cast<Mask>(~taken(a, b)), value);
  }
  static Register positive(Register a) { return _mm512_maskz_max_pd(0xff, _mm512_setzero_pd(), a); }
  static Register at_most(Register a, Register most) { return _mm512_maskz_min_pd(0xff, most, a); }
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
#include "engines/tile_packed_body.hpp"
#include "engines/weighed_body.hpp"
#include "engines/winograd_body.hpp"

#include "engines/kernel_table.hpp"

}  // namespace

constinit const TileKernels wide_tile_kernels = kernels_of("avx512", 64, packed_kernels());

}  // namespace rosin::engines

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
