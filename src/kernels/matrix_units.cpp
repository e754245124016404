// Matmul by the matrix units of a device: each warp of a group computes its share of a part of the result, from lines
// of both operands in shared memory, while the next ones are on their way. Read first: matmul.hpp,
// include/rosin/backend.h (MULTIPLY_MATRICES).
//
// A line is a row of a or a column of b, of which 16 words of neighbouring k are in shared memory at a time: 32
// elements of 16 bits, or 16 of Float32. Two neighbouring lines stand together, and a vector there is two words of
// both: the units take what is said of k, rows and columns in any order as long as all agree, so what an item gives
// them are whole vectors or halves of such, as they were loaded. Words never become numbers on their way.
#include <algorithm>
#include <array>
#include <bit>

#include "kernels/bit_terms.hpp"
#include "kernels/matmul.hpp"

namespace rosin::kernels {
namespace {

constexpr int words_of_line = 16, words_of_share = 4, shares_of_line = words_of_line / words_of_share;
constexpr int warps_by_rows = 4, warps_by_columns = 2;  // of a group, over its part of the result
static_assert(warps_by_rows * warps_by_columns * 32 == items_of_group);

/// The word of a shared array where vector `number`, of 8, of a pair of lines begins. Eight pairs that follow each
/// other have the same vector in different banks, and two of them all even ones: the former are written at a time, the
/// latter are read.
Term place_of(Term pair, Term number) { return pair * (2 * words_of_line) + bits_xor(number, bits_and(pair, 7)) * 4; }

/// An operand in memory, and how its elements get to shared memory: each item takes some words of some pairs of lines.
class Lines {
 public:
  /// `count` lines at a time: rows of a or columns of b.
  Lines(KernelWriter& writer, const Product& product, bool is_a, int count)
      : w_(writer), view_(product.view(is_a ? product.a : product.b)), line_dim_(is_a ? 0 : 1), count_(count),
        each_(4 / static_cast<int>(size_of(product.dtype()))), way_(way()), unit_(way_ == Way::elements ? 1 : each_),
        buffer_(w_.buffer(unit_ < each_ ? DType::UInt16 : DType::UInt32, {view_.root, -1})) {
    for (int& array : shared_) array = w_.shared(ScalarType::uint32, count_ * words_of_line);
  }

  /// Steps of k in a line, at a time.
  int depth() const { return words_of_line * each_; }

  /// Before all else: from which line on, which is even, and in which matrix.
  void begin(Term first, std::span<const Term> batch) {
    lines_ = w_.number(view_.sizes[line_dim_]);
    end_ = w_.number(view_.sizes[k_dim()]);
    step_ = stride(k_dim());
    next_line_ = stride(line_dim_);
    Term base = along(line_dim_, first);
    if (view_.offset != 0) base = base + w_.number(view_.offset / unit_);
    for (int d = 2; d < view_.rank; ++d) {
      if (view_.sizes[d] != 1) base = base + batch[static_cast<size_t>(d) - 2] * stride(d);
    }
    for (int done = 0; done < jobs(); done += items_of_group) shares_.push_back(share(w_.item() + done, first, base));
  }

  /// Loads what this item will keep, from step `first` of k on; zeros beyond the end.
  void fetch(Term first) {
    const Term forth = along(k_dim(), first);
    for (Share& share : shares_) {
      share.raw.clear();
      for (int i = 0; i < raw_count(); ++i) share.raw.push_back(w_.variable(w_.bits(w_.type_of_buffer(buffer_), 0)));
      const Term k = first + share.k, at = share.base + forth;
      fetch_line(share, 0, share.inside, k, at);
      if (way_ != Way::pairs) fetch_line(share, 1, share.next_inside, k, at + next_line_);
    }
  }

  /// Puts what was fetched into shared memory number `turn`, a vector as the units want it for rows or for columns.
  void keep(int turn, bool for_rows) const {
    const auto store = [&] {
      for (const Share& share : shares_) {
        const std::vector<Term> low = words(share, 0), high = words(share, 1);
        for (size_t i = 0; i < 2; ++i) {
          const Term first = low[2 * i], second = low[2 * i + 1], third = high[2 * i], fourth = high[2 * i + 1];
          w_.shared_store_vector(
              shared_[turn], share.to[i],
              for_rows ? std::array{first, third, second, fourth} : std::array{first, second, third, fourth});
        }
      }
    };
    if (jobs() < items_of_group) w_.when(w_.item() < jobs(), store);
    else store();
  }

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

