// Fused kernels on a device. Elementwise kernels: one item an element, or a strip. Row programs: rows.hpp. Roots,
// reductions over other dims than the row: roots.hpp.
// Read first: body.hpp, launches.hpp.
#include <algorithm>
#include <map>
#include <utility>

#include "kernels/body.hpp"
#include "kernels/lanes.hpp"
#include "kernels/launches.hpp"
#include "kernels/roots.hpp"
#include "kernels/rows.hpp"
#include "kernels/strips.hpp"
#include "kernels/tiles.hpp"
#include "scalar/convert.hpp"

namespace rosin::kernels {
namespace {

using Do = Instr::Do;

constexpr size_t most_again = 128;  // primitives of the operand of a root that is computed again

class FusedWriter {
 public:
  FusedWriter(const Layout& layout, int32_t kernel, std::span<const int32_t> ends, LaunchList& list)
      : layout_(layout), ends_(ends.begin(), ends.end()), number_(kernel),
        kernel_(layout.structure->kernels[static_cast<size_t>(kernel)]),
        sizes_(layout.kernels[static_cast<size_t>(kernel)]), list_(list), index_(find_index_type()) {}

  void run() {
    for (const Port& load : kernel_.loads) {
      if (load.check >= 0) list_.checks.push_back(load.check);
    }
    std::vector<size_t> stores;
    for (size_t i = 0; i < kernel_.instrs.size(); ++i) {
      if (kernel_.instrs[i].what == Do::store) stores.push_back(i);
      if (kernel_.instrs[i].what == Do::root) roots_.push_back({i});
    }
    if (kernel_.whole_rows) {
      take_sums_of_rows(stores);
      keep_for_roots();
      if (!write_rows(stores)) write_roots(layout_, number_, index_, roots_, given_, {}, ends_, list_);
      if (!summed_.empty()) {
        add_up_parts(layout_, number_, index_, summed_, row_groups_, ends_, list_);
      }
    } else {
      // First the roots: a store may take over the memory of a load. The last walk may do the stores on its way.
      const bool stored = write_roots(layout_, number_, index_, roots_, given_, stores, ends_, list_);
      if (!stores.empty() && total() > 0 && !stored) write_elements(stores);
    }
    for (const int32_t end : ends_) write_fused(layout_, end, {}, list_);
  }

 private:
  int64_t total() const { return sizes_.row * sizes_.rows; }
  const Value& v(int32_t value) const { return layout_.structure->graph.values[static_cast<size_t>(value)]; }

  ScalarType find_index_type() const {
    std::vector<int32_t> values{kernel_.domain};
    for (const Port& port : kernel_.loads) values.push_back(port.value);
    return index_type(layout_, values);
  }

  int64_t operand_bytes(const RootJob& root) const {
    const Instr& instr = kernel_.instrs[root.instr];
    return (instr.row ? sizes_.rows : total()) * bytes_of(shared_type(instr.type));
  }

  std::vector<Term> domain_sizes(KernelWriter& w, int first, int last) const {
    std::vector<Term> sizes;
    for (int d = first; d < last; ++d) sizes.push_back(w.number(sizes_.sizes[d]));
    return sizes;
  }

  int store_buffer(KernelWriter& w, const Instr& instr) const {
    return w.buffer(instr.storage, {kernel_.stores[instr.port].value, -1});
  }

  void write_elements(const std::vector<size_t>& stores) {
    KernelWriter w("elements", items_of_group, index_);
    KernelBody body(w, layout_, number_, stores, {}, list_.checks);
    std::vector<int> buffers;
    for (const size_t store : stores) buffers.push_back(store_buffer(w, kernel_.instrs[store]));
    Tiles tiles(w, body, stores, buffers);
    if (tiles.dim() > 0) {
      tiles.write();
      list_.launches.push_back(w.finish(tiles.count()));
      return;
    }
    const Term count = w.number(total());
    const std::vector<Term> sizes = domain_sizes(w, 0, sizes_.dims);
    const Strips strips(w, body, list_.device, stores, buffers);
    if (strips.lanes() > 1) {
      strips.write(count, sizes);
    } else {
      const Term at = w.global();
      w.when(at < count, [&] { store_elements(w, body, stores, buffers, {at, w.coordinates(at, sizes)}); });
    }
    list_.launches.push_back(w.finish(groups_for(groups_for(total(), strips.lanes()))));
    list_.launches.back().sharing = Sharing::any;
  }

  /// All values first: a store may take over the memory of a load.
  void store_elements(KernelWriter& w, KernelBody& body, const std::vector<size_t>& stores,
                      const std::vector<int>& buffers, const Spot& spot) const {
    std::vector<Term> values;
    for (const size_t store : stores) values.push_back(body.element(body.definition(store, 0), spot));
    for (size_t i = 0; i < stores.size(); ++i) w.store(buffers[i], spot.linear, values[i]);
  }

