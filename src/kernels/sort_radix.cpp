// Sorting by radix: elements become unsigned keys in the same order, and the lines are sorted by their digits from the
// last one on, each time keeping the order there is. A digit takes three launches: groups count the digits of a tile
// each; the counts of all tiles become starts, digit by digit; groups sort their tiles and put them where the starts
// say. From launch to launch go places and what is left of the keys. Lines are filled up with the largest key to whole
// tiles: what stands there is last in the beginning, and stays so. Short lines are sorted by one group in one launch.
// Read first: sort_lines.hpp, sort_tile.hpp.
#include <algorithm>
#include <array>
#include <bit>

#include "graph/integers.hpp"
#include "kernels/sort_lines.hpp"
#include "kernels/sort_tile.hpp"

namespace rosin::kernels {
namespace {

constexpr int byte_bits = 8;
constexpr int place_bits = 11;  // of an element in its tile; in a word the digit stands above
constexpr int words_of_tile = static_cast<int>(sorted_tile / items_of_group);
static_assert(sorted_tile == 1 << place_bits);

int bits_of(DType type) { return static_cast<int>(size_of(type)) * byte_bits; }

/// Unsigned elements of so many bits.
DType unsigned_of(int bits) {
  if (bits <= 8) return DType::UInt8;
  if (bits <= 16) return DType::UInt16;
  return bits <= 32 ? DType::UInt32 : DType::UInt64;
}

/// The type as which elements are loaded, so that they come as their bits.
DType bits_type(DType type) { return type == DType::Bool ? type : unsigned_of(bits_of(type)); }

/// The largest key of so many bits.
Term ones(Term x, int bits) { return like(x, bits == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << bits) - 1)); }

/// The bits of infinity.
int64_t infinity_bits(DType type) {
  switch (type) {
    case DType::Float16: return 0x7c00;
    case DType::BFloat16: return 0x7f80;
    case DType::Float32: return 0x7f800000;
    default: return 0x7ff0000000000000;
  }
}

/// Of a float: both zeros are one key, and so are all NaN, the largest.
Term float_key(Term bits, DType type) {
  const int count = bits_of(type);
  const Term sign = like(bits, static_cast<int64_t>(uint64_t{1} << (count - 1)));
  const Term magnitude = bits_and(bits, static_cast<int64_t>((uint64_t{1} << (count - 1)) - 1));
  const Term negative = bits != magnitude && magnitude != 0;
  const Term number = bits.writer->select(negative, sign - 1 - magnitude, sign + magnitude);
  return bits.writer->select(like(bits, infinity_bits(type)) < magnitude, ones(bits, count), number);
}

Term key_of(Term bits, DType type, bool descending) {
  const int count = bits_of(type);
  if (type == DType::Bool) bits = bits.writer->convert(bits, ScalarType::int32);
  Term key = bits;
  if (is_float(type)) key = float_key(bits, type);
  else if (is_signed(type)) key = bits_xor(bits, like(bits, static_cast<int64_t>(uint64_t{1} << (count - 1))));
  return descending ? bits_xor(key, ones(key, type == DType::Bool ? 1 : count)) : key;
}

/// What is sorted: the elements of a sort, with its results, or keys of one line in scratch.
struct RadixJob {
  explicit RadixJob(const SortCall& sort)
      : list(sort.list), size(sort.size), lines(sort.lines), bits(bits_of(sort.type)), digits(key_digits(sort.type)),
        steps(sort.type == DType::Bool ? 1 : 2), call(&sort) {}
  RadixJob(LaunchList& launches, const KeyOrder& order)
      : list(launches), size(order.size), lines(1), bits(32), digits(order.digits), steps(2), keys(&order) {}

  LaunchList& list;
  int64_t size, lines;  // elements of a line, and how many there are
  int bits, digits;     // of a key; those bytes that are sorted by, from the last one on
  int steps;            // that a byte is sorted by in; Bool has one bit alone
  const SortCall* call = nullptr;
  const KeyOrder* keys = nullptr;

