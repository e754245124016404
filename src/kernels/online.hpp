// Sums of e^(x - shift) along a row, where the shift follows from a reduction of the row (softmax, logsumexp, losses of
// classes): added up in the walk of that reduction, as if the largest element so far were the shift, and scaled
// whenever there is a larger one. So a row that is not held in registers is walked over once less. The sums come in
// another order of roundings, which the mode `exact` does not allow.
// Read first: body.hpp. Read next: rows.cpp (who walks).
#pragma once

#include <span>
#include <vector>

#include "kernels/body.hpp"

namespace rosin::kernels {

/// The instrs of such a sum: the reduction, the exponential, x, and the shift at row level.
struct ShiftedSum {
  size_t sum, exponential, element, shift;
};

class OnlineSums {
 public:
  explicit OnlineSums(KernelWriter& writer, const KernelBody& body) : w_(writer), body_(body) {}

  /// The needed row reductions of a phase, where all are sums whose elements are known two phases before; else none.
  static std::vector<ShiftedSum> of_phase(const KernelBody& body, int phase);

  /// In front of the walk.
  void begin(std::span<const ShiftedSum> sums);
  /// In the walk: neighbouring elements of sum number `i`.
  void add(size_t i, std::span<const Term> elements);
  /// Behind it: what the item has of the sum.
  Term sum(size_t i, Term shift) const;

 private:
  struct Running {
    ShiftedSum of;
    Term largest, shift, sum;  // variables
  };

  Term exp(const Running& running, Term x) const;
  Term shift_by(Term largest) const;
  Term scaled(Term sum, Term factor, Term none) const;

  KernelWriter& w_;
  const KernelBody& body_;
  std::vector<Running> running_;
};

}  // namespace rosin::kernels
