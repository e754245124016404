// Fused kernels on a device. Elementwise kernels: one item an element. Row programs: as many items a row as it is long
// (a power of two, at most a group), which walk over it once for each reduction. Roots, reductions over other dims than
// the row: a kernel of their own, which computes what it adds up again, or reads it where a row program has stored it.
// Read first: body.hpp, launches.hpp.
#include <algorithm>
#include <bit>

#include "kernels/body.hpp"
#include "kernels/lanes.hpp"
#include "kernels/launches.hpp"
#include "kernels/strips.hpp"
#include "kernels/target.hpp"
#include "plan/image_order.hpp"
#include "scalar/convert.hpp"

namespace rosin::kernels {
namespace {

using Do = Instr::Do;

constexpr int64_t part_elements = 16 * 1024;  // of a reduction to few results: each part is added up by itself
constexpr int64_t most_parts = 1024;

Term neutral(KernelWriter& w, const Reducer& reducer, ScalarType type) {
  return w.bits(type, reducer.body.neutral_bits(type));
}

/// Both combined as the mode of the instr allows.
Term combined(KernelWriter& w, const Instr& instr, Term x, Term y) {
  w.allow(allowed(instr));
  const Term made = w.combine(instr.reducer->body, x, y);
  w.allow({});
  return made;
}

/// A power of two of items that share `elements`.
int64_t lanes_for(int64_t elements) {
  const auto wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(elements, 1))));
  return std::min<int64_t>(wanted, items_of_group);
}

/// One reduction to be written: the instr of its root, and where its operand stands if it is not computed again.
struct RootJob {
  size_t instr;
  int32_t scratch = -1;  // of the operand, in the type it is computed in
};

class FusedWriter {
 public:
  FusedWriter(const Layout& layout, int32_t kernel, LaunchList& list)
      : layout_(layout), number_(kernel), kernel_(layout.structure->kernels[static_cast<size_t>(kernel)]),
        sizes_(layout.kernels[static_cast<size_t>(kernel)]), list_(list), index_(find_index_type()) {}

  void run() {
    std::vector<size_t> stores;
    for (size_t i = 0; i < kernel_.instrs.size(); ++i) {
      if (kernel_.instrs[i].what == Do::store) stores.push_back(i);
      if (kernel_.instrs[i].what == Do::root) roots_.push_back({i});
    }
    if (kernel_.whole_rows) {
      for (RootJob& root : roots_) root.scratch = list_.scratch(operand_bytes(root));
      write_rows(stores);
      write_roots({});
    } else {
      // First the roots: a store may take over the memory of a load. The last walk may do the stores on its way.
      write_roots(stores);
      if (!stores.empty() && total() > 0 && !stored_) write_elements(stores);
    }
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
    KernelBody body(w, layout_, number_, stores);
    std::vector<int> buffers;
    for (const size_t store : stores) buffers.push_back(store_buffer(w, kernel_.instrs[store]));
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
    list_.launches.back().alone = true;
  }

  /// All values first: a store may take over the memory of a load.
  void store_elements(KernelWriter& w, KernelBody& body, const std::vector<size_t>& stores,
                      const std::vector<int>& buffers, const Spot& spot) const {
    std::vector<Term> values;
    for (const size_t store : stores) values.push_back(body.element(body.definition(store, 0), spot));
    for (size_t i = 0; i < stores.size(); ++i) w.store(buffers[i], spot.linear, values[i]);
  }

  // ---- Row programs ----

