// Kernels of movements that copy: concat and pad, one item an element of the result. (All other movements are views;
// where one must stand in memory of its own, a fused kernel copies it.) Read first: elements.hpp.
#include <algorithm>

#include <rosin/error.hpp>

#include "kernels/elements.hpp"

namespace rosin::kernels {
namespace {

// Operands that one launch joins: OpenCL promises 1024 bytes of arguments, and each item looks at all of them.
constexpr int most_joined = 8;

// Operands [begin, end), which start at `first` of the joined dim. Every item finds out which of them its element comes
// from.
void write_joined(const CallStep& step, int begin, int end, int64_t first, LaunchList& list) {
  KernelWriter writer = step.writer();
  const auto dim = static_cast<size_t>(step.attributes<DimAttributes>().dim);
  const View& whole = step.view(step.node);
  std::vector<Term> sizes = size_terms(writer, step.layout, step.node);
  const Elements out(writer, step, step.node);
  std::vector<Elements> operands;
  std::vector<Term> starts = {writer.index(0)};
  int64_t length = 0;
  for (int i = begin; i < end; ++i) {
    operands.emplace_back(writer, step, step.in(i), step.value.dtype);
    starts.push_back(writer.number(length += step.view(step.in(i)).sizes[dim]));
  }
  if (length == 0) return;
  const bool all = begin == 0 && end == step.value.operands;
  const Term shift = all ? starts[0] : writer.number(first);
  if (!all) sizes[dim] = starts.back();
  launch_each(list, writer, whole.count() / whole.sizes[dim] * length, [&](Term i) {
    const std::vector<Term> at = writer.coordinates(i, sizes);
    std::vector<Term> to = at;
    if (!all) to[dim] = at[dim] + shift;
    for (size_t k = 0; k < operands.size(); ++k) {
      writer.when(starts[k] <= at[dim] && at[dim] < starts[k + 1], [&] {
        std::vector<Term> from = at;
        from[dim] = at[dim] - starts[k];
        out.copy(to, operands[k], from);
      });
    }
  });
}

void write_concat(const CallStep& step, LaunchList& list) {
  const auto dim = static_cast<size_t>(step.attributes<DimAttributes>().dim);
  int64_t first = 0;
  for (int begin = 0; begin < step.value.operands; begin += most_joined) {
    const int end = std::min(begin + most_joined, step.value.operands);
    write_joined(step, begin, end, first, list);
    for (int i = begin; i < end; ++i) first += step.view(step.in(i)).sizes[dim];
  }
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
