// See roots.hpp. Where the first dim is reduced, neighbouring items add up neighbours and combine what they have
// (sums); where it is kept, an item owns neighbouring results and walks over the others (columns). How many items and
// parts there are follows from sizes alone.
#include "kernels/roots.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/root_ends.hpp"
#include "kernels/root_parts.hpp"
#include "kernels/target.hpp"

namespace rosin::kernels {
namespace {

using Do = Instr::Do;

constexpr int64_t part_elements = 16 * 1024;  // of a reduction to few results: each part is added up by itself
constexpr int64_t most_parts = 512;           // as many groups stand on an H100 at once
constexpr int64_t least_shared = 16384;       // bytes, which every device has

class RootWriter : RootParts {
 public:
  RootWriter(const Layout& layout, int32_t kernel, ScalarType index, const std::map<size_t, int32_t>& given,
             std::vector<int32_t>& ends, LaunchList& list)
      : RootParts(layout, kernel, index, given, list), ends_(ends) {}

  bool run(const std::vector<RootJob>& roots, const std::vector<size_t>& stores) {
    // Roots that keep the same dims are added up in one walk.
    std::vector<char> done(roots.size(), 0);
    for (size_t i = 0; i < roots.size(); ++i) {
      if (done[i]) continue;
      std::vector<RootJob> together;
      for (size_t k = i; k < roots.size(); ++k) {
        const bool same = kept(roots[k]) == kept(roots[i]) &&
                          kernel_.instrs[roots[k].instr].row == kernel_.instrs[roots[i].instr].row;
        if (done[k] || !same) continue;
        done[k] = 1;
        together.push_back(roots[k]);
      }
      const bool last = std::find(done.begin(), done.end(), 0) == done.end();
      write_root(together, last && stores_go_along(together) ? stores : std::vector<size_t>{});
    }
    return stored_;
  }

  /// See add_up_behind.
  void run_behind(KernelWriter& w, const std::vector<RootJob>& roots, int64_t groups) {
    const RootSizes s = sizes_of(roots.front());
    const Shares shares(s.reduced, s.run);
    const std::vector<int32_t> ends = take_ends(layout_, number_, results_of(roots), index_, ends_);
    Operands all = operands(w, roots, {}, {});
    RootEnds behind(w, layout_, ends, results_of(roots));
    when_last(w, 1, w.index(0), w.number(groups), [&] {
      const Term lanes = w.number(shares.lanes), item = w.convert(w.item(), w.index_type());
      const Term slot = w.quotient(item, lanes);
      const Share share{slot == 0, item - slot * lanes, lanes, w.index(0), true};
      const Line line{share.number, w.index(0), w.select(share.valid, w.number(s.reduced), w.index(0)), share.lane,
                      lanes};
      finish_sums(w, roots, s, all.to, walk_line(w, roots, s, all, {}, shares.strip, line), share, behind);
    });
  }

  /// See may_be_added_by_rows.
  bool is_of_rows(const RootJob& root) const {
    const Instr& instr = kernel_.instrs[root.instr];
    const auto row = static_cast<uint8_t>((1 << kernel_.row_dims) - 1);
    return !instr.row && instr.mode != MathMode::exact && kept(root) == row && bytes_of(shared_type(instr.type)) == 4;
  }

  /// See add_up_parts.
  void run_parts(const std::vector<RootJob>& roots, int64_t parts) {
    constexpr int64_t beside = 8;  // columns of a group: few, so that many items share each
    RootSizes s = sizes_of(roots.front());
    s.parts = parts;
    std::vector<int32_t> partial;
    for (const RootJob& root : roots) partial.push_back(root.scratch);
    write_parts_of_columns(roots, s, partial, {}, take_ends(layout_, number_, results_of(roots), index_, ends_),
                           ColumnGrid(1, beside), parts);
  }

