// Kernels of scatter, scatter_add, of other ways to combine, and the adjoint of take_along. First the result becomes
// the target (or zeros). Of many updates the indices are sorted, and the first of each place takes all. Of fewer, for
// sums a kernel links the updates of each place in their order, and the first of them adds up all; for others every
// item owns a block of places of one line along the dim, walks through all indices in their order and takes the updates
// of its block. Where places are few among the updates of sums, a group owns one and collects its updates from all
// indices. So what repeated indices do has one order, and nothing is atomic.
// Read first: indices.hpp, sort_lines.hpp, sort_tile.hpp (GroupSum).
#include <algorithm>
#include <bit>

#include <rosin/error.hpp>

#include "graph/reducer.hpp"
#include "kernels/bit_terms.hpp"
#include "kernels/indices.hpp"
#include "kernels/sort_lines.hpp"
#include "kernels/sort_tile.hpp"

namespace rosin::kernels {
namespace {

void require_numbers(const Value& value) {
  if (value.dtype != DType::Bool && !is_complex(value.dtype)) return;
  throw Error(ErrorKind::dtype, std::string(value.op->name) + ": not defined for elements of type " +
                                    to_string(value.dtype) + "; convert the operand with cast");
}

bool adds_up(const Op& op) {
  switch (op.scatter) {
    case Scatter::write: return false;
    case Scatter::combine: return false;
    case Scatter::add:
    case Scatter::add_along: return true;
    case Scatter::none: break;
  }
  throw_unknown(op, "the writer of kernels");
}

// Beyond so many updates their indices are sorted, which takes a dozen launches: links compare each with all others (an
// H100 would take 0.2 ms for that), and in a walk each block reads all.
constexpr int64_t most_linked = 32768, most_walked = 4096;
constexpr int64_t most_sorted = int64_t{1} << 30;
constexpr int64_t least_of_place = 4;  // updates on the average, from which on groups collect those of a place

// What one scatter works on: target (before..., n, after...) or zeros, indices, updates (before..., m, after...), where
// m is the indices' own number (along) or their sizes.
struct Scattering {
  Scattering(const CallStep& of, LaunchList& launches)
      : step(of), list(launches), dim(static_cast<int>(of.attributes<DimAttributes>().dim)),
        along(of.value.op->scatter == Scatter::add_along), adds(adds_up(*of.value.op)), reducer(of.value.op->reducer) {
    const bool half = of.value.dtype == DType::Float16 || of.value.dtype == DType::BFloat16;
    const int64_t count = step.view(indices()).count();
    sorted = !along && count > (adds ? most_linked : most_walked) && count <= most_sorted &&
             step.view(step.node).sizes[dim] < UINT32_MAX;
    const int64_t places = step.view(step.node).sizes[dim];
    const bool in_32_bits = adds && !along && !sorted && count <= INT32_MAX;  // so updates are counted
    collected = in_32_bits && places > 0 && places <= count / least_of_place;
    linked = in_32_bits && !collected;
    if (adds && !linked && !collected && !sorted && half)
      sums = list.scratch(of.view(of.node).count() * static_cast<int64_t>(sizeof(float)));
  }

  /// What the updates go into: halves are added up in Float32 and rounded once.
  Elements into(KernelWriter& writer) const {
    return sums < 0 ? Elements(writer, step, step.node) : Elements::sums(writer, step, step.node, sums);
  }
  int32_t indices() const { return step.in(along ? 0 : 1); }
  int32_t updates() const { return step.in(along ? 1 : 2); }

