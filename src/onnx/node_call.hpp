// What the conversion of an op sees: the arrays that a node reads, its attributes, and the version of the op. Arrays
// have the dims of the file in reverse, so axis a of the file is dim rank - 1 - a here.
// Read next: conversions.hpp (the table), the files convert_*.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/array.hpp>

#include "onnx/program.hpp"

namespace rosin::onnx {

class Runner;

class NodeCall {
 public:
  NodeCall(const Step& step, std::span<const Array> inputs, Runner& runner)
      : step_(step), inputs_(inputs), runner_(runner) {}

  int64_t opset() const noexcept { return step_.opset; }
  size_t input_count() const noexcept { return inputs_.size(); }
  std::span<const Array> inputs() const noexcept { return inputs_; }
  size_t output_count() const noexcept { return step_.outputs.size(); }
  /// Whether somebody wants the output.
  bool wants(size_t output) const noexcept { return output < step_.outputs.size() && step_.outputs[output] >= 0; }

  bool has(size_t input) const noexcept { return input < inputs_.size() && !inputs_[input].is_nothing(); }
  /// Error (io): the input is left out.
  const Array& operator[](size_t input) const;
  /// Nothing where it is left out.
  Array maybe(size_t input) const { return has(input) ? inputs_[input] : Array(); }
  /// Values of an input that is a setting: computed now.
  std::vector<int64_t> integers_in(size_t input) const;
  int64_t integer_in(size_t input) const;
  double real_in(size_t input) const;

  const Attribute* find(std::string_view name) const noexcept;
  int64_t integer(std::string_view name, int64_t fallback) const;
  double real(std::string_view name, double fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  /// Empty where there is none.
  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<double> reals(std::string_view name) const;
  /// The list in an input, or in an attribute as older versions have it; empty where there is none.
  std::vector<int64_t> integers_either(size_t input, std::string_view name) const;
  bool has_either(size_t input, std::string_view name) const { return has(input) || find(name); }

  /// The dim of an axis; negative axes count from the end. Error (io): outside.
  int dim(int64_t axis, int64_t rank) const;
  std::vector<int> dims(const std::vector<int64_t>& axes, int64_t rank) const;

  /// Runs the body in an attribute.
  std::vector<Array> run(std::string_view attribute, std::span<const Array> inputs) const;
  size_t body_inputs(std::string_view attribute) const;

  /// Error (io): what the node asks for breaks a rule, or is something that rosin lacks.
  [[noreturn]] void refuse(const std::string& rule, const std::string& came) const;

 private:
  const Block& body(std::string_view attribute) const;

  const Step& step_;
  std::span<const Array> inputs_;
  Runner& runner_;
};

}  // namespace rosin::onnx
