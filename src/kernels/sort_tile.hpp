// A tile that one group sorts: a few words an item, in shared memory. Each step sorts by four bits and keeps the order
// of equal ones: every item counts its words in counters of its own, all counters together become
// starts, digit by digit and item by item, and the words go where their counters say. So nothing is atomic, and the
// order is the same on every device. Read first: code.hpp. Read next: sort_radix.cpp.
// Source: Satish, Harris and Garland, Designing Efficient Sorting Algorithms for Manycore GPUs (2009), for the idea.
#pragma once

#include <utility>
#include <vector>

#include "kernels/launches.hpp"

namespace rosin::kernels {

/// Sums of what the items of a group have, Int32. All of them call it.
class GroupSum {
 public:
  explicit GroupSum(KernelWriter& writer);

  Term item() const { return item_; }  // Int32
  /// What items before this one add up to, and what all do.
  std::pair<Term, Term> before(Term own) const;

 private:
  KernelWriter& w_;
  Term item_;
  int sums_, totals_;  // shared arrays
};

class SortTile {
 public:
  static constexpr int most_words = 8;  // of an item
  static constexpr int digit_bits = 4;  // that one step sorts by

  /// Of `words` words an item: 1, 2, 4 or 8. All items of the group call all that is called here.
  SortTile(KernelWriter& writer, int words);

  int words() const { return static_cast<int>(words_.size()); }
  /// The item's words, Int32 variables: words number item() * words() + k of the tile (together), or number
  /// item() + k * 256 (apart), so that neighbouring items have neighbours.
  Term word(int k) const { return words_[static_cast<size_t>(k)]; }
  void set(int k, Term word) { w_.assign(words_[static_cast<size_t>(k)], word); }
  Term item() const { return sum_.item(); }
  const GroupSum& sum() const { return sum_; }

  /// From words apart to words together.
  void gather();
  /// From words together to words apart.
  void spread();
  /// Words together, from any order to that of bits shift to shift + 3.
  void sort_by(int shift);
  /// The same, and then words are apart.
  void sort_and_spread(int shift);
  /// Word number i of those that were sorted or exchanged last; the next step forgets them.
  Term sorted(Term i) const;

  Term integer(int64_t value) const { return w_.bits(ScalarType::int32, value); }

 private:
  Term own_in_row(int k) const;
  void put_on_board(const std::vector<Term>& places);
  void take(bool together);
  std::vector<Term> ranks(int shift);
  void add_up();

  KernelWriter& w_;
  GroupSum sum_;
  Term own_slot_;
  std::vector<Term> words_;
  int board_;  // shared array
};

}  // namespace rosin::kernels