  void write_rows(const std::vector<size_t>& stores) {
    if (sizes_.rows == 0) return;
    std::vector<size_t> wanted = stores;
    for (const RootJob& root : roots_) wanted.push_back(root.instr);
    KernelWriter w("rows", items_of_group, index_);
    KernelBody body(w, layout_, number_, wanted);
    std::vector<int> buffers;
    for (const size_t store : stores) buffers.push_back(store_buffer(w, kernel_.instrs[store]));
    for (const RootJob& root : roots_) {
      buffers.push_back(w.buffer(storage_of(shared_type(kernel_.instrs[root.instr].type)), {-1, root.scratch}));
    }
    keep_long_row(w, body, wanted);
    const int64_t lanes_of_row = lanes_for(sizes_.row);
    RowLoop loop{w,
                 body,
                 w.number(sizes_.row),
                 w.number(sizes_.rows),
                 w.number(lanes_of_row),
                 domain_sizes(w, 0, kernel_.row_dims),
                 domain_sizes(w, kernel_.row_dims, sizes_.dims),
                 Combiner(w, list_.device)};
    loop.begin();
    for (int phase = 0; loop.reduce(phase); ++phase) {}
    loop.store(wanted, buffers);
    list_.launches.push_back(w.finish(groups_for(sizes_.rows * lanes_of_row)));
  }

  /// Of a row that is longer than usual, what several walks need is kept in shared memory, as far as there is room:
  /// each item finds there what it has put there. The arrays have few sizes, so that other rows take the same code.
  void keep_long_row(KernelWriter& w, KernelBody& body, const std::vector<size_t>& wanted) const {
    if (sizes_.row <= KernelTarget::usual_row) return;
    const int64_t elements = (sizes_.row + row_step - 1) / row_step * row_step;
    int64_t room = list_.device.shared_bytes - bytes_of_sums;
    const std::vector<int> walks = body.walks_of_loads(wanted);
    for (size_t load = 0; load < walks.size(); ++load) {
      if (walks[load] < 2) continue;
      const ScalarType type = body.type_of_load(load);
      const int64_t bytes = elements * bytes_of(type);
      if (bytes > room) continue;
      room -= bytes;
      body.keep_row(load, w.shared(type, static_cast<int>(elements)));
    }
  }

  /// The items of one row, and what they do in turn.
  struct RowLoop {
    KernelWriter& w;
    KernelBody& body;
    Term length, rows, lanes;
    std::vector<Term> row_sizes, other_sizes;
    Combiner combiner;
    Term lane{}, row{}, valid{}, end{};
    Spot row_spot{};

    void begin() {
      const Term at = w.global();
      const Term wanted = at / lanes;
      lane = at - wanted * lanes;
      valid = wanted < rows;
      row = min(wanted, rows - 1);  // items beyond the last row work along, and store nothing
      end = w.select(valid, length, w.index(0));
      row_spot = {row, w.coordinates(row, other_sizes)};
    }

    Spot element(Term j) {
      Spot spot{row * length + j, w.coordinates(j, row_sizes), w.item() - lane + j};
      spot.coordinates.insert(spot.coordinates.end(), row_spot.coordinates.begin(), row_spot.coordinates.end());
      return spot;
    }

    /// Values at row level that need `phase` reductions at most, while no loop is open.
    void compute_rows(int phase) {
      for (size_t i = 0; i < body.kernel().instrs.size(); ++i) {
        const Instr& instr = body.kernel().instrs[i];
        const bool value = instr.what == Do::load || instr.what == Do::apply || instr.what == Do::convert;
        if (value && instr.row && body.is_needed(i) && body.phase(i) <= phase) body.row(i, row_spot);
      }
    }

    /// The row reductions of one phase, in one walk over the row. False when none is left.
    bool reduce(int phase) {
      compute_rows(phase);
      std::vector<size_t> reductions;
      bool more = false;
      for (size_t i = 0; i < body.kernel().instrs.size(); ++i) {
        if (body.kernel().instrs[i].what != Do::reduce || !body.is_needed(i)) continue;
        if (body.phase(i) == phase + 1) reductions.push_back(i);
        more = more || body.phase(i) > phase;
      }
      if (!more) return false;
      std::vector<Term> sums;
      for (const size_t i : reductions) {
        const Instr& instr = body.kernel().instrs[i];
        sums.push_back(w.variable(neutral(w, *instr.reducer, instr.type)));
      }
      w.loop(lane, end, lanes, [&](Term j) {
        const Spot spot = element(j);
        for (size_t k = 0; k < reductions.size(); ++k) {
          const Term x = body.element(body.definition(reductions[k], 0), spot);
          w.assign(sums[k], combined(w, body.kernel().instrs[reductions[k]], sums[k], x));
        }
      });
      body.leave();
      for (size_t k = 0; k < reductions.size(); ++k) {
        const Instr& instr = body.kernel().instrs[reductions[k]];
        body.set_row(reductions[k], combiner.combine(*instr.reducer, sums[k], lane, lanes));
      }
      return true;
    }

