// Writing a recorded function as a file: ops by the table of exports, then the messages of the format.
// Read first: recording.hpp, file_graph.hpp, exports.hpp.
#include <algorithm>
#include <span>

#include <rosin/complex.hpp>
#include <rosin/error.hpp>
#include <rosin/onnx.hpp>

#include "graph/gather_form.hpp"
#include "graph/leaf.hpp"
#include "onnx/exports.hpp"
#include "onnx/file_writing.hpp"
#include "ops/shapes.hpp"

namespace rosin::onnx {
namespace {

constexpr std::string_view own_name = "onnx::save";

/// Gives every value that is needed a name in the file.
class Writing {
 public:
  Writing(const Recording& recording, std::span<const NamedInput> inputs, FileGraph& graph)
      : recording_(recording), graph_(graph), names_(recording.values.size()), on_parameter_(names_.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (recording.inputs[i] >= 0) names_[static_cast<size_t>(recording.inputs[i])] = inputs[i].name;
    }
    if (recording.batch_input >= 0)
      graph_.batch_from(std::string(inputs[static_cast<size_t>(recording.batch_input)].name));
  }

  /// Error (argument): ops that cannot be written, all of them.
  void write_all();
  const std::string& name_of(int value) {
    std::string& name = names_[static_cast<size_t>(value)];
    if (name.empty()) name = constant(recording_.values[static_cast<size_t>(value)]);
    return name;
  }

 private:
  bool is_written(size_t i) const;
  std::string constant(const RecordedValue& value);
  std::string batch_number(const BatchNumber& number);
  std::string written(const RecordedValue& value);

  const Recording& recording_;
  FileGraph& graph_;
  std::vector<std::string> names_;
  std::vector<char> on_parameter_;  // of values: whether they follow from a parameter
};

/// What depends on an input or a parameter stays an op; numbers that fill an array are no reason to store it.
bool Writing::is_written(size_t i) const {
  const RecordedValue& value = recording_.values[i];
  if (!value.op || value.varies) return value.op != nullptr;
  return find_export(value.op->name) && (on_parameter_[i] != 0 || value.op->movement == Movement::broadcast);
}

std::string Writing::batch_number(const BatchNumber& number) {
  const std::string size = graph_.cast(graph_.add("Squeeze", {graph_.sizes({number.size})}), Float64);
  if (!number.inverse && number.factor == 1) return size;
  const std::string factor = graph_.number(Float64, number.factor);
  return number.inverse ? graph_.add("Div", {factor, size}) : graph_.add("Mul", {factor, size});
}

std::string Writing::constant(const RecordedValue& value) {
  if (value.number.factor != 0) return batch_number(value.number);
  const Node& node = *value.value.node();
  if (is_complex(value.type)) return graph_.tensor_made_from(value.value, "parts", view_as_real);
  return is_scalar(node) ? graph_.number(value.type, scalar_value(node)) : graph_.tensor(value.value);
}

/// Of these each part of a complex number goes where the other one does.
bool moves_whole_elements(const RecordedValue& value) {
  const Kind kind = value.op->kind;
  const bool slices = kind == Kind::gather && value.attributes.as<GatherAttributes>().along == 0;
  return slices || kind == Kind::movement || kind == Kind::argument || kind == Kind::transfer;
}

std::string Writing::written(const RecordedValue& value) {
  const Export* row = find_export(value.op->name);
  if (!row) throw Error(ErrorKind::argument, std::string(value.op->name));
  if (is_complex(value.type) && !moves_whole_elements(value)) {
    throw Error(ErrorKind::argument, std::string(value.op->name) + " (complex numbers)");
  }
  const size_t named = sums_weighed(*value.op) ? 1 : value.operands.size();  // their tables are written tap by tap
  for (size_t i = 0; i < named; ++i) {
    if (value.operands[i].value >= 0) name_of(value.operands[i].value);
  }
  NodeWriting node(recording_, value, names_, *row, graph_);
  const std::string result = row->write(node);
  const bool is_computed = value.op->kind == Kind::elementwise && value.op->type_rule != TypeRule::boolean;
  const bool has_type = !is_computed || row->op == "cast" || node.computed() == value.type;
  return has_type ? result : graph_.cast(result, value.type);
}

void Writing::write_all() {
  std::vector<std::string> refused;
  for (size_t i = 0; i < recording_.values.size(); ++i) {
    const RecordedValue& value = recording_.values[i];
    on_parameter_[i] = !value.op && value.input < 0 && value.number.factor == 0 && graph_.is_parameter(value.value);
    for (const Operand& operand : value.operands) {
      if (operand.value >= 0) on_parameter_[i] |= on_parameter_[static_cast<size_t>(operand.value)];
    }
    if (!is_written(i)) continue;
    try {
      names_[i] = written(value);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::argument) throw;
      names_[i] = "missing";
      if (std::find(refused.begin(), refused.end(), error.what()) == refused.end()) refused.push_back(error.what());
    }
  }
  if (refused.empty()) return;
  std::string list;
  for (const std::string& op : refused) list += (list.empty() ? "" : ", ") + op;
  refuse(ErrorKind::argument, own_name, "ops must have a form in ONNX", list,
         "compute these outside the function, or in other ops");
}

