// Leaves of a state that processes have shared out among them. Read next: tree.hpp, dist/sharded.cpp.
#pragma once

#include <exception>
#include <optional>

#include <rosin/error.hpp>

#include "optim/tree.hpp"

namespace rosin {

/// As the leaves' rule wants it: an owner for each, or none.
void assign_owners(StateTree& tree);
/// Whether another process keeps the state of this leaf and makes its steps.
bool is_elsewhere(const StateLeaf& leaf);
/// Whether each process does so for a part of the leaf.
inline bool is_divided(const StateLeaf& leaf) { return leaf.owner.part > 0; }
/// Of a leaf that is divided: this process's elements, in the order of memory.
struct Elements {
  int64_t begin, end;
};
Elements own_elements(const StateLeaf& leaf);
/// Of a parameter, or what the rule keeps for it, what the rule sees here: all of it, or this process's elements as a
/// vector (of complex numbers, which rules take as two numbers each, a matrix of two rows).
Array own_part(const StateLeaf& leaf, const Array& x);
/// Of a divided leaf whose rule has begun. Error (argument): it keeps an array that is neither of the shape of its part
/// nor one number.
void check_parts(const StateLeaf& leaf);
/// A fresh array: x with that replaced.
Array with_part(const StateLeaf& leaf, const Array& x, const Array& part);
/// Null: every process makes the steps of all leaves.
detail::Sharing* sharing_of(const StateTree& tree);
/// What a process's part throws, or nothing.
template <class F> std::optional<Error> error_in(F part) {
  try {
    part();
    return {};
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error(ErrorKind::internal, error.what());
  }
}
/// Does a process's part and waits for those of the others: whether it gave true on all. Throws on all of them where
/// one throws.
template <class F> bool agreed(detail::Sharing& sharing, F part) {
  bool holds = false;
  const std::optional<Error> failed = error_in([&] { holds = part(); });
  return sharing.agree(failed ? &*failed : nullptr, holds);
}
/// The rule begins anew for this parameter.
void begin(StateLeaf& leaf, const Array& x);

}  // namespace rosin
