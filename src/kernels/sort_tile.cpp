// See sort_tile.hpp.
#include "kernels/sort_tile.hpp"

#include "kernels/bit_terms.hpp"

namespace rosin::kernels {
namespace {

constexpr ScalarType integers = ScalarType::int32;
constexpr int rows = 1 << (SortTile::digit_bits - 1);  // of counters: two of 16 bits stand in one word
constexpr int half_bits = 16;
constexpr int parts = 16;  // of a sum, each taken by one item

Term shifted_by(Primitive how, Term x, Term by) { return x.writer->apply(how, x.type, {x, by}); }

/// Where element i of a shared array stands: exchanged within its eight, so that items of a warp find theirs in
/// different banks, whether these are neighbours or 2, 4, 8 or 16 apart.
Term slot(Term i) { return bits_xor(i, bits_and(shifted_right(i, 5), 7)); }

}  // namespace

SortTile::SortTile(KernelWriter& writer, int words)
    : w_(writer), sum_(writer), own_slot_(slot(sum_.item())), board_(writer.shared(integers, rows * items_of_group)) {
  static_assert(rows == most_words, "counters and words take the same board");
  for (int k = 0; k < words; ++k) words_.push_back(w_.variable(integer(0)));
}

Term SortTile::sorted(Term i) const { return w_.shared_load(board_, slot(i)); }

/// The item's place in row k of 256.
Term SortTile::own_in_row(int k) const { return k == 0 ? own_slot_ : own_slot_ + int64_t{k} * items_of_group; }

void SortTile::put_on_board(const std::vector<Term>& places) {
  for (size_t k = 0; k < words_.size(); ++k) w_.shared_store(board_, places[k], words_[k]);
  w_.barrier();
}

void SortTile::take(bool together) {
  for (int k = 0; k < words(); ++k) {
    set(k, w_.shared_load(board_, together ? slot(item() * words() + k) : own_in_row(k)));
  }
}

void SortTile::gather() {
  std::vector<Term> places;
  for (int k = 0; k < words(); ++k) places.push_back(own_in_row(k));
  put_on_board(places);
  take(true);
  w_.barrier();
}

void SortTile::spread() {
  std::vector<Term> places;
  for (int k = 0; k < words(); ++k) places.push_back(slot(item() * words() + k));
  put_on_board(places);
  take(false);
}

void SortTile::sort_by(int shift) {
  put_on_board(ranks(shift));
  take(true);
  w_.barrier();
}

void SortTile::sort_and_spread(int shift) {
  put_on_board(ranks(shift));
  take(false);
}

/// The slots of the words in the order of their digits. A word of the board has the counters of digits d and d + 8.
std::vector<Term> SortTile::ranks(int shift) {
  for (int k = 0; k < rows; ++k) w_.shared_store(board_, own_in_row(k), integer(0));
  std::vector<Term> counters, halves, ranks;
  for (const Term word : words_) {
    const Term digit = bits_and(shifted_right(word, shift), (1 << digit_bits) - 1);
    counters.push_back(own_slot_ + bits_and(digit, rows - 1) * items_of_group);
    halves.push_back(shifted_left(shifted_right(digit, digit_bits - 1), 4));
    const Term count = w_.shared_load(board_, counters.back());
    ranks.push_back(bits_and(shifted_by(Primitive::shift_right_zero, count, halves.back()), 0xffff));
    w_.shared_store(board_, counters.back(), count + shifted_by(Primitive::shift_left, integer(1), halves.back()));
  }
  w_.barrier();
  add_up();
  for (size_t k = 0; k < ranks.size(); ++k) {
    const Term start = shifted_by(Primitive::shift_right_zero, w_.shared_load(board_, counters[k]), halves[k]);
    ranks[k] = slot(ranks[k] + bits_and(start, 0xffff));
  }
  w_.barrier();
  return ranks;
}

/// Every counter becomes the sum of those before: first all lower halves, then the upper ones. An item takes 8
/// neighbours.
void SortTile::add_up() {
  const Term first = item() * rows;
  std::vector<Term> counts;
  Term own = integer(0);
  for (int k = 0; k < rows; ++k) {
    counts.push_back(w_.shared_load(board_, slot(first + k)));
    own = k == 0 ? counts[0] : own + counts.back();
  }
  const auto [before, total] = sum_.before(own);
  Term start = before + shifted_left(total, half_bits);
  for (int k = 0; k < rows; ++k) {
    w_.shared_store(board_, slot(first + k), start);
    start = start + counts[static_cast<size_t>(k)];
  }
  w_.barrier();
}

GroupSum::GroupSum(KernelWriter& writer)
    : w_(writer), item_(writer.convert(writer.item(), integers)), sums_(writer.shared(integers, items_of_group)),
      totals_(writer.shared(integers, parts)) {}

std::pair<Term, Term> GroupSum::before(Term own) const {
  constexpr int part_bits = 4, part = 1 << part_bits;
  static_assert(part * parts == items_of_group);
  const auto integer = [&](int64_t value) { return w_.bits(integers, value); };
  w_.shared_store(sums_, slot(item_), own);
  w_.barrier();
  w_.when(item_ < parts, [&] {
    const Term sum = w_.variable(integer(0));
    w_.loop(integer(0), integer(part), integer(1), [&](Term k) {
      const Term at = slot(item_ * part + k), x = w_.shared_load(sums_, at);
      w_.shared_store(sums_, at, sum);
      w_.assign(sum, sum + x);
    });
    w_.shared_store(totals_, item_, sum);
  });
  w_.barrier();
  const Term own_part = shifted_right(item_, part_bits);
  Term before = w_.shared_load(sums_, slot(item_)), total = w_.shared_load(totals_, integer(0));
  for (int k = 0; k < parts; ++k) {
    const Term sum = w_.shared_load(totals_, integer(k));
    before = before + w_.select(integer(k) < own_part, sum, integer(0));
    if (k > 0) total = total + sum;
  }
  return {before, total};
}

}  // namespace rosin::kernels
