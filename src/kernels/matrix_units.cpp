// Matmul by the matrix units of a device: each warp of a group computes its share of a part of the result, from lines
// of both operands in shared memory, while the next ones are on their way. Read first: matmul.hpp,
// include/rosin/backend.h (MULTIPLY_MATRICES).
//
// A line is a row of a or a column of b, of which 16 words of neighbouring k are in shared memory at a time: 32
// elements of 16 bits, or 16 of Float32. The units take what is said of k in any order as long as both operands agree,
// so an item's words for two steps of the units are four neighbours, one vector. Words never become numbers on their
// way.
#include <algorithm>
#include <array>
#include <bit>

#include "kernels/matmul.hpp"

namespace rosin::kernels {
namespace {

constexpr int words_of_line = 16, words_of_vector = 4, vectors_of_line = words_of_line / words_of_vector;
constexpr int warps_by_rows = 4, warps_by_columns = 2;  // of a group, over its part of the result
static_assert(warps_by_rows * warps_by_columns * 32 == items_of_group);

Term shifted_right(Term x, int by) { return x.writer->apply(Primitive::shift_right_zero, x.type, {x, like(x, by)}); }
Term bits_and(Term x, int64_t mask) { return x.writer->apply(Primitive::bit_and, x.type, {x, like(x, mask)}); }
Term bits_or(Term x, Term y) { return x.writer->apply(Primitive::bit_or, x.type, {x, y}); }
Term bits_xor(Term x, Term y) { return x.writer->apply(Primitive::bit_xor, x.type, {x, y}); }

/// An operand in memory, and how its elements get to shared memory: each item takes some vectors of some lines.
class Lines {
 public:
  /// `count` lines at a time: rows of a or columns of b.
  Lines(KernelWriter& writer, const Product& product, bool is_a, int count)
      : w_(writer), view_(product.view(is_a ? product.a : product.b)), line_dim_(is_a ? 0 : 1), count_(count),
        each_(4 / static_cast<int>(size_of(product.dtype()))), way_(way()),
        buffer_(w_.buffer(each_ == 2 && way_ == Way::elements ? DType::UInt16 : DType::UInt32, {view_.root, -1})),
        shared_(w_.shared(ScalarType::uint32, 2 * half())), step_(stride(1 - line_dim_)) {}

  /// Words of shared memory that one turn fills.
  int half() const { return count_ * words_of_line; }
  /// Steps of k in a line, at a time.
  int depth() const { return words_of_line * each_; }

  /// Before all else: from which line on, how many there are, and in which matrix.
  void begin(Term first, std::span<const Term> batch) {
    const Term lines = w_.number(view_.sizes[line_dim_]);
    end_ = w_.number(view_.sizes[1 - line_dim_]);
    Term base = first * stride(line_dim_);
    if (view_.offset != 0) base = base + w_.number(view_.offset);
    for (int d = 2; d < view_.rank; ++d) {
      if (view_.sizes[d] != 1) base = base + batch[static_cast<size_t>(d) - 2] * stride(d);
    }
    const int pairs = way_ == Way::pairs ? 2 : 1, all = count_ / pairs * vectors_of_line;
    for (int done = 0; done < all; done += items_of_group) {
      const Term number = w_.item() + done;
      Share share;
      const bool by_vectors = way_ == Way::vectors || (way_ == Way::elements && along_k());
      // Neighbouring items take what lies side by side in memory.
      const int fast = by_vectors ? vectors_of_line : count_ / pairs,
                bits = std::countr_zero(static_cast<unsigned>(fast));
      const Term slow = shifted_right(number, bits), rest = bits_and(number, fast - 1);
      const Term line = (by_vectors ? slow : rest) * pairs, vector = by_vectors ? rest : slow;
      share.line = w_.convert(line, ScalarType::int32);
      share.vector = w_.convert(vector, ScalarType::int32);
      share.k = vector * (words_of_vector * each_);
      share.inside = first + line < lines;
      // (A short part has fewer pairs than there are items.)
      if (all < items_of_group) share.inside = share.inside && number < all;
      share.base = base + line * stride(line_dim_) + share.k * step_;
      shares_.push_back(share);
    }
  }

