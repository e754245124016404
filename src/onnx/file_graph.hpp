// A graph of the file under construction: nodes, initializers, names. Values are called by their names in the file.
// Read first: recording.hpp. Read next: node_writing.hpp (what the rows of the table see), save.cpp (the file).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onnx/recording.hpp"
#include "onnx/wire_writer.hpp"

namespace rosin::onnx {

/// NodeProto before it is written.
struct FileNode {
  std::string op;
  std::vector<std::string> inputs, outputs;
  std::vector<WireWriter> attributes;
  std::vector<FileNode> body = {};  // the nodes of the attribute "body", of an op that repeats them
  std::vector<std::string> body_inputs = {}, body_outputs = {};
};

/// A body under construction: what it takes and gives, and the nodes that stood before it meanwhile.
struct FileBody {
  std::vector<std::string> inputs, outputs;
  std::vector<FileNode> before;
};

/// An initializer; its array is written column-major as it is, its sizes in reverse.
struct FileTensor {
  std::string name;
  Array value;
};

class FileGraph {
 public:
  FileGraph(int64_t opset, std::vector<NamedArray> parameters);

  int64_t opset() const noexcept { return opset_; }
  bool is_parameter(const Array& value) const { return parameter_names_.contains(value.node()); }
  /// Adds a node of one result, and gives its name.
  std::string add(std::string_view op, std::vector<std::string> inputs, std::vector<WireWriter> attributes = {});
  /// The same with several results.
  std::vector<std::string> add_several(std::string_view op, std::vector<std::string> inputs, size_t results,
                                       std::vector<WireWriter> attributes);
  /// All results of the node that has this one.
  std::vector<std::string> results_of(const std::string& result) const;
  /// Nodes that are added from here on belong to a body of so many inputs, until it is closed.
  FileBody open_body(size_t inputs);
  /// The node whose body it is; as many results as the body gives.
  std::vector<std::string> close_body(std::string_view op, std::vector<std::string> inputs, FileBody body,
                                      std::vector<WireWriter> attributes);
  /// The array as an initializer, under its path where it is a parameter; the same array once.
  std::string tensor(const Array& value);
  /// What the array becomes under `how`, e.g. flipped, under the parameter's name where that is free.
  std::string tensor_made_from(const Array& value, std::string_view how, Array (*make)(const Array& value));
  /// Integers with one axis, or a number without one.
  std::string integers(const std::vector<int64_t>& values);
  std::string number(DType type, ScalarValue value);
  std::string number(DType type, double value) { return number(type, {value, static_cast<int64_t>(value)}); }
  std::string cast(const std::string& value, DType type);
  /// Integers with one axis of which some may be multiples of the batch; in the order given.
  std::string sizes(const std::vector<Size>& sizes);
  /// States where the batch is found: the axis 0 of an input.
  void batch_from(std::string input) { batch_input_ = std::move(input); }
  /// Makes a value known by another name: that of an output of the file.
  void name_output(const std::string& value, const std::string& name);
  /// A name that nothing has yet, as near to `wanted` as can be.
  std::string unused(const std::string& wanted);

  const std::vector<FileNode>& nodes() const noexcept { return nodes_; }
  const std::vector<FileTensor>& tensors() const noexcept { return tensors_; }

 private:
  std::string multiple_of_batch(const Size& size);

  int64_t opset_;
  std::vector<NamedArray> parameters_;
  std::unordered_map<const Node*, std::string> parameter_names_;
  std::vector<FileNode> nodes_;
  std::vector<FileTensor> tensors_;
  std::map<std::pair<const Node*, std::string>, std::string> known_tensors_;
  std::map<std::vector<int64_t>, std::string> known_integers_, known_multiples_;
  std::map<std::pair<DType, std::pair<uint64_t, int64_t>>, std::string> known_numbers_;  // by the bits of the number
  std::set<std::string> names_;
  std::map<std::string, std::string> outputs_;  // by the name that the value had before
  std::string batch_input_;
  int64_t values_ = 0;
};

/// Attributes of a node.
WireWriter integer_attribute(std::string_view name, int64_t value);
WireWriter real_attribute(std::string_view name, float value);
WireWriter text_attribute(std::string_view name, std::string_view value);
WireWriter integers_attribute(std::string_view name, const std::vector<int64_t>& values);

}  // namespace rosin::onnx
