// Matmul by the matrix units of a device: each warp of a group computes its share of a part of the result, from lines
// of both operands in shared memory, while the next ones are on their way. These are units of 8 columns. Read first:
// matrix_lines.hpp, include/rosin/backend.h (MULTIPLY_MATRICES). Read next: matrix_squares.cpp.
//
// Two neighbouring lines stand together, and a vector in shared memory is two words of both: the units take what is
// said of k, rows and columns in any order as long as all agree, so what an item gives them are whole vectors or halves
// of such, as they were loaded.
#include <algorithm>

#include "kernels/bit_terms.hpp"
#include "kernels/matrix_lines.hpp"

namespace rosin::kernels {
namespace {

constexpr int warps_by_rows = 4, warps_by_columns = 2;  // of a group, over its part of the result
static_assert(warps_by_rows * warps_by_columns * 32 == items_of_group);

/// The word of a shared array where vector `number`, of 8, of a pair of lines begins. Eight pairs that follow each
/// other have the same vector in different banks, and two of them all even ones: the former are written at a time, the
/// latter are read.
Term place_of(Term pair, Term number) { return pair * (2 * words_of_line) + bits_xor(number, bits_and(pair, 7)) * 4; }

/// Small matrices of the units along either side of a warp's part of c.
struct Tiling {
  int by_rows, by_columns;

  /// Of a group's part.
  int rows() const { return warps_by_rows * 8 * by_rows; }
  int columns() const { return warps_by_columns * 16 * by_columns; }
  int64_t shared_bytes() const { return int64_t{2} * (rows() + columns()) * words_of_line * 4; }
};

/// The part of c that one group computes. Rows of the units' matrices are columns of c, so that what an item gets of
/// several of them are neighbours in a column of c.
class Part {
 public:
  Part(KernelWriter& writer, const Product& product, Tiling tiling)
      : w_(writer), product_(product), tiling_(tiling),
        a_(writer, product, true, tiling.rows(), Stand::pair_of_columns, place_of),
        b_(writer, product, false, tiling.columns(), Stand::pair_of_rows, place_of),
        c_(writer, product, 2 * tiling.by_rows) {}

  void write() {
    const std::vector<Term> part = part_of_group(w_, product_, tiling_.rows(), tiling_.columns());
    const std::span<const Term> batch = std::span(part).subspan(2);
    const Term row = part[0] * tiling_.rows(), column = part[1] * tiling_.columns();
    place(w_.convert(w_.item(), ScalarType::int32));
    a_.begin(row, batch);
    b_.begin(column, batch);
    for (int i = 0; i < tiling_.by_rows * tiling_.by_columns * 4; ++i) {
      sums_.push_back(w_.variable(w_.literal(ScalarType::float32, 0)));
    }
    multiply_lines(w_, product_.k(), a_, b_, [&](int which) { multiply(which); });
    store(row, column, batch);
  }

 private:
  /// Where this item reads, and what it computes.
  void place(Term item) {
    const Term lane = bits_and(item, 31), warp = shifted_right(item, 5);
    const Term g = shifted_right(lane, 2), t = bits_and(lane, 3);
    static_assert(warps_by_rows == 4);
    row_ = bits_and(warp, warps_by_rows - 1) * (8 * tiling_.by_rows);
    column_ = shifted_right(warp, 2) * (16 * tiling_.by_columns);
    for (int step = 0; step < 2; ++step) {
      // The pairs of lines of this item: of each two matrices by rows, of each one by columns.
      const Term pair = shifted_right(row_, 1) + shifted_right(g, 1) * tiling_.by_rows + bits_and(g, 1);
      for (int i = 0; i < tiling_.by_rows / 2; ++i) from_a_[step].push_back(place_of(pair + 2 * i, t * 2 + step));
      from_b_[step] = place_of(shifted_right(column_, 1) + g, t * 2 + step);
    }
    row_ = row_ + t * (2 * tiling_.by_rows);
    column_ = column_ + g * 2;
  }

  void multiply(int which) {
    for (int step = 0; step < 2; ++step) {
      std::vector<std::vector<Term>> of_a;
      for (const Term& at : from_a_[step]) of_a.push_back(a_.load(which, at));
      for (int j = 0; j < tiling_.by_columns; ++j) {
        // 8 pairs further on everything stands as it does here.
        const std::vector<Term> of_b = b_.load(which, from_b_[step] + j * 8 * 2 * words_of_line);
        for (int i = 0; i < tiling_.by_rows; ++i) {
          const std::span<const Term> row = std::span(of_a[static_cast<size_t>(i / 2)]).subspan(i % 2 * 2, 2);
          const std::span<Term> sums = sums_of(i, j);
          const std::vector<Term> got = w_.multiply_matrices(product_.dtype(), of_b, row, sums);
          for (size_t n = 0; n < 4; ++n) w_.assign(sums[n], got[n]);
        }
      }
    }
  }

  std::span<Term> sums_of(int i, int j) {
    return std::span(sums_).subspan(static_cast<size_t>(j * tiling_.by_rows + i) * 4, 4);
  }

  void store(Term first_row, Term first_column, std::span<const Term> batch) {
    const Term m = w_.number(product_.m()), n = w_.number(product_.n());
    const Term row = first_row + w_.convert(row_, first_row.type);
    for (int j = 0; j < tiling_.by_columns; ++j) {
      for (int h = 0; h < 2; ++h) {
        const Term column = first_column + w_.convert(column_ + (16 * j + h), first_row.type);
        std::vector<Term> values;
        for (int i = 0; i < 2 * tiling_.by_rows; ++i) {
          values.push_back(sums_of(i / 4 * 2 + i % 2, j)[static_cast<size_t>(2 * h + i / 2 % 2)]);
        }
        w_.when(column < n, [&] { c_.store(row, m, column, batch, values); });
      }
    }
  }

  KernelWriter& w_;
  const Product& product_;
  const Tiling tiling_;
  Lines a_, b_;
  const Columns c_;
  Term row_, column_;            // of c, the first ones of this item in the group's part
  std::vector<Term> from_a_[2];  // in shared memory, for each of two steps of the units
  Term from_b_[2];
  std::vector<Term> sums_;  // four of each small matrix
};

/// Units sum in an order of their own, which is not exact; those of 8 columns round Float32.
bool has_units(const Product& product, const Abilities& device) {
  const MathMode mode = product.result().mode;
  const bool rounds = product.dtype() == DType::Float32 && device.matrix_layout == MatrixLayout::none;
  const MathMode least = rounds ? MathMode::fast : MathMode::standard;
  return mode >= least && size_of(product.dtype()) <= 4 && device.multiplies(product.dtype());
}

/// The largest parts of which there are enough. Of the first ones a unit of the device has registers for one at a time.
std::optional<Tiling> tiling_of(const Product& product, const Abilities& device) {
  constexpr TilingChoice<Tiling> all[] = {{{8, 4}, 2 * groups_of_device}, {{4, 4}, groups_of_device}, {{2, 2}, 0}};
  return first_that_fits<Tiling>(all, product, device);
}

}  // namespace

std::optional<Launch> by_matrix_units(const Product& product, const Abilities& device) {
  constexpr int64_t least = 16;  // along each dim
  if (!has_units(product, device) || std::min({product.m(), product.n(), product.k()}) < least) return std::nullopt;
  if (device.matrix_layout != MatrixLayout::none) return by_square_units(product, device);
  const std::optional<Tiling> tiling = tiling_of(product, device);
  if (!tiling) return std::nullopt;
  return written_in_parts<Part>(product, *tiling);
}

}  // namespace rosin::kernels