  /// Loads what this item will keep, from step `first` of k on; zeros beyond the end.
  void fetch(Term first) {
    for (Share& share : shares_) {
      share.raw.clear();
      for (int i = 0; i < raw_count(); ++i) share.raw.push_back(w_.variable(w_.bits(w_.type_of_buffer(buffer_), 0)));
      const Term k = first + share.k, at = share.base + first * step_;
      if (way_ == Way::vectors) {
        w_.when(share.inside && k < end_, [&] { assign(share, 0, loaded(at, 4)); });
      } else if (view_.sizes[1 - line_dim_] % (words_of_vector * each_) == 0) {
        w_.when(share.inside && k < end_, [&] { elements(share, at, 0, words_of_vector * each_); });
      } else {
        for (int i = 0; i < words_of_vector * each_; ++i) {
          w_.when(share.inside && k + i < end_, [&] { elements(share, at, i, i + 1); });
        }
      }
    }
  }

  /// Puts what was fetched into shared memory, from word `turn` on.
  void keep(Term turn) const {
    for (const Share& share : shares_) {
      const auto store = [&](Term line, int which) {
        w_.shared_store_vector(shared_, turn + place(line, share.vector), words(share, which));
      };
      const auto store_all = [&] {
        store(share.line, 0);
        if (way_ == Way::pairs) store(share.line + 1, 1);
      };
      const int all = count_ / 2 * vectors_of_line;
      if (way_ == Way::pairs && all < items_of_group) w_.when(w_.item() < all, store_all);
      else store_all();
    }
  }

  std::vector<Term> load(Term at) const { return w_.shared_load_vector(shared_, at, words_of_vector); }

  /// The word where a vector of a line begins. Two neighbouring lines fill all banks of shared memory, and so do eight
  /// that follow each other by two: the former are read at a time, either of them is written.
  Term place(Term line, Term vector) const {
    const Term odd = bits_and(line, 1);
    const Term row = bits_xor(shifted_right(line, 1), odd) + odd * (count_ / 2);
    return row * words_of_line +
           bits_xor(vector, bits_and(shifted_right(row, 1), vectors_of_line - 1)) * words_of_vector;
  }

 private:
  /// Vectors along k; neighbours of two lines at a time; one element after the other.
  enum class Way : uint8_t { vectors, pairs, elements };

  /// What one item takes: a vector of a line, or of two lines.
  struct Share {
    Term line, vector, k, inside, base;
    std::vector<Term> raw;  // variables, as loaded
  };

  bool along_k() const { return view_.strides[1 - line_dim_] == 1; }
  int raw_count() const { return way_ == Way::vectors ? words_of_vector : words_of_vector * each_ * (pair_words()); }
  /// Words that a load of a pair gives.
  int pair_words() const { return way_ == Way::pairs && each_ == 1 ? 2 : 1; }

  Way way() const {
    const int vector = words_of_vector * each_;
    if (along_k() && view_.sizes[1 - line_dim_] % vector == 0 && aligned(line_dim_, vector)) return Way::vectors;
    const bool pairs = view_.strides[line_dim_] == 1 && view_.sizes[line_dim_] % 2 == 0 && aligned(1 - line_dim_, 2);
    return pairs ? Way::pairs : Way::elements;
  }

  /// Whether all but the elements along the other dim begin at multiples.
  bool aligned(int dim, int64_t multiple) const {
    if (view_.offset % multiple != 0) return false;
    for (int d = 0; d < view_.rank; ++d) {
      if ((d >= 2 || d == dim) && view_.sizes[d] != 1 && view_.strides[d] % multiple != 0) return false;
    }
    return true;
  }

  Term stride(int d) const {
    if (view_.sizes[d] == 1) return w_.index(0);
    return view_.strides[d] == 1 ? w_.index(1) : w_.number(view_.strides[d]);
  }

  /// Words from element `at` on, which begins one.
  std::vector<Term> loaded(Term at, int count) const {
    const Term word = each_ == 2 ? shifted_right(at, 1) : at;
    if (count == 1) return {w_.load(buffer_, word)};
    return w_.load_vector(buffer_, word, count, 4 * count);
  }

  void assign(Share& share, int from, const std::vector<Term>& values) const {
    for (size_t i = 0; i < values.size(); ++i) w_.assign(share.raw[static_cast<size_t>(from) + i], values[i]);
  }

  /// The elements [from, to) along k, from `at` on.
  void elements(Share& share, Term at, int from, int to) const {
    for (int i = from; i < to; ++i) {
      const Term here = i == 0 ? at : at + step_ * i;
      if (way_ == Way::pairs) assign(share, i * pair_words(), loaded(here, pair_words()));
      else assign(share, i, {w_.load(buffer_, here)});
    }
  }

