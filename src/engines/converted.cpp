// See converted.hpp.
#include "engines/converted.hpp"

#include <algorithm>

#include <rosin/half.hpp>

#include "base/instruction_set.hpp"
#include "base/workers.hpp"
#include "engines/conv_shape.hpp"
#include "engines/cuts.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rosin::engines {
namespace {

#if defined(__x86_64__)

[[gnu::target("avx,f16c")]] int64_t widen_by_eight(const uint16_t* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
  return i;
}

[[gnu::target("avx,f16c")]] int64_t narrow_by_eight(const float* from, uint16_t* to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
  }
  return i;
}

[[gnu::target("avx2")]] void widen_bfloats(const uint16_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = bfloat_value(from[i]);
}

[[gnu::target("avx2")]] void narrow_bfloats(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = bfloat_bits(from[i]);
}

#else

int64_t widen_by_eight(const uint16_t*, float*, int64_t) { return 0; }
int64_t narrow_by_eight(const float*, uint16_t*, int64_t) { return 0; }
void widen_bfloats(const uint16_t*, float*, int64_t) {}
void narrow_bfloats(const float*, uint16_t*, int64_t) {}

#endif

bool has_wide_loops() { return best_instruction_set() != InstructionSet::baseline; }

/// Elements from the first to the last that an operand of a product has.
int64_t span_of(int64_t columns, int64_t rows, int64_t distance, int64_t batch, int64_t stride) {
  return (batch - 1) * stride + (columns - 1) * distance + rows;
}

struct Counts {
  int64_t first, second, result;
  bool reads_result;  // it is added to, or has elements between its columns, which stay
};

Counts counts_of(const MatmulSpec& s) {
  const auto of = [&](bool transposed, int64_t rows, int64_t columns, int64_t distance, int64_t stride) {
    return transposed ? span_of(rows, columns, distance, s.batch, stride)
                      : span_of(columns, rows, distance, s.batch, stride);
  };
  const int64_t result = span_of(s.n, s.m, s.ldc, s.batch, s.c_batch_stride);
  return {of(s.a_transposed, s.m, s.k, s.lda, s.a_batch_stride), of(s.b_transposed, s.k, s.n, s.ldb, s.b_batch_stride),
          result, s.accumulate || result != s.m * s.n * s.batch};
}

Counts counts_of(const ConvSpec& s) {
  const int64_t x = s.batch * s.in_channels * extent_of(s.in, s.spatial, 1).count();
  const int64_t y = s.batch * s.out_channels * extent_of(s.out, s.spatial, 1).count();
  const int64_t w = s.in_channels / s.groups * s.out_channels * extent_of(s.kernel, s.spatial, 1).count();
  if (s.kind == ConvKind::forward) return {x, w, y, false};
  if (s.kind == ConvKind::backward_data) return {y, w, x, false};
  return {x, y, w, false};
}

/// body(first, count) for pieces of `count` elements, on all threads where there are many.
template <class Body> void each_piece(int64_t count, Body body) {
  constexpr int64_t piece = int64_t{1} << 16;
  parallel_for((count + piece - 1) / piece, [&](int64_t i) { body(i * piece, std::min(piece, count - i * piece)); });
}

class Converted final : public VendorCall {
 public:
  Converted(std::unique_ptr<VendorCall> inner, DType type, const Counts& counts)
      : inner_(std::move(inner)), type_(type), counts_(counts) {
    chunks_ = inner_->chunks();
    scratch_bytes_ = inner_->scratch_bytes_per_chunk();
    first_at_ = aligned(inner_->workspace_bytes());
    second_at_ = first_at_ + aligned(4 * static_cast<size_t>(counts.first));
    result_at_ = second_at_ + aligned(4 * static_cast<size_t>(counts.second));
    workspace_bytes_ = result_at_ + 4 * static_cast<size_t>(counts.result);
    has_begin_ = has_finish_ = true;
    may_fail_ = inner_->may_fail();
  }

