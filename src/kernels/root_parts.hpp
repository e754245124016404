// What sums and columns of roots share: their operands in a kernel, where elements and results stand, and who adds
// what. Read first: roots.hpp. Read next: roots.cpp.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "kernels/body.hpp"
#include "kernels/lanes.hpp"
#include "kernels/launches.hpp"
#include "kernels/root_sizes.hpp"
#include "kernels/roots.hpp"
#include "kernels/shares.hpp"
#include "kernels/strips.hpp"
#include "plan/image_order.hpp"
#include "scalar/convert.hpp"

namespace rosin::kernels {

class RootParts {
 protected:
  RootParts(const Layout& layout, int32_t kernel, ScalarType index, const std::map<size_t, int32_t>& given,
            LaunchList& list)
      : layout_(layout), number_(kernel), kernel_(layout.structure->kernels[static_cast<size_t>(kernel)]),
        sizes_(layout.kernels[static_cast<size_t>(kernel)]), given_(given), list_(list), index_(index) {}

  const Value& v(int32_t value) const { return layout_.structure->graph.values[static_cast<size_t>(value)]; }

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

  RootSizes sizes_of(const RootJob& job) const {
    return {sizes_, kernel_.instrs[job.instr].row ? kernel_.row_dims : 0, kept(job)};
  }

  /// Whether the last of `groups` that have stored parts of `count` results, each group of one, has come: body() is
  /// what it does then.
  template <class F> void when_last(KernelWriter& w, int64_t count, Term which, Term groups, F&& body) {
    const int counters = w.buffer(DType::Int32, {-1, list_.counters(count)});
    w.when(w.arrive(counters, which, groups), body);
  }

  std::vector<int32_t> results_of(const std::vector<RootJob>& jobs) const {
    std::vector<int32_t> values;
    for (const RootJob& job : jobs) values.push_back(kernel_.roots[kernel_.instrs[job.instr].port].value);
    return values;
  }

  /// Where a root's results, or those of its parts, go.
  int result_buffer(KernelWriter& w, const RootJob& job, int32_t scratch) const {
    const Instr& instr = kernel_.instrs[job.instr];
    if (scratch >= 0) return w.buffer(storage_of(shared_type(instr.type)), {-1, scratch});
    return w.buffer(instr.storage, {kernel_.roots[instr.port].value, -1});
  }

  static void store_result(KernelWriter& w, int buffer, Term at, Term value) {
    w.store(buffer, at, w.convert(value, w.type_of_buffer(buffer)));
  }

  /// The operands of some roots, and stores beside them, in one kernel.
  struct Operands {
    KernelBody body;
    std::vector<int> from, to, store_to;  // buffers: of operands that stand in memory, of results, of stores
    std::vector<size_t> computed;
    std::vector<char> loads;
  };

  Operands operands(KernelWriter& w, const std::vector<RootJob>& jobs, const std::vector<int32_t>& partial,
                    const std::vector<size_t>& stores) const {
    std::vector<size_t> computed = stores;
    bool again = false;
    for (const RootJob& job : jobs) {
      if (job.scratch < 0) computed.push_back(job.instr);
      again = again || job.scratch < 0;
    }
    Operands all{KernelBody(w, layout_, number_, computed, again ? given_ : std::map<size_t, int32_t>{}, list_.checks),
                 {},
                 {},
                 {},
                 computed,
                 {}};
    for (size_t i = 0; i < jobs.size(); ++i) {
      const ScalarType type = shared_type(kernel_.instrs[jobs[i].instr].type);
      all.from.push_back(jobs[i].scratch < 0 ? -1 : w.buffer(storage_of(type), {-1, jobs[i].scratch}));
      all.to.push_back(result_buffer(w, jobs[i], partial.empty() ? -1 : partial[i]));
    }
    for (const size_t store : stores) {
      const Instr& instr = kernel_.instrs[store];
      all.store_to.push_back(w.buffer(instr.storage, {kernel_.stores[instr.port].value, -1}));
    }
    all.loads = all.body.loads_of(computed);
    return all;
  }