  /// Whether that may be done: rows have left operands of sums of a single part.
  bool may_run_behind(const std::vector<RootJob>& roots) const {
    const auto is_whole = [&](const RootJob& root) {
      const RootSizes s = sizes_of(root);
      return root.scratch >= 0 && kernel_.instrs[root.instr].row && s.results == 1 && parts_of_sums(s) == 1;
    };
    return list_.device.arrivals && !roots.empty() && sizes_.rows > 0 &&
           std::all_of(roots.begin(), roots.end(), is_whole);
  }

 private:
  /// A walk of neighbours meets neighbours where the first dim is added up, where items own strips, and where lines of
  /// items stand one behind the other; elsewhere it pays for few elements.
  bool stores_go_along(const std::vector<RootJob>& jobs) const {
    constexpr int64_t few = 1 << 16;
    if (kernel_.instrs[jobs.front().instr].row) return false;
    const RootSizes s(sizes_, 0, kept(jobs.front()));
    return sizes_.row * sizes_.rows <= few || !s.columns() || s.run == s.results ||
           (strip_of(s.run) > 1 && sizes_.sizes[0] % widest_strip == 0);
  }

  void write_root(const std::vector<RootJob>& jobs, const std::vector<size_t>& stores) {
    RootSizes s = sizes_of(jobs.front());
    if (s.results == 0) return;
    s.parts = s.columns() ? parts_of_columns(s) : parts_of_sums(s);
    s.part_size = groups_for(s.reduced, s.parts);
    if (!s.columns() && s.parts > 1) s.part_size = groups_for(s.part_size, row_step) * row_step;
    s.parts = std::max<int64_t>(groups_for(s.reduced, std::max<int64_t>(s.part_size, 1)), 1);
    std::vector<int32_t> partial;
    if (s.parts > 1) partial = scratch_of_parts(jobs, s.results * s.parts);
    const std::vector<int32_t> ends = take_ends(layout_, number_, results_of(jobs), index_, ends_), none;
    const bool once = partial.empty() || list_.device.arrivals;  // parts are added up by who comes last
    if (s.columns()) write_columns(jobs, s, partial, stores, once ? ends : none);
    else write_sums(jobs, s, partial, stores, once ? ends : none);
    stored_ = !stores.empty();
    if (once) return;
    if (s.columns()) write_clusters_of_columns(jobs, s, partial, ends);
    else write_parts_of_sums(jobs, s, partial, ends);
  }

  static int64_t parts_of_sums(const RootSizes& s) {
    if (s.results * items_of_group >= s.reduced) return 1;
    return std::clamp<int64_t>(s.reduced / part_elements, 1, most_parts);
  }

  /// As many groups as keep a device busy, as long as items have something to add up: few groups, less than many.
  static int64_t parts_of_columns(const RootSizes& s) {
    constexpr int64_t least = 8, least_of_few = 2, few = 256;  // elements of an item for each of its results; groups
    const ColumnGrid grid(s.results, s.run);
    const int64_t blocks = grid.blocks(s.results, grid.strip);
    const int64_t spread = std::min(s.reduced / (least_of_few * grid.lines), few / blocks);
    return std::clamp<int64_t>(std::max(s.reduced / (least * grid.lines), spread), 1,
                               std::max<int64_t>(most_parts / blocks, 1));
  }

  // ---- Sums ----

  void write_sums(const std::vector<RootJob>& jobs, const RootSizes& s, const std::vector<int32_t>& partial,
                  const std::vector<size_t>& stores, std::span<const int32_t> ends) {
    KernelWriter w("sums", items_of_group, index_);
    Operands all = operands(w, jobs, partial, stores);
    RootEnds behind(w, layout_, ends, results_of(jobs));
    const Shares shares(s.part_size, s.run);
    const Term results = w.number(s.results), reduced = w.number(s.reduced), parts = w.number(s.parts);
    const Term lanes = w.number(shares.lanes), part_size = w.number(s.part_size);
    const Term at = w.global(), slot = w.quotient(at, lanes), lane = at - slot * lanes;
    const Term valid = slot < results * parts, part = w.quotient(slot, results), result = slot - part * results;
    const Term begin = part * part_size, end = w.select(valid, min(begin + part_size, reduced), w.index(0));
    const std::vector<Term> sums = walk_line(w, jobs, s, all, stores, shares.strip, {result, begin, end, lane, lanes});
    if (partial.empty()) {
      finish_sums(w, jobs, s, all.to, sums, {valid, lane, lanes, slot, true}, behind);
    } else {
      RootEnds later(w, layout_, {}, {});
      finish_sums(w, jobs, s, all.to, sums, {valid, lane, lanes, slot, false}, later);
      if (list_.device.arrivals) add_parts_at_last(w, jobs, s, all.to, result, behind);
    }
    list_.launches.push_back(w.finish(groups_for(s.results * s.parts * shares.lanes)));
  }

