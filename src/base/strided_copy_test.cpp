// Copies between orders of dims, against the place that the strides give each element.
#include "base/strided_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <optional>
#include <vector>

#include "base/instruction_set.hpp"
#include "base/turn.hpp"
#include "base/workers.hpp"

namespace rosin {
namespace {

/// Calls f(target place, source place) for each element.
template <class F> void each_element(const StridedCopy& copy, F&& f) {
  int64_t count = 1;
  for (int d = 0; d < copy.rank; ++d) count *= copy.sizes[d];
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, target = 0, source = 0;
    for (int d = 0; d < copy.rank; ++d) {
      target += rest % copy.sizes[d] * copy.target[d];
      source += rest % copy.sizes[d] * copy.source[d];
      rest /= copy.sizes[d];
    }
    f(static_cast<size_t>(target), source);
  }
}

template <size_t width> void expect_copied(const StridedCopy& copy, int inner, int outer, size_t span, size_t start) {
  using Element = std::array<unsigned char, width>;
  std::vector<Element> source(span), wanted(span), got(span);
  for (size_t i = 0; i < span; ++i) {
    for (size_t b = 0; b < width; ++b) source[i][b] = static_cast<unsigned char>(i * 131 + i / 251 + b);
  }
  each_element(copy, [&](size_t to, int64_t from) {
    wanted[to] = source[static_cast<size_t>(static_cast<int64_t>(start) + from)];
  });
  BlockCopy(copy, width, inner, outer).run(got.data(), source.data() + start);
  EXPECT_EQ(got, wanted) << "width " << width;
}

void expect_all_widths(const StridedCopy& copy, int inner, int outer, size_t span, size_t start = 0) {
  for (const int threads : {1, 2, 3, 7}) {
    set_worker_threads(threads);
    expect_copied<1>(copy, inner, outer, span, start);
    expect_copied<2>(copy, inner, outer, span, start);
    expect_copied<4>(copy, inner, outer, span, start);
    expect_copied<8>(copy, inner, outer, span, start);
    expect_copied<16>(copy, inner, outer, span, start);
  }
  set_worker_threads(0);
}

TEST(BlockCopy, MatricesAreTurned) {
  for (const int64_t m : {1, 2, 3, 16, 127, 131, 521}) {
    for (const int64_t n : {1, 5, 64, 257}) {
      const StridedCopy copy{2, {m, n}, {1, m}, {n, 1}};
      expect_all_widths(copy, 0, 1, static_cast<size_t>(m * n));
    }
  }
}

/// Short rows and long ones of each remainder by the squares of all vectors; pairs of planes and planes of colours to
/// pixels and back.
TEST(BlockCopy, ShortRowsAreTurned) {
  for (const int64_t m : {2, 3, 4, 7, 19, 32, 65}) {
    for (const int64_t n : {1, 3, 30, 1029}) {
      const auto both_ways = [&](int64_t rows, int64_t columns) {
        const StridedCopy matrices{3, {rows, columns, 2}, {1, rows, rows * columns}, {columns, 1, rows * columns}};
        expect_all_widths(matrices, 0, 1, static_cast<size_t>(2 * rows * columns));
        const StridedCopy apart{2, {rows, columns}, {1, rows}, {columns + 5, 1}};
        expect_all_widths(apart, 0, 1, static_cast<size_t>(rows * (columns + 5)));
      };
      both_ways(m, n);
      both_ways(n, m);
    }
  }
}

template <class Word> void expect_turned(const Turner<Word>& turner) {
  const int64_t m = 3 * turner.side, n = 2 * turner.side, row = m + 5, stride = n + 3;
  std::vector<Word> from(static_cast<size_t>(m * stride)), to(static_cast<size_t>(n * row), 0), wanted = to;
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<Word>(i * 2654435761u + 1);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      wanted[static_cast<size_t>(j * row + i)] = from[static_cast<size_t>(i * stride + j)];
    }
  }
  turner.turn({to.data(), row, from.data(), stride, m, n});
  EXPECT_EQ(to, wanted) << sizeof(Word) << " bytes, squares of " << turner.side;
}

TEST(Turner, EverySetOfInstructionsTurnsSquares) {
  expect_turned(narrow_turner<uint8_t>());
  expect_turned(narrow_turner<uint16_t>());
  expect_turned(narrow_turner<uint32_t>());
  expect_turned(narrow_turner<uint64_t>());
#if defined(__x86_64__)
  if (best_instruction_set() == InstructionSet::baseline) return;
  expect_turned(wide_turner_of_4());
  expect_turned(wide_turner_of_8());
  if (best_instruction_set() == InstructionSet::wide) return;
  expect_turned(widest_turner_of_4());
  expect_turned(widest_turner_of_8());
#endif
}