  const CallStep& step;
  LaunchList& list;
  int dim;
  bool along, adds;
  bool linked = false, collected = false, sorted = false;
  const Reducer* reducer;  // of scatters that combine
  int32_t sums = -1;       // scratch block
};

/// Whether the operand is one real element for all.
bool is_fill(const CallStep& step, int32_t operand) {
  const View& view = step.view(operand);
  const auto moves = [&](int d) { return view.sizes[d] != 1 && view.strides[d] != 0; };
  for (int d = 0; d < view.rank; ++d) {
    if (moves(d)) return false;
  }
  return !is_complex(step.value.dtype);
}

void write_start(const Scattering& s) {
  KernelWriter writer = s.step.writer();
  const bool copies = !s.along && s.sums < 0, fills = copies && is_fill(s.step, s.step.in(0));
  const int strip = fills    ? s.step.strip({s.step.node}, s.list.device)
                    : copies ? s.step.strip({s.step.node, s.step.in(0)}, s.list.device)
                             : 1;
  const View& view = s.step.view(s.step.node);
  const std::vector<Term> sizes =
      in_strips(writer, size_terms(writer, s.step.layout, s.step.node), view.sizes[0], strip);
  const Elements into = s.into(writer);
  std::optional<Elements> target;
  if (!s.along) target.emplace(writer, s.step, s.step.in(0), s.step.value.dtype);
  const ScalarType type = s.sums < 0 ? scalar_type(s.step.value.dtype) : ScalarType::float32;
  launch_each(s.list, writer, view.count() / strip, [&](Term i) {
    const std::vector<Term> at = strip_begin(writer.coordinates(i, sizes), strip);
    if (fills)
      into.store_strip(at, std::vector<Term>(static_cast<size_t>(strip), target->load(at)), s.list.device.vector_bytes);
    else if (target) into.copy_strip(at, *target, at, strip, s.list.device.vector_bytes);
    else into.store(at, writer.literal(type, 0));
  });
}

void write_rounding(const Scattering& s) {
  KernelWriter writer = s.step.writer();
  const std::vector<Term> sizes = size_terms(writer, s.step.layout, s.step.node);
  const Elements out(writer, s.step, s.step.node), sums = s.into(writer);
  launch_each(s.list, writer, s.step.view(s.step.node).count(), [&](Term i) {
    const std::vector<Term> at = writer.coordinates(i, sizes);
    out.copy(at, sums, at);
  });
}

// Places of a block of a line of `size`: so few that there are enough items to keep a device busy.
int64_t block_width(int64_t lines, int64_t size) {
  constexpr int64_t enough_items = 16384;
  const int64_t blocks = std::max<int64_t>(enough_items / std::max<int64_t>(lines, 1), 1);
  return std::max<int64_t>((size + blocks - 1) / blocks, 1);
}

// The coordinates of update k of a line, and of its index.
struct Update {
  std::vector<Term> at, index_at;

