// See half_strips.hpp. The processor's own conversions of binary16 give what rosin/half.hpp says, NaN included.
#include "scalar/half_strips.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace rosin {
namespace {

template <class To, class From> [[gnu::always_inline]] inline void each(To* out, const From* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = To(x[i]);
}

template <class To, class From> void baseline(To* out, const From* x, int64_t count) { each(out, x, count); }

#ifdef __x86_64__
/// BFloat16 needs integer operations only, which the compiler makes vectors of.
template <class To, class From>
[[gnu::flatten, gnu::target("arch=x86-64-v3")]] void wide(To* out, const From* x, int64_t count) {
  each(out, x, count);
}

constexpr int64_t vector_elements = 8;

[[gnu::target("avx2,f16c")]] void half_to_float(float* out, const Half* x, int64_t count) {
  int64_t i = 0;
  for (; i + vector_elements <= count; i += vector_elements) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  }
  each(out + i, x + i, count - i);
}

[[gnu::target("avx2,f16c")]] void float_to_half(Half* out, const float* x, int64_t count) {
  int64_t i = 0;
  for (; i + vector_elements <= count; i += vector_elements) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  each(out + i, x + i, count - i);
}
#endif

constexpr HalfStrips baseline_strips{baseline<float, Half>, baseline<Half, float>, baseline<float, BFloat>,
                                     baseline<BFloat, float>};
#ifdef __x86_64__
constexpr HalfStrips wide_strips{half_to_float, float_to_half, wide<float, BFloat>, wide<BFloat, float>};
#endif

}  // namespace

const HalfStrips& half_strips([[maybe_unused]] InstructionSet set) noexcept {
#ifdef __x86_64__
  if (set != InstructionSet::baseline) return wide_strips;
#endif
  return baseline_strips;
}

const HalfStrips& half_strips() noexcept {
  static const HalfStrips& strips = half_strips(best_instruction_set());
  return strips;
}

}  // namespace rosin
