// What an ONNX file says of itself: see list_file and initializers in rosin/onnx.hpp.
#include <map>

#include <rosin/onnx.hpp>

#include "base/input_file.hpp"
#include "onnx/definition.hpp"

namespace rosin::onnx {
namespace {

uint64_t bytes_in(const TensorDefinition& tensor) {
  if (tensor.is_raw) return tensor.raw.bytes.size();
  if (!tensor.is_external) {
    return tensor.floats.size() * sizeof(float) + tensor.doubles.size() * sizeof(double) +
           tensor.integers.size() * bytes_of_type(tensor.type);
  }
  uint64_t bytes = bytes_of_type(tensor.type);
  for (const int64_t size : tensor.sizes) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

/// "FLOAT (N, 3, 224, 224)", in the order of the file.
std::string port_text(const ValueDefinition& value) {
  if (!value.is_tensor) return "no tensor";
  std::string text = type_name(value.type);
  if (!value.has_sizes) return text;
  text += " (";
  for (size_t i = 0; i < value.sizes.size(); ++i) {
    const std::string symbol(value.symbols[i].empty() ? "?" : value.symbols[i]);
    text += (i ? ", " : "") + (value.sizes[i] < 0 ? symbol : std::to_string(value.sizes[i]));
  }
  return text + ")";
}

void add_texts(const ModelDefinition& model, FileListing& listing) {
  const auto add = [&](const std::string& key, const std::string& value) { listing.metadata.emplace_back(key, value); };
  for (const ValueDefinition& value : model.graph.inputs) add("input " + std::string(value.name), port_text(value));
  for (const ValueDefinition& value : model.graph.outputs) add("output " + std::string(value.name), port_text(value));
  for (const auto& [domain, version] : model.opsets) {
    add("opset" + (domain.empty() ? "" : " " + std::string(domain)), std::to_string(version));
  }
  if (!model.producer.empty()) add("producer", std::string(model.producer) + " " + std::string(model.producer_version));
  std::map<std::string, int> counts;
  for (const NodeDefinition& node : model.graph.nodes) ++counts[std::string(node.op)];
  std::string ops;
  for (const auto& [op, count] : counts) ops += (ops.empty() ? "" : ", ") + std::to_string(count) + " " + op;
  add("nodes", ops.empty() ? "none" : ops);
  for (const auto& [key, value] : model.metadata) add(std::string(key), std::string(value));
}

}  // namespace

FileListing list_file(const std::string& path) {
  const std::vector<uint8_t> bytes = read_whole_file(path);
  const ModelDefinition model = parse_model(bytes, path);
  FileListing listing;
  for (const TensorDefinition& tensor : model.graph.initializers) {
    TensorListing row{std::string(tensor.name), type_name(tensor.type), {}, bytes_in(tensor)};
    for (const int64_t size : tensor.sizes) row.sizes.push_back(static_cast<uint64_t>(size < 0 ? 0 : size));
    listing.tensors.push_back(std::move(row));
  }
  add_texts(model, listing);
  return listing;
}

std::vector<NamedArray> initializers(const std::string& path) {
  const std::vector<uint8_t> bytes = read_whole_file(path);
  std::vector<NamedArray> found;
  for (const TensorDefinition& tensor : parse_model(bytes, path).graph.initializers) {
    found.push_back({std::string(tensor.name), array_of(tensor, path)});
  }
  return found;
}

}  // namespace rosin::onnx