  Update(const Scattering& s, KernelWriter& writer, const std::vector<Term>& line, std::span<const Term> sizes, Term k)
      : at(line.begin(), line.begin() + s.dim),
        index_at(s.along ? std::vector<Term>{k} : writer.coordinates(k, sizes)) {
    at.insert(at.end(), index_at.begin(), index_at.end());
    at.insert(at.end(), line.begin() + s.dim + 1, line.end());
    if (s.along) index_at = at;
  }
};

void write_walk(const Scattering& s) {
  KernelWriter writer = s.step.writer();
  const View &view = s.step.view(s.step.node), &index_view = s.step.view(s.indices());
  const int64_t lines = count_lines(view, s.dim), size = view.sizes[s.dim], own = block_width(lines, size);
  const std::vector<Term> sizes = line_sizes(writer, view, s.dim);
  const std::vector<Term> index_sizes = size_terms(writer, s.step.layout, s.indices());
  const Elements into = s.into(writer), updates(writer, s.step, s.updates(), s.step.value.dtype);
  const Indices indices(writer, s.step, s.list, s.indices(), size);
  const Term count = writer.number(s.along ? index_view.sizes[s.dim] : index_view.count());
  const Term line_count = writer.number(lines), width = writer.number(own);
  // A dim without places has one block too: it finds that every index is bad.
  launch_each(s.list, writer, lines * std::max<int64_t>((size + own - 1) / own, 1), [&](Term i) {
    const Term block = writer.quotient(i, line_count), first = block * width;
    const std::vector<Term> line = writer.coordinates(i - block * line_count, sizes);
    writer.loop(count, [&](Term k) {
      const Update update(s, writer, line, index_sizes, k);
      indices.at(update.index_at, true, [&](Term place) {
        writer.when(first <= place && place - first < width, [&] {
          std::vector<Term> to = line;
          to[static_cast<size_t>(s.dim)] = place;
          if (s.adds) into.store(to, into.load(to) + updates.load(update.at));
          else if (!s.reducer) into.copy(to, updates, update.at);
          else into.store(to, writer.combine(s.reducer->body, into.load(to), updates.load(update.at)));
        });
      });
    });
  });
}

// Of each update: how many updates its place gets, 0 where an earlier one has the same place or the index is bad; and
// which of them comes next. An item looks at all indices, which its group brings to shared memory in turns.
void write_links(const Scattering& s, int32_t counts, int32_t followers) {
  KernelWriter writer("scatter_links", items_of_group, s.step.index());
  const std::vector<Term> sizes = size_terms(writer, s.step.layout, s.indices());
  const int64_t updates = s.step.view(s.indices()).count(), size = s.step.view(s.step.node).sizes[s.dim];
  const Indices indices(writer, s.step, s.list, s.indices(), size);
  const int to_count = writer.buffer(DType::Int32, {-1, counts}),
            to_next = writer.buffer(DType::Int32, {-1, followers});
  const ScalarType type = writer.index_type();
  const int shared = writer.shared(type, items_of_group);
  const Term count = writer.number(updates), k = writer.global(), item = writer.item();
  const Term first = writer.group(0) * items_of_group;
  const auto place_of = [&](Term j) {
    const Term place = writer.variable(writer.index(-1));
    writer.when(j < count, [&] {
      indices.if_good(writer.coordinates(j, sizes), true, [&](Term found) { writer.assign(place, found); });
    });
    return place;
  };
  const Term own = place_of(k), found = writer.variable(writer.index(0)), next = writer.variable(count);
  const Term earlier = writer.variable(writer.index(0));
  writer.loop(writer.index(0), count, writer.index(items_of_group), [&](Term begin) {
    const Term other = place_of(begin + item);
    writer.barrier();  // what was read before is read
    writer.shared_store(shared, item, other);
    writer.barrier();
    const auto each = [&](auto&& look) {
      writer.loop(writer.index(items_of_group),
                  [&](Term at) { look(begin + at, writer.shared_load(shared, at) == own); });
    };
    const auto one = [&](Term yes) { return writer.convert(yes, type); };
    writer.when(begin < first, [&] { each([&](Term, Term same) { writer.assign(earlier, earlier + one(same)); }); });
    writer.when(begin == first, [&] {
      each([&](Term j, Term same) {
        writer.assign(earlier, earlier + one(same && j < k));
        writer.assign(found, found + one(same && k <= j));
        writer.assign(next, writer.select(same && k < j, min(next, j), next));
      });
    });
    writer.when(first < begin, [&] {
      each([&](Term j, Term same) {
        writer.assign(found, found + one(same));
        writer.assign(next, writer.select(same, min(next, j), next));
      });
    });
  });
  writer.when(k < count, [&] {
    indices.report_bad(writer.coordinates(k, sizes), true);
    const Term is_first = earlier == 0 && writer.index(0) <= own;
    writer.store(to_count, k, writer.convert(writer.select(is_first, found, writer.index(0)), ScalarType::int32));
    writer.store(to_next, k, writer.convert(next, ScalarType::int32));
  });
  s.list.launches.push_back(writer.finish(groups_for(updates)));
  s.list.launches.back().sharing = Sharing::any;
}

// What a launch needs whose items each take the updates of one place, in one strip of the lines beside the dim.
struct PlaceStrips {
  PlaceStrips(const Scattering& s, KernelWriter& writer)
      : lanes(s.dim > 0 ? s.step.strip({s.step.node, s.updates()}, s.list.device) : 1),
        bytes(s.list.device.vector_bytes), lines(count_lines(s.step.view(s.step.node), s.dim) / lanes),
        sizes(in_strips(writer, line_sizes(writer, s.step.view(s.step.node), s.dim), s.step.view(s.step.node).sizes[0],
                        lanes)),
        index_sizes(size_terms(writer, s.step.layout, s.indices())), into(writer, s.step, s.step.node),
        updates(writer, s.step, s.updates(), s.step.value.dtype) {}

