// Squares turned over in vectors of 16 bytes, and the choice among the sets of instructions.
#include "base/instruction_set.hpp"
#include "base/turn_body.hpp"

namespace rosin {

template <class Word> Turner<Word> narrow_turner() { return turner<Word, 16>(); }

template <class Word> Turner<Word> widest_turner() {
#if defined(__x86_64__)
  const InstructionSet set = best_instruction_set();
  if constexpr (sizeof(Word) == 4) {
    if (set == InstructionSet::widest) return widest_turner_of_4();
    if (set == InstructionSet::wide) return wide_turner_of_4();
  } else if constexpr (sizeof(Word) == 8) {
    if (set == InstructionSet::widest) return widest_turner_of_8();
    if (set == InstructionSet::wide) return wide_turner_of_8();
  }
#endif
  return narrow_turner<Word>();
}

template <class Word> Turner<Word> turner_of(int64_t lines) {
  const Turner<Word> widest = widest_turner<Word>();
  if (lines % widest.side == 0) return widest;
#if defined(__x86_64__)
  if (best_instruction_set() == InstructionSet::widest) {
    if constexpr (sizeof(Word) == 4) {
      if (const Turner<Word> wide = wide_turner_of_4(); lines % wide.side == 0) return wide;
    } else {
      if (const Turner<Word> wide = wide_turner_of_8(); lines % wide.side == 0) return wide;
    }
  }
#endif
  return narrow_turner<Word>();
}

template <class Word> RowWriter<Word> row_writer() {
#if defined(__x86_64__)
  const InstructionSet set = best_instruction_set();
  if (set == InstructionSet::widest) return widest_row_writer<Word>();
  if (set == InstructionSet::wide) return wide_row_writer<Word>();
#endif
  return writer_of_rows<Word, 16>();
}

template Turner<uint8_t> narrow_turner();
template Turner<uint16_t> narrow_turner();
template Turner<uint32_t> narrow_turner();
template Turner<uint64_t> narrow_turner();
template Turner<uint8_t> widest_turner();
template Turner<uint16_t> widest_turner();
template Turner<uint32_t> widest_turner();
template Turner<uint64_t> widest_turner();
template Turner<uint32_t> turner_of(int64_t lines);
template Turner<uint64_t> turner_of(int64_t lines);
template RowWriter<uint8_t> row_writer();
template RowWriter<uint16_t> row_writer();
template RowWriter<uint32_t> row_writer();
template RowWriter<uint64_t> row_writer();

}  // namespace rosin
