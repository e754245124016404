// One strided copy serves both directions: the dim that is contiguous in the source and the one that is contiguous in
// the target are walked in square blocks.
#include "io/row_major.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/workers.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"

namespace rosin {
namespace {

struct StridedCopy {
  int rank = 0;
  int64_t sizes[Shape::max_rank] = {};
  int64_t target[Shape::max_rank] = {};  // strides in elements
  int64_t source[Shape::max_rank] = {};
};

/// Elements of a block's side: its rows are long enough that pages and rows of memory are worth opening.
template <class Word> constexpr int64_t block_of = sizeof(Word) <= 4 ? 128 : 64;

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

/// to[j * side + i] = from[i * stride + j] for i < m, j < n, which are multiples of the lanes.
template <class Word> void turn_squares(Word* to, const Word* from, int64_t stride, int64_t m, int64_t n) {
  constexpr auto count = static_cast<int64_t>(Lanes<Word>::count);
  constexpr int64_t side = block_of<Word>;
  for (int64_t i = 0; i < m; i += count) {
    for (int64_t j = 0; j < n; j += count) Lanes<Word>::turn(to + j * side + i, side, from + i * stride + j, stride);
  }
}

/// Through a buffer that the cache holds, so that each line of both sides is touched once: lines that lie a power of
/// two apart fall into the same few places of a cache.
template <class Word>
void copy_block(Word* target, const Word* source, const StridedCopy& copy, int inner, int outer, int64_t m, int64_t n) {
  constexpr int64_t block = block_of<Word>;
  alignas(64) Word buffer[block * block];  // of each n, all m
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
      buffer[j * block + i] = source[i * source_i + j * source_j];
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    Word* const row = target + j * target_j;
    if (target_i == 1) std::memcpy(row, buffer + j * block, static_cast<size_t>(m) * sizeof(Word));
    for (int64_t i = 0; i < m && target_i != 1; ++i) row[i * target_i] = buffer[j * block + i];
  }
}

/// The two dims of the blocks. Threads take strips of the outer one where there is enough to copy.
template <class Word> void copy_plane(Word* target, const Word* source, const StridedCopy& copy, int inner, int outer) {
  constexpr int64_t block = block_of<Word>, worth_a_thread = 1 << 16;
  const int64_t m = copy.sizes[inner], n = copy.sizes[outer], strips = (n + block - 1) / block;
  const auto copy_strip = [&](int64_t strip) {
    const int64_t j = strip * block;
    for (int64_t i = 0; i < m; i += block) {
      copy_block(target + i * copy.target[inner] + j * copy.target[outer],
                 source + i * copy.source[inner] + j * copy.source[outer], copy, inner, outer, std::min(block, m - i),
                 std::min(block, n - j));
    }
  };
  if (m * n >= worth_a_thread) parallel_for(strips, [&](int64_t strip) { copy_strip(strip); });
  else
    for (int64_t strip = 0; strip < strips; ++strip) copy_strip(strip);
}

/// Rank at least 2. `inner` and `outer` are the two dims of the blocks; the others are counted like an odometer.
template <class Word>
void copy_strided(Word* target, const Word* source, const StridedCopy& copy, int inner, int outer) {
  int64_t at[Shape::max_rank] = {};
  for (;;) {
    copy_plane(target, source, copy, inner, outer);
    int d = 0;
    for (; d < copy.rank; ++d) {
      if (d == inner || d == outer) continue;
      target += copy.target[d];
      source += copy.source[d];
      if (++at[d] < copy.sizes[d]) break;
      target -= copy.target[d] * copy.sizes[d];
      source -= copy.source[d] * copy.sizes[d];
      at[d] = 0;
    }
    if (d == copy.rank) return;
  }
}

struct Wide {
  uint64_t words[2];
};

void copy_strided(void* target, const void* source, const StridedCopy& copy, size_t width, int inner, int outer) {
  if (copy.target[outer] == 1) std::swap(inner, outer);  // rows of the target are written whole
  const auto run = [&]<class Word>(Word* to) {
    copy_strided(to, static_cast<const Word*>(source), copy, inner, outer);
  };
  if (width == 1) run(static_cast<uint8_t*>(target));
  if (width == 2) run(static_cast<uint16_t*>(target));
  if (width == 4) run(static_cast<uint32_t*>(target));
  if (width == 8) run(static_cast<uint64_t*>(target));
  if (width == 16) run(static_cast<Wide*>(target));
}

void column_strides(int64_t* strides, std::span<const int64_t> sizes) {
  int64_t stride = 1;
  for (int64_t size : sizes) {
    *strides++ = stride;
    stride *= size;
  }
}

void row_strides(int64_t* strides, std::span<const int64_t> sizes) {
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= sizes[d];
  }
}