  int lanes, bytes;
  int64_t lines;
  std::vector<Term> sizes, index_sizes;  // of the lines in strips, of the indices
  Elements into, updates;
};

// The first update of each place adds up all of them, in their order.
void write_linked(const Scattering& s, int32_t counts, int32_t followers) {
  KernelWriter writer = s.step.writer();
  const PlaceStrips strips(s, writer);
  const Elements indices(writer, s.step, s.indices());
  const int count = writer.buffer(DType::Int32, {-1, counts}), next = writer.buffer(DType::Int32, {-1, followers});
  const Term line_count = writer.number(strips.lines), size = writer.number(s.step.view(s.step.node).sizes[s.dim]);
  launch_each(s.list, writer, s.step.view(s.indices()).count() * strips.lines, [&](Term i) {
    const Term k = writer.quotient(i, line_count), links = writer.convert(writer.load(count, k), writer.index_type());
    writer.when(writer.index(0) < links, [&] {
      const std::vector<Term> line = strip_begin(writer.coordinates(i - k * line_count, strips.sizes), strips.lanes);
      const Term index = writer.convert(indices.load(writer.coordinates(k, strips.index_sizes)), writer.index_type());
      std::vector<Term> to = line;
      to[static_cast<size_t>(s.dim)] = writer.select(index < 0, index + size, index);
      std::vector<Term> sums;
      for (const Term x : strips.into.load_strip(to, strips.lanes, strips.bytes)) sums.push_back(writer.variable(x));
      const Term at = writer.variable(k);
      writer.loop(links, [&](Term) {
        const Update update(s, writer, line, strips.index_sizes, at);
        const std::vector<Term> more = strips.updates.load_strip(update.at, strips.lanes, strips.bytes);
        for (size_t lane = 0; lane < sums.size(); ++lane) writer.assign(sums[lane], sums[lane] + more[lane]);
        writer.assign(at, writer.convert(writer.load(next, at), writer.index_type()));
      });
      strips.into.store_strip(to, sums, strips.bytes);
    });
  });
}

// What a group collects the updates of its place in: a tile of all indices at a time, of which every item has some
// neighbours, so that the list is in their order.
class PlaceList {
 public:
  PlaceList(const Scattering& s, KernelWriter& writer)
      : writer_(writer), sizes_(size_terms(writer, s.step.layout, s.indices())),
        indices_(writer, s.step, s.list, s.indices(), s.step.view(s.step.node).sizes[s.dim]),
        tile_(tile_of(s.list.device)), list_(writer.shared(ScalarType::int32, static_cast<int>(tile_))), sum_(writer),
        count_(writer.number(s.step.view(s.indices()).count())) {}

  // f(updates of the place, in their order): their number, and a function that loads one of them.
  template <class F> void each_tile(Term place, F&& f) {
    writer_.loop(writer_.index(0), count_, writer_.index(tile_), [&](Term begin) {
      const Term own = writer_.index(tile_ / items_of_group), first = begin + writer_.item() * own;
      const Term none = writer_.literal(ScalarType::int32, 0);
      const Term found = writer_.variable(none), marks = writer_.variable(none);  // bit n: update first + n is one
      writer_.loop(own, [&](Term n) {
        const Term at = min(first + n, count_ - 1), bit = writer_.convert(n, marks.type);
        const Term is_one = indices_.is_of(writer_.coordinates(at, sizes_), place) && first + n < count_;
        const Term one = writer_.convert(is_one, marks.type);
        writer_.assign(found, found + one);
        writer_.assign(marks, bits_or(marks, writer_.apply(Primitive::shift_left, marks.type, {one, bit})));
      });
      const auto [before, all] = sum_.before(found);
      const Term slot = writer_.variable(before);
      writer_.when(like(found, 0) < found, [&] {
        writer_.loop(own, [&](Term n) {
          const Term bit = writer_.apply(Primitive::shift_right, marks.type, {marks, writer_.convert(n, marks.type)});
          writer_.when(bits_and(bit, 1) != 0, [&] {
            const Term at = writer_.convert(first + n, ScalarType::int32);
            writer_.shared_store(list_, writer_.convert(slot, writer_.index_type()), at);
            writer_.assign(slot, slot + 1);
          });
        });
      });
      writer_.barrier();
      f(writer_.convert(all, writer_.index_type()),
        [&](Term at) { return writer_.convert(writer_.shared_load(list_, at), writer_.index_type()); });
      writer_.barrier();  // before the next tile
    });
  }

  // Indices that are bad, by the items of one group.
  void report_bad() const {
    writer_.loop(writer_.item(), count_, writer_.index(items_of_group),
                 [&](Term at) { indices_.report_bad(writer_.coordinates(at, sizes_), true); });
  }

 private:
  static int64_t tile_of(const Abilities& device) {
    constexpr int64_t most = 32 * items_of_group, beside = 4096;  // a word of marks each; bytes for other arrays
    const auto fits = static_cast<uint64_t>((device.shared_bytes - beside) / static_cast<int64_t>(sizeof(int32_t)));
    return std::min(most, static_cast<int64_t>(std::bit_floor(fits)));
  }