  int values() const { return 1 << steps * SortTile::digit_bits; }
  ScalarType index(int64_t padded) const {
    if (call) return call->index(padded);
    return padded > int64_t{1} << 30 ? ScalarType::int64 : ScalarType::int32;
  }
};

/// Scratch blocks of a sort. What launches give each other: keys and places, in turns in one pair or the other.
struct RadixScratch {
  int32_t keys[2], places[2], counts, totals;
};

/// One launch of a sort by radix that is being written.
class RadixKernel {
 public:
  RadixKernel(const RadixJob& job, const std::string& name, int words = words_of_tile)
      : job_(job), tiles_(groups_for(job.size, int64_t{words} * items_of_group)),
        padded_(tiles_ * words * items_of_group), values_(job.values()), w_(name, items_of_group, job.index(padded_)),
        tile_(w_, words) {}

  void sort_tile(std::optional<int32_t> into);
  void count(const RadixScratch& scratch, int digit);
  void move(const RadixScratch& scratch, int digit);

 private:
  Term wide(Term x) { return w_.convert(x, w_.index_type()); }
  Term narrow(Term x) { return w_.convert(x, ScalarType::int32); }
  void begin_tile();
  Term begin();
  Term element_key(Term place);
  Term stored_or_own_key(Term place) { return keys_ < 0 ? element_key(place) : w_.load(keys_, begin() + place); }
  void open_keys(const RadixScratch& scratch, int digit);
  void open_elements();
  SortLines& lines();
  void sort_words(int shift, bool spreads);
  Term lowest_digit(Term key) { return narrow(bits_and(key, values_ - 1)); }
  Term apart(int k) const { return tile_.item() + int64_t{k} * items_of_group; }
  Term first_of_digit(int k, int shift);
  void find_starts(const RadixScratch& scratch, int starts);
  void find_begins(int begins);
  void put(int k, Term at, int to_keys, int to_places);
  void open_results();
  void finish(int64_t groups) { job_.list.launches.push_back(w_.finish(groups)); }

  const RadixJob& job_;
  int64_t tiles_, padded_;  // of a line: tiles, and elements in scratch
  int values_;              // of a digit
  KernelWriter w_;
  SortTile tile_;
  std::optional<SortLines> lines_;  // where elements or results are touched
  Term size_{};
  int keys_ = -1, from_ = -1;  // buffers: what the digit before has left; before the first, elements are read
  int order_ = -1;             // where places go in the end, where those are no results
  Term line_{}, number_{};     // the group's line, and its tile there
  Term start_{}, begin_{};     // of the tile in its line, of the line in scratch
};

void RadixKernel::begin_tile() {
  const Term tiles = w_.number(tiles_), group = w_.group(0);
  line_ = w_.quotient(group, tiles);
  number_ = group - line_ * tiles;
  start_ = number_ * (int64_t{tile_.words()} * items_of_group);
}

/// Of the line in scratch; asked for outside of loops and branches.
Term RadixKernel::begin() {
  if (!begin_.writer) begin_ = line_ * w_.number(padded_);
  return begin_;
}

SortLines& RadixKernel::lines() {
  if (!lines_) {
    lines_.emplace(w_, *job_.call, bits_type(job_.call->type));
    lines_->go_to(line_);
  }
  return *lines_;
}

void RadixKernel::open_elements() {
  lines().open_elements();
  size_ = w_.number(job_.size);
}

void RadixKernel::open_results() {
  if (job_.call) return lines().open_results();
  order_ = w_.buffer(DType::Int32, {-1, job_.keys->order});
  size_ = w_.number(job_.size);
}

/// Of the operand, or the largest one beyond the line's end.
Term RadixKernel::element_key(Term place) {
  const SortCall& call = *job_.call;
  const Term key = key_of(lines_->load(min(place, size_ - 1)), call.type, call.attributes.descending != 0);
  return w_.select(place < size_, key, ones(key, job_.bits));
}

