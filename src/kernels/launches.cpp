// Which kernels a layout needs; see launches.hpp.
#include "kernels/launches.hpp"

#include <algorithm>
#include <limits>

#include <rosin/error.hpp>

#include "plan/step_text.hpp"

namespace rosin::kernels {
namespace {

bool moves(const View& view, int d) { return view.sizes[d] != 1; }

void write_call(const Layout& layout, const Step& step, LaunchList& list) {
  const int32_t node = step.node;
  const Op& op = *layout.structure->graph.values[static_cast<size_t>(node)].op;
  switch (op.kind) {
    case Kind::movement: return write_movement(layout, node, list);
    case Kind::gather: return write_gather(layout, node, list);
    case Kind::scatter: return write_scatter(layout, node, list);
    case Kind::contraction: return write_matmul(layout, node, list);
    case Kind::window: return write_window(layout, node, list);
    case Kind::sort: return write_sort(layout, step, list);
    case Kind::scan: return write_scan(layout, node, list);
    case Kind::random: return write_random(layout, node, list);
    case Kind::attention: return write_attention(layout, step, list);
    case Kind::leaf:  // no calls
    case Kind::scalar:
    case Kind::argument:
    case Kind::elementwise:
    case Kind::draw:
    case Kind::reduction:
    case Kind::routine:  // recorded on the CPU alone
    case Kind::part:
    case Kind::transfer: break;
  }
  throw_unknown(op, "the writer of kernels");
}

/// Whether the epilogue is computed too.
bool write_with_epilogue(const Layout& layout, const Step& step, LaunchList& list) {
  const Op& op = *layout.structure->graph.values[static_cast<size_t>(step.node)].op;
  const bool convolves = op.kind == Kind::contraction && op.contraction != Contraction::matmul;
  if (convolves) return write_convolution(layout, step, list);
  write_call(layout, step, list);
  return false;
}

/// What stands behind the product of a step that no library computes whole.
void write_epilogue(const Layout& layout, const Step& step, LaunchList& list) {
  for (const int32_t kernel : step.behind) write_fused(layout, kernel, {}, list);
  if (step.epilogue.writes_auxiliary() && plan::has_bits(step.epilogue.activation)) write_bits(layout, step, list);
}

}  // namespace

LaunchList write_launches(const Layout& layout, const Abilities& device, std::span<const ByLibrary> by_library) {
  LaunchList list;
  list.device = device;
  for (size_t number = 0; number < layout.structure->steps.size(); ++number) {
    const Step& step = layout.structure->steps[number];
    const size_t first = list.launches.size();
    const ByLibrary done = number < by_library.size() ? by_library[number] : ByLibrary::nothing;
    bool whole = done == ByLibrary::all;
    if (step.kernel >= 0) write_fused(layout, step.kernel, step.ends, list);
    else if (done == ByLibrary::nothing) whole = write_with_epilogue(layout, step, list);
    else list.launches.emplace_back().call = static_cast<int32_t>(number);
    if (step.kernel < 0 && !whole) write_epilogue(layout, step, list);
    for (size_t i = first; i < list.launches.size(); ++i) {
      list.launches[i].step = static_cast<int32_t>(number);
      list.launches[i].what = plan::ops_of(*layout.structure, step);
    }
  }
  merge_launches(layout, list);
  guard_leaves(layout, list);
  mark_read_only(layout, list);
  return list;
}

std::optional<int64_t> memory_of(const Layout& layout, const LaunchBuffer& buffer) {
  if (buffer.value < 0) return std::nullopt;
  const Place& place = layout.places[static_cast<size_t>(buffer.value)];
  if (place.where == Place::Where::leaf) return buffer.value;
  if (place.where != Place::Where::output) return std::nullopt;
  const Output& output = layout.outputs[static_cast<size_t>(place.at)];
  return output.donor >= 0 ? output.donor : output.value;
}

ScalarType index_type(const Layout& layout, std::span<const int32_t> values) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max() - 16 * items_of_group;  // of strips
  for (const int32_t value : values) {
    const View& view = layout.views[static_cast<size_t>(value)];
    int64_t last = view.offset, elements = 1;
    for (int d = 0; d < view.rank; ++d) {
      last += std::max<int64_t>(view.sizes[d] - 1, 0) * std::max<int64_t>(view.strides[d], 0);
      elements *= view.sizes[d];
    }
    if (last > most || elements > most) return ScalarType::int64;
  }
  return ScalarType::int32;
}

ArrayTerm::ArrayTerm(KernelWriter& writer, const Layout& layout, int32_t value)
    : ArrayTerm(writer, layout, value, layout.structure->graph.values[static_cast<size_t>(value)].dtype,
                {layout.views[static_cast<size_t>(value)].root, -1}) {}

ArrayTerm::ArrayTerm(KernelWriter& writer, const Layout& layout, int32_t value, DType type, LaunchBuffer where)
    : writer_(&writer), buffer_(writer.buffer(type, where)) {
  const View& view = layout.views[static_cast<size_t>(value)];
  has_offset_ = view.offset != 0;
  if (has_offset_) offset_ = writer.number(view.offset);
  for (int d = 0; d < view.rank; ++d) {
    moves_.push_back(moves(view, d));
    strides_.push_back(moves_.back() ? writer.number(view.strides[d]) : Term{});
  }
}

Term ArrayTerm::at(std::span<const Term> coordinates) const {
  Term sum = has_offset_ ? offset_ : Term{};
  for (size_t d = 0; d < strides_.size(); ++d) {
    if (!moves_[d]) continue;
    const Term part = coordinates[d] * strides_[d];
    sum = sum.writer ? sum + part : part;
  }
  return sum.writer ? sum : writer_->index(0);
}

std::vector<Term> size_terms(KernelWriter& writer, const Layout& layout, int32_t value) {
  const View& view = layout.views[static_cast<size_t>(value)];
  std::vector<Term> sizes;
  for (int d = 0; d < view.rank; ++d) sizes.push_back(moves(view, d) ? writer.number(view.sizes[d]) : writer.index(1));
  return sizes;
}

}  // namespace rosin::kernels
