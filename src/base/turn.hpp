// Squares of matrices turned over in registers, and rows read backwards or filled. Read next: turn_body.hpp (how),
// strided_copy.cpp (who asks for it).
#pragma once

#include <cstdint>

namespace rosin {

/// to[j * row + i] = from[i * stride + j] for i < m, j < n.
template <class Word> struct Turn {
  Word* to;
  int64_t row;
  const Word* from;
  int64_t stride;
  int64_t m, n;
};

/// By squares of `side` words, of which m and n are multiples.
template <class Word> struct Turner {
  int64_t side;
  void (*turn)(const Turn<Word>&);
};

/// Vectors of 16 bytes, which every processor moves; and the longest ones that this one has.
template <class Word> Turner<Word> narrow_turner();
template <class Word> Turner<Word> widest_turner();
/// The longest ones whose squares fill so many lines, a multiple of 4 (of 2, of words of 8 bytes).
template <class Word> Turner<Word> turner_of(int64_t lines);

/// Of one set of instructions each, which the processor must have (turn_wide.cpp, turn_widest.cpp).
Turner<uint32_t> wide_turner_of_4();
Turner<uint64_t> wide_turner_of_8();
Turner<uint32_t> widest_turner_of_4();
Turner<uint64_t> widest_turner_of_8();

/// Rows of so many unsigned words of 1 to 8 bytes, and where each row begins in what is written and in what is read.
template <class Word> struct Rows {
  int64_t count, rows;
  Word* to;
  const Word* from;
  int64_t to_step, from_step;
};

/// How rows are written.
template <class Word> struct RowWriter {
  void (*flip)(const Rows<Word>& rows);  // read backwards: to[i] = from[-i]
  void (*fill)(const Rows<Word>& rows);  // of one word each: to[i] = from[0]
};

/// With the longest vectors that this processor has.
template <class Word> RowWriter<Word> row_writer();
/// Of one set of instructions each.
template <class Word> RowWriter<Word> wide_row_writer();
template <class Word> RowWriter<Word> widest_row_writer();

}  // namespace rosin