  const char* engine() const noexcept override { return inner_->engine(); }
  size_t bytes() const noexcept override { return 512 + inner_->bytes(); }

  void begin(const VendorBuffers& given) const override {
    const VendorBuffers buffers = inside(given);
    widen_all(given.first, at(given, first_at_), counts_.first);
    widen_all(given.second, at(given, second_at_), counts_.second);
    if (counts_.reads_result) widen_all(given.result, at(given, result_at_), counts_.result);
    if (inner_->has_begin()) inner_->begin(buffers);
  }
  void run_chunk(int64_t chunk, const VendorBuffers& given, void* scratch) const override {
    inner_->run_chunk(chunk, inside(given), scratch);
  }
  void finish(const VendorBuffers& given) const override {
    if (inner_->has_finish()) inner_->finish(inside(given));
    const float* sums = at(given, result_at_);
    auto* result = static_cast<uint16_t*>(given.result);
    each_piece(counts_.result, [&](int64_t i, int64_t count) { narrow(type_, sums + i, result + i, count); });
  }

 private:
  static size_t aligned(size_t bytes) { return static_cast<size_t>(round_up(static_cast<int64_t>(bytes), 64)); }
  static float* at(const VendorBuffers& given, size_t place) {
    return reinterpret_cast<float*>(static_cast<char*>(given.workspace) + place);
  }
  void widen_all(const void* from, float* to, int64_t count) const {
    const auto* bits = static_cast<const uint16_t*>(from);
    each_piece(count, [&](int64_t i, int64_t part) { widen(type_, bits + i, to + i, part); });
  }
  VendorBuffers inside(const VendorBuffers& given) const {
    VendorBuffers buffers;
    buffers.first = at(given, first_at_);
    buffers.second = at(given, second_at_);
    buffers.result = at(given, result_at_);
    buffers.workspace = given.workspace;
    return buffers;
  }

  std::unique_ptr<VendorCall> inner_;
  DType type_;
  Counts counts_;
  size_t first_at_ = 0, second_at_ = 0, result_at_ = 0;  // in the workspace
};

template <class Spec>
std::unique_ptr<VendorCall> made(const Spec& spec, std::unique_ptr<VendorCall> (*prepare)(const Spec&, Engine)) {
  Spec wide = spec;
  wide.type = DType::Float32;
  return std::make_unique<Converted>(prepare(wide, Engine::best), spec.type, counts_of(spec));
}

}  // namespace

std::unique_ptr<VendorCall> converted(const MatmulSpec& spec,
                                      std::unique_ptr<VendorCall> (*prepare)(const MatmulSpec&, Engine)) {
  return made(spec, prepare);
}
std::unique_ptr<VendorCall> converted(const ConvSpec& spec,
                                      std::unique_ptr<VendorCall> (*prepare)(const ConvSpec&, Engine)) {
  return made(spec, prepare);
}

void widen(DType type, const void* from, float* to, int64_t count) {
  const auto* bits = static_cast<const uint16_t*>(from);
  if (type == DType::BFloat16) {
    if (has_wide_loops()) return widen_bfloats(bits, to, count);
    for (int64_t i = 0; i < count; ++i) to[i] = bfloat_value(bits[i]);
    return;
  }
  for (int64_t i = has_wide_loops() ? widen_by_eight(bits, to, count) : 0; i < count; ++i) {
    to[i] = half_value(bits[i]);
  }
}

void narrow(DType type, const float* from, void* to, int64_t count) {
  auto* bits = static_cast<uint16_t*>(to);
  if (type == DType::BFloat16) {
    if (has_wide_loops()) return narrow_bfloats(from, bits, count);
    for (int64_t i = 0; i < count; ++i) bits[i] = bfloat_bits(from[i]);
    return;
  }
  for (int64_t i = has_wide_loops() ? narrow_by_eight(from, bits, count) : 0; i < count; ++i) {
    bits[i] = half_bits(from[i]);
  }
}

}  // namespace rosin::engines
