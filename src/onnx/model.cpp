// Models from ONNX files: see rosin/onnx.hpp.
#include <algorithm>
#include <memory>

#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/onnx.hpp>

#include "base/input_file.hpp"
#include "graph/device_facts.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "onnx/program.hpp"
#include "onnx/runner.hpp"

namespace rosin::onnx {
namespace {

std::string names_of(const std::vector<Port>& ports) {
  std::string text;
  for (const Port& port : ports) text += (text.empty() ? "" : ", ") + port.name;
  return text.empty() ? "none" : text;
}

std::string sizes_text(const std::vector<int64_t>& sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : ", ") + (size < 0 ? std::string("any") : std::to_string(size));
  return "(" + text + ")";
}

void check_sizes(const Port& port, const Array& x) {
  if (!port.has_sizes) return;
  const Shape shape = x.shape();
  bool fits = shape.rank() == static_cast<int>(port.sizes.size());
  for (size_t d = 0; fits && d < port.sizes.size(); ++d) {
    fits = port.sizes[d] < 0 || port.sizes[d] == shape[static_cast<int>(d)];
  }
  if (fits) return;
  throw Error(ErrorKind::shape, "onnx::Model: the input \"" + port.name + "\" is " + sizes_text(port.sizes) + "; got " +
                                    to_string(shape) + "; dims are those of the file in reverse, the batch last");
}

/// Whole numbers may be of any integer type; numbers of C++ are of the input's.
Array fitted(const Port& port, const Array& x) {
  if (x.is_nothing()) {
    throw Error(ErrorKind::argument, "onnx::Model: the input \"" + port.name + "\" must be an array; got nothing");
  }
  check_sizes(port, x);
  if (x.dtype() == port.type && !is_scalar(*x.node())) return x;
  if (is_scalar(*x.node()) || (is_integer(x.dtype()) && is_integer(port.type))) return cast(x, port.type);
  throw Error(ErrorKind::dtype, std::string("onnx::Model: the input \"") + port.name + "\" is " + to_string(port.type) +
                                    "; got " + to_string(x.dtype()) + "; write cast(x, " + to_string(port.type) + ")");
}

void check_devices(const Arrays& weights, const Arrays& inputs) {
  const Array* first = nullptr;
  const auto look = [&](const Array& x) {
    if (x.is_nothing() || is_scalar(*x.node()) || is_constant(*x.node())) return;
    if (!first) first = &x;
    if (x.node()->device == first->node()->device) return;
    throw Error(ErrorKind::device, "onnx::Model: inputs must be where the model is; got arrays on " +
                                       device_text(first->node()->device) + " and on " + device_text(x.node()->device) +
                                       "; move them with x | device");
  };
  for (const Array& x : weights) look(x);
  for (const Array& x : inputs) look(x);
}

}  // namespace

const Array& Results::operator[](std::string_view name) const {
  std::string known;
  for (const NamedArray& result : list) {
    if (result.name == name) return result.value;
    known += (known.empty() ? "" : ", ") + result.name;
  }
  throw Error(ErrorKind::argument,
              "onnx::Results: no output has that name; got \"" + std::string(name) + "\"; the names are " + known);
}

const Array& Results::operator[](int64_t position) const {
  if (position >= 0 && position < static_cast<int64_t>(list.size())) return list[static_cast<size_t>(position)].value;
  throw Error(ErrorKind::argument, "onnx::Results: there are " + std::to_string(list.size()) + " outputs; got " +
                                       std::to_string(position) + "; count from 0");
}

/// The public header does without <memory>.
struct ProgramHolder {
  std::shared_ptr<const Program> program;
};

Model::Model(ProgramHolder* holder) : holder_(holder) {
  for (const Place& place : program().places) weights_.push_back(place.value);
}

Model::Model(const Model& other)
    : holder_(other.holder_ ? new ProgramHolder(*other.holder_) : nullptr), weights_(other.weights_) {}

