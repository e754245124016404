// See strided_copy.hpp.
#include "base/strided_copy.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/row_copy.hpp"
#include "base/turn.hpp"
#include "base/workers.hpp"

namespace rosin {
namespace {

/// Elements of a block along the row of the target, long enough that pages and rows of memory are worth opening, and of
/// its other side.
constexpr int64_t block_row(size_t width) { return width <= 4 ? 256 : static_cast<int64_t>(1024 / width); }
constexpr int64_t block_rows(size_t width) { return width <= 2 ? 128 : 64; }
/// From one row of a buffered block to the next: rows a power of two apart would share a few places of the cache.
template <class Word> constexpr int64_t row_of = block_row(sizeof(Word)) + static_cast<int64_t>(64 / sizeof(Word));

/// to[j * row + i] = from[i * stride + j] for i < m, j < n: by the longest vectors, what these leave by short ones, and
/// the rest word by word.
template <class Word> void turn_block(const Turn<Word>& t) {
  static const Turner<Word> widest = widest_turner<Word>(), narrow = narrow_turner<Word>();
  const auto part = [&](int64_t i, int64_t j, int64_t m, int64_t n) {
    return Turn<Word>{t.to + j * t.row + i, t.row, t.from + i * t.stride + j, t.stride, m, n};
  };
  const int64_t m = t.m / widest.side * widest.side, n = t.n / widest.side * widest.side;
  const int64_t even_m = t.m / narrow.side * narrow.side, even_n = t.n / narrow.side * narrow.side;
  widest.turn(part(0, 0, m, n));
  if (even_n > n) narrow.turn(part(0, n, m, even_n - n));
  if (even_m > m) narrow.turn(part(m, 0, even_m - m, even_n));
  for (int64_t i = 0; i < t.m; ++i) {
    for (int64_t j = i < even_m ? even_n : 0; j < t.n; ++j) t.to[j * t.row + i] = t.from[i * t.stride + j];
  }
}

typedef uint32_t Four __attribute__((vector_size(16)));

Four load_four(const uint32_t* from) {
  Four words;
  std::memcpy(&words, from, sizeof words);
  return words;
}
void store_four(uint32_t* to, const Four& words) { std::memcpy(to, &words, sizeof words); }

/// Words of two vectors of 16 bytes in turn, from `first` on.
template <size_t first, class Vector, size_t... i>
Vector in_turn(const Vector& a, const Vector& b, std::index_sequence<i...>) {
  return __builtin_shufflevector(a, b, (first + i / 2 + i % 2 * sizeof...(i))...);
}

/// to[2 * j + i] = from[i * stride + j] for i < 2, j < n: two rows become pairs.
template <class Word> void join_two(Word* to, const Word* from, int64_t stride, int64_t n) {
  constexpr size_t side = 16 / sizeof(Word);
  typedef Word Vector __attribute__((vector_size(16)));
  int64_t j = 0;
  for (; j + int64_t{side} <= n; j += side, to += 2 * side) {
    Vector a, b;
    std::memcpy(&a, from + j, sizeof a);
    std::memcpy(&b, from + stride + j, sizeof b);
    const Vector first = in_turn<0>(a, b, std::make_index_sequence<side>());
    const Vector second = in_turn<side / 2>(a, b, std::make_index_sequence<side>());
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + side, &second, sizeof second);
  }
  for (; j < n; ++j, to += 2) to[0] = from[j], to[1] = from[stride + j];
}

/// The way back: to[j * stride + i] = from[2 * i + j] for i < m, j < 2.
template <class Word> void split_two(Word* to, int64_t stride, const Word* from, int64_t m) {
  int64_t i = 0;
  if constexpr (std::is_same_v<Word, uint32_t>) {
    for (; i + 4 <= m; i += 4, from += 8) {
      const Four x = load_four(from), y = load_four(from + 4);
      store_four(to + i, __builtin_shufflevector(x, y, 0, 2, 4, 6));
      store_four(to + stride + i, __builtin_shufflevector(x, y, 1, 3, 5, 7));
    }
  }
  for (; i < m; ++i, from += 2) to[i] = from[0], to[stride + i] = from[1];
}

/// to[3 * j + i] = from[i * stride + j] for i < 3, j < n: planes of colours become pixels.
template <class Word> void join_three(Word* to, const Word* from, int64_t stride, int64_t n) {
  int64_t j = 0;
  if constexpr (std::is_same_v<Word, uint32_t>) {
    for (; j + 4 <= n; j += 4, to += 12) {
      const Four a = load_four(from + j), b = load_four(from + stride + j), c = load_four(from + 2 * stride + j);
      const Four first = __builtin_shufflevector(a, b, 0, 4, 1, 5), middle = __builtin_shufflevector(a, b, 5, 2, 6, 3);
      const Four last = __builtin_shufflevector(a, b, 3, 7, 3, 7);
      store_four(to, __builtin_shufflevector(first, c, 0, 1, 4, 2));
      store_four(to + 4, __builtin_shufflevector(middle, c, 0, 5, 1, 2));
      store_four(to + 8, __builtin_shufflevector(last, c, 6, 0, 1, 7));
    }
  }
  for (; j < n; ++j, to += 3) {
    for (int64_t i = 0; i < 3; ++i) to[i] = from[i * stride + j];
  }
}

/// The way back: to[j * stride + i] = from[3 * i + j] for i < m, j < 3.
template <class Word> void split_three(Word* to, int64_t stride, const Word* from, int64_t m) {
  int64_t i = 0;
  if constexpr (std::is_same_v<Word, uint32_t>) {
    for (; i + 4 <= m; i += 4, from += 12) {
      const Four x = load_four(from), y = load_four(from + 4), z = load_four(from + 8);
      const Four a = __builtin_shufflevector(x, y, 0, 3, 6, 6), b = __builtin_shufflevector(x, y, 1, 4, 7, 7);
      const Four c = __builtin_shufflevector(x, y, 2, 5, 5, 5);
      store_four(to + i, __builtin_shufflevector(a, z, 0, 1, 2, 5));
      store_four(to + stride + i, __builtin_shufflevector(b, z, 0, 1, 2, 6));
      store_four(to + 2 * stride + i, __builtin_shufflevector(c, z, 0, 1, 4, 7));
    }
  }
  for (; i < m; ++i, from += 3) {
    for (int64_t j = 0; j < 3; ++j) to[j * stride + i] = from[j];
  }
}

/// Through a buffer that the cache holds, so that each line of both sides is touched once: lines that lie a power of
/// two apart fall into the same few places of a cache.
template <class Word>
void copy_buffered(Word* target, const Word* source, const StridedCopy& copy, int inner, int outer, int64_t m,
                   int64_t n) {
  constexpr int64_t row_words = row_of<Word>;
  alignas(64) Word buffer[block_rows(sizeof(Word)) * row_words];  // of each n, all m
  const int64_t target_i = copy.target[inner], target_j = copy.target[outer];
  const int64_t source_i = copy.source[inner], source_j = copy.source[outer];
  const bool turns = std::is_integral_v<Word> && source_j == 1;
  if constexpr (std::is_integral_v<Word>) {
    if (turns) turn_block<Word>({buffer, row_words, source, source_i, m, n});
  }
  for (int64_t i = 0; i < m && !turns; ++i) {
    for (int64_t j = 0; j < n; ++j) buffer[j * row_words + i] = source[i * source_i + j * source_j];
  }
  for (int64_t j = 0; j < n; ++j) {
    Word* const row = target + j * target_j;
    if (target_i == 1) std::memcpy(row, buffer + j * row_words, static_cast<size_t>(m) * sizeof(Word));
    for (int64_t i = 0; i < m && target_i != 1; ++i) row[i * target_i] = buffer[j * row_words + i];
  }
}

struct Wide {
  uint64_t words[2];
};

/// Rows of the target are so short that some follow each other in a line of memory.
bool has_short_rows(const StridedCopy& copy, size_t width, int inner, int outer) {
  constexpr size_t most_bytes = 256;
  return copy.target[inner] == 1 && copy.target[outer] == copy.sizes[inner] && copy.source[outer] == 1 && width <= 8 &&
         static_cast<size_t>(copy.sizes[inner]) * width <= most_bytes;
}

/// Rows stand in the source as they do in the target, or backwards, or are one element each.
bool has_whole_rows(const StridedCopy& copy, int inner) {
  return copy.target[inner] == 1 && std::abs(copy.source[inner]) <= 1;
}

template <class Word>
void copy_whole_rows(Word* target, const Word* source, const StridedCopy& copy, int inner, int outer, int64_t m,
                     int64_t n) {
  constexpr int64_t width = sizeof(Word);
  if (copy.source[inner] == 1) {
    const RowCopy rows{.rows = n,
                       .bytes = static_cast<size_t>(m * width),
                       .to_step = copy.target[outer] * width,
                       .from_step = copy.source[outer] * width};
    return copy_rows(rows, target, source);
  }
  copy_runs(n, target, copy.target[outer], source, copy.source[outer], copy.source[inner], m);
}

template <class Word>
void copy_block(Word* target, const Word* source, const StridedCopy& copy, int inner, int outer, int64_t m, int64_t n) {
  if (has_whole_rows(copy, inner)) return copy_whole_rows(target, source, copy, inner, outer, m, n);
  if constexpr (std::is_integral_v<Word>) {
    if (has_short_rows(copy, sizeof(Word), inner, outer)) {
      if (m == 2) return join_two(target, source, copy.source[inner], n);
      if (m == 3) return join_three(target, source, copy.source[inner], n);
      return turn_block<Word>({target, m, source, copy.source[inner], m, n});
    }
    const bool tuples = n <= 3 && copy.source[outer] == 1 && copy.source[inner] == n && copy.target[inner] == 1;
    if (tuples && n == 2) return split_two(target, copy.target[outer], source, m);
    if (tuples && n == 3) return split_three(target, copy.target[outer], source, m);
  }
  copy_buffered(target, source, copy, inner, outer, m, n);
}

constexpr int64_t chunk_elements = 1 << 16;  // worth a thread
constexpr int64_t short_rows = 1024;         // of a block

/// Where a plane begins: an odometer of the dims that are not the plane's.
struct Place {
  int64_t at[Shape::max_rank] = {};
  int64_t target = 0, source = 0;