    void store(const std::vector<size_t>& wanted, const std::vector<int>& buffers) {
      const auto is_row = [&](size_t i) { return body.kernel().instrs[i].row; };
      w.loop(lane, end, lanes, [&](Term j) {
        const Spot spot = element(j);
        std::vector<Term> values;
        for (const size_t i : wanted) values.push_back(is_row(i) ? Term{} : body.element(body.definition(i, 0), spot));
        for (size_t i = 0; i < wanted.size(); ++i) put(buffers[i], spot.linear, values[i]);
      });
      body.leave();
      w.when(valid && lane == 0, [&] {
        for (size_t i = 0; i < wanted.size(); ++i) {
          if (is_row(wanted[i])) put(buffers[i], row, body.row(body.definition(wanted[i], 0), row_spot));
        }
      });
    }

    void put(int buffer, Term at, Term value) {
      if (value.writer) w.store(buffer, at, w.convert(value, w.type_of_buffer(buffer)));
    }
  };

  // ---- Reductions over other dims ----

  struct RootSizes {
    int first;     // dims of the operand begin there
    uint8_t keep;  // bits of kept dims
    int64_t results, reduced, parts;
  };

  /// The kept dims of a root among those of its operand, as bits in the order of its memory.
  uint8_t kept(const RootJob& root) const {
    const Instr& instr = kernel_.instrs[root.instr];
    const Value& result = v(kernel_.roots[instr.port].value);
    const int rank = v(kernel_.domain).rank;
    uint8_t bits = 0;
    for (int i = 0, wide = 0; i < rank; ++i) {
      const int d = kernel_.channels_first ? plan::channels_first_dim(rank, i) : i;
      if (!(kernel_.wide >> d & 1)) continue;
      if (result.wide >> d & 1) bits = static_cast<uint8_t>(bits | 1 << wide);
      ++wide;
    }
    return bits;
  }

  /// Where the result stands whose number among the kept dims, in the order of the operand's memory, is `number`.
  Term place(KernelWriter& w, const RootJob& job, const RootSizes& s, Term number) const {
    if (!kernel_.channels_first) return number;
    std::vector<Term> kept_sizes;
    for (int d = s.first; d < sizes_.dims; ++d) {
      if (s.keep >> d & 1) kept_sizes.push_back(w.number(sizes_.sizes[d]));
    }
    const std::vector<Term> at = w.coordinates(number, kept_sizes);
    const PortLayout& result = sizes_.roots[kernel_.instrs[job.instr].port];
    Term sum = w.index(0);
    for (int d = s.first, k = 0; d < sizes_.dims; ++d) {
      if (s.keep >> d & 1) sum = sum + at[static_cast<size_t>(k++)] * w.number(result.strides[d]);
    }
    return sum;
  }

  void write_roots(const std::vector<size_t>& stores) {
    // Roots that keep the same dims are added up in one walk.
    std::vector<char> done(roots_.size(), 0);
    for (size_t i = 0; i < roots_.size(); ++i) {
      if (done[i]) continue;
      std::vector<RootJob> together;
      for (size_t k = i; k < roots_.size(); ++k) {
        const bool same = kept(roots_[k]) == kept(roots_[i]) &&
                          kernel_.instrs[roots_[k].instr].row == kernel_.instrs[roots_[i].instr].row;
        if (done[k] || !same) continue;
        done[k] = 1;
        together.push_back(roots_[k]);
      }
      const bool last = std::find(done.begin(), done.end(), 0) == done.end();
      write_root(together, last && stores_go_along(together) ? stores : std::vector<size_t>{});
    }
  }

