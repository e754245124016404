// Writing the messages of the format: see file_writing.hpp. Arrays are written from where they stand; only the length
// of everything is known before.
#include "onnx/file_writing.hpp"

#include <bit>

#include "base/file.hpp"
#include "graph/leaf.hpp"
#include "onnx/definition.hpp"
#include "onnx/exports.hpp"

namespace rosin::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "the bytes of tensors are written as they are");

// Numbers of fields, by message.
namespace model_field {
enum { ir_version = 1, producer = 2, producer_version = 3, graph = 7, opset = 8, metadata = 14 };
}
namespace graph_field {
enum { node = 1, name = 2, initializer = 5, input = 11, output = 12 };
}
namespace node_field {
enum { input = 1, output = 2, name = 3, op = 4, attribute = 5 };
}
namespace tensor_field {
enum { size = 1, type = 2, name = 8, raw = 9, external = 13, location = 14 };
}
namespace attribute_field {
enum { name = 1, graph = 6, kind = 20, kind_of_graph = 5 };
}
enum { pair_key = 1, pair_value = 2, opset_version = 2, value_name = 1, value_type = 2, type_tensor = 1 };
enum { tensor_element = 1, tensor_shape = 2, shape_dim = 1, dim_size = 1, dim_symbol = 2, is_external = 1 };

constexpr uint64_t largest_message = (uint64_t{1} << 31) - (uint64_t{1} << 20);  // of protocol buffers, less a reserve
constexpr uint64_t smallest_external = 1024, external_alignment = 64;

WireWriter pair_message(std::string_view key, std::string_view value) {
  WireWriter pair;
  pair.text(pair_key, key);
  pair.text(pair_value, value);
  return pair;
}

std::string symbol(const Size& size) {
  std::string text = size.factor == 1 ? "batch" : std::to_string(size.factor) + "*batch";
  if (size.rest != 0) text += (size.rest > 0 ? "+" : "") + std::to_string(size.rest);
  return text;
}

WireWriter port_message(const FilePort& port) {
  WireWriter shape;
  for (auto size = port.sizes.rbegin(); size != port.sizes.rend(); ++size) {
    WireWriter dim;
    if (size->is_fixed()) dim.integer(dim_size, size->rest);
    else dim.text(dim_symbol, symbol(*size));
    shape.message(shape_dim, dim);
  }
  WireWriter tensor, type, value;
  tensor.integer(tensor_element, type_number(port.type));
  tensor.message(tensor_shape, shape);
  type.message(type_tensor, tensor);
  value.text(value_name, port.name);
  value.message(value_type, type);
  return value;
}

WireWriter node_message(const FileNode& node, size_t number);

WireWriter body_message(const FileNode& node) {
  WireWriter graph, attribute;
  graph.text(graph_field::name, "body");
  for (size_t i = 0; i < node.body.size(); ++i) graph.message(graph_field::node, node_message(node.body[i], i));
  const auto ports = [&](int field, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      WireWriter value;
      value.text(value_name, name);
      graph.message(field, value);
    }
  };
  ports(graph_field::input, node.body_inputs);
  ports(graph_field::output, node.body_outputs);
  attribute.text(attribute_field::name, "body");
  attribute.message(attribute_field::graph, graph);
  attribute.integer(attribute_field::kind, attribute_field::kind_of_graph);
  return attribute;
}

WireWriter node_message(const FileNode& node, size_t number) {
  WireWriter made;
  for (const std::string& input : node.inputs) made.text(node_field::input, input);
  for (const std::string& output : node.outputs) made.text(node_field::output, output);
  made.text(node_field::name, node.op + "_" + std::to_string(number));
  made.text(node_field::op, node.op);
  for (const WireWriter& attribute : node.attributes) made.message(node_field::attribute, attribute);
  if (!node.body_outputs.empty()) made.message(node_field::attribute, body_message(node));
  return made;
}

/// An initializer: what stands before its bytes, which may be in the file of data.
struct TensorMessage {
  std::string head;
  uint64_t bytes = 0;  // that follow
  uint64_t offset = 0;
  bool outside = false;
};

WireWriter tensor_head(const FileTensor& tensor) {
  WireWriter made;
  const Shape shape = tensor.value.shape();
  for (int d = shape.rank() - 1; d >= 0; --d) made.integer(tensor_field::size, shape[d]);
  made.integer(tensor_field::type, type_number(tensor.value.dtype()));
  made.text(tensor_field::name, tensor.name);
  return made;
}

TensorMessage tensor_message(const FileTensor& tensor) {
  WireWriter made = tensor_head(tensor);
  const uint64_t bytes = bytes_of(tensor.value.dtype(), tensor.value.shape());
  made.head(tensor_field::raw, bytes);
  return {made.bytes(), bytes, 0, false};
}

