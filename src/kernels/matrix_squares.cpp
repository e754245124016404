// Matmul by matrix units that multiply square matrices, in whichever way the items of a warp have these. Read first:
// matrix_layout.hpp, matrix_lines.hpp, include/rosin/backend.h (MULTIPLY_MATRICES). The same for units of 8 columns:
// matrix_units.cpp.
//
// A vector in shared memory is four words of one line. The units take what is said of k in any order that both operands
// have, and rows of c in any order: rows of a stand there so that the sums which an item gets are neighbours in a
// column of c.
#include <algorithm>
#include <bit>

#include "kernels/bit_terms.hpp"
#include "kernels/matrix_lines.hpp"

namespace rosin::kernels {
namespace {

constexpr int side = SquareLayout::side, warps_by_columns = 2;

/// x / y and x % y of numbers that are not below 0; y is a power of two.
Term quotient_of(Term x, int y) { return shifted_right(x, std::countr_zero(static_cast<unsigned>(y))); }
Term rest_of(Term x, int y) { return bits_and(x, y - 1); }

/// The word of a shared array where vector `number`, of 4, of what stands at this place begins. Eight places that
/// follow each other have the same vector in different banks.
Term vector_at(Term place, Term number) {
  return place * words_of_line + bits_xor(number, bits_and(shifted_right(place, 1), 3)) * words_of_share;
}

/// Squares along either side of a warp's part of c.
struct Tiling {
  int by_rows, by_columns;
  const SquareLayout& layout;

  int warps_by_rows() const { return items_of_group / layout.warp / warps_by_columns; }
  int rows_of_warp() const { return side * by_rows; }
  int columns_of_warp() const { return side * by_columns; }
  /// Of a group's part.
  int rows() const { return warps_by_rows() * rows_of_warp(); }
  int columns() const { return warps_by_columns * columns_of_warp(); }
  int64_t shared_bytes() const { return int64_t{2} * (rows() + columns()) * words_of_line * 4; }
  /// An item has so many neighbours of each of its columns.
  int rows_of_item() const { return layout.sums * by_rows; }
};

/// The part of c that one group computes.
class Part {
 public:
  Part(KernelWriter& writer, const Product& product, Tiling tiling)
      : w_(writer), product_(product), tiling_(tiling), layout_(tiling.layout),
        a_(writer, product, true, tiling.rows(), Stand::line,
           [this](Term line, Term number) { return vector_at(place_of_row(line), number); }),
        b_(writer, product, false, tiling.columns(), Stand::line, vector_at),
        c_(writer, product, tiling.rows_of_item()) {}

  void write() {
    const std::vector<Term> part = part_of_group(w_, product_, tiling_.rows(), tiling_.columns());
    const std::span<const Term> batch = std::span(part).subspan(2);
    const Term row = part[0] * tiling_.rows(), column = part[1] * tiling_.columns();
    place(w_.convert(w_.item(), ScalarType::int32));
    a_.begin(row, batch);
    b_.begin(column, batch);
    for (int i = 0; i < tiling_.by_rows * tiling_.by_columns * layout_.sums; ++i) {
      sums_.push_back(w_.variable(w_.literal(ScalarType::float32, 0)));
    }
    multiply_lines(w_, product_.k(), a_, b_, [&](int which) { multiply(which); });
    store(row, column, batch);
  }

 private:
  /// Where a row of the group's part stands: where the units' row is that has it.
  Term place_of_row(Term row) const {
    const Term in_warp = rest_of(row, tiling_.rows_of_warp());
    const Term part = quotient_of(in_warp, tiling_.rows_of_item()), of_item = rest_of(in_warp, tiling_.rows_of_item());
    const Term square = quotient_of(of_item, layout_.sums), number = rest_of(of_item, layout_.sums);
    return row - in_warp + square * side + number * layout_.next_sum + part * layout_.next_part;
  }

  /// A line is multiplied in rounds, in each of which an item takes whole vectors of it.
  int words_of_round() const { return std::max(layout_.words, words_of_share); }
  int vectors_of_round() const { return words_of_round() / words_of_share; }
  int rounds() const { return words_of_line / (words_of_round() * layout_.parts()); }