  /// Roots that the row program adds up on its way: what they read is not read twice.
  void take_sums_of_rows(const std::vector<size_t>& stores) {
    const auto stays = [&](const RootJob& root) { return !may_be_added_by_rows(layout_, number_, root); };
    const auto first = std::stable_partition(roots_.begin(), roots_.end(), stays);
    std::vector<size_t> wanted = stores;
    for (const RootJob& root : roots_) wanted.push_back(root.instr);
    KernelWriter unused("rows", items_of_group, index_);
    const KernelBody body(unused, layout_, number_, wanted);
    const auto count = static_cast<size_t>(roots_.end() - first);
    row_groups_ = count == 0 ? 0 : RowSums::groups_for(sizes_, body.primitives(), count);
    if (row_groups_ == 0) return;
    summed_.assign(first, roots_.end());
    roots_.erase(first, roots_.end());
    for (RootJob& root : summed_) root.scratch = list_.scratch(row_groups_ * sizes_.row * 4);
  }

  /// What a row program leaves for the roots behind it: the values of rows that their operands need, and these are
  /// computed again from what the row program reads; else the operands themselves.
  void keep_for_roots() {
    KernelWriter unused("rows", items_of_group, index_);
    for (RootJob& root : roots_) {
      const Instr& instr = kernel_.instrs[root.instr];
      const KernelBody whole(unused, layout_, number_, {root.instr});
      std::map<size_t, int32_t> values;
      if (!instr.row) {
        for (const size_t value : whole.row_values_of({root.instr})) values[value] = -1;
      }
      const KernelBody rest(unused, layout_, number_, {root.instr}, values);
      if (instr.row || rest.primitives() > most_again || whole.reads_stored({root.instr})) {
        root.scratch = list_.scratch(operand_bytes(root));
        continue;
      }
      for (const auto& [value, none] : values) {
        const ScalarType type = shared_type(kernel_.instrs[value].type);
        if (given_.count(value) == 0) given_[value] = list_.scratch(sizes_.rows * bytes_of(type));
      }
    }
  }

  /// Whether the roots are in the same launch.
  bool write_rows(const std::vector<size_t>& stores) {
    if (sizes_.rows == 0) return false;
    std::vector<size_t> wanted = stores;
    for (const RootJob& root : roots_) {
      if (root.scratch >= 0) wanted.push_back(root.instr);
    }
    for (const RootJob& root : summed_) wanted.push_back(root.instr);
    for (const auto& [value, scratch] : given_) wanted.push_back(value);
    if (wanted.empty()) return false;
    KernelWriter w("rows", items_of_group, index_);
    KernelBody body(w, layout_, number_, wanted, {}, list_.checks);
    std::vector<RowStore> to, values;
    RowSums sums{{}, row_groups_};
    for (const size_t store : stores) to.push_back({store, store_buffer(w, kernel_.instrs[store])});
    const auto scratch_buffer = [&](size_t instr, int32_t scratch) {
      return w.buffer(storage_of(shared_type(kernel_.instrs[instr].type)), {-1, scratch});
    };
    for (const RootJob& root : roots_) {
      if (root.scratch >= 0) to.push_back({root.instr, scratch_buffer(root.instr, root.scratch)});
    }
    for (const RootJob& root : summed_) sums.roots.push_back({root.instr, scratch_buffer(root.instr, root.scratch)});
    for (const auto& [value, scratch] : given_) values.push_back({value, scratch_buffer(value, scratch)});
    RowProgram rows(w, body, kernel_.row_dims, list_.device, std::move(to), std::move(values), std::move(sums));
    rows.write();
    const bool with_roots = add_up_behind(w, layout_, number_, roots_, rows.groups(), ends_, list_);
    list_.launches.push_back(w.finish(rows.groups()));
    return with_roots;
  }

  const Layout& layout_;
  std::vector<int32_t> ends_;  // that stand in no launch of a root
  int32_t number_;
  const Kernel& kernel_;
  const KernelLayout& sizes_;
  LaunchList& list_;
  ScalarType index_;
  std::vector<RootJob> roots_, summed_;  // summed: by the row program, of `row_groups_`
  int64_t row_groups_ = 0;
  std::map<size_t, int32_t> given_;  // values of rows that roots read, and their scratch blocks
};

}  // namespace

void write_fused(const Layout& layout, int32_t kernel, std::span<const int32_t> ends, LaunchList& list) {
  FusedWriter(layout, kernel, ends, list).run();
}

}  // namespace rosin::kernels