  struct DimSizes {
    std::vector<Term> kept, reduced;
  };

  DimSizes dim_sizes(KernelWriter& w, const RootSizes& s) const {
    DimSizes sizes;
    for (int d = s.first; d < sizes_.dims; ++d) {
      (s.keep >> d & 1 ? sizes.kept : sizes.reduced).push_back(w.number(sizes_.sizes[d]));
    }
    return sizes;
  }

  /// The element at kept and reduced coordinates.
  Spot joined(KernelWriter& w, const RootSizes& s, const DimSizes& sizes, const std::vector<Term>& kept_at,
              const std::vector<Term>& reduced_at) const {
    Spot spot;
    size_t k = 0, r = 0;
    Term stride{}, row_stride{};
    const auto sum = [](Term x, Term y) { return x.writer ? x + y : y; };
    const auto scaled = [](Term x, Term y) { return y.writer ? x * y : x; };
    for (int d = s.first; d < sizes_.dims; ++d) {
      const bool keep = s.keep >> d & 1;
      const Term at = keep ? kept_at[k] : reduced_at[r];
      const Term size = keep ? sizes.kept[k++] : sizes.reduced[r++];
      spot.coordinates.push_back(at);
      spot.linear = sum(spot.linear, scaled(at, stride));
      stride = scaled(size, stride);
      if (d < kernel_.row_dims) continue;
      spot.row = sum(spot.row, scaled(at, row_stride));
      row_stride = scaled(size, row_stride);
    }
    if (!spot.linear.writer) spot.linear = w.index(0);
    if (!spot.row.writer) spot.row = w.index(0);
    return spot;
  }

  /// The next element of a strip that does not leave its line.
  static Spot next(Spot spot, int lane) {
    if (lane == 0) return spot;
    spot.linear = spot.linear + lane;
    if (!spot.coordinates.empty()) spot.coordinates[0] = spot.coordinates[0] + lane;
    return spot;
  }

  bool within_line(const RootSizes& s, int strip) const {
    return strip == 1 || (s.first < sizes_.dims && sizes_.sizes[s.first] % strip == 0);
  }

  /// Whether the body may be written once for each element of a strip.
  static bool is_short(const KernelBody& body, int strip) {
    return body.primitives() * static_cast<size_t>(strip) <= most_primitives;
  }

  std::vector<int> final_buffers(KernelWriter& w, const std::vector<RootJob>& jobs) const {
    std::vector<int> to;
    for (const RootJob& job : jobs) to.push_back(result_buffer(w, job, -1));
    return to;
  }

  std::vector<Term> neutrals(KernelWriter& w, const std::vector<RootJob>& jobs, int each) const {
    std::vector<Term> sums;
    for (const RootJob& job : jobs) {
      const Instr& instr = kernel_.instrs[job.instr];
      for (int i = 0; i < each; ++i) sums.push_back(w.variable(neutral(w, *instr.reducer, instr.type)));
    }
    return sums;
  }

  void add(KernelWriter& w, const RootJob& job, Term sum, Term x) const {
    w.assign(sum, combined(w, kernel_.instrs[job.instr], sum, x));
  }

  Term operand(KernelWriter& w, const RootJob& job, Operands& all, size_t i, const Spot& spot) const {
    if (all.from[i] < 0) return all.body.element(all.body.definition(job.instr, 0), spot);
    return w.convert(w.load(all.from[i], spot.linear), kernel_.instrs[job.instr].type);
  }

  void add_one(KernelWriter& w, const std::vector<RootJob>& jobs, Operands& all, const std::vector<size_t>& stores,
               const Spot& spot, const std::vector<Term>& sums) const {
    for (size_t i = 0; i < jobs.size(); ++i) add(w, jobs[i], sums[i], operand(w, jobs[i], all, i, spot));
    store_element(w, all, stores, spot);
  }

