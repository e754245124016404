// KernelBody: the instructions of a fused kernel, written at one element of its domain, whatever the loops around.
// Read first: structure.hpp (Instr), code.hpp. Read next: fused.cpp (the loops).
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "graph/reducer.hpp"
#include "kernels/code.hpp"
#include "kernels/index_check.hpp"
#include "kernels/plan.hpp"

namespace rosin::kernels {

/// Where a kernel is: an element of the domain, or a row of it.
struct Spot {
  Term linear;                    // number of the element, or of the row
  std::vector<Term> coordinates;  // in the wide dims of the domain, or in those beyond the row
  Term kept{};                    // of an element of a row: where its item keeps what it loads, see keep_row
  Term row{};                     // the number of its row, where values at row level are given
};

class KernelBody {
 public:
  /// Declares the scalars and loads that the values of `wanted` (places of instrs) need.
  /// `given`: values at row level that stand in scratch blocks, one element a row.
  /// `checks`: the nodes that have flags, those of the loads among them.
  KernelBody(KernelWriter& writer, const Layout& layout, int32_t kernel, const std::vector<size_t>& wanted,
             const std::map<size_t, int32_t>& given = {}, std::span<const int32_t> checks = {});

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
  /// Forgets the values at elements: another loop begins, or another element of one.
  void leave();
  /// The same where the walk over the row goes on.
  void leave_loop();
  /// Primitives of an element, about.
  size_t primitives() const;
  /// The values at row level that the operands of these instrs need at elements, of those that can be given.
  std::vector<size_t> row_values_of(const std::vector<size_t>& instrs) const;
  /// The loads, by number, whose memory one of the stores takes over.
  std::vector<char> stored_loads() const;
  /// Whether these operands need one of them.
  bool reads_stored(const std::vector<size_t>& instrs) const;

  /// How a load moves along the first dim of the domain.
  struct Moves {
    DType type;
    bool contiguous;   // element i of the domain is element offset + i
    bool along_first;  // it moves at all
    bool steps_by_one;
    int64_t alignment;  // a power of two that divides offset and other strides, at most 16

    /// Whether `lanes` neighbouring elements are a vector.
    bool is_vector(int lanes) const {
      return (contiguous || steps_by_one) && alignment % lanes == 0 && size_of(type) <= 4 &&
             size_of(type) * static_cast<size_t>(lanes) >= 4;
    }
  };
  /// f(Moves) for each load that is needed.
  template <class F> void each_load(F&& f) const {
    for (size_t i = 0; i < loads_.size(); ++i) {
      if (loads_[i].buffer >= 0) f(moves_of(i));
    }
  }
  /// Loads `lanes` elements from `first` on, as vectors where they are some. From go_to_lane(i) to leave(), elements
  /// are those of lane i.
  void load_strip(const Spot& first, int lanes, int vector_bytes);
  void go_to_lane(int lane);
  /// The loads, by number, that the operands of these instrs need at elements.
  std::vector<char> loads_of(const std::vector<size_t>& instrs) const;
  /// The same for those of the loads that do not stand there yet; lanes go on from those before. `within_line`: the
  /// strip does not leave a line of the first dim.
  void add_strip(const std::vector<char>& loads, const Spot& first, int lanes, int vector_bytes, bool within_line);
  /// The same where `inside` says that there is a strip; else zeros, and nothing is read.
  void add_strip_if(Term inside, const std::vector<char>& loads, std::span<const Spot> spots, int vector_bytes,
                    bool within_line);
  /// Where a load runs along another dim than the first one: that dim; else 0.
  int crossing_dim(size_t load) const;
  /// What a load is in each lane, from somewhere else than its place.
  void set_strip(size_t load, std::vector<Term> lanes) { loads_[load].strip = std::move(lanes); }
  Term load_at(size_t load, const Spot& spot) {
    return writer_.load(loads_[load].buffer, place_of(loads_[load], spot));
  }
  /// As go_to_lane, but values of lanes stay known until leave().
  void return_to_lane(int lane) { lane_ = lane; }

