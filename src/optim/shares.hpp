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
