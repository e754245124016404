// Parsing the messages of an ONNX file: see definition.hpp.
#include "onnx/definition.hpp"

#include <rosin/error.hpp>

namespace rosin::onnx {
namespace {

/// Graphs inside attributes of nodes of graphs.
constexpr int deepest_graph = 16;

GraphDefinition parse_graph(WireReader reader, int depth);

std::pair<std::string_view, std::string_view> parse_entry(WireReader reader) {
  std::pair<std::string_view, std::string_view> entry;
  while (reader.next()) {
    if (reader.field() == 1) entry.first = reader.text();
    else if (reader.field() == 2) entry.second = reader.text();
    else reader.skip();
  }
  return entry;
}

void add_size(WireReader& reader, std::vector<int64_t>& sizes, int64_t size) {
  if (sizes.size() == 64) reader.refuse("a tensor has at most 64 dims", "more of them");
  sizes.push_back(size);
}

TensorDefinition parse_tensor(WireReader reader) {
  TensorDefinition tensor;
  tensor.offset = reader.offset();
  while (reader.next()) {
    switch (reader.field()) {
      case 1: reader.integers([&](int64_t size) { add_size(reader, tensor.sizes, size); }); break;
      case 2: tensor.type = reader.integer(); break;
      case 4: reader.reals([&](float x) { tensor.floats.push_back(x); }); break;
      case 5:
      case 7:
      case 11: reader.integers([&](int64_t x) { tensor.integers.push_back(x); }); break;
      case 8: tensor.name = reader.text(); break;
      case 9:
        tensor.raw = reader.bytes();
        tensor.is_raw = true;
        break;
      case 10: reader.doubles([&](double x) { tensor.doubles.push_back(x); }); break;
      case 13: tensor.external.push_back(parse_entry(reader.message("TensorProto.external_data"))); break;
      case 14: tensor.is_external = reader.integer() == 1; break;
      default: reader.skip();
    }
  }
  return tensor;
}

AttributeDefinition parse_attribute(WireReader reader, int depth) {
  AttributeDefinition attribute;
  while (reader.next()) {
    switch (reader.field()) {
      case 1: attribute.name = reader.text(); break;
      case 2: attribute.real = reader.real(); break;
      case 3: attribute.integer = reader.integer(); break;
      case 4: attribute.text = reader.text(); break;
      case 5: attribute.tensor = std::make_unique<TensorDefinition>(parse_tensor(reader.message("TensorProto"))); break;
      case 6:
        attribute.graph = std::make_unique<GraphDefinition>(parse_graph(reader.message("GraphProto"), depth + 1));
        break;
      case 7: reader.reals([&](float x) { attribute.reals.push_back(x); }); break;
      case 8: reader.integers([&](int64_t x) { attribute.integers.push_back(x); }); break;
      case 9: attribute.texts.push_back(reader.text()); break;
      case 20: attribute.type = reader.integer(); break;
      default: reader.skip();
    }
  }
  if (attribute.name.empty()) reader.refuse("an attribute must have a name", "none");
  return attribute;
}

NodeDefinition parse_node(WireReader reader, int depth) {
  NodeDefinition node;
  while (reader.next()) {
    switch (reader.field()) {
      case 1: node.inputs.push_back(reader.text()); break;
      case 2: node.outputs.push_back(reader.text()); break;
      case 3: node.name = reader.text(); break;
      case 4: node.op = reader.text(); break;
      case 5: node.attributes.push_back(parse_attribute(reader.message("AttributeProto"), depth)); break;
      case 7: node.domain = reader.text(); break;
      default: reader.skip();
    }
  }
  if (node.op.empty()) reader.refuse("a node must name its op", "none");
  return node;
}

void parse_dim(WireReader reader, ValueDefinition& value) {
  int64_t size = -1;
  std::string_view symbol;
  while (reader.next()) {
    if (reader.field() == 1) size = reader.integer();
    else if (reader.field() == 2) symbol = reader.text();
    else reader.skip();
  }
  add_size(reader, value.sizes, size < 0 ? -1 : size);
  value.symbols.push_back(symbol);
}

void parse_tensor_type(WireReader reader, ValueDefinition& value) {
  value.is_tensor = true;
  while (reader.next()) {
    if (reader.field() == 1) {
      value.type = reader.integer();
    } else if (reader.field() == 2) {
      value.has_sizes = true;
      WireReader shape = reader.message("TensorShapeProto");
      while (shape.next()) {
        if (shape.field() == 1) parse_dim(shape.message("TensorShapeProto.Dimension"), value);
        else shape.skip();
      }
    } else {
      reader.skip();
    }
  }
}

ValueDefinition parse_value(WireReader reader) {
  ValueDefinition value;
  while (reader.next()) {
    if (reader.field() == 1) {
      value.name = reader.text();
    } else if (reader.field() == 2) {
      WireReader type = reader.message("TypeProto");
      while (type.next()) {
        if (type.field() == 1) parse_tensor_type(type.message("TypeProto.Tensor"), value);
        else type.skip();
      }
    } else {
      reader.skip();
    }
  }
  return value;
}

GraphDefinition parse_graph(WireReader reader, int depth) {
  if (depth > deepest_graph) {
    reader.refuse("graphs lie at most " + std::to_string(deepest_graph) + " deep inside each other", "more");
  }
  GraphDefinition graph;
  while (reader.next()) {
    switch (reader.field()) {
      case 1: graph.nodes.push_back(parse_node(reader.message("NodeProto"), depth)); break;
      case 2: graph.name = reader.text(); break;
      case 5: graph.initializers.push_back(parse_tensor(reader.message("TensorProto"))); break;
      case 11: graph.inputs.push_back(parse_value(reader.message("ValueInfoProto"))); break;
      case 12: graph.outputs.push_back(parse_value(reader.message("ValueInfoProto"))); break;
      case 15: reader.refuse("initializers must be dense", "a sparse one"); break;
      default: reader.skip();
    }
  }
  return graph;
}

std::pair<std::string_view, int64_t> parse_opset(WireReader reader) {
  std::pair<std::string_view, int64_t> opset{"", 0};
  while (reader.next()) {
    if (reader.field() == 1) opset.first = reader.text();
    else if (reader.field() == 2) opset.second = reader.integer();
    else reader.skip();
  }
  return opset;
}

}  // namespace

ModelDefinition parse_model(std::span<const uint8_t> bytes, const std::string& path) {
  WireReader reader({bytes, 0}, "ModelProto", path);
  ModelDefinition model;
  bool has_graph = false;
  while (reader.next()) {
    switch (reader.field()) {
      case 1: model.ir_version = reader.integer(); break;
      case 2: model.producer = reader.text(); break;
      case 3: model.producer_version = reader.text(); break;
      case 7:
        model.graph = parse_graph(reader.message("GraphProto"), 0);
        has_graph = true;
        break;
      case 8: model.opsets.push_back(parse_opset(reader.message("OperatorSetIdProto"))); break;
      case 14: model.metadata.push_back(parse_entry(reader.message("StringStringEntryProto"))); break;
      case 25:
        model.has_functions = true;
        reader.skip();
        break;
      default: reader.skip();
    }
  }
  if (!has_graph) reader.refuse("a model must have a graph", "none");
  return model;
}

TensorDefinition parse_tensor(std::span<const uint8_t> bytes, const std::string& path) {
  return parse_tensor(WireReader({bytes, 0}, "TensorProto", path));
}

}  // namespace rosin::onnx