  Place(const StridedCopy& copy, int inner, int outer, int64_t plane) {
    for (int d = 0; d < copy.rank; ++d) {
      if (d == inner || d == outer) continue;
      at[d] = plane % copy.sizes[d];
      plane /= copy.sizes[d];
      target += at[d] * copy.target[d];
      source += at[d] * copy.source[d];
    }
  }
  void next(const StridedCopy& copy, int inner, int outer) {
    for (int d = 0; d < copy.rank; ++d) {
      if (d == inner || d == outer) continue;
      target += copy.target[d];
      source += copy.source[d];
      if (++at[d] < copy.sizes[d]) return;
      target -= copy.target[d] * copy.sizes[d];
      source -= copy.source[d] * copy.sizes[d];
      at[d] = 0;
    }
  }
};

/// The same without dims of one element, and neighbours joined that follow each other in source and target.
StridedCopy merged(const StridedCopy& given) {
  StridedCopy copy;
  for (int d = 0; d < given.rank; ++d) {
    if (given.sizes[d] == 1) continue;
    const int last = copy.rank - 1;
    if (last >= 0 && given.source[d] == copy.source[last] * copy.sizes[last] &&
        given.target[d] == copy.target[last] * copy.sizes[last]) {
      copy.sizes[last] *= given.sizes[d];
    } else {
      copy.sizes[copy.rank] = given.sizes[d];
      copy.source[copy.rank] = given.source[d];
      copy.target[copy.rank++] = given.target[d];
    }
  }
  return copy;
}

}  // namespace

