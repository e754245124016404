// What ROSIN_EAGER=1 and ROSIN_NAN_CHECK=1 do with every op: it is evaluated at its call, and NaN is looked for.
// For finding faults: an error is thrown where the op stands in the program. Read next: record.cpp (who calls it).
#pragma once

#include <span>

#include <rosin/array.hpp>

namespace rosin {

/// Whether one of the two is on; asked once a thread.
bool watches_ops();

/// Whether NaN is looked for: ROSIN_NAN_CHECK=1.
bool looks_for_nan();

/// Evaluates what was just recorded: the results of one op. Error (numeric): one has NaN, and that is looked for.
void watch(std::span<const Array> made);

}  // namespace rosin