  /// Behind parts, each of which a whole group has added up: of each result, by the group that stores its last part.
  void add_parts_at_last(KernelWriter& w, const std::vector<RootJob>& jobs, const RootSizes& s,
                         const std::vector<int>& from, Term result, RootEnds& behind) {
    const std::vector<int> to = final_buffers(w, jobs);
    when_last(w, s.results, result, w.number(s.parts), [&] {
      const Term lanes = w.number(power_of_two_for(s.parts, items_of_group));
      const Term item = w.convert(w.item(), w.index_type()), slot = w.quotient(item, lanes);
      add_parts_of_sums(w, jobs, s, from, to, {slot == 0, item - slot * lanes, lanes, result, true}, behind);
    });
  }

  /// What an item adds up: its strips among the elements from `begin` to `end` of a result's line.
  struct Line {
    Term result, begin, end, lane, lanes;
  };

  std::vector<Term> walk_line(KernelWriter& w, const std::vector<RootJob>& jobs, const RootSizes& s, Operands& all,
                              const std::vector<size_t>& stores, int strip, const Line& line) const {
    const DimSizes sizes = dim_sizes(w, s);
    const std::vector<Term> kept_at = w.coordinates(line.result, sizes.kept);
    const std::vector<Term> sums = neutrals(w, jobs, 1);
    const auto spot_of = [&](Term n) { return joined(w, s, sizes, kept_at, w.coordinates(n, sizes.reduced)); };
    const bool whole = is_short(all.body, strip);
    w.loop(line.begin + line.lane * strip, line.end, line.lanes * strip, [&](Term first) {
      if (whole) return add_strip(w, jobs, s, all, stores, strip, first, spot_of, sums);
      w.loop(w.index(strip), [&](Term within) { add_one(w, jobs, all, stores, spot_of(first + within), sums); });
    });
    all.body.leave();
    return sums;
  }

  /// Of an item that has sums: which of the `lanes` that share them it is, and their number.
  struct Share {
    Term valid, lane, lanes, number;
    bool whole;  // of all parts
  };

  /// Combines what the lanes have, and stores it.
  void finish_sums(KernelWriter& w, const std::vector<RootJob>& jobs, const RootSizes& s, const std::vector<int>& to,
                   const std::vector<Term>& sums, const Share& share, RootEnds& behind) const {
    Combiner combiner(w, list_.device);
    std::vector<Term> combined_sums, at;
    for (size_t i = 0; i < jobs.size(); ++i) {
      const Reducer& reducer = *kernel_.instrs[jobs[i].instr].reducer;
      combined_sums.push_back(combiner.combine(reducer, sums[i], share.lane, share.lanes));
      at.push_back(share.whole ? place(w, jobs[i], s, share.number) : share.number);
    }
    w.when(share.valid && share.lane == 0, [&] {
      for (size_t i = 0; i < jobs.size(); ++i) store_result(w, to[i], at[i], combined_sums[i]);
      behind.write(at[0], combined_sums);
    });
  }

