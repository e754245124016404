// What products by matrix units have in common, whatever the units: how operands get to shared memory, and results to
// where they belong. Read first: matmul.hpp. Read next: matrix_units.cpp, matrix_squares.cpp.
//
// A line is a row of a or a column of b, of which 16 words of neighbouring k are in shared memory at a time: 32
// elements of 16 bits, or 16 of Float32. Words never become numbers on their way.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kernels/matmul.hpp"

namespace rosin::kernels {

inline constexpr int words_of_line = 16, words_of_share = 4, shares_of_line = words_of_line / words_of_share;

/// What a vector of four words in shared memory is: two of a line and the same two of the next one, in the order in
/// which units of 8 columns take them of columns or of rows; or four of a line.
enum class Stand : uint8_t { pair_of_columns, pair_of_rows, line };

/// An operand in memory, and how its elements get to shared memory: each item takes some words of some pairs of lines.
class Lines {
 public:
  /// Where vector `number` begins: of 8 of a pair of lines, whose place among pairs is `line`, or of 4 of a line.
  using PlaceOf = std::function<Term(Term line, Term number)>;

  /// `count` lines at a time: rows of a or columns of b.
  Lines(KernelWriter& writer, const Product& product, bool is_a, int count, Stand stand, PlaceOf place_of);

  /// Steps of k in a line, at a time.
  int depth() const { return words_of_line * each_; }
  /// Before all else: from which line on, which is even, and in which matrix.
  void begin(Term first, std::span<const Term> batch);
  /// Loads what this item will keep, from step `first` of k on; zeros beyond the end.
  void fetch(Term first);
  /// Puts what was fetched into shared memory number `turn`.
  void keep(int turn) const;
  std::vector<Term> load(int turn, Term at) const { return w_.shared_load_vector(shared_[turn], at, 4); }

 private:
  /// Vectors along k; the neighbours in a pair of lines at a time; one element after the other.
  enum class Way : uint8_t { vectors, pairs, elements };

  /// What one item takes: four words of two lines.
  struct Share {
    Term k, inside, next_inside;  // within the line; whether the lines are there
    Term base;                    // in memory
    Term to[2];                   // in shared memory
    std::vector<Term> raw;        // variables, as loaded
  };

  int k_dim() const { return 1 - line_dim_; }
  bool along_k() const { return view_.strides[k_dim()] == 1; }
  int jobs() const { return count_ / 2 * shares_of_line; }
  int steps_of_share() const { return words_of_share * each_; }
  int raw_count() const { return way_ == Way::elements ? 2 * steps_of_share() : 2 * words_of_share; }
  /// Several coordinates stand in one element of the buffer.
  bool within(int d) const { return unit_ > 1 && view_.strides[d] == 1; }
  /// Elements of the buffer from one coordinate to the next; nobody asks where several are in one.
  Term stride(int d) const { return within(d) ? w_.index(0) : w_.number(view_.strides[d] / unit_); }
  Term along(int d, Term at) const;

  Way way() const;
  bool aligned(int dim, int64_t multiple) const;
  Share share(Term number, Term first, Term base) const;
  void fetch_line(const Share& share, int which, Term inside, Term k, Term at) const;
  void element(const Share& share, int from, int i, Term at) const;
  void assign(const Share& share, int from, const std::vector<Term>& values) const;
  std::vector<Term> words(const Share& share, int which) const;
  std::vector<Term> vector_of(const std::vector<Term>& low, const std::vector<Term>& high, size_t i) const;
  Term halves(Term low, Term high, int which) const;
  Term rounded(Term word) const;

  KernelWriter& w_;
  const View& view_;
  const int line_dim_, count_, each_;
  const Way way_;
  const int unit_;  // elements of the operand in one of the buffer
  const Stand stand_;
  const PlaceOf place_of_;
  const int buffer_;
  int shared_[2];
  Term lines_, end_, step_, next_line_;
  std::vector<Share> shares_;
};

/// All steps of k: multiply(which) for what stands in shared memory number `which`, while what follows gets to the
/// other.
template <class Multiply> void multiply_lines(KernelWriter& w, int64_t steps, Lines& a, Lines& b, Multiply&& multiply) {
  const auto fetch = [&](Term first) {
    a.fetch(first);
    b.fetch(first);
  };
  const auto keep = [&](int which) {  // behind it, all items find what was fetched
    a.keep(which);
    b.keep(which);
    w.barrier();
  };
  const auto turn = [&](Term first, int which) {
    fetch(first + a.depth());
    multiply(which);
    keep(1 - which);
  };
  fetch(w.index(0));
  keep(0);
  const Term k = w.number(steps);
  w.loop(w.index(0), k, w.index(2 * a.depth()), [&](Term first) {
    turn(first, 0);
    w.when(first + a.depth() < k, [&] { turn(first + a.depth(), 1); });
  });
}

/// How a group's part of c may be cut, and how many parts are enough then.
template <class Tiling> struct TilingChoice {
  Tiling tiling;
  int64_t enough;  // 0: any number
};

/// The first whose parts are filled, of which there are enough, and which fits shared memory.
template <class Tiling>
std::optional<Tiling> first_that_fits(std::span<const TilingChoice<Tiling>> all, const Product& product,
                                      const Abilities& device) {
  for (const auto& [tiling, enough] : all) {
    const bool fills = product.m() > tiling.rows() / 2 && product.n() > tiling.columns() / 2 &&
                       product.parts(tiling.rows(), tiling.columns()) >= enough;
    if (tiling.shared_bytes() <= device.shared_bytes && (fills || enough == 0)) return tiling;
  }
  return std::nullopt;
}

/// The product, of which Part(writer, product, tiling).write() writes what a group does.
template <class Part, class Tiling> Launch written_in_parts(const Product& product, const Tiling& tiling) {
  KernelWriter w("matmul_units", items_of_group, product.index());
  Part(w, product, tiling).write();
  return w.finish(product.parts(tiling.rows(), tiling.columns()));
}

/// Stores of neighbours in a column of c, as vectors where these are there whole.
class Columns {
 public:
  /// `most`: elements that are stored together, at most.
  Columns(KernelWriter& writer, const Product& product, int most);

  /// The values belong to rows from `row` on, of which c has m.
  void store(Term row, Term m, Term column, std::span<const Term> batch, std::span<const Term> values) const;

 private:
  static constexpr int bytes_of_store = 16;
  static size_t together(const Product& product, int most);

  KernelWriter& w_;
  const ArrayTerm c_;
  const size_t together_;
};

}  // namespace rosin::kernels
