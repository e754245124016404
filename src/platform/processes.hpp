// This process and its copies.
#pragma once

namespace rosin::platform {

/// The number of this process.
unsigned long process_number();

/// Has functions called around every fork of this process, from now on: `before` in the parent, then `in_parent` and
/// `in_child`. Null: none. A system that has no fork calls none.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

}  // namespace rosin::platform