  Way way() const {
    if (along_k() && view_.sizes[k_dim()] % steps_of_share() == 0 && aligned(line_dim_, steps_of_share())) {
      return Way::vectors;
    }
    const bool pairs = view_.strides[line_dim_] == 1 && view_.sizes[line_dim_] % 2 == 0 && aligned(k_dim(), 2);
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

  /// Several coordinates stand in one element of the buffer.
  bool within(int d) const { return unit_ > 1 && view_.strides[d] == 1; }
  /// Elements of the buffer from one coordinate to the next; nobody asks where several are in one.
  Term stride(int d) const { return within(d) ? w_.index(0) : w_.number(view_.strides[d] / unit_); }
  /// Elements of the buffer before a coordinate that begins one.
  Term along(int d, Term at) const { return within(d) ? shifted_right(at, 1) : at * stride(d); }

  Share share(Term number, Term first, Term base) const {
    // Neighbouring items take what lies side by side in memory.
    const bool by_lines = way_ == Way::pairs || (way_ == Way::elements && !along_k());
    const int fast = by_lines ? count_ / 2 : shares_of_line, bits = std::countr_zero(static_cast<unsigned>(fast));
    const Term slow = shifted_right(number, bits), rest = bits_and(number, fast - 1);
    const Term pair = by_lines ? rest : slow, place = by_lines ? slow : rest, line = first + pair * 2;
    Share made;
    made.k = place * steps_of_share();
    made.inside = line < lines_;
    made.next_inside = line + 1 < lines_;
    if (jobs() < items_of_group) {
      made.inside = made.inside && number < jobs();
      made.next_inside = made.next_inside && number < jobs();
    }
    made.base = base + along(line_dim_, pair * 2) + along(k_dim(), made.k);
    for (int i = 0; i < 2; ++i) {
      made.to[i] = place_of(w_.convert(pair, ScalarType::int32), w_.convert(place * 2 + i, ScalarType::int32));
    }
    return made;
  }

  /// Of one line, or of both where they are loaded together.
  void fetch_line(const Share& share, int which, Term inside, Term k, Term at) const {
    const int from = which * raw_count() / 2;
    if (way_ == Way::vectors) {
      return w_.when(inside && k < end_, [&] { assign(share, from, w_.load_vector(buffer_, at, words_of_share, 16)); });
    }
    const bool whole = view_.sizes[k_dim()] % steps_of_share() == 0;
    const auto elements = [&](int begin, int end) {
      for (int i = begin; i < end; ++i) element(share, from, i, i == 0 ? at : at + step_ * i);
    };
    if (whole) return w_.when(inside && k < end_, [&] { elements(0, steps_of_share()); });
    for (int i = 0; i < steps_of_share(); ++i) {
      w_.when(inside && k + i < end_, [&] { elements(i, i + 1); });
    }
  }

  /// Element number i along k; of a pair of Float32, both.
  void element(const Share& share, int from, int i, Term at) const {
    if (way_ == Way::pairs && each_ == 1) assign(share, 2 * i, w_.load_vector(buffer_, at, 2, 8));
    else assign(share, from + i, {w_.load(buffer_, at)});
  }

  void assign(const Share& share, int from, const std::vector<Term>& values) const {
    for (size_t i = 0; i < values.size(); ++i) w_.assign(share.raw[static_cast<size_t>(from) + i], values[i]);
  }

  /// The words of the first or the second line.
  std::vector<Term> words(const Share& share, int which) const {
    std::vector<Term> made;
    const auto raw = [&](int i) { return share.raw[static_cast<size_t>(i)]; };
    const int from = which * raw_count() / 2;
    for (int i = 0; i < words_of_share; ++i) {
      if (way_ == Way::vectors || each_ == 1) made.push_back(way_ == Way::pairs ? raw(2 * i + which) : raw(from + i));
      else if (way_ == Way::pairs) made.push_back(halves(raw(2 * i), raw(2 * i + 1), which));
      else made.push_back(halves(raw(from + 2 * i), raw(from + 2 * i + 1), 0));
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
    return bits_or(bits_and(x, 0xffff), w_.apply(Primitive::shift_left, y.type, {y, like(y, 16)}));
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
  const int unit_;  // elements of the operand in one of the buffer
  const int buffer_;
  int shared_[2];
  Term lines_, end_, step_, next_line_;
  std::vector<Share> shares_;
};

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
      : w_(writer), product_(product), tiling_(tiling), a_(writer, product, true, tiling.rows()),
        b_(writer, product, false, tiling.columns()), c_(writer, product.layout, product.c) {}

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
    fetch(w_.index(0));
    keep(0);
    const Term k = w_.number(product_.k());
    w_.loop(w_.index(0), k, w_.index(2 * a_.depth()), [&](Term first) {
      turn(first, 0);
      w_.when(first + a_.depth() < k, [&] { turn(first + a_.depth(), 1); });
    });
    store(row, column, batch);
  }

 private:
  void fetch(Term first) {
    a_.fetch(first);
    b_.fetch(first);
  }

  /// Behind it, all items find what was fetched.
  void keep(int turn) {
    a_.keep(turn, false);
    b_.keep(turn, true);
    w_.barrier();
  }

  /// Multiplies what stands in shared memory number `which`, while what follows gets to the other one.
  void turn(Term first, int which) {
    fetch(first + a_.depth());
    multiply(which);
    keep(1 - which);
  }

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
        std::min<int64_t>(2 * tiling_.by_rows, bytes_of_store / static_cast<int64_t>(size_of(product_.dtype())));
    bool aligned = view.strides[0] == 1 && view.sizes[0] % most == 0 && view.offset % most == 0;
    for (int d = 1; d < view.rank; ++d) aligned = aligned && (view.sizes[d] == 1 || view.strides[d] % most == 0);
    return aligned ? most : 1;
  }