/// A copy of these sizes, with missing dims of size 1 up to rank 2.
StridedCopy copy_of(std::span<const int64_t> sizes) {
  StridedCopy copy;
  copy.rank = std::max(2, static_cast<int>(sizes.size()));
  std::fill(copy.sizes, copy.sizes + 2, 1);
  std::copy(sizes.begin(), sizes.end(), copy.sizes);
  return copy;
}
StridedCopy copy_of_shape(const Shape& shape) { return copy_of({shape.begin(), static_cast<size_t>(shape.rank())}); }

std::span<const int64_t> sizes_of(const StridedCopy& copy) { return {copy.sizes, static_cast<size_t>(copy.rank)}; }

}  // namespace

void to_row_major(void* target, const void* source, const Shape& shape, size_t width) {
  if (shape.count() == 0) return;
  StridedCopy copy = copy_of_shape(shape);
  row_strides(copy.target, sizes_of(copy));
  column_strides(copy.source, sizes_of(copy));
  copy_strided(target, source, copy, width, 0, copy.rank - 1);
}

void from_row_major(void* target, const void* source, const Shape& shape, size_t width) {
  int64_t strides[Shape::max_rank] = {};
  row_strides(strides, {shape.begin(), shape.end()});
  from_strides(target, source, shape, {strides, static_cast<size_t>(shape.rank())}, width);
}

void from_strides(void* target, const void* source, const Shape& shape, std::span<const int64_t> strides,
                  size_t width) {
  if (shape.count() == 0) return;
  StridedCopy copy = copy_of_shape(shape);
  column_strides(copy.target, sizes_of(copy));
  std::copy(strides.begin(), strides.end(), copy.source);
  copy_strided(target, source, copy, width, 0, copy.rank - 1);
}

void swap_bytes(void* numbers, uint64_t count, size_t width) {
  auto* next = static_cast<unsigned char*>(numbers);
  for (uint64_t i = 0; i < count; ++i, next += width) std::reverse(next, next + width);
}

void place_row_major(void* target, std::span<const int64_t> strides, const void* source, std::span<const int64_t> sizes,
                     size_t width) {
  StridedCopy copy = copy_of(sizes);
  std::copy(strides.begin(), strides.end(), copy.target);
  row_strides(copy.source, sizes_of(copy));
  copy_strided(target, source, copy, width, 0, copy.rank - 1);
}

Array rearranged(const Array& x, std::span<const int> order, std::span<const bool> flipped) {
  const Array values = with_values(x);
  const Shape from = x.shape();
  int64_t sizes[Shape::max_rank] = {}, strides[Shape::max_rank] = {};
  column_strides(strides, {from.begin(), order.size()});
  for (size_t d = 0; d < order.size(); ++d) sizes[d] = from[order[d]];
  const Shape to(std::span<const int64_t>(sizes, order.size()));
  Array made = fresh_leaf(x.dtype(), to);
  if (to.count() == 0) return made;
  StridedCopy copy = copy_of_shape(to);
  column_strides(copy.target, sizes_of(copy));
  const size_t width = size_of(x.dtype());
  const auto* source = static_cast<const unsigned char*>(values.node()->data());
  for (size_t d = 0; d < order.size(); ++d) {
    copy.source[d] = strides[order[d]];
    if (!flipped[d]) continue;
    source += static_cast<size_t>((sizes[d] - 1) * copy.source[d]) * width;
    copy.source[d] = -copy.source[d];
  }
  copy_strided(made.node()->data(), source, copy, width, 0, copy.rank - 1);
  return made;
}

Array with_values(const Array& x) {
  if (!is_scalar(*x.node())) return on_cpu(x);
  Array made = fresh_leaf(x.dtype(), Shape());
  write_number(*x.node(), made.node()->data(), x.dtype());
  return made;
}

}  // namespace rosin
