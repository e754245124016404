// Attention that a file has as steps of its own, softmax(scale Q K' + bias) V, becomes one step, which the library
// computes in blocks where it can. Read first: program.hpp. Read next: ops/attention.hpp.
#pragma once

#include <vector>

#include "onnx/program.hpp"

namespace rosin::onnx {

/// MatMul [Mul or Div by a constant] [Add] Softmax MatMul, of which nothing else reads what is between, become one.
/// `reads`: how often each slot is read, by whatever is in the model.
void join_attention(std::vector<Step>& steps, const std::vector<Array>& constants, const std::vector<int>& reads);

}  // namespace rosin::onnx
