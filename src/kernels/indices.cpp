// Checked indices in kernels, and the error they become; see indices.hpp.
#include "kernels/indices.hpp"

#include <string>

#include <rosin/error.hpp>

namespace rosin::kernels {

Indices::Indices(KernelWriter& writer, const CallStep& step, const LaunchList& list, int32_t value, int64_t size)
    : writer_(&writer), indices_(writer, step, value), size_(writer.convert(writer.number(size), ScalarType::int64)),
      flags_(writer.buffer(DType::Int64, {-1, LaunchBuffer::flag})),
      guard_(writer.buffer(DType::Int64, {-1, LaunchBuffer::guard})),
      flag_(writer.number(static_cast<int64_t>(list.checks.size()) - 1)) {}

Indices::Found Indices::find(std::span<const Term> coordinates, bool from_end) const {
  const Term index = writer_->convert(indices_.load(coordinates), ScalarType::int64);
  const Term zero = like(index, 0);
  if (!from_end) return {index, writer_->convert(index, writer_->index_type()), zero <= index && index < size_};
  const Term place = writer_->select(index < zero, index + size_, index);
  return {index, writer_->convert(place, writer_->index_type()), zero <= place && place < size_};
}

void Indices::report(Term index) const {
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
