// See matrix_lines.hpp.
#include "kernels/matrix_lines.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/bit_terms.hpp"

namespace rosin::kernels {

Lines::Lines(KernelWriter& writer, const Product& product, bool is_a, int count, Stand stand, PlaceOf place_of)
    : w_(writer), view_(product.view(is_a ? product.a : product.b)), line_dim_(is_a ? 0 : 1), count_(count),
      each_(4 / static_cast<int>(size_of(product.dtype()))), way_(way()), unit_(way_ == Way::elements ? 1 : each_),
      stand_(stand), place_of_(std::move(place_of)),
      buffer_(w_.buffer(unit_ < each_ ? DType::UInt16 : DType::UInt32, {view_.root, -1})) {
  for (int& array : shared_) array = w_.shared(ScalarType::uint32, count_ * words_of_line);
}

void Lines::begin(Term first, std::span<const Term> batch) {
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

void Lines::fetch(Term first) {
  const Term forth = along(k_dim(), first);
  for (Share& share : shares_) {
    share.raw.clear();
    for (int i = 0; i < raw_count(); ++i) share.raw.push_back(w_.variable(w_.bits(w_.type_of_buffer(buffer_), 0)));
    const Term k = first + share.k, at = share.base + forth;
    fetch_line(share, 0, share.inside, k, at);
    if (way_ != Way::pairs) fetch_line(share, 1, share.next_inside, k, at + next_line_);
  }
}

void Lines::keep(int turn) const {
  const auto store = [&] {
    for (const Share& share : shares_) {
      const std::vector<Term> low = words(share, 0), high = words(share, 1);
      for (size_t i = 0; i < 2; ++i) w_.shared_store_vector(shared_[turn], share.to[i], vector_of(low, high, i));
    }
  };
  if (jobs() < items_of_group) w_.when(w_.item() < jobs(), store);
  else store();
}

std::vector<Term> Lines::vector_of(const std::vector<Term>& low, const std::vector<Term>& high, size_t i) const {
  if (stand_ == Stand::line) return i == 0 ? low : high;
  const Term first = low[2 * i], second = low[2 * i + 1], third = high[2 * i], fourth = high[2 * i + 1];
  if (stand_ == Stand::pair_of_rows) return {first, third, second, fourth};
  return {first, second, third, fourth};
}

Lines::Way Lines::way() const {
  if (along_k() && view_.sizes[k_dim()] % steps_of_share() == 0 && aligned(line_dim_, steps_of_share())) {
    return Way::vectors;
  }
  const bool pairs = view_.strides[line_dim_] == 1 && view_.sizes[line_dim_] % 2 == 0 && aligned(k_dim(), 2);
  return pairs ? Way::pairs : Way::elements;
}

/// Whether all but the elements along the other dim begin at multiples.
bool Lines::aligned(int dim, int64_t multiple) const {
  if (view_.offset % multiple != 0) return false;
  for (int d = 0; d < view_.rank; ++d) {
    if ((d >= 2 || d == dim) && view_.sizes[d] != 1 && view_.strides[d] % multiple != 0) return false;
  }
  return true;
}

/// Elements of the buffer before a coordinate that begins one.
Term Lines::along(int d, Term at) const { return within(d) ? shifted_right(at, 1) : at * stride(d); }

Lines::Share Lines::share(Term number, Term first, Term base) const {
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
    const bool lines = stand_ == Stand::line;
    const Term vector = w_.convert(lines ? place : place * 2 + i, ScalarType::int32);
    made.to[i] = place_of_(w_.convert(lines ? pair * 2 + i : pair, ScalarType::int32), vector);
  }
  return made;
}

/// Of one line, or of both where they are loaded together.
void Lines::fetch_line(const Share& share, int which, Term inside, Term k, Term at) const {
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
void Lines::element(const Share& share, int from, int i, Term at) const {
  if (way_ == Way::pairs && each_ == 1) assign(share, 2 * i, w_.load_vector(buffer_, at, 2, 8));
  else assign(share, from + i, {w_.load(buffer_, at)});
}

void Lines::assign(const Share& share, int from, const std::vector<Term>& values) const {
  for (size_t i = 0; i < values.size(); ++i) w_.assign(share.raw[static_cast<size_t>(from) + i], values[i]);
}

/// The words of the first or the second line.
std::vector<Term> Lines::words(const Share& share, int which) const {
  std::vector<Term> made;
  const auto raw = [&](int i) { return share.raw[static_cast<size_t>(i)]; };
  const int from = which * raw_count() / 2;
  for (int i = 0; i < words_of_share; ++i) {
    if (way_ == Way::vectors || each_ == 1) made.push_back(way_ == Way::pairs ? raw(2 * i + which) : raw(from + i));
    else if (way_ == Way::pairs) made.push_back(halves(raw(2 * i), raw(2 * i + 1), which));
    else made.push_back(halves(raw(from + 2 * i), raw(from + 2 * i + 1), 0));
  }
  if (each_ == 1 && stand_ != Stand::line) {
    for (Term& word : made) word = rounded(word);
  }
  return made;
}

/// Halves number `which` of two words as one.
Term Lines::halves(Term low, Term high, int which) const {
  const Term x = w_.convert(low, ScalarType::uint32), y = w_.convert(high, ScalarType::uint32);
  if (which == 1) return bits_or(shifted_right(x, 16), bits_and(y, 0xffff0000));
  return bits_or(bits_and(x, 0xffff), w_.apply(Primitive::shift_left, y.type, {y, like(y, 16)}));
}

/// The nearest TF32, which units of 8 columns multiply: the upper 19 bits; NaN stays what it is.
Term Lines::rounded(Term word) const {
  const Term nan = like(word, 0x7f800000) < bits_and(word, 0x7fffffff);
  return w_.select(nan, word, word + 0x1000);
}

Columns::Columns(KernelWriter& writer, const Product& product, int most)
    : w_(writer), c_(writer, product.layout, product.c), together_(together(product, most)) {}

size_t Columns::together(const Product& product, int most) {
  const View& view = product.view(product.c);
  const int64_t count = std::min<int64_t>(most, bytes_of_store / static_cast<int64_t>(size_of(product.dtype())));
  bool aligned = view.strides[0] == 1 && view.sizes[0] % count == 0 && view.offset % count == 0;
  for (int d = 1; d < view.rank; ++d) aligned = aligned && (view.sizes[d] == 1 || view.strides[d] % count == 0);
  return aligned ? static_cast<size_t>(count) : 1;
}

void Columns::store(Term row, Term m, Term column, std::span<const Term> batch, std::span<const Term> values) const {
  std::vector<Term> at{row, column};
  at.insert(at.end(), batch.begin(), batch.end());
  for (size_t i = 0; i < values.size(); i += together_) {
    at[0] = row + static_cast<int64_t>(i);
    w_.when(at[0] < m, [&] { w_.store_vector(c_.buffer(), c_.at(at), values.subspan(i, together_), bytes_of_store); });
  }
}

}  // namespace rosin::kernels
