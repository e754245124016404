// See runner.hpp.
#include "onnx/runner.hpp"

#include <algorithm>
#include <exception>

#include <rosin/error.hpp>

#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "graph/transfer.hpp"
#include "onnx/conversions.hpp"
#include "onnx/node_call.hpp"

namespace rosin::onnx {
namespace {

int position_of(const Array& x) { return x.is_nothing() ? 0 : x.node()->device; }

}  // namespace

std::vector<Array> Runner::run(const Block& block, std::span<const Array> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) values_[static_cast<size_t>(block.inputs[i])] = inputs[i];
  ++depth_;
  for (const Step& step : block.steps) run(step);
  --depth_;
  std::vector<Array> results;
  for (int slot : block.outputs) results.push_back(value(slot));
  return results;
}

void Runner::run(const Step& step) {
  std::vector<Array> results = convert(step);
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] < 0) continue;
    if (i >= results.size() || results[i].is_nothing()) {
      throw Error(ErrorKind::io, "onnx: " + step.shown + ": output " + std::to_string(i) +
                                     " must be something that rosin gives; got a wish for it; leave the output out");
    }
    values_[static_cast<size_t>(step.outputs[i])] = std::move(results[i]);
  }
  if (depth_ > 1) return;  // bodies run again
  for (int slot : step.released) values_[static_cast<size_t>(slot)] = Array();
}

std::vector<Array> Runner::convert(const Step& step) {
  try {
    const std::vector<Array> inputs = gather(step);
    return step.conversion->convert(NodeCall(step, inputs, *this));
  } catch (const Error& error) {
    throw Error(error.kind(), "onnx: " + step.shown + ": " + error.what());
  } catch (const std::exception& error) {  // std::bad_alloc, std::length_error
    throw Error(ErrorKind::memory, "onnx: " + step.shown + ": there must be memory; got " + error.what() +
                                       "; the sizes of the model may be damaged");
  }
}

std::vector<Array> Runner::gather(const Step& step) const {
  std::vector<Array> inputs;
  inputs.reserve(step.inputs.size());
  int position = 0;
  for (int slot : step.inputs) {
    inputs.push_back(slot < 0 ? Array() : value(slot));
    position = std::max(position, position_of(inputs.back()));
  }
  if (position == 0) return inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_nothing() || is_scalar(*inputs[i].node()) || position_of(inputs[i]) == position) continue;
    // Constants follow by themselves; what was computed of shapes stands on the CPU.
    if (!is_constant(*inputs[i].node())) inputs[i] = transferred(inputs[i], position);
  }
  return inputs;
}

Array Runner::value(int slot) const {
  const auto at = static_cast<size_t>(slot);
  if (!values_[at].is_nothing()) return values_[at];
  if (!program_.constants[at].is_nothing()) return program_.constants[at];
  if (program_.place_of[at] >= 0) return weights_[static_cast<size_t>(program_.place_of[at])];
  throw Error(ErrorKind::io, "onnx: a value must be made before it is read; got none; the file is damaged");
}

}  // namespace rosin::onnx
