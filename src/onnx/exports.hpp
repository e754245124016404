// The table of exports: one row for each op of rosin that a file can hold. Read next: exports.cpp (the table).
#pragma once

#include <span>
#include <string_view>

#include "onnx/node_writing.hpp"

namespace rosin::onnx {

/// Versions of the ops that are written: each row holds for all of them.
inline constexpr int64_t oldest_written_opset = 16, newest_written_opset = 28;

/// How an op of rosin's registry is written; `file_op` is that of the format where a function writes several of them.
struct Export {
  std::string_view op;
  Write* write;
  std::string_view file_op = {};
};

/// Null where there is none.
const Export* find_export(std::string_view op);
std::span<const Export> all_exports();

}  // namespace rosin::onnx
