// See draw.hpp.
#include "cpu/draw.hpp"

#include <algorithm>
#include <type_traits>
#ifdef __x86_64__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12 takes its own header for wrong
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

#include "base/philox.hpp"
#include "scalar/body.hpp"

namespace rosin::cpu {
namespace {

constexpr int64_t lane_elements = words_together;

/// Out: float, numbers in [0, 1) of the blocks from `block` on; uint32_t, their words.
template <class Out> using FillLanes = void (*)(Out* out, uint64_t key, uint64_t block);

/// Blocks side by side, so that the rounds become vector instructions.
template <class Out> void fill_baseline(Out* out, uint64_t key, uint64_t block) {
  constexpr size_t lanes = blocks_together;
  uint32_t words[4][lanes];
  for (size_t i = 0; i < lanes; ++i) {
    words[0][i] = static_cast<uint32_t>(block + i);
    words[1][i] = static_cast<uint32_t>((block + i) >> 32);
    words[2][i] = 0;
    words[3][i] = static_cast<uint32_t>(philox::Purpose::draw);
  }
  uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < philox::rounds; ++round) {
    for (size_t i = 0; i < lanes; ++i) philox::mix(words[0][i], words[1][i], words[2][i], words[3][i], low, high);
    low += philox::low_step;
    high += philox::high_step;
  }
  for (size_t i = 0; i < lanes; ++i) {
    for (size_t word = 0; word < 4; ++word) {
      if constexpr (std::is_same_v<Out, float>) out[4 * i + word] = philox::unit_float(words[word][i]);
      else out[4 * i + word] = words[word][i];
    }
  }
}

#ifdef __x86_64__
/// Four blocks, a word of each in the lower half of 64 bits: what stands in the upper half takes part in nothing.
struct Blocks {
  __m256i words[4];
};

[[gnu::target("avx2"), gnu::always_inline]] inline Blocks blocks_from(uint64_t block) {
  const __m256i number =
      _mm256_add_epi64(_mm256_set1_epi64x(static_cast<int64_t>(block)), _mm256_set_epi64x(3, 2, 1, 0));
  const auto purpose = static_cast<int64_t>(philox::Purpose::draw);
  return {{number, _mm256_srli_epi64(number, 32), _mm256_setzero_si256(), _mm256_set1_epi64x(purpose)}};
}

/// As philox::mix does.
[[gnu::target("avx2"), gnu::always_inline]] inline void mix(Blocks& b, __m256i low, __m256i high) {
  const __m256i first = _mm256_mul_epu32(b.words[0], _mm256_set1_epi64x(philox::first_factor));
  const __m256i second = _mm256_mul_epu32(b.words[2], _mm256_set1_epi64x(philox::second_factor));
  b.words[0] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(second, 32), b.words[1]), low);
  b.words[2] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(first, 32), b.words[3]), high);
  b.words[1] = second;
  b.words[3] = first;
}

/// Two blocks as eight numbers.
[[gnu::target("avx2"), gnu::always_inline]] inline void store_numbers(float* out, __m256i bits) {
  const __m256 whole = _mm256_cvtepi32_ps(_mm256_srli_epi32(bits, 8));
  _mm256_storeu_ps(out, _mm256_mul_ps(whole, _mm256_set1_ps(0x1p-24f)));
}
[[gnu::target("avx2"), gnu::always_inline]] inline void store_numbers(uint32_t* out, __m256i bits) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), bits);
}

/// The lower halves of both, in turn.
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i paired(const __m256i& first, const __m256i& second) {
  return _mm256_blend_epi32(first, _mm256_slli_epi64(second, 32), 0xAA);
}

template <class Out> [[gnu::target("avx2"), gnu::always_inline]] inline void store_blocks(Out* out, const Blocks& b) {
  const __m256i front = paired(b.words[0], b.words[1]), back = paired(b.words[2], b.words[3]);
  const __m256i even = _mm256_unpacklo_epi64(front, back), odd = _mm256_unpackhi_epi64(front, back);
  store_numbers(out, _mm256_permute2x128_si256(even, odd, 0x20));
  store_numbers(out + 8, _mm256_permute2x128_si256(even, odd, 0x31));
}

template <class Out> [[gnu::target("avx2")]] void fill_wide(Out* out, uint64_t key, uint64_t block) {
  Blocks a = blocks_from(block), b = blocks_from(block + 4);
  uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < philox::rounds; ++round) {
    const __m256i lows = _mm256_set1_epi64x(low), highs = _mm256_set1_epi64x(high);
    mix(a, lows, highs);
    mix(b, lows, highs);
    low += philox::low_step;
    high += philox::high_step;
  }
  store_blocks(out, a);
  store_blocks(out + 16, b);
}

