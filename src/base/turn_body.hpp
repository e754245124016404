// How a square is turned over in vectors of some length; included by the file of each set of instructions. Vectors
// consist of lanes of 16 bytes: words change places within lanes first, then lanes as wholes. Read first: turn.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/turn.hpp"

namespace rosin {
namespace {

/// As many words as a vector of so many bytes holds, and a square of them. Loops are written out, so that it stays in
/// registers.
template <class Word, size_t bytes> class Square {
 public:
  static constexpr size_t side = bytes / sizeof(Word);

  /// to[j * row + i] = from[i * stride + j].
  [[gnu::always_inline]] static inline void turn(Word* to, int64_t row, const Word* from, int64_t stride) {
    Square square;
    each<side>([&](auto i) { std::memcpy(&square.rows_[i], from + static_cast<int64_t>(i) * stride, bytes); });
    each<lanes>([&](auto lane) { square.template double_up<lane * of_lane, 1, of_lane, true>(); });
    each<of_lane>([&](auto i) { square.template double_up<i, of_lane, lanes, false>(); });
    each<side>([&](auto i) { std::memcpy(to + static_cast<int64_t>(i) * row, &square.rows_[i], bytes); });
  }

  /// to[i] = value, of one vector.
  [[gnu::always_inline]] static inline void fill(Word* to, Word value) {
    const Vector words = value - Vector{};
    std::memcpy(to, &words, bytes);
  }

  /// to[i] = from[side - 1 - i], of one vector.
  [[gnu::always_inline]] static inline void flip(Word* to, const Word* from) {
    Vector words;
    std::memcpy(&words, from, bytes);
    words = flipped(words, std::make_index_sequence<side>());
    std::memcpy(to, &words, bytes);
  }

 private:
  static constexpr size_t lanes = bytes / 16, of_lane = 16 / sizeof(Word);
  typedef Word Vector __attribute__((vector_size(bytes)));

  template <size_t times, class F> [[gnu::always_inline]] static inline void each(F f) {
    [&]<size_t... i>(std::index_sequence<i...>) __attribute__((always_inline)) {
      (f(std::integral_constant<size_t, i>()), ...);
    }
    (std::make_index_sequence<times>());
  }

  /// Turns over what `count` rows, `step` apart from row `first` on, hold: words of each lane, or whole lanes. At each
  /// doubling up to the side the parts of an upper row and of a lower one come in turn.
  template <size_t first, size_t step, size_t count, bool words> [[gnu::always_inline]] inline void double_up() {
    each<std::countr_zero(count)>([&](auto) __attribute__((always_inline)) {
      Vector before[count];
      each<count>([&](auto i) { before[i] = rows_[first + i * step]; });
      each<count / 2>([&](auto i) {
        const Vector &a = before[i], &b = before[i + count / 2];
        rows_[first + 2 * i * step] = in_turn<words, 0>(a, b, std::make_index_sequence<side>());
        rows_[first + (2 * i + 1) * step] = in_turn<words, 1>(a, b, std::make_index_sequence<side>());
      });
    });
  }

  /// The word of two rows that comes to place i: parts of both in turn, from those of the first or second half on.
  static constexpr int source(bool words, size_t half, size_t i) {
    const size_t lane = i / of_lane, word = i % of_lane;
    if (words) return static_cast<int>(lane * of_lane + half * of_lane / 2 + word / 2 + word % 2 * side);
    return static_cast<int>((half * lanes / 2 + lane / 2) * of_lane + word + lane % 2 * side);
  }
  template <bool words, size_t half, size_t... i>
  [[gnu::always_inline]] static inline Vector in_turn(const Vector& a, const Vector& b, std::index_sequence<i...>) {
    return __builtin_shufflevector(a, b, source(words, half, i)...);
  }

  template <size_t... i>
  [[gnu::always_inline]] static inline Vector flipped(const Vector& words, std::index_sequence<i...>) {
    return __builtin_shufflevector(words, words, (side - 1 - i)...);
  }

  Vector rows_[side];
};

/// Asks for the lines of a row that is read soon: rows lie in pages of their own, so that no processor guesses the
/// next.
template <class Word> inline void prefetch_row(const Word* from, int64_t n) {
  for (int64_t j = 0; j < n; j += static_cast<int64_t>(64 / sizeof(Word))) __builtin_prefetch(from + j);
}

template <class Word, size_t bytes> void turn_squares(const Turn<Word>& t) {
  constexpr auto side = static_cast<int64_t>(Square<Word, bytes>::side), ahead = int64_t{16};
  for (int64_t i = 0; i < t.m; i += side) {
    for (int64_t k = i + ahead; k < std::min(i + ahead + side, t.m); ++k) prefetch_row(t.from + k * t.stride, t.n);
    for (int64_t j = 0; j < t.n; j += side) {
      Square<Word, bytes>::turn(t.to + j * t.row + i, t.row, t.from + i * t.stride + j, t.stride);
    }
  }
}

template <class Word, size_t bytes> inline void flip_row(Word* to, const Word* from, int64_t count) {
  constexpr auto side = static_cast<int64_t>(Square<Word, bytes>::side);
  int64_t i = 0;
  for (; i + side <= count; i += side) Square<Word, bytes>::flip(to + i, from - i - (side - 1));
  for (; i < count; ++i) to[i] = from[-i];
}

/// The last vector may write again what the one before it has written.
template <class Word, size_t bytes> inline void fill_row(Word* to, Word value, int64_t count) {
  constexpr auto side = static_cast<int64_t>(Square<Word, bytes>::side);
  if (count >= side) {
    for (int64_t i = 0; i + side < count; i += side) Square<Word, bytes>::fill(to + i, value);
    return Square<Word, bytes>::fill(to + (count - side), value);
  }
  if constexpr (bytes > 16) return fill_row<Word, bytes / 2>(to, value, count);
  for (int64_t i = 0; i < count; ++i) to[i] = value;
}

template <class Word, size_t bytes> void flip_by_vectors(const Rows<Word>& rows) {
  for (int64_t j = 0; j < rows.rows; ++j) {
    flip_row<Word, bytes>(rows.to + j * rows.to_step, rows.from + j * rows.from_step, rows.count);
  }
}

template <class Word, size_t bytes> void fill_by_vectors(const Rows<Word>& rows) {
  if (rows.count == 0) return;  // then there may be nothing to read
  for (int64_t j = 0; j < rows.rows; ++j) {
    fill_row<Word, bytes>(rows.to + j * rows.to_step, rows.from[j * rows.from_step], rows.count);
  }
}

template <class Word, size_t bytes> RowWriter<Word> writer_of_rows() {
  return {flip_by_vectors<Word, bytes>, fill_by_vectors<Word, bytes>};
}

template <class Word, size_t bytes> Turner<Word> turner() {
  return {static_cast<int64_t>(Square<Word, bytes>::side), turn_squares<Word, bytes>};
}

}  // namespace
}  // namespace rosin
