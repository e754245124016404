// See strided_copy.hpp.
#include "base/strided_copy.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/workers.hpp"

namespace rosin {
namespace {

/// Elements of a block along the row of the target, long enough that pages and rows of memory are worth opening, and of
/// its other side.
constexpr int64_t block_row(size_t width) { return width <= 4 ? 256 : static_cast<int64_t>(1024 / width); }
constexpr int64_t block_rows(size_t width) { return width <= 2 ? 128 : 64; }
/// From one row of a buffered block to the next: rows a power of two apart would share a few places of the cache.
template <class Word> constexpr int64_t row_of = block_row(sizeof(Word)) + static_cast<int64_t>(64 / sizeof(Word));

/// As many words as the processor moves at once, and a square of them. Loops are written out, so that it stays in
/// registers.
template <class Word> struct Lanes {
  static constexpr size_t count = 16 / sizeof(Word);
  typedef Word Vector __attribute__((vector_size(16)));
  Vector rows[count];

  /// to[j * to_stride + i] = from[i * from_stride + j]. At each doubling up to the side, the words of an upper row and
  /// of a lower one come in turn.
  static void turn(Word* to, int64_t to_stride, const Word* from, int64_t from_stride) {
    Lanes square;
    each<count>([&](auto i) { std::memcpy(&square.rows[i], from + static_cast<int64_t>(i) * from_stride, 16); });
    each<std::countr_zero(count)>([&](auto) {
      const Lanes before = square;
      each<count / 2>([&](auto i) {
        const Vector &a = before.rows[i], &b = before.rows[i + count / 2];
        square.rows[2 * i] = in_turn<0>(a, b, std::make_index_sequence<count>());
        square.rows[2 * i + 1] = in_turn<count / 2>(a, b, std::make_index_sequence<count>());
      });
    });
    each<count>([&](auto i) { std::memcpy(to + static_cast<int64_t>(i) * to_stride, &square.rows[i], 16); });
  }

 private:
  template <size_t times, class F> static void each(F f) {
    [&]<size_t... i>(std::index_sequence<i...>) {
      (f(std::integral_constant<size_t, i>()), ...);
    }(std::make_index_sequence<times>());
  }
  /// Words of both in turn, from word `first` on.
  template <size_t first, size_t... i>
  static Vector in_turn(const Vector& a, const Vector& b, std::index_sequence<i...>) {
    return __builtin_shufflevector(a, b, static_cast<int>(first + i / 2 + i % 2 * count)...);
  }
};

/// Asks for the lines of a row that is read soon: rows lie in pages of their own, so that no processor guesses the
/// next.
template <class Word> void prefetch_row(const Word* from, int64_t n) {
  for (int64_t j = 0; j < n; j += static_cast<int64_t>(64 / sizeof(Word))) __builtin_prefetch(from + j);
}

/// to[j * row + i] = from[i * stride + j] for i < m, j < n, which are multiples of the lanes.
template <class Word> void turn_squares(Word* to, const Word* from, int64_t stride, int64_t m, int64_t n) {
  constexpr auto count = static_cast<int64_t>(Lanes<Word>::count);
  constexpr int64_t row = row_of<Word>, ahead = 16;
  for (int64_t i = 0; i < m; i += count) {
    for (int64_t k = i + ahead; k < std::min(i + ahead + count, m); ++k) prefetch_row(from + k * stride, n);
    for (int64_t j = 0; j < n; j += count) Lanes<Word>::turn(to + j * row + i, row, from + i * stride + j, stride);
  }
}

/// Through a buffer that the cache holds, so that each line of both sides is touched once: lines that lie a power of
/// two apart fall into the same few places of a cache.
template <class Word>
void copy_block(Word* target, const Word* source, const StridedCopy& copy, int inner, int outer, int64_t m, int64_t n) {
  constexpr int64_t row_words = row_of<Word>;
  alignas(64) Word buffer[block_rows(sizeof(Word)) * row_words];  // of each n, all m
  const int64_t target_i = copy.target[inner], target_j = copy.target[outer];
  const int64_t source_i = copy.source[inner], source_j = copy.source[outer];
  int64_t even_m = 0, even_n = 0;  // of the rest of the loops, what is done
  if constexpr (std::is_integral_v<Word>) {
    constexpr auto count = static_cast<int64_t>(Lanes<Word>::count);
    if (source_j == 1) {
      even_m = m / count * count;
      even_n = n / count * count;
      turn_squares(buffer, source, source_i, even_m, even_n);
    }
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = i < even_m ? even_n : 0; j < n; ++j) {
      buffer[j * row_words + i] = source[i * source_i + j * source_j];
    }
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

constexpr int64_t chunk_elements = 1 << 16;  // worth a thread

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

/// A contiguous copy, without dims of one element, and neighbours joined where the source has them one after another.
StridedCopy merged_copy(int rank, const int64_t* sizes, const int64_t* strides) {
  StridedCopy copy;
  int64_t count = 1;
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] == 1) continue;
    const int last = copy.rank - 1;
    if (last >= 0 && strides[d] == copy.source[last] * copy.sizes[last]) {
      copy.sizes[last] *= sizes[d];
    } else {
      copy.sizes[copy.rank] = sizes[d];
      copy.source[copy.rank] = strides[d];
      copy.target[copy.rank++] = count;
    }
    count *= sizes[d];
  }
  return copy;
}

}  // namespace