  /// All values first: a store may take over the memory of a load.
  static void store_element(KernelWriter& w, Operands& all, const std::vector<size_t>& stores, const Spot& spot) {
    std::vector<Term> values;
    for (const size_t store : stores) values.push_back(all.body.element(all.body.definition(store, 0), spot));
    for (size_t i = 0; i < stores.size(); ++i) w.store(all.store_to[i], spot.linear, values[i]);
  }

  /// What stores get in the lanes of a strip. All values first: a store may take over the memory of a load.
  class StoredStrip {
   public:
    StoredStrip(KernelWriter& w, Operands& all, const std::vector<size_t>& stores, int vector_bytes)
        : w_(w), all_(all), stores_(stores), vector_bytes_(vector_bytes), values_(stores.size()) {}

    void add(const Spot& spot) {
      spots_.push_back(spot);
      for (size_t i = 0; i < stores_.size(); ++i) {
        values_[i].push_back(all_.body.element(all_.body.definition(stores_[i], 0), spot));
      }
    }
    void write(bool within_line) {
      for (size_t i = 0; i < stores_.size(); ++i) {
        if (within_line) {
          w_.store_vector(all_.store_to[i], spots_[0].linear, values_[i], vector_bytes_);
          continue;
        }
        for (size_t lane = 0; lane < spots_.size(); ++lane)
          w_.store(all_.store_to[i], spots_[lane].linear, values_[i][lane]);
      }
    }

   private:
    KernelWriter& w_;
    Operands& all_;
    const std::vector<size_t>& stores_;
    int vector_bytes_;
    std::vector<Spot> spots_;
    std::vector<std::vector<Term>> values_;
  };

  /// The same for a strip from `first` on.
  void add_strip(KernelWriter& w, const std::vector<RootJob>& jobs, const RootSizes& s, Operands& all,
                 const std::vector<size_t>& stores, int strip, Term first, const std::function<Spot(Term)>& spot_of,
                 const std::vector<Term>& sums) const {
    const bool within = within_line(s, strip);
    const Spot begin = spot_of(first);
    const std::vector<std::vector<Term>> there = from_memory(w, jobs, all, begin, within ? strip : 0);
    all.body.add_strip(all.loads, begin, strip, list_.device.vector_bytes, within);
    StoredStrip stored(w, all, stores, list_.device.vector_bytes);
    for (int lane = 0; lane < strip; ++lane) {
      const Spot spot = within || lane == 0 ? next(begin, lane) : spot_of(first + lane);
      all.body.go_to_lane(lane);
      for (size_t i = 0; i < jobs.size(); ++i) {
        const bool stands = !there[i].empty();
        add(w, jobs[i], sums[i], stands ? there[i][static_cast<size_t>(lane)] : operand(w, jobs[i], all, i, spot));
      }
      stored.add(spot);
    }
    stored.write(within);
  }

  /// Operands that stand in memory, `strip` elements each; nothing for the others.
  std::vector<std::vector<Term>> from_memory(KernelWriter& w, const std::vector<RootJob>& jobs, const Operands& all,
                                             const Spot& begin, int strip) const {
    std::vector<std::vector<Term>> there(jobs.size());
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (all.from[i] < 0 || strip == 0) continue;
      for (const Term x : w.load_vector(all.from[i], begin.linear, strip, list_.device.vector_bytes)) {
        there[i].push_back(w.convert(x, kernel_.instrs[jobs[i].instr].type));
      }
    }
    return there;
  }

  const Layout& layout_;
  int32_t number_;
  const Kernel& kernel_;
  const KernelLayout& sizes_;
  const std::map<size_t, int32_t>& given_;
  LaunchList& list_;
  ScalarType index_;
};

}  // namespace rosin::kernels