  /// A vector for shared memory: of the first or the second line of a pair.
  std::vector<Term> words(const Share& share, int which) const {
    std::vector<Term> made;
    for (int i = 0; i < words_of_vector; ++i) {
      const auto at = static_cast<size_t>(i);
      if (way_ == Way::vectors) made.push_back(share.raw[at]);
      else if (each_ == 1)
        made.push_back(share.raw[at * static_cast<size_t>(pair_words()) + static_cast<size_t>(which)]);
      else made.push_back(halves(share.raw[2 * at], share.raw[2 * at + 1], which));
    }
    if (each_ == 1) {
      for (Term& word : made) word = rounded(word);
    }
    return made;
  }

  /// Halves number `which` of two words as one.
  Term halves(Term low, Term high, int which) const {
    const Term x = w_.convert(low, ScalarType::uint32), y = w_.convert(high, ScalarType::uint32);
    if (which == 1) return bits_or(shifted_right(x, 16), bits_and(y, 0xffff0000));
    return bits_or(way_ == Way::pairs ? bits_and(x, 0xffff) : x,
                   w_.apply(Primitive::shift_left, y.type, {y, like(y, 16)}));
  }

  /// The nearest TF32, which are the upper 19 bits; NaN stays what it is.
  Term rounded(Term word) const {
    const Term nan = like(word, 0x7f800000) < bits_and(word, 0x7fffffff);
    return w_.select(nan, word, word + 0x1000);
  }

  KernelWriter& w_;
  const View& view_;
  const int line_dim_, count_, each_;
  const Way way_;
  const int buffer_, shared_;
  const Term step_;
  Term end_;
  std::vector<Share> shares_;
};

/// Small matrices of the units along either side of a warp's part of c.
struct Extent {
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
  Part(KernelWriter& writer, const Product& product, Extent extent)
      : w_(writer), product_(product), extent_(extent), a_(writer, product, true, extent.rows()),
        b_(writer, product, false, extent.columns()), c_(writer, product.layout, product.c) {}

  void write() {
    const std::vector<Term> part = part_of_group(w_, product_, extent_.rows(), extent_.columns());
    const std::span<const Term> batch = std::span(part).subspan(2);
    const Term row = part[0] * extent_.rows(), column = part[1] * extent_.columns();
    place(w_.convert(w_.item(), ScalarType::int32));
    a_.begin(row, batch);
    b_.begin(column, batch);
    for (int i = 0; i < extent_.by_rows * extent_.by_columns * 4; ++i) {
      sums_.push_back(w_.variable(w_.literal(ScalarType::float32, 0)));
    }
    const Term turn_of_a = w_.variable(w_.bits(ScalarType::int32, 0)), turn_of_b = w_.variable(turn_of_a);
    fetch(w_.index(0));
    keep(turn_of_a, turn_of_b);
    w_.loop(w_.index(0), w_.number(product_.k()), w_.index(a_.depth()), [&](Term first) {
      fetch(first + a_.depth());
      multiply(turn_of_a, turn_of_b);
      w_.assign(turn_of_a, like(turn_of_a, a_.half()) - turn_of_a);
      w_.assign(turn_of_b, like(turn_of_b, b_.half()) - turn_of_b);
      keep(turn_of_a, turn_of_b);
    });
    store(row, column, batch);
  }

 private:
  void fetch(Term first) {
    a_.fetch(first);
    b_.fetch(first);
  }

  /// Behind it, all items find what was fetched.
  void keep(Term turn_of_a, Term turn_of_b) {
    a_.keep(turn_of_a);
    b_.keep(turn_of_b);
    w_.barrier();
  }

  /// Where this item reads, and what it computes.
  void place(Term item) {
    const Term lane = bits_and(item, 31), warp = shifted_right(item, 5);
    const Term g = shifted_right(lane, 2), t = bits_and(lane, 3);
    const Term first = bits_and(warp, warps_by_rows - 1) * (8 * extent_.by_rows);
    static_assert(warps_by_rows == 4);
    column_ = shifted_right(warp, 2) * (16 * extent_.by_columns) + g;
    row_ = first + t * (2 * extent_.by_rows);
    for (int i = 0; i < extent_.by_rows; ++i) {
      const Term line = first + shifted_right(g, 1) * (2 * extent_.by_rows) + bits_and(g, 1) + 2 * i;
      from_a_.push_back(a_.place(line, t));
    }
    for (int h = 0; h < 2; ++h) from_b_.push_back(b_.place(column_ + 8 * h, t));
  }

