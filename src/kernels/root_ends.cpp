// See root_ends.hpp.
#include "kernels/root_ends.hpp"

#include <algorithm>

namespace rosin::kernels {
namespace {

const Kernel& kernel_of(const Layout& layout, int32_t kernel) {
  return layout.structure->kernels[static_cast<size_t>(kernel)];
}

/// Which of the results the load's memory is; their number where it is none.
size_t result_of(const Layout& layout, const Port& load, std::span<const int32_t> results) {
  const int32_t root = layout.views[static_cast<size_t>(load.value)].root;
  return static_cast<size_t>(std::find(results.begin(), results.end(), root) - results.begin());
}

/// Whether element i of the kernel's domain is element i of the load's memory.
bool is_in_order(const KernelLayout& sizes, const PortLayout& load) {
  int64_t stride = 1;
  for (int d = 0; d < sizes.dims; ++d) {
    if (load.strides[d] != stride) return false;
    stride *= sizes.sizes[d];
  }
  return load.offset == 0;
}

/// Whether the kernel at the end reads those roots in order, and no other one of these.
bool follows_from(const Layout& layout, int32_t end, std::span<const int32_t> results, std::span<const Port> roots) {
  const Kernel& kernel = kernel_of(layout, end);
  const KernelLayout& sizes = layout.kernels[static_cast<size_t>(end)];
  if (sizes.row * sizes.rows != layout.views[static_cast<size_t>(results.front())].count()) return false;
  for (size_t i = 0; i < kernel.loads.size(); ++i) {
    const int32_t read = layout.views[static_cast<size_t>(kernel.loads[i].value)].root;
    const auto is_read = [&](const Port& root) { return root.value == read; };
    if (std::none_of(roots.begin(), roots.end(), is_read)) continue;
    const bool given = result_of(layout, kernel.loads[i], results) < results.size();
    if (!given || !is_in_order(sizes, sizes.loads[i])) return false;
  }
  return true;
}

ScalarType index_type_of(const Layout& layout, const Kernel& kernel) {
  std::vector<int32_t> values{kernel.domain};
  for (const Port& load : kernel.loads) values.push_back(load.value);
  return index_type(layout, values);
}

}  // namespace

std::vector<int32_t> take_ends(const Layout& layout, int32_t kernel, std::span<const int32_t> results, ScalarType index,
                               std::vector<int32_t>& ends) {
  const std::vector<Port>& roots = kernel_of(layout, kernel).roots;
  const auto stays = [&](int32_t end) {
    return !follows_from(layout, end, results, roots) || index_type_of(layout, kernel_of(layout, end)) != index;
  };
  const auto first = std::stable_partition(ends.begin(), ends.end(), stays);
  std::vector<int32_t> taken(first, ends.end());
  ends.erase(first, ends.end());
  return taken;
}

RootEnds::RootEnds(KernelWriter& writer, const Layout& layout, std::span<const int32_t> ends,
                   std::span<const int32_t> results)
    : writer_(writer), layout_(layout) {
  for (const int32_t result : results)
    types_.push_back(layout.structure->graph.values[static_cast<size_t>(result)].dtype);
  for (const int32_t end : ends) add(end, results);
}

void RootEnds::add(int32_t number, std::span<const int32_t> results) {
  const Kernel& kernel = kernel_of(layout_, number);
  std::vector<size_t> stores;
  for (size_t i = 0; i < kernel.instrs.size(); ++i) {
    if (kernel.instrs[i].what == Instr::Do::store) stores.push_back(i);
  }
  End& end = ends_.emplace_back(End{KernelBody(writer_, layout_, number, stores), stores, {}, {}, {}});
  for (const size_t store : stores) {
    const Instr& instr = kernel.instrs[store];
    end.buffers.push_back(writer_.buffer(instr.storage, {kernel.stores[instr.port].value, -1}));
  }
  const KernelLayout& sizes = end.body.sizes();
  for (int d = 0; d < sizes.dims; ++d) end.sizes.push_back(writer_.number(sizes.sizes[d]));
  for (size_t i = 0; i < kernel.loads.size(); ++i) {
    const size_t result = result_of(layout_, kernel.loads[i], results);
    if (result < results.size()) end.given.push_back({i, result});
  }
}

/// The sum as it would be read from memory.
Term RootEnds::as_stored(size_t result, Term sum) const {
  return writer_.round(writer_.convert(sum, scalar_type(types_[result])), types_[result]);
}

void RootEnds::write(Term at, std::span<const Term> sums) {
  for (End& end : ends_) write(end, at, sums);
}

void RootEnds::write(End& end, Term at, std::span<const Term> sums) {
  const Spot spot{at, writer_.coordinates(at, end.sizes)};
  for (const Given& given : end.given) end.body.set_strip(given.load, {as_stored(given.result, sums[given.result])});
  end.body.go_to_lane(0);
  std::vector<Term> values;
  for (const size_t store : end.stores) values.push_back(end.body.element(end.body.definition(store, 0), spot));
  for (size_t i = 0; i < end.stores.size(); ++i) writer_.store(end.buffers[i], at, values[i]);
  end.body.leave();
}

}  // namespace rosin::kernels