  /// Where this item reads, and what it computes.
  void place(Term item) {
    const Term lane = rest_of(item, layout_.warp), warp = quotient_of(item, layout_.warp);
    const Term of_row = rest_of(lane, side), part = quotient_of(lane, side);
    const Term first_row = rest_of(warp, tiling_.warps_by_rows()) * tiling_.rows_of_warp();
    const Term first_column = quotient_of(warp, tiling_.warps_by_rows()) * tiling_.columns_of_warp();
    for (int round = 0; round < rounds(); ++round) {
      for (int i = 0; i < vectors_of_round(); ++i) {
        const int first = round * layout_.parts() * vectors_of_round() + i;
        const Term number = layout_.parts() > 1 ? part * vectors_of_round() + first : like(part, first);
        from_a_.push_back(vector_at(first_row + of_row, number));
        from_b_.push_back(vector_at(first_column + of_row, number));
      }
    }
    row_ = first_row + part * tiling_.rows_of_item();
    column_ = first_column + of_row;
  }

  /// The item's words of a round, of square number `square`: what is 16 places further on stands as it does here.
  std::vector<Term> words(const Lines& lines, const std::vector<Term>& from, int which, int round, int square) {
    std::vector<Term> all;
    for (int i = 0; i < vectors_of_round(); ++i) {
      const Term at = from[static_cast<size_t>(round * vectors_of_round() + i)];
      const std::vector<Term> vector = lines.load(which, at + static_cast<int64_t>(square * side * words_of_line));
      all.insert(all.end(), vector.begin(), vector.end());
    }
    return all;
  }

  void multiply(int which) {
    const auto count = static_cast<size_t>(layout_.words);
    for (int round = 0; round < rounds(); ++round) {
      std::vector<std::vector<Term>> of_a;
      for (int i = 0; i < tiling_.by_rows; ++i) of_a.push_back(words(a_, from_a_, which, round, i));
      for (int j = 0; j < tiling_.by_columns; ++j) {
        const std::vector<Term> of_b = words(b_, from_b_, which, round, j);
        for (size_t at = 0; at < of_b.size(); at += count) {
          for (int i = 0; i < tiling_.by_rows; ++i) {
            const std::span<const Term> row = std::span(of_a[static_cast<size_t>(i)]).subspan(at, count);
            const std::span<Term> sums = sums_of(i, j);
            const std::vector<Term> got =
                w_.multiply_matrices(product_.dtype(), row, std::span(of_b).subspan(at, count), sums);
            for (size_t n = 0; n < got.size(); ++n) w_.assign(sums[n], got[n]);
          }
        }
      }
    }
  }

  std::span<Term> sums_of(int i, int j) {
    const auto count = static_cast<size_t>(layout_.sums);
    return std::span(sums_).subspan(static_cast<size_t>(j * tiling_.by_rows + i) * count, count);
  }

  void store(Term first_row, Term first_column, std::span<const Term> batch) {
    const Term m = w_.number(product_.m()), n = w_.number(product_.n());
    const Term row = first_row + w_.convert(row_, first_row.type);
    const auto count = static_cast<size_t>(tiling_.rows_of_item());
    for (int j = 0; j < tiling_.by_columns; ++j) {
      const Term column = first_column + w_.convert(column_ + side * j, first_row.type);
      const std::span<const Term> values = std::span(sums_).subspan(static_cast<size_t>(j) * count, count);
      w_.when(column < n, [&] { c_.store(row, m, column, batch, values); });
    }
  }

  KernelWriter& w_;
  const Product& product_;
  const Tiling tiling_;
  const SquareLayout& layout_;
  Lines a_, b_;
  const Columns c_;
  Term row_, column_;                  // of c, the first ones of this item in the group's part
  std::vector<Term> from_a_, from_b_;  // in shared memory, of the vectors of all rounds
  std::vector<Term> sums_;             // of the squares, by columns of c
};

/// The largest parts of which there are enough.
std::optional<Tiling> tiling_of(const Product& product, const Abilities& device) {
  const SquareLayout& layout = square_layout(device.matrix_layout);
  const int more_columns = layout.warp < 64 ? 2 : 1;  // as there are more warps by rows then
  const TilingChoice<Tiling> all[] = {{{4 / more_columns, 4, layout}, 2 * groups_of_device},
                                      {{2 / more_columns, 2, layout}, groups_of_device},
                                      {{1, 1, layout}, 0}};
  return first_that_fits<Tiling>(all, product, device);
}

}  // namespace

std::optional<Launch> by_square_units(const Product& product, const Abilities& device) {
  const std::optional<Tiling> tiling = tiling_of(product, device);
  if (!tiling) return std::nullopt;
  return written_in_parts<Part>(product, *tiling);
}

}  // namespace rosin::kernels
