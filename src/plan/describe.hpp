// From an op to its call. Read first: call.hpp.
#pragma once

#include <optional>
#include <span>

#include "graph/op.hpp"
#include "plan/call.hpp"
#include "plan/layout.hpp"

namespace rosin::plan {

/// The op on these operands as a call (their roles are set here), or nothing for ops that no library computes. Of an op
/// of several results `result` stands for all of them.
std::optional<CallDescription> describe(const Op& op, const Attributes& attributes, std::span<const CallArray> operands,
                                        const CallArray& result);

/// A step of the layout as a call, with its sizes.
std::optional<CallDescription> describe(const Layout& layout, const Step& step);
/// The same without the epilogue, which kernels compute then.
std::optional<CallDescription> describe_bare(const Layout& layout, const Step& step);

/// The same call with an epilogue; `arrays`: those that it asks for, in the order of backend.h (their roles are set
/// here).
void add_epilogue(CallDescription& call, const Epilogue& epilogue, std::span<const CallArray> arrays);
/// What the values of an epilogue are before sizes are known.
std::vector<CallArray> arrays_of(const Epilogue& epilogue, const CallArray& result);

/// The values of a step's epilogue, in the order of its arrays.
std::vector<int32_t> values_of_epilogue(const Step& step);

/// The activation that the op is to epilogues, or none.
Activation activation_of(const Op& op);
/// The op of an activation other than none.
const Op& op_of(Activation activation);

}  // namespace rosin::plan