  /// Adds up the parts of every result, in order.
  void write_parts_of_sums(const std::vector<RootJob>& jobs, const RootSizes& s, const std::vector<int32_t>& partial,
                           std::span<const int32_t> ends) {
    KernelWriter w("sum_parts", items_of_group, index_);
    std::vector<int> from, to;
    for (size_t i = 0; i < jobs.size(); ++i) {
      const ScalarType travels = shared_type(kernel_.instrs[jobs[i].instr].type);
      from.push_back(w.buffer(storage_of(travels), {-1, partial[i]}));
      to.push_back(result_buffer(w, jobs[i], -1));
    }
    RootEnds behind(w, layout_, ends, results_of(jobs));
    const int64_t lanes_of_result = power_of_two_for(s.parts, items_of_group);
    const Term lanes = w.number(lanes_of_result);
    const Term at = w.global(), result = w.quotient(at, lanes), lane = at - result * lanes;
    add_parts_of_sums(w, jobs, s, from, to, {result < w.number(s.results), lane, lanes, result, true}, behind);
    list_.launches.push_back(w.finish(groups_for(s.results * lanes_of_result)));
    list_.launches.back().sharing = Sharing::like;
  }

  void add_parts_of_sums(KernelWriter& w, const std::vector<RootJob>& jobs, const RootSizes& s,
                         const std::vector<int>& from, const std::vector<int>& to, const Share& share,
                         RootEnds& behind) const {
    const Term count = w.number(s.results), parts = w.number(s.parts);
    const std::vector<Term> sums = neutrals(w, jobs, 1);
    w.loop(share.lane, w.select(share.valid, parts, w.index(0)), share.lanes, [&](Term part) {
      for (size_t i = 0; i < jobs.size(); ++i) {
        const ScalarType type = kernel_.instrs[jobs[i].instr].type;
        add(w, jobs[i], sums[i], w.convert(w.load(from[i], part * count + share.number), type));
      }
    });
    finish_sums(w, jobs, s, to, sums, share, behind);
  }

  // ---- Columns ----

  /// In which parts of a root's sums go from item to item.
  ScalarType type_between(const RootJob& job) const { return shared_type(kernel_.instrs[job.instr].type); }

  /// An item's place in a reduction that keeps the first dim, and what it adds up.
  struct Column {
    Term columns, lines, block, part, line, column, result, valid, begin, end;
  };

  static Column column_of(KernelWriter& w, const RootSizes& s, const ColumnGrid& grid, int strip) {
    Column at;
    at.columns = w.number(grid.columns);
    at.lines = w.number(grid.lines);
    const Term item = w.item(), group = w.group(0), blocks = w.number(grid.blocks(s.results, strip));
    const Term part_size = w.number(s.part_size);
    at.line = w.quotient(item, at.columns);
    at.column = item - at.line * at.columns;
    at.part = w.quotient(group, blocks);
    at.block = group - at.part * blocks;
    const Term result = (at.block * at.columns + at.column) * strip;
    at.valid = result < w.number(s.results);
    at.result = w.select(at.valid, result, w.index(0));
    at.begin = at.part * part_size + at.line;
    at.end = w.select(at.valid, min(at.part * part_size + part_size, w.number(s.reduced)), w.index(0));
    return at;
  }

  /// What the lines of a group exchange their sums in: shared arrays, at least one of each type, more while there is
  /// room for them.
  struct LineArrays {
    std::map<ScalarType, std::vector<int>> of;
    int64_t bytes = 0;  // of all, one of each type that there will be counted from the start
    bool used = false;
  };

  static constexpr int line_stride = items_of_group + 1;  // so that neighbours meet different banks

  LineArrays arrays_for(const std::vector<RootJob>& jobs, int strip) const {
    LineArrays made;
    for (const RootJob& job : jobs) {
      if (made.of.try_emplace(type_between(job)).second)
        made.bytes += int64_t{line_stride} * strip * bytes_of(type_between(job));
    }
    return made;
  }

  /// Number `n` of this type, or -1.
  int take_array(KernelWriter& w, LineArrays& arrays, ScalarType type, size_t n, int strip) const {
    std::vector<int>& own = arrays.of.at(type);
    if (n < own.size()) return own[n];
    const int64_t bytes = int64_t{line_stride} * strip * bytes_of(type);
    if (!own.empty() && arrays.bytes + bytes > list_.device.shared_bytes) return -1;
    if (!own.empty()) arrays.bytes += bytes;
    return own.emplace_back(w.shared(type, line_stride * strip));
  }