BlockCopy::BlockCopy(const StridedCopy& copy, size_t width, int inner, int outer)
    : copy_(copy), width_(width), inner_(inner), outer_(outer) {
  if (copy.target[outer] == 1) std::swap(inner_, outer_);  // rows of the target are written whole
  int64_t planes = 1;
  for (int d = 0; d < copy.rank; ++d) planes *= d == inner_ || d == outer_ ? 1 : copy.sizes[d];
  const int64_t m = copy.sizes[inner_], n = copy.sizes[outer_], rows = block_rows(width);
  if (m == 0) return;
  strips_of_plane_ = (n + rows - 1) / rows;
  strips_ = planes * strips_of_plane_;
  chunk_strips_ = std::max<int64_t>(1, chunk_elements / (m * std::min(n, rows) + 1));
  chunks_ = (strips_ + chunk_strips_ - 1) / chunk_strips_;
}

template <class Word> void BlockCopy::run_words(int64_t chunk, void* target, const void* source) const {
  constexpr int64_t row = block_row(sizeof(Word)), rows = block_rows(sizeof(Word));
  const int64_t first = chunk * chunk_strips_, last = std::min(strips_, first + chunk_strips_);
  const int64_t m = copy_.sizes[inner_], n = copy_.sizes[outer_];
  Place place(copy_, inner_, outer_, first / strips_of_plane_);
  int64_t j = first % strips_of_plane_ * rows;
  for (int64_t strip = first; strip < last; ++strip) {
    Word* const to = static_cast<Word*>(target) + place.target + j * copy_.target[outer_];
    const Word* const from = static_cast<const Word*>(source) + place.source + j * copy_.source[outer_];
    for (int64_t i = 0; i < m; i += row) {
      copy_block(to + i * copy_.target[inner_], from + i * copy_.source[inner_], copy_, inner_, outer_,
                 std::min(row, m - i), std::min(rows, n - j));
    }
    j += rows;
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

std::optional<BlockCopy> turned_copy(int rank, const int64_t* sizes, const int64_t* strides, size_t width) {
  constexpr int64_t worth_a_block = 8, short_row = 32;
  const StridedCopy copy = merged_copy(rank, sizes, strides);
  int outer = 0;  // the dim that the source has closest together
  for (int d = 1; d < copy.rank; ++d) {
    if (copy.source[d] != 0 && std::abs(copy.source[d]) < std::abs(copy.source[outer])) outer = d;
  }
  if (outer == 0 || (copy.sizes[outer] < worth_a_block && copy.sizes[0] >= short_row)) return std::nullopt;
  return BlockCopy(copy, width, 0, outer);
}

}  // namespace rosin