  /// A walk of neighbours meets neighbours where the first dim is added up; elsewhere it pays for few elements.
  bool stores_go_along(const std::vector<RootJob>& jobs) const {
    constexpr int64_t few = 1 << 16;
    return !kernel_.instrs[jobs.front().instr].row && (total() <= few || !(kept(jobs.front()) & 1));
  }

  void write_root(const std::vector<RootJob>& jobs, const std::vector<size_t>& stores) {
    const bool row = kernel_.instrs[jobs.front().instr].row;
    const int first = row ? kernel_.row_dims : 0;
    const uint8_t keep = kept(jobs.front());
    int64_t results = 1, reduced = 1;
    for (int d = first; d < sizes_.dims; ++d) (keep >> d & 1 ? results : reduced) *= sizes_.sizes[d];
    if (results == 0) return;
    int64_t parts = 1;
    if (results * items_of_group < reduced) parts = std::clamp<int64_t>(reduced / part_elements, 1, most_parts);
    std::vector<int32_t> partial;
    for (const RootJob& job : jobs) {
      const ScalarType type = shared_type(kernel_.instrs[job.instr].type);
      if (parts > 1) partial.push_back(list_.scratch(results * parts * bytes_of(type)));
    }
    const RootSizes sizes{first, keep, results, reduced, parts};
    write_sums(jobs, sizes, partial, stores);
    stored_ = !stores.empty();
    if (parts > 1) write_parts(jobs, sizes, partial);
  }

  /// Where a root's results, or those of its parts, go.
  int result_buffer(KernelWriter& w, const RootJob& job, int32_t scratch) const {
    const Instr& instr = kernel_.instrs[job.instr];
    if (scratch >= 0) return w.buffer(storage_of(shared_type(instr.type)), {-1, scratch});
    return w.buffer(instr.storage, {kernel_.roots[instr.port].value, -1});
  }

  void write_sums(const std::vector<RootJob>& jobs, const RootSizes& s, const std::vector<int32_t>& partial,
                  const std::vector<size_t>& stores) {
    KernelWriter w("sums", items_of_group, index_);
    std::vector<size_t> computed = stores;
    for (const RootJob& job : jobs) {
      if (job.scratch < 0) computed.push_back(job.instr);
    }
    KernelBody body(w, layout_, number_, computed);
    std::vector<int> from, to;
    for (size_t i = 0; i < jobs.size(); ++i) {
      const ScalarType type = shared_type(kernel_.instrs[jobs[i].instr].type);
      from.push_back(jobs[i].scratch < 0 ? -1 : w.buffer(storage_of(type), {-1, jobs[i].scratch}));
      to.push_back(result_buffer(w, jobs[i], partial.empty() ? -1 : partial[i]));
    }
    std::vector<int> store_to;
    for (const size_t store : stores) store_to.push_back(store_buffer(w, kernel_.instrs[store]));
    const int64_t lanes_of_result = lanes_for((s.reduced + s.parts - 1) / s.parts);
    const Term results = w.number(s.results), reduced = w.number(s.reduced), parts = w.number(s.parts);
    const Term lanes = w.number(lanes_of_result), part_size = w.number((s.reduced + s.parts - 1) / s.parts);
    std::vector<Term> kept_sizes, reduced_sizes;
    for (int d = s.first; d < sizes_.dims; ++d) {
      (s.keep >> d & 1 ? kept_sizes : reduced_sizes).push_back(w.number(sizes_.sizes[d]));
    }
    const Term at = w.global(), slot = at / lanes, lane = at - slot * lanes;
    const Term valid = slot < results * parts, part = slot / results, result = slot - part * results;
    const Term begin = part * part_size, end = w.select(valid, min(begin + part_size, reduced), w.index(0));
    const std::vector<Term> kept_at = w.coordinates(result, kept_sizes);
    std::vector<Term> sums;
    for (const RootJob& job : jobs) {
      const Instr& instr = kernel_.instrs[job.instr];
      sums.push_back(w.variable(neutral(w, *instr.reducer, instr.type)));
    }
    w.loop(begin + lane, end, lanes, [&](Term n) {
      const Spot spot = joined(w, s, kept_at, w.coordinates(n, reduced_sizes), kept_sizes, reduced_sizes);
      for (size_t i = 0; i < jobs.size(); ++i) {
        const Instr& instr = kernel_.instrs[jobs[i].instr];
        const Term x = from[i] < 0 ? body.element(body.definition(jobs[i].instr, 0), spot)
                                   : w.convert(w.load(from[i], spot.linear), instr.type);
        w.assign(sums[i], combined(w, instr, sums[i], x));
      }
      store_elements(w, body, stores, store_to, spot);
    });
    Combiner combiner(w, list_.device);
    for (size_t i = 0; i < jobs.size(); ++i) {
      const Instr& instr = kernel_.instrs[jobs[i].instr];
      const Term sum = combiner.combine(*instr.reducer, sums[i], lane, lanes);
      const Term stored = partial.empty() ? place(w, jobs[i], s, slot) : slot;
      store_result(w, to[i], valid && lane == 0, stored, sum);
    }
    list_.launches.push_back(w.finish(groups_for(s.results * s.parts * lanes_of_result)));
  }

