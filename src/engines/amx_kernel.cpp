// The kernel of amx_kernel.hpp, and how panels are filled. Two panels of A and two of B fill four registers, their
// products the other four: each block that is fetched is used twice.
#include "engines/amx_kernel.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include <rosin/half.hpp>

#include "base/turn.hpp"

#if defined(__clang__)
#pragma clang attribute push(                                                                                \
        __attribute__((target("amx-tile,amx-bf16,avx512bf16,avx512f,avx512vl,avx512bw,avx512dq,avx2,fma"))), \
            apply_to = function)
#else
#pragma GCC target("amx-tile,amx-bf16,avx512bf16,avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")
#endif

namespace rosin::engines {

namespace {

constexpr int64_t pairs = amx_steps / 2;
constexpr int row_bytes = 64;

/// The lines and steps of one block, of which an operand may hold fewer.
struct Part {
  const uint16_t* from;
  int64_t distance, lines, steps;
};

/// A line behind the other.
void copy_lines(const Part& part, uint16_t* to) {
  const auto steps = static_cast<__mmask32>((uint64_t{1} << part.steps) - 1);
  for (int64_t i = 0; i < amx_lines; ++i) {
    const __mmask32 held = i < part.lines ? steps : 0;
    _mm512_store_si512(to + i * amx_steps, _mm512_maskz_loadu_epi16(held, part.from + i * part.distance));
  }
}

using Numbers [[gnu::vector_size(32)]] = uint16_t;
using Words [[gnu::vector_size(64)]] = uint32_t;

/// A step of all lines, or zeros where there is none.
Words step_of(const Part& part, int64_t step) {
  const auto held = static_cast<__mmask16>(step < part.steps ? (1u << part.lines) - 1 : 0);
  const auto numbers = reinterpret_cast<Numbers>(_mm256_maskz_loadu_epi16(held, part.from + step * part.distance));
  return __builtin_convertvector(numbers, Words);
}

/// A pair of steps behind the other.
void copy_pairs(const Part& part, uint16_t* to) {
  for (int64_t i = 0; i < pairs; ++i) {
    const Words words = step_of(part, 2 * i) | step_of(part, 2 * i + 1) << 16;
    std::memcpy(to + i * amx_steps, &words, sizeof(words));
  }
}

/// Lines and pairs change places.
void turn(const Turner<uint32_t>& turner, const uint16_t* from, uint16_t* to) {
  turner.turn({reinterpret_cast<uint32_t*>(to), pairs, reinterpret_cast<const uint32_t*>(from), pairs, pairs, pairs});
}

void pack_block(const AmxLines& lines, int64_t line, int64_t step, const Turner<uint32_t>& turner, uint16_t* to) {
  const uint16_t* from = lines.from + (lines.along ? line * lines.distance + step : line + step * lines.distance);
  const Part part{from, lines.distance, std::min(amx_lines, lines.lines - line),
                  std::min(amx_steps, lines.steps - step)};
  alignas(row_bytes) uint16_t block[amx_block];
  const bool turns = lines.along == lines.by_pairs;
  uint16_t* const copy = turns ? block : to;
  lines.along ? copy_lines(part, copy) : copy_pairs(part, copy);
  if (turns) turn(turner, block, to);
}

/// What LDTILECFG reads: of which sizes the eight registers are.
struct Sizes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
// Not on the stack: to g++ 12 the instruction reads 8 bytes of it.
constexpr Sizes sizes;

void set_up() { _tile_loadconfig(&sizes); }
void give_up() { _tile_release(); }

/// Sums of one column, 16 for each panel of A.
template <bool two_rows> void write_column(const float* sums, int64_t rows, bool accumulate, uint16_t* c) {
  constexpr int64_t all = (two_rows ? 2 : 1) * amx_lines;
  const auto held = static_cast<__mmask32>((uint64_t{1} << rows) - 1);
  alignas(row_bytes) uint16_t numbers[amx_steps];
  if (accumulate) {
    _mm512_store_si512(numbers, _mm512_maskz_loadu_epi16(held, c));
    for (int64_t i = 0; i < all; ++i) numbers[i] = bfloat_bits(bfloat_value(numbers[i]) + sums[i]);
  } else {
    for (int64_t i = 0; i < all; ++i) numbers[i] = bfloat_bits(sums[i]);
  }
  _mm512_mask_storeu_epi16(c, held, _mm512_load_si512(numbers));
}

/// Those of the columns of one panel of B.
template <bool two_rows> void write_columns(const float* sums, const AmxTile& tile, int64_t first) {
  constexpr int64_t distance = (two_rows ? 2 : 1) * amx_lines;
  const int64_t columns = std::min(amx_lines, tile.columns - first);
  for (int64_t j = 0; j < columns; ++j) {
    write_column<two_rows>(sums + j * distance, tile.rows, tile.accumulate, tile.c + (first + j) * tile.c_column);
  }
}

// Sums of panel i of B and j of A are in register 2 * i + j, the panels in 4 + i and 6 + j.
template <bool two_rows, bool two_columns>
void add_products(const uint16_t* a, int64_t panel, const AmxBlocks& blocks_of_b, int64_t blocks) {
  const uint16_t* b = blocks_of_b.from;
  const auto line = static_cast<size_t>(blocks_of_b.line) * sizeof(uint16_t);
  for (const uint16_t* const end = a + blocks * amx_block; a != end; a += amx_block, b += blocks_of_b.block) {
    _tile_loadd(4, b, line);
    _tile_loadd(6, a, row_bytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (two_rows) {
      _tile_loadd(7, a + panel, row_bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (two_columns) {
      _tile_loadd(5, b + blocks_of_b.panel, line);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (two_rows && two_columns) _tile_dpbf16ps(3, 5, 7);
  }
}

template <bool two_rows, bool two_columns> void clear_sums() {
  _tile_zero(0);
  if constexpr (two_rows) _tile_zero(1);
  if constexpr (two_columns) _tile_zero(2);
  if constexpr (two_rows && two_columns) _tile_zero(3);
}

template <bool two_rows, bool two_columns> void multiply(const AmxTile& tile) {
  clear_sums<two_rows, two_columns>();
  add_products<two_rows, two_columns>(tile.a, tile.blocks * amx_block, tile.b, tile.blocks);
  constexpr int row = (two_rows ? 2 : 1) * row_bytes;
  alignas(row_bytes) float sums[amx_lines * row / sizeof(float)];
  _tile_stored(0, sums, row);
  if constexpr (two_rows) _tile_stored(1, sums + amx_lines, row);
  write_columns<two_rows>(sums, tile, 0);
  if constexpr (two_columns) {
    _tile_stored(2, sums, row);
    if constexpr (two_rows) _tile_stored(3, sums + amx_lines, row);
    write_columns<two_rows>(sums, tile, amx_lines);
  }
}

template <bool two_rows, bool two_columns> void add_up(const AmxSums& sums) {
  const size_t column = static_cast<size_t>(sums.c_column) * sizeof(float);
  float* const right = sums.c + amx_lines * sums.c_column;
  if (sums.accumulate) {
    _tile_loadd(0, sums.c, column);
    if constexpr (two_rows) _tile_loadd(1, sums.c + amx_lines, column);
    if constexpr (two_columns) _tile_loadd(2, right, column);
    if constexpr (two_rows && two_columns) _tile_loadd(3, right + amx_lines, column);
  } else {
    clear_sums<two_rows, two_columns>();
  }
  add_products<two_rows, two_columns>(sums.a, sums.panel, sums.b, sums.blocks);
  _tile_stored(0, sums.c, column);
  if constexpr (two_rows) _tile_stored(1, sums.c + amx_lines, column);
  if constexpr (two_columns) _tile_stored(2, right, column);
  if constexpr (two_rows && two_columns) _tile_stored(3, right + amx_lines, column);
}

}  // namespace

void sum_on_amx(const AmxSums& sums) noexcept {
  if (sums.two_rows) return sums.two_columns ? add_up<true, true>(sums) : add_up<true, false>(sums);
  return sums.two_columns ? add_up<false, true>(sums) : add_up<false, false>(sums);
}

void pack_floats_for_amx(const float* from, int64_t distance, int64_t steps, uint16_t* to) noexcept {
  const __m512 none = _mm512_setzero_ps();
  const auto by_pairs = [](int64_t step) { return static_cast<uint16_t>(step % 2 == 0 ? step / 2 : 16 + step / 2); };
  alignas(row_bytes) uint16_t order[amx_steps];
  for (int64_t i = 0; i < amx_steps; ++i) order[i] = by_pairs(i);
  const __m512i places = _mm512_load_si512(order);
  const int64_t all = (steps + amx_steps - 1) / amx_steps * amx_steps;
  for (int64_t step = 0; step < all; step += 2, to += 2 * amx_lines) {
    const __m512 first = step < steps ? _mm512_loadu_ps(from + step * distance) : none;
    const __m512 second = step + 1 < steps ? _mm512_loadu_ps(from + (step + 1) * distance) : none;
    const auto halves = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
    _mm512_store_si512(to, _mm512_maskz_permutexvar_epi16(0xffffffff, places, halves));
  }
}

void scale_numbers(float* numbers, int64_t count, float factor) noexcept {
  const __m512 by = _mm512_set1_ps(factor);
  for (float* const end = numbers + count; numbers != end; numbers += 16)
    _mm512_storeu_ps(numbers, _mm512_mul_ps(_mm512_loadu_ps(numbers), by));
}

void pack_for_amx(const AmxLines& lines) {
  const Turner<uint32_t> turner = turner_of<uint32_t>(pairs);
  const int64_t blocks = (lines.steps + amx_steps - 1) / amx_steps, panels = (lines.lines + amx_lines - 1) / amx_lines;
  // What stands side by side is read at once: steps of one line, or one step of all lines.
  const int64_t together = lines.along ? blocks : 1;
  for (int64_t block = 0; block < blocks; block += together) {
    for (int64_t panel = 0; panel < panels; ++panel) {
      for (int64_t i = block; i < block + together; ++i) {
        pack_block(lines, panel * amx_lines, i * amx_steps, turner, lines.to + panel * lines.panel + i * amx_block);
      }
    }
  }
}

void multiply_on_amx(const AmxTile& tile) noexcept {
  const bool two_rows = tile.rows > amx_lines, two_columns = tile.columns > amx_lines;
  if (two_rows) return two_columns ? multiply<true, true>(tile) : multiply<true, false>(tile);
  return two_columns ? multiply<false, true>(tile) : multiply<false, false>(tile);
}

AmxRegisters::AmxRegisters() noexcept { set_up(); }
AmxRegisters::~AmxRegisters() { give_up(); }

}  // namespace rosin::engines

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
