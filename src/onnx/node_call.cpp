// See node_call.hpp.
#include "onnx/node_call.hpp"

#include <algorithm>

#include <rosin/error.hpp>

#include "onnx/runner.hpp"

namespace rosin::onnx {

const Array& NodeCall::operator[](size_t input) const {
  if (has(input)) return inputs_[input];
  refuse("input " + std::to_string(input) + " must be there", "nothing");
}

std::vector<int64_t> NodeCall::integers_in(size_t input) const { return (*this)[input].to_vector<int64_t>(); }

int64_t NodeCall::integer_in(size_t input) const {
  const Array& x = (*this)[input];
  if (x.count() != 1) refuse("input " + std::to_string(input) + " must have one element", std::to_string(x.count()));
  return x.item<int64_t>();
}

double NodeCall::real_in(size_t input) const {
  const Array& x = (*this)[input];
  if (x.count() != 1) refuse("input " + std::to_string(input) + " must have one element", std::to_string(x.count()));
  return x.item<double>();
}

const Attribute* NodeCall::find(std::string_view name) const noexcept {
  const auto found = std::find_if(step_.attributes.begin(), step_.attributes.end(),
                                  [&](const Attribute& attribute) { return attribute.name == name; });
  return found == step_.attributes.end() ? nullptr : &*found;
}

int64_t NodeCall::integer(std::string_view name, int64_t fallback) const {
  const Attribute* found = find(name);
  return found ? found->integer : fallback;
}

double NodeCall::real(std::string_view name, double fallback) const {
  const Attribute* found = find(name);
  return found ? static_cast<double>(found->real) : fallback;
}

std::string NodeCall::text(std::string_view name, std::string_view fallback) const {
  const Attribute* found = find(name);
  return found ? found->text : std::string(fallback);
}

std::vector<int64_t> NodeCall::integers(std::string_view name) const {
  const Attribute* found = find(name);
  return found ? found->integers : std::vector<int64_t>();
}

std::vector<double> NodeCall::reals(std::string_view name) const {
  const Attribute* found = find(name);
  return found ? std::vector<double>(found->reals.begin(), found->reals.end()) : std::vector<double>();
}

std::vector<int64_t> NodeCall::integers_either(size_t input, std::string_view name) const {
  return has(input) ? integers_in(input) : integers(name);
}

int NodeCall::dim(int64_t axis, int64_t rank) const {
  const int64_t counted = axis < 0 ? axis + rank : axis;
  if (counted < 0 || counted >= rank) {
    refuse("an axis must be one of " + std::to_string(rank), std::to_string(axis));
  }
  return static_cast<int>(rank - 1 - counted);
}

std::vector<int> NodeCall::dims(const std::vector<int64_t>& axes, int64_t rank) const {
  std::vector<int> result;
  for (int64_t axis : axes) result.push_back(dim(axis, rank));
  return result;
}

const Block& NodeCall::body(std::string_view attribute) const {
  const Attribute* found = find(attribute);
  if (!found || !found->block) refuse("the attribute \"" + std::string(attribute) + "\" must be a graph", "none");
  return *found->block;
}

std::vector<Array> NodeCall::run(std::string_view attribute, std::span<const Array> inputs) const {
  const Block& block = body(attribute);
  if (block.inputs.size() != inputs.size()) {
    refuse("the body must take " + std::to_string(inputs.size()) + " values", std::to_string(block.inputs.size()));
  }
  return runner_.run(block, inputs);
}

size_t NodeCall::body_inputs(std::string_view attribute) const { return body(attribute).inputs.size(); }

void NodeCall::refuse(const std::string& rule, const std::string& came) const {
  throw Error(ErrorKind::io, rule + "; got " + came +
                                 "; the model asks for something that rosin does not have, or that "
                                 "the format forbids");
}

}  // namespace rosin::onnx