  /// Combines the lines of a group in order, of as many roots at once as there are arrays for, and stores each result,
  /// which the item that has it is given back.
  template <class Place>
  std::vector<Term> combine_lines(KernelWriter& w, const std::vector<RootJob>& jobs, const RootSizes& s,
                                  const Column& at, int strip, std::span<const Term> sums, LineArrays& arrays,
                                  const std::vector<int>& to, Place&& place_of) const {
    std::vector<Term> found;
    while (found.size() < jobs.size()) {
      const size_t first = found.size();
      std::vector<int> taken;
      std::map<ScalarType, size_t> used;
      for (size_t k = first; k < jobs.size(); ++k) {
        const ScalarType type = type_between(jobs[k]);
        const int array = take_array(w, arrays, type, used[type]++, strip);
        if (array < 0) break;
        taken.push_back(array);
      }
      if (arrays.used) w.barrier();  // what was read before is read
      arrays.used = true;
      for (size_t k = first; k < first + taken.size(); ++k) {
        put_lines(w, jobs[k], sums.subspan(k * static_cast<size_t>(strip), static_cast<size_t>(strip)),
                  taken[k - first]);
        const Instr& instr = kernel_.instrs[jobs[k].instr];
        found.push_back(w.variable(neutral(w, *instr.reducer, instr.type)));
      }
      w.barrier();
      when_result(w, s, at, strip, [&](Term result) {
        add_lines(w, jobs, at, strip, taken, first, found);
        for (size_t k = first; k < found.size(); ++k) store_result(w, to[k], place_of(k, result), found[k]);
      });
    }
    return found;
  }

  void put_lines(KernelWriter& w, const RootJob& job, std::span<const Term> sums, int array) const {
    for (size_t i = 0; i < sums.size(); ++i) {
      const Term at = w.item() + static_cast<int64_t>(i) * line_stride;
      w.shared_store(array, at, w.convert(sums[i], type_between(job)));
    }
  }

  /// Into `found`, from root `first` on, whose lines stand in `arrays`.
  void add_lines(KernelWriter& w, const std::vector<RootJob>& jobs, const Column& at, int strip,
                 const std::vector<int>& arrays, size_t first, const std::vector<Term>& found) const {
    const Term item = w.item(), column = item / strip, begin = (item - column * strip) * line_stride + column;
    const auto of_line = [&](size_t k, Term line) {
      return w.convert(w.shared_load(arrays[k - first], begin + line * at.columns), found[k].type);
    };
    for (size_t k = first; k < found.size(); ++k) w.assign(found[k], of_line(k, w.index(0)));
    w.loop(w.index(1), at.lines, w.index(1), [&](Term line) {
      for (size_t k = first; k < found.size(); ++k)
        w.assign(found[k], combined(w, kernel_.instrs[jobs[k].instr], found[k], of_line(k, line)));
    });
  }

  /// f(number of its result) where an item has one, once the lines are combined.
  template <class F> static void when_result(KernelWriter& w, const RootSizes& s, const Column& at, int strip, F&& f) {
    const Term result = at.block * at.columns * strip + w.item();
    w.when(w.item() < at.columns * strip && result < w.number(s.results), [&] { f(result); });
  }

  /// What follows from the results of an item.
  void write_ends(KernelWriter& w, const std::vector<RootJob>& jobs, const RootSizes& s, const Column& at, int strip,
                  const std::vector<Term>& sums, RootEnds& behind) const {
    if (behind.empty()) return;
    when_result(w, s, at, strip, [&](Term result) { behind.write(place(w, jobs[0], s, result), sums); });
  }

  /// Results of an item: fewer than a strip where the body is long, or shared memory short.
  int strip_of_columns(const std::vector<RootJob>& jobs, const KernelBody& body, int strip) const {
    while (strip > 1 && (!is_short(body, strip) || arrays_for(jobs, strip).bytes > least_shared)) strip /= 2;
    return strip;
  }

