// Row programs: items share a row, walk over it once for each reduction, and combine what they found. Of a short row an
// item holds its elements in registers, so that they are read once; of others strips are loaded in each walk, of long
// ones some at a time, from shared memory where there is room for what walks before have read.
// Read first: body.hpp, shares.hpp, lanes.hpp, online.hpp. Read next: fused.cpp.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "kernels/body.hpp"
#include "kernels/lanes.hpp"
#include "kernels/online.hpp"
#include "kernels/shares.hpp"

namespace rosin::kernels {

/// A store, or a root, of a row program, and the buffer that gets its operand.
struct RowStore {
  size_t instr;
  int buffer;
};

/// Roots that a row program adds up over its rows on its way. Its groups go from row to row, and an item keeps what it
/// has of its elements of these. Each group leaves a part of the sums: (row, groups) stand in the roots' buffers then.
struct RowSums {
  std::vector<RowStore> roots;
  int64_t groups = 0;  // of the launch

  /// So many for these sums of a body of so much work; 0: that does not pay.
  static int64_t groups_for(const KernelLayout& sizes, size_t work, size_t sums);
};

class RowProgram {
 public:
  /// `stores`: what it writes; with the buffers of `row_values` (their instrs, one element a row) beside them.
  RowProgram(KernelWriter& writer, KernelBody& body, int row_dims, const Abilities& device,
             std::vector<RowStore> stores, std::vector<RowStore> row_values, RowSums sums = {});
  void write();
  int64_t groups() const;

 private:
  enum class Way : uint8_t { held, strips, single };  // how an item gets its elements

  /// Where a strip begins, in the row; `inside`: whether it is one, nothing where it always is.
  struct Strip {
    Term first, inside;
    Spot spot;
  };

  /// What an item has of a root's sums: variables, one of each of its elements, or a shared array of all items.
  struct RowSum {
    std::vector<Term> own;
    int shared = -1;
  };

  void find_online_sums();
  void keep_long_row();
  int64_t room_for_rows() const;
  void begin();
  void write_row(Term wanted);
  void begin_row(Term wanted);
  void load_all();
  bool differs_by_row(size_t load) const;
  void begin_sums();
  void store_sums();
  Term own_place(int64_t i) const;
  Term own_sum(size_t k, int64_t i) const;
  Term sum_of_group(size_t k, int64_t i) const;
  std::vector<Term> domain_sizes(int first, int last) const;
  Strip strip_at(Term first, Term turn) const;
  Spot element(const Strip& strip, int lane) const;
  void load_held(const std::vector<char>& loads, const Strip& strip);
  template <class F> void walk(const std::vector<char>& loads, F&& strip);
  template <class F> void walk_together(const std::vector<char>& loads, Term from, Term turn, F&& strip);
  template <class F> void walk_single(F&& element);
  void compute_rows(int phase);
  bool reduce(int phase);
  std::vector<Term> walk_sums(int phase, const std::vector<size_t>& reductions);
  void combine(const std::vector<size_t>& reductions, const std::vector<Term>& sums);
  bool exchanges_are_few() const;
  void add(const std::vector<size_t>& reductions, std::vector<Term>& sums, const Spot& spot, Term inside);
  void store();
  std::vector<size_t> wanted() const;
  void store_strip(const Strip& strip, int turn);
  void add_to_sums(const std::vector<std::vector<Term>>& values, int turn);
  void put(int buffer, Term at, Term value);

  KernelWriter& w_;
  KernelBody& body_;
  const KernelLayout& sizes_;
  const Abilities& device_;
  std::vector<RowStore> stores_, row_values_;
  RowSums sums_;
  Shares shares_;
  Way way_;
  bool whole_;                 // every item has as many strips
  std::vector<char> guarded_;  // loads whose memory is stored to while items without a strip compute along
  bool within_line_;           // strips do not leave a line of the first dim
  Term length_, rows_, lanes_;
  std::vector<Term> row_sizes_, other_sizes_;
  Combiner combiner_;
  OnlineSums online_;
  std::map<int, std::vector<ShiftedSum>> shifted_;  // by phase: sums that are made in the walk of the one before
  int together_ = 1;                                // strips that an item loads before it looks at any
  int exchanges_ = 0;                               // so far
  Term slot_{}, lane_{}, row_{}, valid_{}, end_{};  // slot: which of the rows of a group
  Spot row_spot_{};
  std::vector<char> loaded_;   // of held rows
  std::vector<Strip> turns_;   // of held rows: where an item's strips begin, of any row
  std::vector<Strip> strips_;  // the same in its row
  std::vector<RowSum> kept_;   // of each root that is added up on the way
  bool in_registers_ = true;   // what items have of these
};

}  // namespace rosin::kernels