  /// In how many walks over the row the elements of a load are needed. `stores`: instrs of the last walk; `joined`:
  /// phases that are computed in the walk of the phase before.
  std::vector<int> walks_of_loads(const std::vector<size_t>& stores, std::span<const int> joined) const;
  /// The first walk that needs the load keeps its elements in a shared array, and those behind it find them there.
  /// `pairs`: two in an Int32, see has_pairs.
  void keep_row(size_t load, int shared_array, bool pairs) {
    loads_[load].kept_in = shared_array;
    loads_[load].pairs = pairs;
  }
  /// Whether strips of the load are vectors of BFloat16, of which two stand in a word as they are.
  bool has_pairs(size_t load, int lanes, bool within_line) const;
  ScalarType type_of_load(size_t load) const;

  const Kernel& kernel() const { return kernel_; }
  const KernelLayout& sizes() const { return sizes_; }

 private:
  struct Load {
    int buffer = -1;
    Term offset{};
    bool contiguous = false;
    std::vector<Term> strides;  // of each dim of the level; none: the port does not move with it
    int kept_in = -1;           // a shared array
    bool pairs = false;         // kept so: strip by strip
    enum class Kept : uint8_t { nowhere, in_this_walk, before } kept = Kept::nowhere;
    std::vector<Term> strip;  // what stands in each lane; empty: to be loaded there
  };

  struct Drawn {
    Term key, counter;
  };

  void find_definitions();
  void need(size_t instr);
  void declare_load(uint16_t port);
  void declare_check(uint16_t port, std::span<const int32_t> checks);
  Moves moves_of(size_t load) const;
  std::vector<Term> strip_of(size_t load, const Spot& first, int lanes, int vector_bytes, bool within_line);
  void keep_pairs(const Load& load, const Spot& first, std::span<const Term> strip);
  std::vector<Term> kept_pairs(const Load& load, const Spot& first, int lanes) const;
  Term place_of_pair(const Spot& first, int lanes, int pair) const;
  Term place_of(const Load& load, const Spot& spot);
  Term scalar(int port, ScalarType type);
  Term compute(size_t instr, const Spot& spot, bool row);
  Term operand(size_t instr, int i, const Spot& spot, bool row);
  Term convert(const Instr& instr, Term x);
  Term expanded(size_t value, const Spot& spot);
  Term load(Load& load, const Spot& spot);
  Term is_class(const IndexCheck& check, Term label);
  void find_loads(size_t instr, std::vector<char>& found) const;
  /// Marks the instr and what it needs at elements, and the values of rows that these need.
  void visit(size_t instr, std::vector<char>& visited) const;
  bool is_of_row(size_t instr) const;
  Term& known(size_t instr);
  Term apply(size_t instr, const Spot& spot, bool row);

  KernelWriter& writer_;
  const Layout& layout_;
  const Kernel& kernel_;
  const KernelLayout& sizes_;
  std::vector<std::vector<size_t>> definitions_;
  std::vector<char> needed_;
  std::vector<int> phases_;
  std::vector<Load> loads_;
  std::map<size_t, Drawn> draws_;              // by instr
  std::map<uint16_t, IndexCheck> checks_;      // by load: which labels there are classes
  std::map<size_t, int> given_;                // by instr: the buffer
  std::vector<Term> known_;                    // values at row level
  std::map<int, std::vector<Term>> of_lanes_;  // values at elements
  int lane_ = -1;                              // of a strip
};

/// What a math mode lets an op do (`narrow`: of 16-bit floats), or an instr.
Allowed allowed(MathMode mode, bool narrow);
Allowed allowed(const Instr& instr);

/// The op on elements.
Term apply_op(KernelWriter& writer, const Op& op, ScalarType type, Allowed allowed, std::span<const Term> operands);

/// The number of operands of an instr that are registers.
int operand_count(const Instr& instr);

Term neutral(KernelWriter& writer, const Reducer& reducer, ScalarType type);
/// Both combined by the reducer of the instr, as its mode allows.
Term combined(KernelWriter& writer, const Instr& instr, Term x, Term y);

}  // namespace rosin::kernels