  void write_columns(const std::vector<RootJob>& jobs, const RootSizes& s, const std::vector<int32_t>& partial,
                     const std::vector<size_t>& stores, std::span<const int32_t> ends) {
    KernelWriter w("columns", items_of_group, index_);
    Operands all = operands(w, jobs, partial, stores);
    RootEnds behind(w, layout_, ends, results_of(jobs));
    const ColumnGrid grid(s.results, s.run);
    const int strip = strip_of_columns(jobs, all.body, grid.strip);
    const DimSizes sizes = dim_sizes(w, s);
    const Column at = column_of(w, s, grid, strip);
    const std::vector<Term> kept_at = w.coordinates(at.result, sizes.kept);
    const std::vector<Term> sums = neutrals(w, jobs, strip);
    w.loop(at.begin, at.end, at.lines, [&](Term n) {
      const std::vector<Term> reduced_at = w.coordinates(n, sizes.reduced);
      const Spot begin = joined(w, s, sizes, kept_at, reduced_at);
      const bool within = within_line(s, strip);
      const std::vector<std::vector<Term>> there = from_memory(w, jobs, all, begin, within ? strip : 0);
      all.body.add_strip(all.loads, begin, strip, list_.device.vector_bytes, within);
      StoredStrip stored(w, all, stores, list_.device.vector_bytes);
      for (int lane = 0; lane < strip; ++lane) {
        const Spot spot =
            within ? next(begin, lane) : joined(w, s, sizes, w.coordinates(at.result + lane, sizes.kept), reduced_at);
        all.body.go_to_lane(lane);
        for (size_t i = 0; i < jobs.size(); ++i) {
          const auto which = i * static_cast<size_t>(strip) + static_cast<size_t>(lane);
          const bool stands = !there[i].empty();
          add(w, jobs[i], sums[which],
              stands ? there[i][static_cast<size_t>(lane)] : operand(w, jobs[i], all, i, spot));
        }
        stored.add(spot);
      }
      stored.write(within);
    });
    all.body.leave();
    LineArrays arrays = arrays_for(jobs, strip);
    if (partial.empty()) {
      finish_columns(w, jobs, s, at, strip, sums, arrays, all.to, behind);
    } else {
      combine_parts(w, jobs, s, at, strip, sums, arrays, all.to, at.part);
      if (list_.device.arrivals) add_columns_at_last(w, jobs, s, grid, at, strip, arrays, all.to, behind);
    }
    list_.launches.push_back(w.finish(grid.blocks(s.results, strip) * s.parts));
  }

  /// The results of a group, and what follows from them.
  void finish_columns(KernelWriter& w, const std::vector<RootJob>& jobs, const RootSizes& s, const Column& at,
                      int strip, std::span<const Term> sums, LineArrays& arrays, const std::vector<int>& to,
                      RootEnds& behind) const {
    const std::vector<Term> results = combine_lines(
        w, jobs, s, at, strip, sums, arrays, to, [&](size_t k, Term result) { return place(w, jobs[k], s, result); });
    write_ends(w, jobs, s, at, strip, results, behind);
  }