BlockCopy::BlockCopy(const StridedCopy& copy, size_t width, int inner, int outer)
    : copy_(copy), width_(width), inner_(inner), outer_(outer) {
  if (copy.target[outer] == 1) std::swap(inner_, outer_);  // rows of the target are written whole
  int64_t planes = 1;
  for (int d = 0; d < copy.rank; ++d) planes *= d == inner_ || d == outer_ ? 1 : copy.sizes[d];
  const int64_t m = copy.sizes[inner_], n = copy.sizes[outer_];
  if (m == 0) return;
  strip_ = has_short_rows(copy, width, inner_, outer_) ? short_rows : block_rows(width);
  strips_of_plane_ = (n + strip_ - 1) / strip_;
  strips_ = planes * strips_of_plane_;
  chunk_strips_ = std::max<int64_t>(1, chunk_elements / (m * std::min(n, strip_) + 1));
  chunks_ = (strips_ + chunk_strips_ - 1) / chunk_strips_;
}

template <class Word> void BlockCopy::run_words(int64_t chunk, void* target, const void* source) const {
  const int64_t first = chunk * chunk_strips_, last = std::min(strips_, first + chunk_strips_);
  const int64_t m = copy_.sizes[inner_], n = copy_.sizes[outer_];
  const int64_t row = has_whole_rows(copy_, inner_) ? m : block_row(sizeof(Word));
  Place place(copy_, inner_, outer_, first / strips_of_plane_);
  int64_t j = first % strips_of_plane_ * strip_;
  for (int64_t strip = first; strip < last; ++strip) {
    Word* const to = static_cast<Word*>(target) + place.target + j * copy_.target[outer_];
    const Word* const from = static_cast<const Word*>(source) + place.source + j * copy_.source[outer_];
    for (int64_t i = 0; i < m; i += row) {
      copy_block(to + i * copy_.target[inner_], from + i * copy_.source[inner_], copy_, inner_, outer_,
                 std::min(row, m - i), std::min(strip_, n - j));
    }
    j += strip_;
    if (j < n) continue;
    j = 0;
    place.next(copy_, inner_, outer_);
  }
}

