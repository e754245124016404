// The table of conversions: one row for each op and range of versions, and the function that says it in ops of rosin.
// Read next: conversions.cpp (the table).
#pragma once

#include <cstdint>
#include <string_view>

#include <rosin/layer.hpp>

#include "onnx/node_call.hpp"

namespace rosin::onnx {

/// The newest version of the ops of the default domain that the table was checked against.
inline constexpr int64_t newest_opset = 28;
inline constexpr int64_t oldest_opset = 1;

/// What rosin does with an op. `settings` and `statistics` are sets of inputs, a bit each: floating-point inputs that
/// say how the op works and so are no parameters, and such that belong to the model but are not trained.
struct Conversion {
  std::string_view op;
  int64_t since, until;  // versions of the ops; both included
  Arrays (*convert)(const NodeCall& call);
  uint32_t settings = 0, statistics = 0;
  bool varies = false;  // what it gives depends on more than its inputs: it is not computed in advance
};

/// Null where there is none.
const Conversion* find_conversion(std::string_view domain, std::string_view op, int64_t opset);
/// All rows, by name of the op.
std::span<const Conversion> all_conversions();

}  // namespace rosin::onnx