  /// Parts of columns that one group adds up: many are first added up by clusters of about the root of their number, so
  /// that who comes last has few left.
  static int64_t parts_of_cluster(int64_t parts, int64_t lines) {
    constexpr int64_t few = 16;  // of an item
    if (parts <= few * lines) return parts;
    const auto root = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(parts))));
    return groups_for(root, lines) * lines;
  }

  /// Behind parts: of each block of results, by the group that stores the last part of a cluster, and those of clusters
  /// by the last of these groups.
  void add_columns_at_last(KernelWriter& w, const std::vector<RootJob>& jobs, const RootSizes& s,
                           const ColumnGrid& grid, const Column& at, int strip, LineArrays& arrays,
                           const std::vector<int>& from, RootEnds& behind) {
    const int64_t size = parts_of_cluster(s.parts, grid.lines), clusters = groups_for(s.parts, size);
    const int64_t blocks = grid.blocks(s.results, strip);
    const auto add_up = [&](const std::vector<int>& parts, Term begin, Term end) {
      Column these = at;
      these.begin = begin + at.line;
      these.end = w.select(at.valid, end, w.index(0));
      return add_parts_of_columns(w, jobs, s, these, strip, parts);
    };
    const auto add_up_all = [&](const std::vector<int>& parts, int64_t count) {
      const std::vector<int> to = final_buffers(w, jobs);
      when_last(w, blocks, at.block, w.number(count), [&] {
        finish_columns(w, jobs, s, at, strip, add_up(parts, w.index(0), w.number(count)), arrays, to, behind);
      });
    };
    if (clusters == 1) return add_up_all(from, s.parts);
    const std::vector<int32_t> blocks_of_sums = scratch_of_parts(jobs, s.results * clusters);
    std::vector<int> sums;
    for (size_t i = 0; i < jobs.size(); ++i) sums.push_back(result_buffer(w, jobs[i], blocks_of_sums[i]));
    const Term each = w.number(size), cluster = w.quotient(at.part, each), begin = cluster * each;
    const Term end = min(begin + each, w.number(s.parts));
    when_last(w, blocks * clusters, cluster * w.number(blocks) + at.block, end - begin, [&] {
      combine_parts(w, jobs, s, at, strip, add_up(from, begin, end), arrays, sums, cluster);
      add_up_all(sums, clusters);
    });
  }

  /// What the items of a group have, as part `part` of each result.
  void combine_parts(KernelWriter& w, const std::vector<RootJob>& jobs, const RootSizes& s, const Column& at, int strip,
                     std::span<const Term> sums, LineArrays& arrays, const std::vector<int>& to, Term part) const {
    combine_lines(w, jobs, s, at, strip, sums, arrays, to,
                  [&](size_t, Term result) { return part * w.number(s.results) + result; });
  }

  /// The parts from `at.begin` to `at.end` of all results.
  std::vector<Term> add_parts_of_columns(KernelWriter& w, const std::vector<RootJob>& jobs, const RootSizes& s,
                                         const Column& at, int strip, const std::vector<int>& from) const {
    constexpr int64_t together = 4;  // parts that an item waits for once
    const std::vector<Term> sums = neutrals(w, jobs, strip);
    const auto add_some = [&](Term part, int64_t count) {
      std::vector<Term> loaded;
      for (int64_t i = 0; i < count; ++i) {
        const Term first = (part + at.lines * i) * w.number(s.results) + at.result;
        for (size_t k = 0; k < jobs.size(); ++k) {
          const ScalarType type = kernel_.instrs[jobs[k].instr].type;
          for (const Term x : w.load_vector(from[k], first, strip, list_.device.vector_bytes))
            loaded.push_back(w.convert(x, type));
        }
      }
      const auto width = static_cast<size_t>(strip);
      for (size_t i = 0; i < loaded.size(); ++i) {
        const size_t sum = i % sums.size();
        add(w, jobs[sum / width], sums[sum], loaded[i]);
      }
    };
    const Term next = w.variable(at.begin);
    w.loop(at.begin, at.end - at.lines * (together - 1), at.lines * together, [&](Term part) {
      add_some(part, together);
      w.assign(next, part + at.lines * together);
    });
    w.loop(next, at.end, at.lines, [&](Term part) { add_some(part, 1); });
    return sums;
  }

  /// The same in launches of their own, on devices where nobody knows who comes last.
  void write_clusters_of_columns(const std::vector<RootJob>& jobs, RootSizes s, std::vector<int32_t> partial,
                                 std::span<const int32_t> ends) {
    const ColumnGrid grid(s.results, s.run);
    const int64_t size = parts_of_cluster(s.parts, grid.lines), clusters = groups_for(s.parts, size);
    if (clusters > 1) {
      const std::vector<int32_t> sums = scratch_of_parts(jobs, s.results * clusters);
      write_parts_of_columns(jobs, s, partial, sums, {}, grid, size);
      partial = sums;
      s.parts = clusters;
    }
    write_parts_of_columns(jobs, s, partial, {}, ends, grid, s.parts);
  }

  /// Adds up the parts of every result by clusters of `size`: into scratch blocks, or all into the results.
  void write_parts_of_columns(const std::vector<RootJob>& jobs, const RootSizes& whole,
                              const std::vector<int32_t>& partial, const std::vector<int32_t>& sums,
                              std::span<const int32_t> ends, const ColumnGrid& grid, int64_t size) {
    RootSizes s = whole;
    s.reduced = whole.parts;
    s.part_size = size;
    s.parts = groups_for(whole.parts, size);
    KernelWriter w("column_parts", items_of_group, index_);
    int strip = grid.strip;
    std::vector<int> from, to;
    for (size_t i = 0; i < jobs.size(); ++i) {
      const ScalarType travels = shared_type(kernel_.instrs[jobs[i].instr].type);
      if (bytes_of(travels) > 4) strip = std::min(strip, 4);
      from.push_back(w.buffer(storage_of(travels), {-1, partial[i]}));
      to.push_back(result_buffer(w, jobs[i], sums.empty() ? -1 : sums[i]));
    }
    RootEnds behind(w, layout_, ends, results_of(jobs));
    LineArrays arrays = arrays_for(jobs, strip);
    const Column at = column_of(w, s, grid, strip);
    const std::vector<Term> found = add_parts_of_columns(w, jobs, s, at, strip, from);
    if (sums.empty()) finish_columns(w, jobs, s, at, strip, found, arrays, to, behind);
    else combine_parts(w, jobs, s, at, strip, found, arrays, to, at.part);
    list_.launches.push_back(w.finish(grid.blocks(s.results, strip) * s.parts));
    list_.launches.back().sharing = Sharing::like;
  }

  /// Of each root, for so many sums.
  std::vector<int32_t> scratch_of_parts(const std::vector<RootJob>& jobs, int64_t count) {
    std::vector<int32_t> blocks;
    for (const RootJob& job : jobs) {
      blocks.push_back(list_.scratch(count * bytes_of(shared_type(kernel_.instrs[job.instr].type))));
    }
    return blocks;
  }

  std::vector<int32_t>& ends_;  // that no root has taken yet
  bool stored_ = false;         // by the walk of a root
};

}  // namespace

