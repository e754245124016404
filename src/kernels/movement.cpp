// Kernels of movements that copy: concat and pad, one item an element of the result. (All other movements are views;
// where one must stand in memory of its own, a fused kernel copies it.) Read first: elements.hpp.
#include <rosin/error.hpp>

#include "kernels/elements.hpp"

namespace rosin::kernels {
namespace {

// Every item finds out which operand its element comes from.
void write_concat(const CallStep& step, LaunchList& list) {
  KernelWriter writer = step.writer();
  const auto dim = static_cast<size_t>(step.attributes<DimAttributes>().dim);
  const std::vector<Term> sizes = size_terms(writer, step.layout, step.node);
  const Elements out(writer, step, step.node);
  std::vector<Elements> operands;
  std::vector<Term> starts = {writer.index(0)};
  int64_t start = 0;
  for (int i = 0; i < step.value.operands; ++i) {
    operands.emplace_back(writer, step, step.in(i), step.value.dtype);
    starts.push_back(writer.number(start += step.view(step.in(i)).sizes[dim]));
  }
  launch_each(list, writer, step.view(step.node).count(), [&](Term i) {
    const std::vector<Term> at = writer.coordinates(i, sizes);
    for (size_t k = 0; k < operands.size(); ++k) {
      writer.when(starts[k] <= at[dim] && at[dim] < starts[k + 1], [&] {
        std::vector<Term> from = at;
        from[dim] = at[dim] - starts[k];
        out.copy(at, operands[k], from);
      });
    }
  });
}

void write_pad(const CallStep& step, LaunchList& list) {
  KernelWriter writer = step.writer();
  const auto attributes = step.attributes<PadAttributes>();
  const auto dim = static_cast<size_t>(attributes.dim);
  const std::vector<Term> sizes = size_terms(writer, step.layout, step.node);
  const Elements out(writer, step, step.node), x(writer, step, step.in(0));
  const Elements fill(writer, step, step.in(1), step.value.dtype);
  const Term low = writer.number(attributes.low);
  const Term end = writer.number(attributes.low + step.view(step.in(0)).sizes[dim]);
  launch_each(list, writer, step.view(step.node).count(), [&](Term i) {
    const std::vector<Term> at = writer.coordinates(i, sizes);
    const Term inside = low <= at[dim] && at[dim] < end;
    writer.when(inside, [&] {
      std::vector<Term> from = at;
      from[dim] = at[dim] - low;
      out.copy(at, x, from);
    });
    writer.when(!inside, [&] { out.copy(at, fill, {}); });
  });
}

}  // namespace

void write_movement(const Layout& layout, int32_t node, LaunchList& list) {
  const CallStep step(layout, node);
  if (step.value.op->movement == Movement::pad) return write_pad(step, list);
  if (step.value.op->movement == Movement::concat) return write_concat(step, list);
  throw Error(ErrorKind::internal, std::string(step.value.op->name) + ": a view came as a step; report it");
}

}  // namespace rosin::kernels
