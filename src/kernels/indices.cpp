// Checked indices in kernels, and the error they become; see indices.hpp.
#include "kernels/indices.hpp"

#include <algorithm>
#include <string>

#include <rosin/error.hpp>

namespace rosin::kernels {

IndexCheck::IndexCheck(KernelWriter& writer, std::span<const int32_t> checks, int32_t node, int64_t size)
    : writer_(&writer), size_(writer.convert(writer.number(size), ScalarType::int64)),
      flags_(writer.buffer(DType::Int64, {-1, LaunchBuffer::flag})),
      guard_(writer.buffer(DType::Int64, {-1, LaunchBuffer::guard})),
      flag_(writer.number(std::find(checks.begin(), checks.end(), node) - checks.begin())) {}

Indices::Indices(KernelWriter& writer, const CallStep& step, const LaunchList& list, int32_t value, int64_t size)
    : writer_(&writer), indices_(writer, step, value), check_(writer, list.checks, step.node, size) {}

Indices::Found Indices::find(std::span<const Term> coordinates, bool from_end) const {
  const Term index = writer_->convert(indices_.load(coordinates), ScalarType::int64);
  const Term place = from_end ? writer_->select(index < like(index, 0), index + check_.size(), index) : index;
  return {index, place, writer_->convert(place, writer_->index_type()), check_.is_good(place)};
}

void IndexCheck::report(Term index) const {
  writer_->store(flags_, flag_, writer_->select(index < 0, index, index + 1));
  writer_->store(guard_, writer_->index(0), writer_->bits(ScalarType::int64, 1));
}

void throw_index_error(const Layout& layout, int32_t node, int64_t flag) {
  const CallStep step(layout, node);
  const int64_t found = flag < 0 ? flag : flag - 1;
  if (step.value.op->refuse_index) step.value.op->refuse_index(layout.attributes[static_cast<size_t>(node)], found);
  const std::string op(step.value.op->name), index = std::to_string(found);
  if (step.value.op->kind == Kind::gather && step.value.operands == 1) {
    throw Error(ErrorKind::argument, op + ": a label must be in [0, " + std::to_string(step.view(node).sizes[0]) +
                                         "); got " + index + "; labels count from 0");
  }
  const int32_t indexed = step.value.op->kind == Kind::gather ? step.in(0) : node;
  const auto dim = step.attributes<DimAttributes>().dim;  // the first attribute of all that have indices
  throw Error(ErrorKind::argument, op + ": an index must lie in its dim of " +
                                       std::to_string(step.view(indexed).sizes[dim]) + " elements; got " + index +
                                       "; indices count from 0, negative ones from the end");
}

}  // namespace rosin::kernels
