// From an op to its call. Read first: call.hpp.
#pragma once

#include <optional>
#include <span>

#include "graph/op.hpp"
#include "plan/call.hpp"

namespace rosin::plan {

/// The op on these operands as a call (their roles are set here), or nothing for ops that no library computes.
std::optional<CallDescription> describe(const Op& op, const Attributes& attributes, std::span<const CallArray> operands,
                                        const CallArray& result);

}  // namespace rosin::plan