Model::~Model() { delete holder_; }

const Program& Model::program() const noexcept { return *holder_->program; }

const std::vector<Port>& Model::inputs() const noexcept { return program().inputs; }
const std::vector<Port>& Model::outputs() const noexcept { return program().outputs; }
int64_t Model::opset() const noexcept { return program().opset; }

/// `inputs` stand in the order of the file; nothing where a default is taken.
Arrays Model::run(std::vector<Array> inputs) const {
  check_devices(weights_, inputs);
  Runner runner(program(), weights_);
  return runner.run(program().graph, inputs);
}

Array Model::operator()(const Array& x) const {
  if (program().outputs.size() != 1) {
    throw Error(ErrorKind::argument, "onnx::Model: a model that gives one array must have one output; got " +
                                         names_of(program().outputs) + "; write model({{\"input\", x}})[\"output\"]");
  }
  return (*this)(std::span<const Array>(&x, 1))[0];
}

Arrays Model::operator()(std::span<const Array> given) const {
  std::vector<Array> inputs(program().inputs.size());
  size_t next = 0, wanted = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (program().has_default[i]) continue;
    ++wanted;
    if (next < given.size()) inputs[i] = fitted(program().inputs[i], given[next++]);
  }
  if (wanted != given.size()) {
    throw Error(ErrorKind::argument, "onnx::Model: there must be an array for each input without a default; got " +
                                         std::to_string(given.size()) + " where there are " + std::to_string(wanted) +
                                         "; the inputs are " + names_of(program().inputs));
  }
  return run(std::move(inputs));
}

Results Model::operator()(std::initializer_list<NamedInput> inputs) const {
  return (*this)(std::span<const NamedInput>(inputs.begin(), inputs.size()));
}

Results Model::operator()(std::span<const NamedInput> given) const {
  std::vector<Array> inputs(program().inputs.size());
  const auto refuse = [&](const char* rule, const std::string& came) {
    throw Error(ErrorKind::argument, std::string("onnx::Model: ") + rule + "; got \"" + came + "\"; the inputs are " +
                                         names_of(program().inputs));
  };
  for (const NamedInput& input : given) {
    const auto port = std::find_if(program().inputs.begin(), program().inputs.end(),
                                   [&](const Port& candidate) { return candidate.name == input.name; });
    if (port == program().inputs.end()) refuse("an input must have a name of the model's", std::string(input.name));
    Array& target = inputs[static_cast<size_t>(port - program().inputs.begin())];
    if (!target.is_nothing()) refuse("an input is given once", std::string(input.name));
    target = fitted(*port, input.value);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_nothing() && !program().has_default[i]) {
      refuse("an input without a default must be given", "nothing for " + program().inputs[i].name);
    }
  }
  Results results;
  Arrays values = run(std::move(inputs));
  for (size_t i = 0; i < values.size(); ++i) {
    results.list.push_back({program().outputs[i].name, std::move(values[i])});
  }
  return results;
}

template <class Self, class Visitor> void Model::walk(Self& self, Visitor& visitor, const ModelPath& path) {
  const std::vector<Place>& places = self.program().places;
  const ModelPart part = reflect::part_of(self, PartKind::fields, static_cast<int64_t>(places.size()));
  if (!visitor.enter(part, path)) return;
  for (size_t i = 0; i < places.size(); ++i) {
    visitor.array(self.weights_[i], path.field(places[i].name, places[i].trained));
  }
  visitor.leave(part, path);
}

void Model::rosin_visit(ModelVisitor& visitor, const ModelPath& path) const { walk(*this, visitor, path); }
void Model::rosin_visit(ModelEditor& editor, const ModelPath& path) { walk(*this, editor, path); }

Model load(const std::string& path) {
  const std::vector<uint8_t> bytes = read_whole_file(path);
  return Model(new ProgramHolder{make_program(parse_model(bytes, path), path)});
}

}  // namespace rosin::onnx