void BlockCopy::run(int64_t chunk, void* target, const void* source) const {
  switch (width_) {
    case 1: return run_words<uint8_t>(chunk, target, source);
    case 2: return run_words<uint16_t>(chunk, target, source);
    case 4: return run_words<uint32_t>(chunk, target, source);
    case 8: return run_words<uint64_t>(chunk, target, source);
    default: return run_words<Wide>(chunk, target, source);
  }
}

void BlockCopy::run(void* target, const void* source) const {
  if (chunks_ == 1) run(0, target, source);
  else if (chunks_ > 1) parallel_for(chunks_, [&](int64_t chunk) { run(chunk, target, source); });
}

void BlockCopy::run_here(void* target, const void* source) const {
  for (int64_t chunk = 0; chunk < chunks_; ++chunk) run(chunk, target, source);
}

std::optional<BlockCopy> turned_copy(const StridedCopy& given, size_t width) {
  constexpr int64_t worth_a_block = 8, short_row = 32;
  const StridedCopy copy = merged(given);
  int outer = 0;  // the dim that the source has closest together
  for (int d = 1; d < copy.rank; ++d) {
    if (copy.source[d] != 0 && std::abs(copy.source[d]) < std::abs(copy.source[outer])) outer = d;
  }
  if (outer == 0 || (copy.sizes[outer] < worth_a_block && copy.sizes[0] >= short_row)) return std::nullopt;
  return BlockCopy(copy, width, 0, outer);
}

std::optional<BlockCopy> view_copy(int rank, const int64_t* sizes, const int64_t* strides, size_t width) {
  StridedCopy copy;
  copy.rank = rank;
  int64_t count = 1;
  for (int d = 0; d < rank; ++d) {
    copy.sizes[d] = sizes[d];
    copy.source[d] = strides[d];
    copy.target[d] = count;
    count *= sizes[d];
  }
  if (auto turned = turned_copy(copy, width)) return turned;
  const StridedCopy rows = merged(copy);
  if (rows.rank < 2 || std::abs(rows.source[0]) > 1) return std::nullopt;
  return BlockCopy(rows, width, 0, 1);
}

}  // namespace rosin