  static constexpr int bytes_of_store = 16;

  KernelWriter& w_;
  const Product& product_;
  const Tiling tiling_;
  Lines a_, b_;
  const ArrayTerm c_;
  Term row_, column_;            // of c, the first ones of this item in the group's part
  std::vector<Term> from_a_[2];  // in shared memory, for each of two steps of the units
  Term from_b_[2];
  std::vector<Term> sums_;  // four of each small matrix
};

/// Units sum in an order of their own, which is not exact, and round Float32.
bool has_units(const Product& product, const Abilities& device) {
  const MathMode mode = product.result().mode;
  const MathMode least = product.dtype() == DType::Float32 ? MathMode::fast : MathMode::standard;
  return mode >= least && size_of(product.dtype()) <= 4 && device.multiplies(product.dtype());
}

/// The largest parts of which there are enough. Of the first ones a unit of the device has registers for one at a time.
std::optional<Tiling> tiling_of(const Product& product, const Abilities& device) {
  constexpr struct {
    Tiling tiling;
    int64_t enough;
  } all[] = {{{8, 4}, 2 * groups_of_device}, {{4, 4}, groups_of_device}, {{2, 2}, 0}};
  for (const auto& [tiling, enough] : all) {
    const bool fills = product.m() > tiling.rows() / 2 && product.n() > tiling.columns() / 2 &&
                       product.parts(tiling.rows(), tiling.columns()) >= enough;
    if (tiling.shared_bytes() <= device.shared_bytes && (fills || enough == 0)) return tiling;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Launch> by_matrix_units(const Product& product, const Abilities& device) {
  constexpr int64_t least = 16;  // along each dim
  if (!has_units(product, device) || std::min({product.m(), product.n(), product.k()}) < least) return std::nullopt;
  const std::optional<Tiling> tiling = tiling_of(product, device);
  if (!tiling) return std::nullopt;
  KernelWriter w("matmul_units", items_of_group, product.index());
  Part(w, product, *tiling).write();
  return w.finish(product.parts(tiling->rows(), tiling->columns()));
}

}  // namespace rosin::kernels