void RadixKernel::open_keys(const RadixScratch& scratch, int digit) {
  if (digit == 0 && job_.call) return open_elements();
  const size_t side = static_cast<size_t>(digit - 1) % 2;
  const int32_t keys = digit == 0 ? job_.keys->keys : scratch.keys[side];
  keys_ = w_.buffer(unsigned_of(job_.bits - digit * byte_bits), {-1, keys});
  if (digit == 0) return;
  from_ = w_.buffer(DType::Int32, {-1, scratch.places[side]});
}

/// Words together, by a digit.
void RadixKernel::sort_words(int shift, bool spreads) {
  for (int step = 0; step < job_.steps; ++step) {
    const int by = shift + step * SortTile::digit_bits;
    if (spreads && step + 1 == job_.steps) tile_.sort_and_spread(by);
    else tile_.sort_by(by);
  }
}

void RadixKernel::sort_tile(std::optional<int32_t> into) {
  const int target = into ? w_.buffer(DType::Int32, {-1, *into}) : -1;
  begin_tile();
  open_elements();
  if (!into) lines_->open_results();
  const Term line_start = line_ * size_;
  const int words = tile_.words();
  for (int k = 0; k < words; ++k) tile_.set(k, tile_.item() * words + k);
  w_.loop(tile_.integer(0), tile_.integer(job_.bits), tile_.integer(byte_bits), [&](Term shift) {
    for (int k = 0; k < words; ++k) {
      const Term word = tile_.word(k), key = element_key(start_ + wide(word));
      const Term rest = w_.apply(Primitive::shift_right_zero, key.type, {key, w_.convert(shift, key.type)});
      tile_.set(k, bits_or(word, shifted_left(lowest_digit(rest), place_bits)));
    }
    sort_words(place_bits, false);
    for (int k = 0; k < words; ++k) tile_.set(k, bits_and(tile_.word(k), sorted_tile - 1));
  });
  tile_.spread();
  for (int k = 0; k < words; ++k) {
    const Term at = start_ + wide(apart(k)), place = start_ + wide(tile_.word(k));
    if (!into) lines_->put(at, place);
    else w_.when(at < size_, [&] { w_.store(target, line_start + at, narrow(place)); });
  }
  finish(job_.lines * tiles_);
}

/// Whether word number apart(k) of the sorted tile is the first of its digit.
Term RadixKernel::first_of_digit(int k, int shift) {
  const Term at = apart(k), before = tile_.sorted(max(at - 1, like(at, 0)));
  return at == 0 || shifted_right(before, shift) != shifted_right(tile_.word(k), shift);
}

void RadixKernel::count(const RadixScratch& scratch, int digit) {
  begin_tile();
  open_keys(scratch, digit);
  const int out = w_.buffer(DType::Int32, {-1, scratch.counts});
  const int begins = w_.shared(ScalarType::int32, values_), ends = w_.shared(ScalarType::int32, values_);
  const Term own_value = tile_.item() < values_;
  w_.when(own_value, [&] {
    w_.shared_store(begins, tile_.item(), tile_.integer(0));
    w_.shared_store(ends, tile_.item(), tile_.integer(0));
  });
  for (int k = 0; k < tile_.words(); ++k) tile_.set(k, lowest_digit(stored_or_own_key(start_ + wide(apart(k)))));
  sort_words(0, true);
  for (int k = 0; k < tile_.words(); ++k) {
    const Term at = apart(k), last = like(at, sorted_tile - 1), word = tile_.word(k);
    w_.when(first_of_digit(k, 0), [&] { w_.shared_store(begins, word, at); });
    w_.when(at == last || tile_.sorted(min(at + 1, last)) != word, [&] { w_.shared_store(ends, word, at + 1); });
  }
  w_.barrier();
  const Term tiles = w_.number(tiles_), values = w_.index(values_);
  w_.when(own_value, [&] {
    const Term count = w_.shared_load(ends, tile_.item()) - w_.shared_load(begins, tile_.item());
    w_.store(out, (line_ * values + wide(tile_.item())) * tiles + number_, count);
  });
  finish(job_.lines * tiles_);
}