/// The same by AVX-512: eight blocks in a register for each word.
[[gnu::target("avx512f,avx512dq"), gnu::always_inline]] inline void store_numbers(float* out, __m512i bits) {
  const __m512 whole = _mm512_cvtepi32_ps(_mm512_srli_epi32(bits, 8));
  _mm512_storeu_ps(out, _mm512_mul_ps(whole, _mm512_set1_ps(0x1p-24f)));
}
[[gnu::target("avx512f,avx512dq"), gnu::always_inline]] inline void store_numbers(uint32_t* out, __m512i bits) {
  _mm512_storeu_si512(out, bits);
}

template <class Out> [[gnu::target("avx512f,avx512dq")]] void fill_widest(Out* out, uint64_t key, uint64_t block) {
  constexpr int exclusive = 0x96;  // or of three
  const __m512i first_factor = _mm512_set1_epi64(philox::first_factor);
  const __m512i second_factor = _mm512_set1_epi64(philox::second_factor);
  __m512i w0 =
      _mm512_add_epi64(_mm512_set1_epi64(static_cast<int64_t>(block)), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
  __m512i w1 = _mm512_srli_epi64(w0, 32), w2 = _mm512_setzero_si512();
  __m512i w3 = _mm512_set1_epi64(static_cast<int64_t>(philox::Purpose::draw));
  uint32_t low = static_cast<uint32_t>(key), high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < philox::rounds; ++round) {
    const __m512i first = _mm512_mul_epu32(w0, first_factor), second = _mm512_mul_epu32(w2, second_factor);
    w0 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(second, 32), w1, _mm512_set1_epi64(low), exclusive);
    w2 = _mm512_ternarylogic_epi64(_mm512_srli_epi64(first, 32), w3, _mm512_set1_epi64(high), exclusive);
    w1 = second;
    w3 = first;
    low += philox::low_step;
    high += philox::high_step;
  }
  const __m512i front = _mm512_mask_mov_epi32(w0, 0xAAAA, _mm512_slli_epi64(w1, 32));
  const __m512i back = _mm512_mask_mov_epi32(w2, 0xAAAA, _mm512_slli_epi64(w3, 32));
  store_numbers(out, _mm512_permutex2var_epi64(front, _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0), back));
  store_numbers(out + 16, _mm512_permutex2var_epi64(front, _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4), back));
}
#endif

template <class Out> FillLanes<Out> best_fill() {
#ifdef __x86_64__
  if (best_instruction_set() == InstructionSet::widest) return fill_widest<Out>;
  if (best_instruction_set() == InstructionSet::wide) return fill_wide<Out>;
#endif
  return fill_baseline<Out>;
}

/// Element i: word i % 4 of block counter + i / 4, its upper 24 bits.
void draw_floats(void* memory, int64_t begin, int64_t count, uint64_t key, uint64_t counter) {
  static const FillLanes<float> fill = best_fill<float>();
  float* out = static_cast<float*>(memory);
  float rest[lane_elements];
  for (const float* end = out + count; out < end;) {
    const uint64_t block = counter + static_cast<uint64_t>(begin / 4);
    const int64_t skipped = begin % 4, made = std::min<int64_t>(lane_elements - skipped, end - out);
    if (made == lane_elements) {
      fill(out, key, block);
    } else {
      fill(rest, key, block);
      std::copy_n(rest + skipped, made, out);
    }
    out += made;
    begin += made;
  }
}

/// Element i: words 2 (i % 2) and the next one of block counter + i / 2, the upper 53 of their bits.
void draw_doubles(void* memory, int64_t begin, int64_t count, uint64_t key, uint64_t counter) {
  constexpr int64_t made_together = words_together / 2;
  double* out = static_cast<double*>(memory);
  uint32_t words[words_together];
  for (const double* end = out + count; out < end;) {
    draw_words(words, key, counter + static_cast<uint64_t>(begin / 2));
    const int64_t skipped = begin % 2, made = std::min<int64_t>(made_together - skipped, end - out);
    for (int64_t i = 0; i < made; ++i) {
      const uint32_t* pair = words + 2 * (skipped + i);
      out[i] = philox::unit_double(pair[0], pair[1]);
    }
    out += made;
    begin += made;
  }
}

}  // namespace

void draw_words(uint32_t (&words)[words_together], uint64_t key, uint64_t block) {
  static const FillLanes<uint32_t> fill = best_fill<uint32_t>();
  fill(words, key, block);
}

DrawLoop draw_loop(ScalarType type) { return type == ScalarType::float64 ? draw_doubles : draw_floats; }

}  // namespace rosin::cpu