  void multiply(Term turn_of_a, Term turn_of_b) {
    std::vector<std::vector<Term>> of_a;
    for (const Term& at : from_a_) of_a.push_back(a_.load(turn_of_a + at));
    for (int j = 0; j < extent_.by_columns; ++j) {
      // 16 lines further on everything stands 8 rows further on.
      const auto of_b = [&](size_t h) { return b_.load(turn_of_b + from_b_[h] + j * 8 * words_of_line); };
      const std::vector<Term> low = of_b(0), high = of_b(1);
      for (size_t s = 0; s < words_of_vector; s += 2) {
        const std::array columns{low[s], high[s], low[s + 1], high[s + 1]};
        for (int i = 0; i < extent_.by_rows; ++i) {
          const std::vector<Term>& a = of_a[static_cast<size_t>(i)];
          const std::span<Term> sums = sums_of(i, j);
          const std::vector<Term> got =
              w_.multiply_matrices(product_.dtype(), columns, std::array{a[s], a[s + 1]}, sums);
          for (size_t n = 0; n < 4; ++n) w_.assign(sums[n], got[n]);
        }
      }
    }
  }

  std::span<Term> sums_of(int i, int j) {
    return std::span(sums_).subspan(static_cast<size_t>(j * extent_.by_rows + i) * 4, 4);
  }

  void store(Term first_row, Term first_column, std::span<const Term> batch) {
    const Term m = w_.number(product_.m()), n = w_.number(product_.n());
    const Term row = first_row + w_.convert(row_, first_row.type);
    for (int j = 0; j < extent_.by_columns; ++j) {
      for (int h = 0; h < 2; ++h) {
        const Term column = first_column + w_.convert(column_ + (16 * j + 8 * h), first_row.type);
        std::vector<Term> values;
        for (int i = 0; i < 2 * extent_.by_rows; ++i) {
          values.push_back(sums_of(i / 2, j)[static_cast<size_t>(2 * h + i % 2)]);
        }
        w_.when(column < n, [&] { store_column(row, m, column, batch, values); });
      }
    }
  }

  /// Neighbours in a column: as vectors where these are there whole.
  void store_column(Term row, Term m, Term column, std::span<const Term> batch, std::span<const Term> values) {
    std::vector<Term> at{row, column};
    at.insert(at.end(), batch.begin(), batch.end());
    const auto together = static_cast<size_t>(elements_of_store());
    for (size_t i = 0; i < values.size(); i += together) {
      at[0] = row + static_cast<int64_t>(i);
      w_.when(at[0] < m, [&] { w_.store_vector(c_.buffer(), c_.at(at), values.subspan(i, together), bytes_of_store); });
    }
  }

  int64_t elements_of_store() const {
    const View& view = product_.view(product_.c);
    const int64_t most =
        std::min<int64_t>(2 * extent_.by_rows, bytes_of_store / static_cast<int64_t>(size_of(product_.dtype())));
    bool aligned = view.strides[0] == 1 && view.sizes[0] % most == 0 && view.offset % most == 0;
    for (int d = 1; d < view.rank; ++d) aligned = aligned && (view.sizes[d] == 1 || view.strides[d] % most == 0);
    return aligned ? most : 1;
  }

  static constexpr int bytes_of_store = 16;

  KernelWriter& w_;
  const Product& product_;
  const Extent extent_;
  Lines a_, b_;
  const ArrayTerm c_;
  Term row_, column_;  // of c, the first ones of this item in the group's part
  std::vector<Term> from_a_, from_b_;
  std::vector<Term> sums_;  // four of each small matrix
};

/// Units sum in an order of their own, which is not exact, and round Float32.
bool has_units(const Product& product, const Abilities& device) {
  const MathMode mode = product.result().mode;
  const MathMode least = product.dtype() == DType::Float32 ? MathMode::fast : MathMode::standard;
  return mode >= least && size_of(product.dtype()) <= 4 && device.multiplies(product.dtype());
}

/// The largest parts of which there are enough.
std::optional<Extent> extent_of(const Product& product, const Abilities& device) {
  constexpr Extent all[] = {{8, 4}, {4, 4}, {2, 2}};
  for (const Extent& extent : all) {
    const bool last = &extent == std::end(all) - 1;
    const bool fills = product.m() > extent.rows() / 2 && product.n() > extent.columns() / 2 &&
                       product.parts(extent.rows(), extent.columns()) >= groups_of_device;
    if (extent.shared_bytes() <= device.shared_bytes && (fills || last)) return extent;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Launch> by_matrix_units(const Product& product, const Abilities& device) {
  constexpr int64_t least = 16;  // along each dim
  if (!has_units(product, device) || std::min({product.m(), product.n(), product.k()}) < least) return std::nullopt;
  const std::optional<Extent> extent = extent_of(product, device);
  if (!extent) return std::nullopt;
  KernelWriter w("matmul_units", items_of_group, product.index());
  Part(w, product, *extent).write();
  return w.finish(product.parts(extent->rows(), extent->columns()));
}

}  // namespace rosin::kernels