/// Into a shared array: where words of the group's tile go that have each value of the digit.
void RadixKernel::find_starts(const RadixScratch& scratch, int starts) {
  const int counts = w_.buffer(DType::Int32, {-1, scratch.counts});
  const int totals = w_.buffer(DType::Int32, {-1, scratch.totals});
  const Term value = tile_.item(), has_value = value < values_;
  const Term row = line_ * values_ + wide(min(value, like(value, values_ - 1)));
  const Term total = w_.select(has_value, w_.load(totals, row), tile_.integer(0));
  const Term start = tile_.sum().before(total).first + w_.load(counts, row * w_.number(tiles_) + number_);
  w_.when(has_value, [&] { w_.shared_store(starts, value, start); });
}

/// Into a shared array: where words of each value begin in the sorted tile.
void RadixKernel::find_begins(int begins) {
  for (int k = 0; k < tile_.words(); ++k) {
    const Term value = shifted_right(tile_.word(k), place_bits);
    w_.when(first_of_digit(k, place_bits), [&] { w_.shared_store(begins, value, apart(k)); });
  }
  w_.barrier();
}

/// What the word stands for, without the digit, at `at` of the line in scratch; without buffers: as a result.
void RadixKernel::put(int k, Term at, int to_keys, int to_places) {
  const Term source = start_ + wide(bits_and(tile_.word(k), sorted_tile - 1));
  const Term place = from_ < 0 ? source : wide(w_.load(from_, begin() + source));
  if (to_keys < 0 && order_ >= 0) return w_.when(at < size_, [&] { w_.store(order_, at, narrow(place)); });
  if (to_keys < 0) return lines_->put(at, place);
  const Term key = shifted_right(stored_or_own_key(source), byte_bits), to = begin() + at;
  w_.store(to_keys, to, w_.convert(key, w_.type_of_buffer(to_keys)));
  w_.store(to_places, to, narrow(place));
}

void RadixKernel::move(const RadixScratch& scratch, int digit) {
  const int left = job_.bits - (digit + 1) * byte_bits;  // of the bits
  const bool last = digit + 1 == job_.digits;
  const size_t side = static_cast<size_t>(digit) % 2;
  begin_tile();
  open_keys(scratch, digit);
  if (last) open_results();
  const int to_keys = last ? -1 : w_.buffer(unsigned_of(left), {-1, scratch.keys[side]});
  const int to_places = last ? -1 : w_.buffer(DType::Int32, {-1, scratch.places[side]});
  const int starts = w_.shared(ScalarType::int32, values_), begins = w_.shared(ScalarType::int32, values_);
  find_starts(scratch, starts);
  for (int k = 0; k < tile_.words(); ++k) {
    const Term key = stored_or_own_key(start_ + wide(apart(k)));
    tile_.set(k, bits_or(apart(k), shifted_left(lowest_digit(key), place_bits)));
  }
  tile_.gather();
  sort_words(place_bits, true);
  find_begins(begins);
  for (int k = 0; k < tile_.words(); ++k) {
    const Term value = shifted_right(tile_.word(k), place_bits);
    put(k, wide(w_.shared_load(starts, value) - w_.shared_load(begins, value) + apart(k)), to_keys, to_places);
  }
  finish(job_.lines * tiles_);
}

/// Counts become starts in the line, beside totals of all tiles: each item takes those of one value in one line.
void write_starts_by_items(const RadixJob& job, const RadixScratch& scratch, int64_t tiles_of_line, KernelWriter& w) {
  const int counts = w.buffer(DType::Int32, {-1, scratch.counts});
  const int totals = w.buffer(DType::Int32, {-1, scratch.totals});
  const Term tiles = w.number(tiles_of_line);
  launch_each(job.list, w, job.lines * job.values(), [&](Term row) {
    const Term sum = w.variable(w.bits(ScalarType::int32, 0)), first = row * tiles;
    w.loop(first, first + tiles, w.index(1), [&](Term at) {
      const Term count = w.load(counts, at);
      w.store(counts, at, sum);
      w.assign(sum, sum + count);
    });
    w.store(totals, row, sum);
  });
}

