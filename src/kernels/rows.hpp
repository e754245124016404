// Row programs: items share a row, walk over it once for each reduction, and combine what they found. Of a short row an
// item holds its elements in registers, so that they are read once; of others strips are loaded in each walk.
// Read first: body.hpp, shares.hpp, lanes.hpp. Read next: fused.cpp.
#pragma once

#include <utility>
#include <vector>

#include "kernels/body.hpp"
#include "kernels/lanes.hpp"
#include "kernels/shares.hpp"

namespace rosin::kernels {

/// A store, or a root, of a row program, and the buffer that gets its operand.
struct RowStore {
  size_t instr;
  int buffer;
};

class RowProgram {
 public:
  /// `stores`: what it writes; with the buffers of `row_values` (their instrs, one element a row) beside them.
  RowProgram(KernelWriter& writer, KernelBody& body, int row_dims, const Abilities& device,
             std::vector<RowStore> stores, std::vector<RowStore> row_values);
  void write();
  int64_t lanes() const { return shares_.lanes; }

 private:
  enum class Way : uint8_t { held, strips, single };  // how an item gets its elements

  /// Where a strip begins, in the row; `inside`: whether it is one, nothing where it always is.
  struct Strip {
    Term first, inside;
    Spot spot;
  };

  void keep_long_row();
  void begin();
  std::vector<Term> domain_sizes(int first, int last) const;
  Strip strip_at(Term first, Term turn) const;
  Spot element(const Strip& strip, int lane) const;
  void load_held(const std::vector<char>& loads, const Strip& strip);
  template <class F> void walk(const std::vector<char>& loads, F&& strip);
  template <class F> void walk_single(F&& element);
  void compute_rows(int phase);
  bool reduce(int phase);
  void add(const std::vector<size_t>& reductions, std::vector<Term>& sums, const Spot& spot, Term inside);
  void store();
  void store_strip(const Strip& strip, int turn);
  void put(int buffer, Term at, Term value);

  KernelWriter& w_;
  KernelBody& body_;
  const KernelLayout& sizes_;
  const Abilities& device_;
  std::vector<RowStore> stores_, row_values_;
  Shares shares_;
  Way way_;
  bool whole_;                 // every item has as many strips
  std::vector<char> guarded_;  // loads whose memory is stored to while items without a strip compute along
  bool within_line_;           // strips do not leave a line of the first dim
  Term length_, rows_, lanes_;
  std::vector<Term> row_sizes_, other_sizes_;
  Combiner combiner_;
  Term lane_{}, row_{}, valid_{}, end_{};
  Spot row_spot_{};
  std::vector<char> loaded_;   // of held rows
  std::vector<Strip> strips_;  // of held rows
};

}  // namespace rosin::kernels