bool add_up_behind(KernelWriter& writer, const Layout& layout, int32_t kernel, const std::vector<RootJob>& roots,
                   int64_t groups, std::vector<int32_t>& ends, LaunchList& list) {
  const std::map<size_t, int32_t> given;
  RootWriter roots_of(layout, kernel, writer.index_type(), given, ends, list);
  if (!roots_of.may_run_behind(roots)) return false;
  roots_of.run_behind(writer, roots, groups);
  return true;
}

bool may_be_added_by_rows(const Layout& layout, int32_t kernel, const RootJob& root) {
  const std::map<size_t, int32_t> given;
  std::vector<int32_t> ends;
  LaunchList none;
  return RootWriter(layout, kernel, ScalarType::int32, given, ends, none).is_of_rows(root);
}

void add_up_parts(const Layout& layout, int32_t kernel, ScalarType index, const std::vector<RootJob>& roots,
                  int64_t parts, std::vector<int32_t>& ends, LaunchList& list) {
  const std::map<size_t, int32_t> given;
  RootWriter(layout, kernel, index, given, ends, list).run_parts(roots, parts);
}

bool write_roots(const Layout& layout, int32_t kernel, ScalarType index, const std::vector<RootJob>& roots,
                 const std::map<size_t, int32_t>& given, const std::vector<size_t>& stores, std::vector<int32_t>& ends,
                 LaunchList& list) {
  return RootWriter(layout, kernel, index, given, ends, list).run(roots, stores);
}

}  // namespace rosin::kernels
