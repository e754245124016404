// What a function records, as plain data: its ops in an order in which operands come first, from the nodes before
// anything is fused. Recorded twice, with two numbers of observations, so that every size is known as a multiple of
// that number and a rest: nothing of the example's batch stays in a file.
// Read next: file_graph.hpp (what is made of it), exports.cpp (how).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rosin/onnx.hpp>

#include "graph/node.hpp"
#include "graph/op.hpp"

namespace rosin::onnx {

/// factor * batch + rest.
struct Size {
  int64_t factor = 0, rest = 0;
  bool is_fixed() const noexcept { return factor == 0; }
  bool operator==(const Size&) const = default;
};

/// An operand: a recorded value, or (value < 0) a C++ number.
struct Operand {
  int value = -1;
  ScalarValue number{};
};

/// A number that follows from the batch: factor times a size, or (inverse) divided by it.
struct BatchNumber {
  Size size;
  double factor = 0;  // 0: there is none
  bool inverse = false;
};

/// One op and its result, or (op null) an array that is there already, or a number that follows from the batch.
struct RecordedValue {
  const Op* op = nullptr;
  DType type = Float32;
  ScalarType compute = ScalarType::float32;
  std::vector<Size> sizes;  // in the order of arrays, dim 0 first
  std::vector<Operand> operands;
  Attributes attributes;
  std::vector<Size> words;  // of slices and pads: their attributes dim, start, step or dim, low, high
  Array value;              // of an array; and of what may be computed before the file is written
  BatchNumber number;       // without dims, Float64
  int input = -1;           // which of the inputs it is
  bool varies = false;      // whether it depends on an input or on their number
};

struct Recording {
  std::vector<RecordedValue> values;
  std::vector<int> inputs;  // the values that they are; -1: nothing reads it
  std::vector<std::vector<Size>> input_sizes;
  std::vector<int> outputs;
  int batch_input = -1;  // one whose last dim is the batch; -1: no size is left open
};

/// Calls the function once, or twice where a batch is left open. Nothing is evaluated.
/// Errors: argument (inside a gradient call; it reads values; another batch gives other ops; no result), those of the
/// function.
Recording record_function(const detail::RecordedFunction& function, std::span<const NamedInput> inputs,
                          bool symbolic_batch);

}  // namespace rosin::onnx
