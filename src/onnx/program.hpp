// Program: an ONNX graph made ready to run. Every value has a slot, every node its conversion; nothing refers to the
// file's bytes any more. Shared by all copies of a model and never changed once it is made.
// Read first: definition.hpp. Read next: node_call.hpp (what conversions see), runner.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/onnx.hpp>

#include "onnx/definition.hpp"

namespace rosin::onnx {

struct Conversion;
struct Block;

/// An attribute of a node. `type` is 0 where the file leaves it out.
struct Attribute {
  std::string name;
  int64_t type = 0;
  float real = 0;
  int64_t integer = 0;
  std::string text;
  Array tensor;
  std::vector<float> reals;
  std::vector<int64_t> integers;
  std::vector<std::string> texts;
  std::shared_ptr<const Block> block;
};

/// A node: its conversion, and the slots that it reads and writes (-1: left out).
struct Step {
  std::string shown;  // for messages: `node 3 "conv1" (Conv)`
  const Conversion* conversion = nullptr;
  int64_t opset = 0;
  std::vector<int> inputs, outputs;
  std::vector<int> released;  // slots that nothing reads afterwards
  std::vector<Attribute> attributes;
};

/// A graph: that of the model, or the body of a node.
struct Block {
  std::vector<int> inputs, outputs;
  std::vector<Step> steps;
};

/// An array of the model that is no input: walked, moved, saved.
struct Place {
  std::string name;
  int slot = 0;
  bool trained = false;
  Array value;  // as loaded
};

class Program {
 public:
  std::vector<Port> inputs, outputs;
  std::vector<bool> has_default;  // of inputs
  int64_t opset = 0;
  Block graph;
  int slots = 0;
  std::vector<Array> constants;  // by slot; nothing where there is none
  std::vector<Place> places;
  std::vector<int> place_of;  // by slot; -1 where there is none
};

/// Error (io): ops that rosin lacks, all in one message; values that nothing makes; the file's own faults.
std::shared_ptr<const Program> make_program(const ModelDefinition& model, const std::string& path);

}  // namespace rosin::onnx