  static void store_result(KernelWriter& w, int buffer, Term condition, Term at, Term value) {
    w.when(condition, [&] { w.store(buffer, at, w.convert(value, w.type_of_buffer(buffer))); });
  }

  /// The element at kept and reduced coordinates.
  Spot joined(KernelWriter& w, const RootSizes& s, const std::vector<Term>& kept_at,
              const std::vector<Term>& reduced_at, const std::vector<Term>& kept_sizes,
              const std::vector<Term>& reduced_sizes) const {
    Spot spot;
    size_t k = 0, r = 0;
    Term stride{};
    for (int d = s.first; d < sizes_.dims; ++d) {
      const bool keep = s.keep >> d & 1;
      const Term at = keep ? kept_at[k] : reduced_at[r];
      const Term size = keep ? kept_sizes[k++] : reduced_sizes[r++];
      spot.coordinates.push_back(at);
      const Term moved = stride.writer ? at * stride : at;
      spot.linear = spot.linear.writer ? spot.linear + moved : moved;
      stride = stride.writer ? stride * size : size;
    }
    if (!spot.linear.writer) spot.linear = w.index(0);
    return spot;
  }

  /// Adds up the parts of every result, in order.
  void write_parts(const std::vector<RootJob>& jobs, const RootSizes& s, const std::vector<int32_t>& partial) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      const Instr& instr = kernel_.instrs[jobs[i].instr];
      KernelWriter w("parts", items_of_group, index_);
      const int from = w.buffer(storage_of(shared_type(instr.type)), {-1, partial[i]});
      const int to = result_buffer(w, jobs[i], -1);
      const Term count = w.number(s.results), of = w.number(s.parts), lanes = w.number(lanes_for(s.parts));
      const Term at = w.global(), result = at / lanes, lane = at - result * lanes;
      const Term valid = result < count;
      const Term sum = w.variable(neutral(w, *instr.reducer, instr.type));
      w.loop(lane, w.select(valid, of, w.index(0)), lanes, [&](Term part) {
        const Term x = w.convert(w.load(from, part * count + result), instr.type);
        w.assign(sum, combined(w, instr, sum, x));
      });
      Combiner combiner(w, list_.device);
      const Term whole = combiner.combine(*instr.reducer, sum, lane, lanes);
      store_result(w, to, valid && lane == 0, place(w, jobs[i], s, result), whole);
      list_.launches.push_back(w.finish(groups_for(s.results * lanes_for(s.parts))));
    }
  }

  const Layout& layout_;
  int32_t number_;
  const Kernel& kernel_;
  const KernelLayout& sizes_;
  LaunchList& list_;
  ScalarType index_;
  std::vector<RootJob> roots_;
  bool stored_ = false;  // by the walk of a root
};

}  // namespace

void write_fused(const Layout& layout, int32_t kernel, LaunchList& list) { FusedWriter(layout, kernel, list).run(); }

}  // namespace rosin::kernels