TensorMessage external_message(const FileTensor& tensor, const std::string& location, uint64_t offset) {
  WireWriter made = tensor_head(tensor);
  const uint64_t bytes = bytes_of(tensor.value.dtype(), tensor.value.shape());
  made.message(tensor_field::external, pair_message("location", location));
  made.message(tensor_field::external, pair_message("offset", std::to_string(offset)));
  made.message(tensor_field::external, pair_message("length", std::to_string(bytes)));
  made.integer(tensor_field::location, is_external);
  return {made.bytes(), 0, offset, true};
}

std::vector<TensorMessage> tensor_messages(const FileGraph& graph, const std::string& location, bool outside) {
  std::vector<TensorMessage> messages;
  uint64_t offset = 0;
  for (const FileTensor& tensor : graph.tensors()) {
    const uint64_t bytes = bytes_of(tensor.value.dtype(), tensor.value.shape());
    if (!outside || bytes < smallest_external) {
      messages.push_back(tensor_message(tensor));
      continue;
    }
    messages.push_back(external_message(tensor, location, offset));
    offset = (offset + bytes + external_alignment - 1) / external_alignment * external_alignment;
  }
  return messages;
}

uint64_t total_of(const std::vector<TensorMessage>& messages) {
  uint64_t total = 0;
  for (const TensorMessage& message : messages) {
    WireWriter head;
    head.head(graph_field::initializer, message.head.size() + message.bytes);
    total += head.bytes().size() + message.head.size() + message.bytes;
  }
  return total;
}

WireWriter graph_without_tensors(const FileGraph& graph, const std::vector<FilePort>& inputs,
                                 const std::vector<FilePort>& outputs, const std::string& name) {
  WireWriter made;
  made.text(graph_field::name, name);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    made.message(graph_field::node, node_message(graph.nodes()[i], i));
  }
  for (const FilePort& port : inputs) made.message(graph_field::input, port_message(port));
  for (const FilePort& port : outputs) made.message(graph_field::output, port_message(port));
  return made;
}

/// The version of the format that came with a version of the ops.
int64_t ir_version(int64_t opset) {
  constexpr int8_t versions[] = {8, 8, 8, 9, 9, 10, 10, 11, 12, 13, 13, 13, 14};  // of opset 16 and on
  return versions[opset - oldest_written_opset];
}

WireWriter model_facts(const FileGraph& graph, const SaveOptions& options) {
  WireWriter made, opset;
  made.integer(model_field::ir_version, ir_version(graph.opset()));
  made.text(model_field::producer, "rosin");
  made.text(model_field::producer_version, ROSIN_VERSION);
  opset.integer(opset_version, graph.opset());
  made.message(model_field::opset, opset);
  for (const auto& [key, value] : options.metadata) made.message(model_field::metadata, pair_message(key, value));
  return made;
}

void write(AtomicFile& file, const std::string& bytes) { file.write(bytes.data(), bytes.size()); }

void write_values(AtomicFile& file, const Array& value) {
  const Array here = on_cpu(value);
  const size_t bytes = bytes_of(here.dtype(), here.shape());
  if (bytes > 0) file.write(here.node()->data(), bytes);
}

void write_outside(const std::string& path, const FileGraph& graph, const std::vector<TensorMessage>& messages) {
  AtomicFile file(path);
  uint64_t at = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].outside) continue;
    const Array& value = graph.tensors()[i].value;
    write(file, std::string(messages[i].offset - at, '\0'));
    write_values(file, value);
    at = messages[i].offset + bytes_of(value.dtype(), value.shape());
  }
  file.commit();
}

}  // namespace

void write_model_file(const std::string& path, const FileGraph& graph, const std::vector<FilePort>& inputs,
                      const std::vector<FilePort>& outputs, const SaveOptions& options) {
  const std::string data_path = path + ".data", location = data_path.substr(data_path.rfind('/') + 1);
  const WireWriter rest = graph_without_tensors(graph, inputs, outputs, options.graph_name);
  std::vector<TensorMessage> messages = tensor_messages(graph, location, options.external_data);
  const bool outside = options.external_data || total_of(messages) + rest.bytes().size() > largest_message;
  if (outside) {
    messages = tensor_messages(graph, location, true);
    write_outside(data_path, graph, messages);
  }
  AtomicFile file(path);
  WireWriter head = model_facts(graph, options);
  head.head(model_field::graph, rest.bytes().size() + total_of(messages));
  write(file, head.bytes());
  write(file, rest.bytes());
  for (size_t i = 0; i < messages.size(); ++i) {
    WireWriter start;
    start.head(graph_field::initializer, messages[i].head.size() + messages[i].bytes);
    write(file, start.bytes());
    write(file, messages[i].head);
    if (!messages[i].outside) write_values(file, graph.tensors()[i].value);
  }
  file.commit();
}

}  // namespace rosin::onnx
