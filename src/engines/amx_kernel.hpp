// Products of BFloat16 in the matrix registers that Intel's processors have from Sapphire Rapids on (AMX), each of 16
// rows of 64 bytes. Read next: amx_kernel.cpp; amx_matmul.cpp (who asks for it).
// Source: Intel Architecture Instruction Set Extensions Programming Reference, chapter 3 (TDPBF16PS).
#pragma once

#include <cstdint>

namespace rosin::engines {

/// A panel holds 16 lines (rows of A, columns of B) as blocks of 32 steps, one behind the other, each of them a
/// register: of B a line behind the other, of A the pairs of steps, each of all lines. What an operand lacks is 0
/// there.
inline constexpr int64_t amx_lines = 16, amx_steps = 32, amx_block = amx_lines * amx_steps;

/// Lines of an operand, side by side along memory or across it.
struct AmxLines {
  const uint16_t* from;
  bool along;
  int64_t distance;  // of a line from the next, or where lines lie across memory of a step from the next
  int64_t lines, steps;
  bool by_pairs;  // for panels of A
  uint16_t* to;   // panels, of `steps` rounded up to whole blocks
  int64_t panel;  // elements from one to the next
};
void pack_for_amx(const AmxLines& lines);

/// Blocks of B: lines, and blocks of one panel, and panels, are so many elements from one to the next.
struct AmxBlocks {
  const uint16_t* from;
  int64_t line, block, panel;
};

/// c(rows, columns) = [c +] the products of one or two panels of A and of B, summed in Float32 over `blocks` blocks and
/// rounded once. Subnormal numbers count as 0.
struct AmxTile {
  const uint16_t* a;
  AmxBlocks b;
  int64_t blocks;
  int64_t rows, columns;  // at most 32
  uint16_t* c;
  int64_t c_column;
  bool accumulate;
};
void multiply_on_amx(const AmxTile& tile) noexcept;

/// c(rows, columns) = [c +] the same sums, which stay in Float32: of one or two panels of A, 16 rows each, and of B.
struct AmxSums {
  const uint16_t* a;
  int64_t panel;  // of A, elements from one to the next
  AmxBlocks b;
  int64_t blocks;
  bool two_rows, two_columns;  // panels
  float* c;
  int64_t c_column;
  bool accumulate;
};
void sum_on_amx(const AmxSums& sums) noexcept;

/// A panel of A of 16 lines across memory, rounded from Float32.
void pack_floats_for_amx(const float* from, int64_t distance, int64_t steps, uint16_t* to) noexcept;
/// A multiple of 16 numbers by a factor.
void scale_numbers(float* numbers, int64_t count, float factor) noexcept;

/// While it lives its thread can call multiply_on_amx and sum_on_amx, and no other code that uses these registers.
class AmxRegisters {
 public:
  AmxRegisters() noexcept;
  AmxRegisters(const AmxRegisters&) = delete;
  AmxRegisters& operator=(const AmxRegisters&) = delete;
  ~AmxRegisters();
};

}  // namespace rosin::engines
