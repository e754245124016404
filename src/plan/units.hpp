// Units: what becomes one launch (a fused kernel in the making, or one opaque call), and who depends on whom.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/structure.hpp"

namespace rosin::plan {

/// Values that a kernel loads at most.
inline constexpr size_t load_limit = 60;

bool contains(const std::vector<int32_t>& list, int32_t value);
void add_unique(std::vector<int32_t>& list, int32_t value);

/// At which level a value exists inside a kernel.
enum class Level : uint8_t { none, full, row, late };  // late: a root, there only when the kernel has ended

struct Unit {
  bool call = false;
  int32_t domain = -1;  // kernels: a value with the domain's sizes
  uint8_t wide = 0;
  int row_dims = 0;                  // 0 = no row reduction yet
  bool taken = false;                // calls: by the target
  Epilogue epilogue;                 // calls: what the members after the first compute
  int32_t bias = -1, residual = -1;  // calls: values of the epilogue, see Step
  int32_t center = -1, factor = -1, shift = -1;
  int32_t auxiliary = -1, bias_gradient = -1;  // the second is a member where it sums up the call's result
  int64_t scale = -1;                          // calls: where the epilogue's number stands, see scalar_index
  std::vector<int32_t> results;                // calls of several results: their values by number, -1: nobody reads it
  std::vector<int32_t> members;                // nodes, in recording order once sorted
  std::vector<int32_t> again;                  // values of other units that it computes as well; see recompute.hpp
  std::vector<int32_t> full_loads, row_loads;  // values from outside, known to be as large as domain / row

  uint8_t row_wide() const;  // wide dims of row-level values
  /// The level of a value with these wide dims that is computed here as well; none where it has no place.
  Level level_of(uint8_t wide_dims) const;
  bool computes_again(int32_t value) const;
};

/// What a call of one result writes: that, and what its epilogue makes beside it.
std::vector<int32_t> written_by_epilogue(const Unit& call);

/// Units with the transitive closure of their dependencies.
class Units {
 public:
  int32_t add(bool call);
  Unit& operator[](int32_t unit) { return units_[static_cast<size_t>(unit)]; }
  const Unit& operator[](int32_t unit) const { return units_[static_cast<size_t>(unit)]; }
  int32_t count() const { return static_cast<int32_t>(units_.size()); }
  bool alive(int32_t unit) const { return alive_[static_cast<size_t>(unit)]; }

  bool depends(int32_t unit, int32_t on) const { return test(closure_[static_cast<size_t>(unit)], on); }
  /// Whether of all that `other` depends on `unit` does too, but for units that is_soon(u).
  template <class F> bool follows_all_before(int32_t unit, int32_t other, F&& is_soon) const {
    const Bits &own = closure_[static_cast<size_t>(unit)], &before = closure_[static_cast<size_t>(other)];
    for (size_t word = 0; word < before.size(); ++word) {
      for (uint64_t left = before[word] & ~(word < own.size() ? own[word] : 0); left != 0; left &= left - 1) {
        const auto u = static_cast<int32_t>(word * 64) + std::countr_zero(left);
        if (alive(u) && !is_soon(u)) return false;
      }
    }
    return true;
  }
  /// f(other) for units that this one depends on, which depend on all others that it does; some more than once.
  template <class F> void each_dependency(int32_t unit, F&& f) const {
    for (const int32_t on : added_[static_cast<size_t>(unit)]) {
      if (const int32_t other = survivor(on); other != unit) f(other);
    }
  }
  /// `unit` reads what `on` writes; whoever depends on `unit` now depends on `on` and its dependencies as well.
  void add_dependency(int32_t unit, int32_t on);
  /// Moves everything of `from` into `into`.
  void merge(int32_t into, int32_t from);

 private:
  using Bits = std::vector<uint64_t>;
  static bool test(const Bits& bits, int32_t i) {
    const size_t word = static_cast<size_t>(i) / 64;
    return word < bits.size() && (bits[word] >> (i % 64) & 1);
  }
  static void set(Bits& bits, int32_t i);
  static void unite(Bits& into, const Bits& from);

  std::vector<Unit> units_;
  int32_t survivor(int32_t unit) const {
    while (!alive(unit)) unit = merged_into_[static_cast<size_t>(unit)];
    return unit;
  }

  std::vector<char> alive_;
  std::vector<char> has_dependents_;
  std::vector<int32_t> merged_into_;         // of those that are not alive
  std::vector<std::vector<int32_t>> added_;  // dependencies, as they were added
  std::vector<Bits> closure_;
};

}  // namespace rosin::plan