/// What rows of each length become, two of them with gaps between.
template <class Word, class Wanted>
void expect_rows(void (*make)(const Rows<Word>&), int64_t from_first, const Wanted& wanted_of) {
  constexpr int64_t gap = 3;
  for (int64_t count = 1; count < 200; ++count) {
    const int64_t step = count + gap;
    std::vector<Word> from(static_cast<size_t>(2 * step)), to(from.size(), 7), wanted = to;
    for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<Word>(i * 2654435761u + 1);
    for (int64_t j = 0; j < 2; ++j) {
      for (int64_t i = 0; i < count; ++i) {
        wanted[static_cast<size_t>(j * step + i)] = from[static_cast<size_t>(j * step + wanted_of(i, count))];
      }
    }
    make({count, 2, to.data(), from.data() + from_first * (count - 1), step, step});
    EXPECT_EQ(to, wanted) << sizeof(Word) << " bytes, " << count << " of them";
  }
}

template <class Word> void expect_flipped_and_filled(const RowWriter<Word>& writer) {
  expect_rows(writer.flip, 1, [](int64_t i, int64_t count) { return count - 1 - i; });
  expect_rows(writer.fill, 0, [](int64_t, int64_t) { return 0; });
}

template <class Word> void expect_rows_of_all() {
  expect_flipped_and_filled(row_writer<Word>());
#if defined(__x86_64__)
  if (best_instruction_set() == InstructionSet::baseline) return;
  expect_flipped_and_filled(wide_row_writer<Word>());
#endif
}

TEST(Turner, EverySetOfInstructionsFlipsAndFillsRows) {
  expect_rows_of_all<uint8_t>();
  expect_rows_of_all<uint16_t>();
  expect_rows_of_all<uint32_t>();
  expect_rows_of_all<uint64_t>();
}

TEST(ViewCopy, RowsThatStandAsTheyAreWantedAreCopiedWhole) {
  const auto copied = [](std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset) {
    std::vector<uint32_t> from(30000), to(static_cast<size_t>(sizes[0] * sizes[1] * sizes[2]));
    std::iota(from.begin(), from.end(), 0u);
    const std::optional<BlockCopy> copy = view_copy(3, sizes.data(), strides.data(), 4);
    if (!copy) return false;
    copy->run(to.data(), from.data() + offset);
    size_t at = 0;
    for (int64_t k = 0; k < sizes[2]; ++k) {
      for (int64_t j = 0; j < sizes[1]; ++j) {
        for (int64_t i = 0; i < sizes[0]; ++i, ++at) {
          const int64_t place = offset + i * strides[0] + j * strides[1] + k * strides[2];
          EXPECT_EQ(to[at], static_cast<uint32_t>(place)) << i << ", " << j << ", " << k;
        }
      }
    }
    return true;
  };
  for (const int64_t row : {2, 3, 5, 16, 33, 64, 100, 700}) {
    EXPECT_TRUE(copied({row, 4, 6}, {1, 6 * row, row}, 0)) << "dims change places";
    EXPECT_TRUE(copied({row, 4, 6}, {1, row + 1, 4 * (row + 1)}, 3)) << "rows apart";
    EXPECT_TRUE(copied({row, 4, 6}, {1, -row, 4 * row}, 3 * row)) << "rows backwards";
    EXPECT_TRUE(copied({row, 4, 6}, {1, 0, row}, 0)) << "rows again and again";
    EXPECT_TRUE(copied({row, 4, 6}, {-1, row, 4 * row}, row - 1)) << "each row backwards";
    EXPECT_TRUE(copied({row, 4, 6}, {0, 1, 4}, 5)) << "each row of one element";
  }
  EXPECT_FALSE(copied({700, 4, 6}, {2, 1400, 5600}, 0)) << "gaps";
  EXPECT_FALSE(copied({20, 4, 6}, {1, 20, 80}, 0)) << "one row";
}

TEST(BlockCopy, PlanesOfManyDimsAreTurned) {
  const StridedCopy copy{4, {13, 5, 17, 3}, {1, 13, 65, 1105}, {17 * 5, 17, 1, 1105}};
  expect_all_widths(copy, 0, 2, 3315);
  const StridedCopy many{3, {2, 211, 401}, {1, 2, 422}, {401, 802, 1}};
  expect_all_widths(many, 0, 2, size_t{2} * 211 * 401);
}

TEST(BlockCopy, StepsBackwardAndRepeatedElementsAreRead) {
  const StridedCopy backward{2, {37, 41}, {1, 37}, {41, -1}};
  expect_all_widths(backward, 0, 1, size_t{37} * 41, 40);
  const StridedCopy repeated{3, {7, 11, 3}, {1, 7, 77}, {11, 1, 0}};
  expect_all_widths(repeated, 0, 1, 7 * 11 * 3);
  const StridedCopy apart{2, {29, 31}, {1, 29}, {93, 3}};
  expect_all_widths(apart, 0, 1, size_t{29} * 93);
}

TEST(BlockCopy, NothingIsCopiedOfNothing) {
  for (const auto& [m, n, planes] : {std::array<int64_t, 3>{0, 5, 2}, {5, 0, 2}, {5, 3, 0}}) {
    const StridedCopy copy{3, {m, n, planes}, {1, m, m * n}, {n, 1, m * n}};
    BlockCopy(copy, 4, 0, 1).run(nullptr, nullptr);
    EXPECT_EQ(BlockCopy(copy, 4, 0, 1).chunks(), 0);
  }
}

}  // namespace
}  // namespace rosin
