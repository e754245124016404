// What an ONNX file says, as plain structs: the messages of the format that rosin reads. Numbers of fields as in the
// format's specification (onnx.proto3, IR version 10). Texts and tensors' bytes refer to the file's bytes.
// Read first: wire.hpp. Read next: program.hpp, which makes something that runs of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/array.hpp>

#include "onnx/wire.hpp"

namespace rosin::onnx {

/// TensorProto. Sizes as in the file: the last one runs fastest.
struct TensorDefinition {
  std::string_view name;
  int64_t type = 0;
  std::vector<int64_t> sizes;
  Bytes raw;
  bool is_raw = false;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> integers;  // of int32_data, int64_data and uint64_data
  std::vector<std::pair<std::string_view, std::string_view>> external;
  bool is_external = false;
  uint64_t offset = 0;  // in the file, for messages
};

struct GraphDefinition;

/// AttributeProto.
struct AttributeDefinition {
  std::string_view name;
  int64_t type = 0;  // 0 where an old file leaves it out
  float real = 0;
  int64_t integer = 0;
  std::string_view text;
  std::unique_ptr<TensorDefinition> tensor;
  std::unique_ptr<GraphDefinition> graph;
  std::vector<float> reals;
  std::vector<int64_t> integers;
  std::vector<std::string_view> texts;
};

/// NodeProto.
struct NodeDefinition {
  std::string_view name, op, domain;
  std::vector<std::string_view> inputs, outputs;  // "": left out
  std::vector<AttributeDefinition> attributes;
};

/// ValueInfoProto of an input or output. Sizes as in the file; -1: not stated, or a name.
struct ValueDefinition {
  std::string_view name;
  bool is_tensor = false;
  int64_t type = 0;
  bool has_sizes = false;
  std::vector<int64_t> sizes;
  std::vector<std::string_view> symbols;  // names of sizes, "" where there is none
};

/// GraphProto.
struct GraphDefinition {
  std::string_view name;
  std::vector<NodeDefinition> nodes;
  std::vector<TensorDefinition> initializers;
  std::vector<ValueDefinition> inputs, outputs;
};

/// ModelProto.
struct ModelDefinition {
  int64_t ir_version = 0;
  std::string_view producer, producer_version;
  GraphDefinition graph;
  std::vector<std::pair<std::string_view, int64_t>> opsets;  // domain, version
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
  bool has_functions = false;
};

/// `path` is named in messages. Error (io): the bytes are no model; nothing in them is trusted.
ModelDefinition parse_model(std::span<const uint8_t> bytes, const std::string& path);
/// A tensor by itself, as the pairs of inputs and outputs beside models have them.
TensorDefinition parse_tensor(std::span<const uint8_t> bytes, const std::string& path);

/// The format's name of an element type, "FLOAT"; "type 99" for a number that it does not know.
std::string type_name(int64_t type);
/// Bytes of one element; 0 where the format packs several into a byte, or they have no fixed size.
uint64_t bytes_of_type(int64_t type);
/// Error (dtype): arrays have no such elements.
DType array_type(int64_t type, const std::string& subject);
/// The number of an array's type in the format.
int64_t type_number(DType type);

/// The tensor as an array whose dims are the file's in reverse: so that the bytes stay in order. `folder` is where
/// external data lies. Error (io): counts differ; (dtype): a type that arrays lack; (shape): too many dims.
Array array_of(const TensorDefinition& tensor, const std::string& path);

}  // namespace rosin::onnx