std::vector<std::string> output_names(const SaveOptions& options, size_t count) {
  if (!options.outputs.empty() && options.outputs.size() != count) {
    refuse(ErrorKind::argument, own_name, "there must be a name for each output",
           std::to_string(options.outputs.size()) + " names for " + std::to_string(count) + " outputs",
           "name all of them, or none");
  }
  std::vector<std::string> names = options.outputs;
  for (size_t i = names.size(); i < count; ++i) {
    names.push_back(count == 1 ? "output" : "output_" + std::to_string(i));
  }
  return names;
}

/// Names of inputs and outputs belong to them, before anything else is named.
void reserve(FileGraph& graph, const std::string& name) {
  if (!name.empty() && graph.unused(name) == name) return;
  refuse(ErrorKind::argument, own_name, "inputs and outputs must have names of their own", "\"" + name + "\"",
         "name each once: {{\"x\", x}, {\"mask\", mask}}, {.outputs = {\"y\"}}");
}

void check_opset(const SaveOptions& options) {
  if (options.opset >= oldest_written_opset && options.opset <= newest_written_opset) return;
  refuse(ErrorKind::argument, own_name,
         "files are written for opset " + std::to_string(oldest_written_opset) + " to " +
             std::to_string(newest_written_opset),
         std::to_string(options.opset), "17 is taken by most programs");
}

void check_real(const char* what, std::string_view name, DType type, const char* cure) {
  if (!is_complex(type)) return;
  refuse(ErrorKind::argument, own_name, "inputs and outputs must be real",
         std::string(what) + " \"" + std::string(name) + "\" of " + to_string(type), cure);
}

std::vector<FilePort> ports_of_inputs(const Recording& recording, std::span<const NamedInput> inputs) {
  std::vector<FilePort> ports;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ports.push_back({std::string(inputs[i].name), inputs[i].value.dtype(), recording.input_sizes[i]});
  }
  return ports;
}

}  // namespace

void detail::save_function(const std::string& path, const RecordedFunction& function,
                           std::vector<NamedArray> parameters, std::span<const NamedInput> inputs,
                           const SaveOptions& options) {
  check_opset(options);
  parameters.insert(parameters.end(), options.parameters.begin(), options.parameters.end());
  FileGraph graph(options.opset, std::move(parameters));
  for (const NamedInput& input : inputs) {
    reserve(graph, std::string(input.name));
    check_real("the input", input.name, input.value.dtype(), "give its parts, and begin with view_as_complex");
  }
  std::vector<FilePort> inputs_of_file, outputs_of_file;
  {
    const Recording recording = record_function(function, inputs, options.symbolic_batch);
    const std::vector<std::string> outputs = output_names(options, recording.outputs.size());
    for (const std::string& name : outputs) reserve(graph, name);
    Writing writing(recording, inputs, graph);
    writing.write_all();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const RecordedValue& value = recording.values[static_cast<size_t>(recording.outputs[i])];
      check_real("the output", outputs[i], value.type, "return view_as_real of it");
      graph.name_output(writing.name_of(recording.outputs[i]), outputs[i]);
      outputs_of_file.push_back({outputs[i], value.type, value.sizes});
    }
    inputs_of_file = ports_of_inputs(recording, inputs);
  }  // what was recorded goes before anything is evaluated
  write_model_file(path, graph, inputs_of_file, outputs_of_file, options);
}

}  // namespace rosin::onnx
