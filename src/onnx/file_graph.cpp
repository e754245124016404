// Building the graph of a file: see file_graph.hpp.
#include "onnx/file_graph.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <rosin/elementwise.hpp>

#include "onnx/definition.hpp"

namespace rosin::onnx {
namespace {

/// Numbers of the fields of AttributeProto, and of the kinds of attributes.
enum AttributeField { attribute_name = 1, attribute_real = 2, attribute_integer = 3, attribute_text = 4 };
enum AttributeList { attribute_integers = 8, attribute_kind = 20 };
enum AttributeKind { kind_real = 1, kind_integer = 2, kind_text = 3, kind_integers = 7 };

WireWriter attribute(std::string_view name, AttributeKind kind) {
  WireWriter made;
  made.text(attribute_name, name);
  made.integer(attribute_kind, kind);
  return made;
}

}  // namespace

WireWriter integer_attribute(std::string_view name, int64_t value) {
  WireWriter made = attribute(name, kind_integer);
  made.integer(attribute_integer, value);
  return made;
}

WireWriter real_attribute(std::string_view name, float value) {
  WireWriter made = attribute(name, kind_real);
  made.real(attribute_real, value);
  return made;
}

WireWriter text_attribute(std::string_view name, std::string_view value) {
  WireWriter made = attribute(name, kind_text);
  made.text(attribute_text, value);
  return made;
}

WireWriter integers_attribute(std::string_view name, const std::vector<int64_t>& values) {
  WireWriter made = attribute(name, kind_integers);
  for (const int64_t value : values) made.integer(attribute_integers, value);
  return made;
}

FileGraph::FileGraph(int64_t opset, std::vector<NamedArray> parameters)
    : opset_(opset), parameters_(std::move(parameters)) {
  for (const NamedArray& parameter : parameters_) {
    if (!parameter.value.is_nothing()) parameter_names_.emplace(parameter.value.node(), parameter.name);
  }
}

std::string FileGraph::unused(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !names_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

std::vector<std::string> FileGraph::add_several(std::string_view op, std::vector<std::string> inputs, size_t results,
                                                std::vector<WireWriter> attributes) {
  FileNode node{std::string(op), std::move(inputs), {}, std::move(attributes)};
  for (size_t i = 0; i < results; ++i) node.outputs.push_back(unused("value_" + std::to_string(values_++)));
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

std::string FileGraph::add(std::string_view op, std::vector<std::string> inputs, std::vector<WireWriter> attributes) {
  return add_several(op, std::move(inputs), 1, std::move(attributes))[0];
}

std::vector<std::string> FileGraph::results_of(const std::string& result) const {
  const auto node = std::find_if(nodes_.begin(), nodes_.end(), [&](const FileNode& candidate) {
    return std::find(candidate.outputs.begin(), candidate.outputs.end(), result) != candidate.outputs.end();
  });
  return node->outputs;
}

FileBody FileGraph::open_body(size_t inputs) {
  FileBody body;
  for (size_t i = 0; i < inputs; ++i) body.inputs.push_back(unused("value_" + std::to_string(values_++)));
  body.before = std::exchange(nodes_, {});
  return body;
}

std::vector<std::string> FileGraph::close_body(std::string_view op, std::vector<std::string> inputs, FileBody body,
                                               std::vector<WireWriter> attributes) {
  std::vector<FileNode> inside = std::exchange(nodes_, std::move(body.before));
  const std::vector<std::string> results =
      add_several(op, std::move(inputs), body.outputs.size(), std::move(attributes));
  nodes_.back().body = std::move(inside);
  nodes_.back().body_inputs = std::move(body.inputs);
  nodes_.back().body_outputs = std::move(body.outputs);
  return results;
}

std::string FileGraph::tensor(const Array& value) {
  return tensor_made_from(value, "", [](const Array& same) { return same; });
}

std::string FileGraph::tensor_made_from(const Array& value, std::string_view how, Array (*make)(const Array& value)) {
  const auto [place, fresh] = known_tensors_.try_emplace({value.node(), std::string(how)});
  if (!fresh) return place->second;
  const auto named = parameter_names_.find(value.node());
  place->second = unused(named != parameter_names_.end() ? named->second : "constant");
  tensors_.push_back({place->second, make(value)});
  return place->second;
}

std::string FileGraph::integers(const std::vector<int64_t>& values) {
  const auto [place, fresh] = known_integers_.try_emplace(values);
  if (!fresh) return place->second;
  place->second = unused("integers");
  tensors_.push_back({place->second, Array(values, {static_cast<int64_t>(values.size())})});
  return place->second;
}

std::string FileGraph::number(DType type, ScalarValue value) {
  const auto [place, fresh] = known_numbers_.try_emplace({type, {std::bit_cast<uint64_t>(value.real), value.integer}});
  if (!fresh) return place->second;
  place->second = unused("number");
  const Array exact = is_float(type) ? Array(std::vector<double>{value.real}, Shape{})
                                     : Array(std::vector<int64_t>{value.integer}, Shape{});
  tensors_.push_back({place->second, rosin::cast(exact, type)});
  return place->second;
}

std::string FileGraph::cast(const std::string& value, DType type) {
  return add("Cast", {value}, {integer_attribute("to", type_number(type))});
}

std::string FileGraph::multiple_of_batch(const Size& size) {
  const auto [place, fresh] = known_multiples_.try_emplace({size.factor, size.rest});
  if (!fresh) return place->second;
  if (size == Size{1, 0}) {
    place->second = add("Shape", {batch_input_}, {integer_attribute("start", 0), integer_attribute("end", 1)});
    return place->second;
  }
  std::string made = multiple_of_batch({1, 0});
  if (size.factor != 1) made = add("Mul", {made, integers({size.factor})});
  if (size.rest != 0) made = add("Add", {made, integers({size.rest})});
  return known_multiples_[{size.factor, size.rest}] = made;
}

std::string FileGraph::sizes(const std::vector<Size>& sizes) {
  std::vector<std::string> parts;
  std::vector<int64_t> fixed;
  const auto close = [&] {
    if (!fixed.empty()) parts.push_back(integers(std::exchange(fixed, {})));
  };
  for (const Size& size : sizes) {
    if (size.is_fixed()) {
      fixed.push_back(size.rest);
    } else {
      close();
      parts.push_back(multiple_of_batch(size));
    }
  }
  if (parts.empty()) return integers(fixed);
  close();
  return parts.size() == 1 ? parts[0] : add("Concat", parts, {integer_attribute("axis", 0)});
}

void FileGraph::name_output(const std::string& value, const std::string& name) {
  const auto makes = [&](const FileNode& node) {
    return std::find(node.outputs.begin(), node.outputs.end(), value) != node.outputs.end();
  };
  const auto [known, fresh] = outputs_.try_emplace(value, name);
  if (!fresh || std::none_of(nodes_.begin(), nodes_.end(), makes)) {
    nodes_.push_back({"Identity", {fresh ? value : known->second}, {name}, {}});
    return;
  }
  for (FileNode& node : nodes_) {
    std::replace(node.inputs.begin(), node.inputs.end(), value, name);
    std::replace(node.outputs.begin(), node.outputs.end(), value, name);
    for (FileNode& inside : node.body) std::replace(inside.inputs.begin(), inside.inputs.end(), value, name);
  }
}

}  // namespace rosin::onnx
