// KernelBody: the instructions of a fused kernel, written at one element of its domain, whatever the loops around.
// Read first: structure.hpp (Instr), code.hpp. Read next: fused.cpp (the loops).
#pragma once

#include <map>
#include <vector>

#include "kernels/code.hpp"
#include "kernels/plan.hpp"

namespace rosin::kernels {

/// Where a kernel is: an element of the domain, or a row of it.
struct Spot {
  Term linear;                    // number of the element, or of the row
  std::vector<Term> coordinates;  // in the wide dims of the domain, or in those beyond the row
};

class KernelBody {
 public:
  /// Declares the scalars and loads that the values of `wanted` (places of instrs) need.
  KernelBody(KernelWriter& writer, const Layout& layout, int32_t kernel, const std::vector<size_t>& wanted);

  /// The instr that defines operand `operand` of instr `instr`.
  size_t definition(size_t instr, int operand) const { return definitions_[instr][static_cast<size_t>(operand)]; }
  bool is_needed(size_t instr) const { return needed_[instr]; }
  /// How many row reductions, one after the other, stand before the value.
  int phase(size_t instr) const { return phases_[instr]; }

  /// The value of an instr at an element; values at row level must be known.
  Term element(size_t instr, const Spot& spot);
  /// Computes a value at row level and keeps it; operands at row level must be known.
  Term row(size_t instr, const Spot& spot);
  void set_row(size_t instr, Term value) { known_[instr] = value; }
  /// Forgets the values at elements: another loop begins.
  void leave();

  const Kernel& kernel() const { return kernel_; }
  const KernelLayout& sizes() const { return sizes_; }

 private:
  struct Load {
    int buffer = -1;
    Term offset{};
    bool contiguous = false;
    std::vector<Term> strides;  // of each dim of the level; none: the port does not move with it
  };

  struct Drawn {
    Term key, counter;
  };

  void find_definitions();
  void need(size_t instr);
  void declare_load(uint16_t port);
  Term scalar(int port, ScalarType type);
  Term compute(size_t instr, const Spot& spot, bool row);
  Term operand(size_t instr, int i, const Spot& spot, bool row);
  Term convert(const Instr& instr, Term x);
  Term load(const Load& load, const Spot& spot);
  Term apply(size_t instr, const Spot& spot, bool row);

  KernelWriter& writer_;
  const Layout& layout_;
  const Kernel& kernel_;
  const KernelLayout& sizes_;
  std::vector<std::vector<size_t>> definitions_;
  std::vector<char> needed_;
  std::vector<int> phases_;
  std::vector<Load> loads_;
  std::map<size_t, Drawn> draws_;  // by instr
  std::vector<Term> known_;
};

/// The number of operands of an instr that are registers.
int operand_count(const Instr& instr);

}  // namespace rosin::kernels