  KernelWriter& writer_;
  std::vector<Term> sizes_;
  Indices indices_;
  int64_t tile_;
  int list_;  // shared
  GroupSum sum_;
  Term count_;
};

// Every group adds the updates of its place, in their order, in up to 256 strips of the lines.
void write_collected(const Scattering& s) {
  KernelWriter writer("scatter_places", items_of_group, s.step.index());
  const PlaceStrips strips(s, writer);
  const Elements target(writer, s.step, s.step.in(0), s.step.value.dtype);
  PlaceList list(s, writer);
  const int64_t places = s.step.view(s.step.node).sizes[s.dim];
  const Term size = writer.number(places), group = writer.group(0), block = writer.quotient(group, size);
  const Term place = group - block * size, i = block * items_of_group + writer.item();
  const Term valid = i < writer.number(strips.lines);
  const std::vector<Term> line =
      strip_begin(writer.coordinates(writer.select(valid, i, writer.index(0)), strips.sizes), strips.lanes);
  std::vector<Term> to = line, sums;
  to[static_cast<size_t>(s.dim)] = place;
  for (const Term x : target.load_strip(to, strips.lanes, strips.bytes)) sums.push_back(writer.variable(x));
  list.each_tile(place, [&](Term count, auto&& update_at) {
    const auto add = [&](Term first, int64_t number) {
      std::vector<Term> loaded;
      for (int64_t one = 0; one < number; ++one) {
        const Update update(s, writer, line, strips.index_sizes, update_at(first + one));
        for (const Term x : strips.updates.load_strip(update.at, strips.lanes, strips.bytes)) loaded.push_back(x);
      }
      for (size_t k = 0; k < loaded.size(); ++k) {
        const Term sum = sums[k % sums.size()];
        writer.assign(sum, sum + loaded[k]);
      }
    };
    constexpr int64_t together = 16;  // updates that an item waits for once
    const Term own = writer.select(valid, count, writer.index(0)), next = writer.variable(writer.index(0));
    writer.loop(writer.index(0), own - (together - 1), writer.index(together), [&](Term first) {
      add(first, together);
      writer.assign(next, first + together);
    });
    writer.loop(next, own, writer.index(1), [&](Term at) { add(at, 1); });
  });
  writer.when(valid, [&] { strips.into.store_strip(to, sums, strips.bytes); });
  writer.when(group == 0, [&] { list.report_bad(); });
  s.list.launches.push_back(writer.finish(places * groups_for(strips.lines)));
}

// Scratch blocks: the places of all updates as keys, the updates in the order of these, and of each in that order, how
// many have its place, if it is the first of them; else 0.
struct SortedUpdates {
  int32_t keys, order, runs;
};

// The dim's size stands where the index is bad.
void write_keys(const Scattering& s, const SortedUpdates& scratch) {
  KernelWriter writer("scatter_keys", items_of_group, s.step.index());
  const std::vector<Term> sizes = size_terms(writer, s.step.layout, s.indices());
  const int64_t updates = s.step.view(s.indices()).count(), size = s.step.view(s.step.node).sizes[s.dim];
  const Indices indices(writer, s.step, s.list, s.indices(), size);
  const int keys = writer.buffer(DType::UInt32, {-1, scratch.keys});
  const Term count = writer.number(updates), none = writer.number(size);
  launch_each(s.list, writer, padded_to_tiles(updates), [&](Term k) {
    const Term key = writer.variable(writer.index(-1));
    writer.when(k < count, [&] {
      writer.assign(key, none);
      indices.at(writer.coordinates(k, sizes), true, [&](Term place) { writer.assign(key, place); });
    });
    writer.store(keys, k, writer.convert(key, writer.type_of_buffer(keys)));
  });
}

void write_runs(const Scattering& s, const SortedUpdates& scratch) {
  KernelWriter writer("scatter_runs", items_of_group, s.step.index());
  const int64_t updates = s.step.view(s.indices()).count(), size = s.step.view(s.step.node).sizes[s.dim];
  const int keys = writer.buffer(DType::UInt32, {-1, scratch.keys}),
            order = writer.buffer(DType::Int32, {-1, scratch.order}),
            runs = writer.buffer(DType::Int32, {-1, scratch.runs});
  const Term count = writer.number(updates), none = writer.number(size);
  const Term halvings = writer.number(std::bit_width(static_cast<uint64_t>(updates)));
  const auto key_at = [&](Term at) {
    return writer.load(keys, writer.convert(writer.load(order, at), writer.index_type()));
  };
  launch_each(s.list, writer, updates, [&](Term at) {
    const Term own = key_at(at), before = key_at(max(at - 1, like(at, 0))), next = at + 1;
    const Term is_first = (at == 0 || before != own) && own < writer.convert(none, own.type);
    const Term end = writer.variable(next);  // of the run
    writer.when(is_first && next < count && key_at(min(next, count - 1)) == own, [&] {
      const Term high = writer.variable(count);
      writer.loop(halvings, [&](Term) {
        writer.when(end < high, [&] {
          const Term half = end + (high - end) / 2, same = key_at(half) == own;
          writer.assign(high, writer.select(same, high, half));
          writer.assign(end, writer.select(same, half + 1, end));
        });
      });
    });
    const Term length = writer.select(is_first, end - at, like(at, 0));
    writer.store(runs, at, writer.convert(length, ScalarType::int32));
  });
}

// The first update of each place takes all of them, in their order; where they are written, the last one.
void write_sorted(const Scattering& s, const SortedUpdates& scratch) {
  KernelWriter writer = s.step.writer();
  const DType type = s.step.value.dtype;
  const PlaceStrips strips(s, writer);
  const int keys = writer.buffer(DType::UInt32, {-1, scratch.keys}),
            order = writer.buffer(DType::Int32, {-1, scratch.order}),
            runs = writer.buffer(DType::Int32, {-1, scratch.runs});
  const Term line_count = writer.number(strips.lines);
  const auto wide = [&](Term x) { return writer.convert(x, writer.index_type()); };
  launch_each(s.list, writer, s.step.view(s.indices()).count() * strips.lines, [&](Term i) {
    const Term first = writer.quotient(i, line_count), length = wide(writer.load(runs, first));
    writer.when(like(length, 0) < length, [&] {
      const std::vector<Term> line =
          strip_begin(writer.coordinates(i - first * line_count, strips.sizes), strips.lanes);
      const auto update = [&](Term at) {
        return Update(s, writer, line, strips.index_sizes, wide(writer.load(order, at))).at;
      };
      std::vector<Term> to = line;
      to[static_cast<size_t>(s.dim)] = wide(writer.load(keys, wide(writer.load(order, first))));
      if (!s.adds && !s.reducer)
        return strips.into.copy_strip(to, strips.updates, update(first + length - 1), strips.lanes, strips.bytes);
      std::vector<Term> made;
      for (const Term x : strips.into.load_strip(to, strips.lanes, strips.bytes)) made.push_back(writer.variable(x));
      writer.loop(first, first + length, writer.index(1), [&](Term at) {
        const std::vector<Term> more = strips.updates.load_strip(update(at), strips.lanes, strips.bytes);
        for (size_t lane = 0; lane < made.size(); ++lane) {
          const Term both = s.adds ? made[lane] + more[lane]
                                   : writer.round(writer.combine(s.reducer->body, made[lane], more[lane]), type);
          writer.assign(made[lane], both);
        }
      });
      strips.into.store_strip(to, made, strips.bytes);
    });
  });
}

void write_by_order(const Scattering& s) {
  const int64_t updates = s.step.view(s.indices()).count(), size = s.step.view(s.step.node).sizes[s.dim];
  const int64_t bytes = static_cast<int64_t>(sizeof(int32_t));
  const SortedUpdates scratch{s.list.scratch(padded_to_tiles(updates) * bytes), s.list.scratch(updates * bytes),
                              s.list.scratch(updates * bytes)};
  write_keys(s, scratch);
  const int digits = (static_cast<int>(std::bit_width(static_cast<uint64_t>(size))) + 7) / 8;
  write_order_of_keys(s.list, {updates, std::max(digits, 1), scratch.keys, scratch.order});
  write_runs(s, scratch);
  write_sorted(s, scratch);
}

}  // namespace

void write_scatter(const Layout& layout, int32_t node, LaunchList& list) {
  const CallStep step(layout, node);
  list.checks.push_back(node);
  const Scattering scatter(step, list);
  if (scatter.adds || scatter.reducer) require_numbers(step.value);
  if (scatter.collected) return write_collected(scatter);
  write_start(scatter);
  if (scatter.linked) {
    const int64_t updates = step.view(scatter.indices()).count();
    const int64_t bytes = updates * static_cast<int64_t>(sizeof(int32_t));
    const int32_t counts = list.scratch(bytes), followers = list.scratch(bytes);
    if (updates == 0) return;
    write_links(scatter, counts, followers);
    write_linked(scatter, counts, followers);
  } else if (scatter.sorted) {
    write_by_order(scatter);
  } else {
    write_walk(scatter);
  }
  if (scatter.sums >= 0) write_rounding(scatter);
}

}  // namespace rosin::kernels
