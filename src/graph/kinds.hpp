// The table of kinds: for each kind of op how it is recorded, keyed, laid out and lowered. A kind without its row does
// not compile, here (attention stays the last one) or in the switches of the executors (cpu/prepare.cpp,
// kernels/launches.cpp). Read first: op.hpp. Read next: plan/fuse.cpp (who places nodes).
#pragma once

#include <string_view>

#include "graph/op.hpp"

namespace rosin {

/// What a plan makes of a node.
enum class Placing : uint8_t {
  never,     // no node of a plan: data, C++ numbers, moves to another device
  alias,     // its operand's memory
  element,   // a member of a fused kernel, element by element
  drawn,     // the same, of no operand's elements
  combined,  // a member of a fused kernel that combines elements by the op's reducer
  look,      // a look at its operand's memory where the movement allows one, else a call
  call,      // a step of its own: each executor has a maker for the kind
  result     // memory that its operand's call writes
};

struct KindInfo {
  Kind kind;
  std::string_view name;
  Placing placing;
  bool computes;      // recorded: does arithmetic on elements, so that complex operands are refused
  bool repeatable;    // recorded: may be recorded again in another place, for the same values
  bool sizes_follow;  // keyed: the result's sizes follow from those of the operands
  bool costly;        // results are kept inside a gradient call rather than computed again
  bool strided;       // laid out: calls read operands of any strides, unless a description of the call says otherwise
  bool checks;        // run: refuses values of operands; nodes know their site (recording_site.hpp)
};

inline constexpr KindInfo kinds[] = {
    // kind, name, placing, computes, repeatable, sizes_follow, costly, strided, checks
    {Kind::leaf, "leaf", Placing::never, false, false, false, true, false, false},
    {Kind::scalar, "scalar", Placing::never, false, false, false, true, false, false},
    {Kind::argument, "argument", Placing::alias, false, false, true, false, false, false},
    {Kind::elementwise, "elementwise", Placing::element, false, true, true, false, false, false},
    {Kind::draw, "draw", Placing::drawn, false, true, false, true, false, false},
    {Kind::reduction, "reduction", Placing::combined, true, true, true, true, false, false},
    {Kind::movement, "movement", Placing::look, false, true, false, false, true, false},
    {Kind::gather, "gather", Placing::call, false, true, false, true, false, true},
    {Kind::scatter, "scatter", Placing::call, false, true, false, true, false, true},
    {Kind::contraction, "contraction", Placing::call, true, true, false, true, false, false},
    {Kind::window, "window", Placing::call, true, true, false, true, false, false},
    {Kind::sort, "sort", Placing::call, true, true, false, true, false, false},
    {Kind::scan, "scan", Placing::call, true, true, false, true, false, false},
    {Kind::random, "random", Placing::call, false, true, false, true, false, false},
    {Kind::routine, "routine", Placing::call, true, true, false, true, false, true},
    {Kind::part, "part", Placing::result, false, true, false, true, false, false},
    {Kind::transfer, "transfer", Placing::never, false, false, false, true, false, false},
    {Kind::attention, "attention", Placing::call, true, true, false, true, true, false},
};

inline constexpr int kind_count = sizeof(kinds) / sizeof(kinds[0]);

constexpr const KindInfo& info(Kind kind) noexcept { return kinds[static_cast<int>(kind)]; }

constexpr bool kinds_are_in_order() noexcept {
  for (int i = 0; i < kind_count; ++i) {
    if (kinds[i].kind != static_cast<Kind>(i)) return false;
  }
  return kind_count == static_cast<int>(Kind::attention) + 1;
}
static_assert(kinds_are_in_order());

/// Whether operand i of calls of this op may be a view of one element, all of whose strides are 0: scatters copy what
/// they begin with.
inline bool takes_fill(const Op& op, int i) {
  return i == 0 && (op.scatter == Scatter::write || op.scatter == Scatter::add);
}

/// Whether a gradient call keeps results of the op. What has several has no value itself: its parts do.
inline bool is_costly(const Op& op) { return info(op.kind).costly && op.results == 1; }

/// Sizes of matrix products follow too, those of convolutions do not.
inline bool sizes_follow(const Op& op) { return info(op.kind).sizes_follow || op.contraction == Contraction::matmul; }

}  // namespace rosin