/// The same, each by a group.
void write_starts_by_groups(const RadixJob& job, const RadixScratch& scratch, int64_t tiles_of_line, KernelWriter& w) {
  constexpr int each = 4;  // counts of an item
  const GroupSum group_sum(w);
  const int counts = w.buffer(DType::Int32, {-1, scratch.counts});
  const int totals = w.buffer(DType::Int32, {-1, scratch.totals});
  const Term group = w.group(0), tiles = w.number(tiles_of_line), row = group * tiles;
  const Term none = w.bits(ScalarType::int32, 0), sum = w.variable(none);
  w.loop(w.index(0), tiles, w.index(each * items_of_group), [&](Term first) {
    const Term own = first + w.item() * each;
    std::array<Term, each> found;
    Term all = none;
    for (int k = 0; k < each; ++k) {
      const Term count = w.variable(none);
      w.when(own + k < tiles, [&] { w.assign(count, w.load(counts, row + own + k)); });
      found[static_cast<size_t>(k)] = count;
      all = all + count;
    }
    const auto [before, total] = group_sum.before(all);
    Term start = sum + before;
    for (int k = 0; k < each; ++k) {
      w.when(own + k < tiles, [&] { w.store(counts, row + own + k, start); });
      start = start + found[static_cast<size_t>(k)];
    }
    w.assign(sum, sum + total);
  });
  w.when(group_sum.item() == 0, [&] { w.store(totals, group, sum); });
  job.list.launches.push_back(w.finish(job.lines * job.values()));
}

/// By items where lines are many or have few tiles: groups would have little to add up.
void write_starts(const RadixJob& job, const RadixScratch& scratch) {
  constexpr int64_t few_tiles = 16;
  const int64_t tiles = groups_for(job.size, sorted_tile);
  KernelWriter writer("sort_starts", items_of_group, job.index(tiles * sorted_tile));
  const auto write = tiles <= few_tiles * job.lines ? write_starts_by_items : write_starts_by_groups;
  write(job, scratch, tiles, writer);
}

void write_passes(const RadixJob& job) {
  const int64_t tiles = groups_for(job.size, sorted_tile), elements = job.lines * tiles * sorted_tile;
  const auto block = [&](bool needed, int64_t count, DType type) {
    return needed ? job.list.scratch(count * static_cast<int64_t>(size_of(type))) : -1;
  };
  const auto keys_after = [&](int digit) {
    const bool needed = job.digits > digit;
    return block(needed, elements, needed ? unsigned_of(job.bits - digit * byte_bits) : DType::UInt8);
  };
  const RadixScratch scratch{
      {keys_after(1), keys_after(2)},
      {block(job.digits > 1, elements, DType::Int32), block(job.digits > 2, elements, DType::Int32)},
      block(true, job.lines * job.values() * tiles, DType::Int32),
      block(true, job.lines * job.values(), DType::Int32)};
  for (int digit = 0; digit < job.digits; ++digit) {
    RadixKernel(job, "sort_count").count(scratch, digit);
    write_starts(job, scratch);
    RadixKernel(job, "sort_move").move(scratch, digit);
  }
}

}  // namespace

bool has_keys(const SortCall& call) {
  const int32_t operand = call.step.in(0);
  return !is_complex(call.type) && !call.step.layout.structure->graph.values[static_cast<size_t>(operand)].is_scalar();
}

int key_digits(DType type) { return bits_of(type) / byte_bits; }

void write_sorted_tiles(const SortCall& call, std::optional<int32_t> into) {
  const int64_t items = groups_for(std::min(call.size, sorted_tile));
  const int words = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(items)));
  const RadixJob job(call);
  RadixKernel(job, "sort_tiles", words).sort_tile(into);
}

void write_sort_by_radix(const SortCall& call) { write_passes(RadixJob(call)); }

void write_order_of_keys(LaunchList& list, const KeyOrder& order) { write_passes({list, order}); }

}  // namespace rosin::kernels
