// See step_text.hpp.
#include "plan/step_text.hpp"

#include <rosin/dtype.hpp>
#include <rosin/shape.hpp>

namespace rosin::plan {
namespace {

std::string shape_text(const Layout& layout, int32_t value) {
  const View& view = layout.views[static_cast<size_t>(value)];
  return to_string(Shape(std::span<const int64_t>(view.sizes, view.rank)));
}

}  // namespace

std::string ops_of(const Structure& structure, const Step& step) {
  if (step.kernel < 0) return std::string(structure.graph.values[static_cast<size_t>(step.node)].op->name);
  std::string text;
  const auto add = [&](int32_t kernel) {
    for (const Instr& instr : structure.kernels[static_cast<size_t>(kernel)].instrs) {
      if (instr.op) text.append(text.empty() ? "" : " ").append(instr.op->name);
    }
  };
  add(step.kernel);
  for (const int32_t end : step.ends) add(end);
  return text.empty() ? "copy" : text;
}

std::string sizes_of(const Layout& layout, const Step& step) {
  const Structure& structure = *layout.structure;
  const int32_t whole = step.kernel < 0 ? step.node : structure.kernels[static_cast<size_t>(step.kernel)].domain;
  const Value& value = structure.graph.values[static_cast<size_t>(whole)];
  std::string text;
  if (step.kernel < 0) {
    for (int i = 0; i < value.operands; ++i) {
      const int32_t operand = value.in[i];
      if (operand < 0 || structure.graph.values[static_cast<size_t>(operand)].is_scalar()) continue;
      text.append(shape_text(layout, operand)).append(" ");
    }
  }
  if (text.empty()) text = shape_text(layout, whole) + " ";
  return text.append(to_string(value.dtype));
}

}  // namespace rosin::plan
