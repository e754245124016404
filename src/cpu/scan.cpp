// Running reductions, linear recurrences, and the places of extrema: one pass along a dim, lines side by side. What
// elements are combined with is the op's reducer. Read first: dispatch.hpp, scalar/combine.hpp.
#include "base/strided_copy.hpp"
#include "base/workers.hpp"
#include "cpu/dispatch.hpp"
#include "graph/reducer.hpp"
#include "scalar/convert.hpp"

namespace rosin::cpu {
namespace {

// Where the elements of a block of lines stand.
struct Block {
  int64_t start, stride, size, count;

  Block(const Lines& lines, int64_t outer, int64_t first, int64_t block_lines)
      : start(outer * lines.size * lines.inner + first), stride(lines.inner), size(lines.size), count(block_lines) {}
  int64_t at(int64_t j, bool reversed) const { return start + (reversed ? size - 1 - j : j) * stride; }
};

// Elements of any type in the type they are computed in: read and written in place where that is their own, else
// through a buffer.
class ComputedElements {
 public:
  ComputedElements(DType storage, ScalarType type) : storage_(storage), strip_(storage_of(type)) {}

  bool in_place() const { return storage_ == strip_; }
  int64_t bytes() const { return static_cast<int64_t>(size_of(strip_)); }
  // `count` elements from number `at` on; what is given back is `buffer` unless they are read in place.
  const unsigned char* read(const void* x, int64_t at, int64_t count, unsigned char* buffer) const {
    const auto* from = static_cast<const unsigned char*>(x) + at * static_cast<int64_t>(size_of(storage_));
    if (in_place()) return from;
    convert_elements(buffer, strip_, from, storage_, count);
    return buffer;
  }
  void write(void* out, int64_t at, int64_t count, const unsigned char* buffer) const {
    convert_elements(static_cast<unsigned char*>(out) + at * static_cast<int64_t>(size_of(storage_)), storage_, buffer,
                     strip_, count);
  }

 private:
  DType storage_, strip_;
};

constexpr int64_t most_bytes = 8;        // of an element that is computed with
constexpr int64_t buffer_length = 1024;  // elements

// x (inner, n, outer) -> the same shape. What comes out is rounded at each element, the totals are not.
class RunningCall final : public Call {
 public:
  RunningCall(const CallSpec& spec, int dim, bool reversed)
      : lines_(lines_of(spec.result.shape, dim)), blocks_(lines_, lines_.size), reversed_(reversed),
        elements_(spec.result.type, scalar_type(spec.result.type)),
        loops_(spec.op->reducer->body.of(scalar_type(spec.result.type))) {}

  int64_t chunks() const override { return blocks_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    blocks_.each(chunk, [&](int64_t outer, int64_t first, int64_t count) {
      const Block block(lines_, outer, first, count);
      alignas(8) unsigned char totals[LineBlocks::width * most_bytes];
      loops_.neutral(totals, count);
      if (elements_.in_place()) run_in_place(block, data, totals);
      else run_in_pieces(block, data, totals);
    });
  }

 private:
  void run_in_place(const Block& block, const CallData& data, unsigned char* totals) const {
    const int64_t from = block.at(0, reversed_) * elements_.bytes();
    loops_.running(static_cast<unsigned char*>(data.result) + from,
                   static_cast<const unsigned char*>(data.operands[0]) + from, totals, block.count, block.size,
                   reversed_ ? -block.stride : block.stride, 1);
  }

  // So many rows at a time as the buffer holds.
  void run_in_pieces(const Block& block, const CallData& data, unsigned char* totals) const {
    alignas(8) unsigned char buffer[buffer_length * most_bytes];
    const int64_t row_bytes = block.count * elements_.bytes(), rows = buffer_length / block.count;
    for (int64_t j = 0; j < block.size; j += rows) {
      const int64_t here = std::min(rows, block.size - j);
      // Of whole lines side by side the piece is one stretch of memory.
      const bool whole = block.count == block.stride;
      const int64_t stretch = whole ? here : 1;
      const auto each = [&](auto&& f) {
        for (int64_t r = 0; r < here; r += stretch) {
          const int64_t at = std::min(block.at(j + r, reversed_), block.at(j + r + stretch - 1, reversed_));
          f(at, stretch * block.count, buffer + r * row_bytes);
        }
      };
      each([&](int64_t at, int64_t n, unsigned char* to) { elements_.read(data.operands[0], at, n, to); });
      const bool backward = whole && reversed_;
      unsigned char* start = buffer + (backward ? (here - 1) * row_bytes : 0);
      loops_.running(start, start, totals, block.count, here, backward ? -block.count : block.count, 1);
      each([&](int64_t at, int64_t n, unsigned char* from) { elements_.write(data.result, at, n, from); });
    }
  }

  Lines lines_;
  LineBlocks blocks_;
  bool reversed_;
  ComputedElements elements_;
  CombineLoops loops_;
};

// Lines whose elements stand one after another, x (n, outer). An element waits for the one before it, so strands of
// them go side by side: lines, or segments of few long lines, to which what came before is added when all totals are
// known.
class RunningStrands final : public Call {
 public:
  RunningStrands(const CallSpec& spec, int dim, bool reversed)
      : lines_(lines_of(spec.result.shape, dim)), reversed_(reversed),
        elements_(spec.result.type, scalar_type(spec.result.type)),
        loops_(spec.op->reducer->body.of(scalar_type(spec.result.type))), length_(lines_.size) {
    // What comes out is rounded in halves: nothing can be added to it any more.
    const bool cut =
        elements_.in_place() && !spec.op->reducer->in_order && lines_.outer < few_lines && lines_.size >= worth_cutting;
    if (cut) {
      length_ = quotient_up(lines_.size, quotient_up(lines_.size, segment));
      segments_ = quotient_up(lines_.size, length_);
    }
    sets_ = cut ? lines_.outer : 1;
    strands_ = cut ? segments_ : lines_.outer;
    together_ = length_ < short_line ? most_together : few_together;
    groups_ = quotient_up(strands_, together_);
    pieces_ = Pieces::of(sets_ * groups_, together_ * length_);
  }

  int64_t chunks() const override { return pieces_.count(); }
  size_t scratch_bytes() const override {
    return segments_ > 1 ? static_cast<size_t>(sets_ * strands_ * most_bytes) : 0;
  }

  void run(int64_t chunk, const CallData& data) override {
    for (int64_t piece = pieces_.first(chunk); piece < pieces_.last(chunk); ++piece) {
      const int64_t set = piece / groups_, first = piece % groups_ * together_;
      alignas(8) unsigned char totals[most_together * most_bytes];
      run_group(data, set, first, std::min(together_, strands_ - first), totals);
    }
  }

  void finish(const CallData& data) override {
    if (segments_ == 1) return;
    for (int64_t set = 0; set < sets_; ++set) {
      for (int64_t s = 1; s < strands_; ++s) {
        unsigned char joined[most_bytes];
        std::memcpy(joined, total(data, set, s - 1), most_bytes);
        loops_.combine(joined, total(data, set, s), 1);
        std::memcpy(total(data, set, s), joined, most_bytes);
      }
    }
    parallel_for(sets_ * strands_, [&](int64_t s) {
      if (s % strands_ > 0) put_before(data, s / strands_, s % strands_);
    });
  }

 private:
  static constexpr int64_t few_together = 8, most_together = 128,
                           short_line = 32;  // of short lines many are worth a call
  static constexpr int64_t few_lines = 16, segment = 8192, worth_cutting = 4 * segment;

  static int64_t quotient_up(int64_t a, int64_t b) { return b == 0 ? 0 : (a + b - 1) / b; }

  // The first element of a strand in the order of the scan, and how far it is to the next strand and element.
  int64_t start(int64_t set, int64_t strand) const {
    return set * lines_.size + (reversed_ ? lines_.size - 1 : 0) + strand * to_next();
  }
  int64_t to_next() const { return segments_ > 1 ? step() * length_ : lines_.size; }
  int64_t step() const { return reversed_ ? -1 : 1; }
  int64_t length(int64_t strand) const {
    return segments_ > 1 ? std::min(length_, lines_.size - strand * length_) : length_;
  }

  unsigned char* total(const CallData& data, int64_t set, int64_t strand) const {
    return static_cast<unsigned char*>(data.scratch) + (set * strands_ + strand) * most_bytes;
  }

  void run_group(const CallData& data, int64_t set, int64_t first, int64_t count, unsigned char* totals) const {
    loops_.neutral(totals, count);
    const int64_t shared = length(first + count - 1);  // the last one is the shortest
    const int64_t at = start(set, first);
    advance(data, at, count, shared, totals);
    for (int64_t i = 0; i < count; ++i) {
      unsigned char* own = totals + i * elements_.bytes();
      const int64_t rest = length(first + i) - shared;
      if (rest > 0) advance(data, at + i * to_next() + shared * step(), 1, rest, own);
      if (segments_ > 1) std::memcpy(total(data, set, first + i), own, static_cast<size_t>(elements_.bytes()));
    }
  }

  // `size` elements more of strands from element `at` on.
  void advance(const CallData& data, int64_t at, int64_t count, int64_t size, unsigned char* totals) const {
    if (elements_.in_place()) {
      const int64_t from = at * elements_.bytes();
      return loops_.running(static_cast<unsigned char*>(data.result) + from,
                            static_cast<const unsigned char*>(data.operands[0]) + from, totals, count, size, step(),
                            to_next());
    }
    const int64_t room = buffer_length / together_;
    alignas(8) unsigned char buffer[buffer_length * most_bytes];
    for (int64_t done = 0; done < size; done += room) {
      const int64_t here = std::min(room, size - done);
      const auto each = [&](auto&& f) {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t first = at + i * to_next() + done * step();
          f(reversed_ ? first - here + 1 : first, buffer + i * room * elements_.bytes());
        }
      };
      each([&](int64_t from, unsigned char* to) { elements_.read(data.operands[0], from, here, to); });
      unsigned char* begin = buffer + (reversed_ ? (here - 1) * elements_.bytes() : 0);
      loops_.running(begin, begin, totals, count, here, step(), room);
      each([&](int64_t to, unsigned char* from) { elements_.write(data.result, to, here, from); });
    }
  }

  // Each element of a segment becomes combine(what came before, element).
  void put_before(const CallData& data, int64_t set, int64_t strand) const {
    constexpr int64_t width = 64;
    const int64_t bytes = elements_.bytes(), size = length(strand);
    alignas(8) unsigned char before[width * most_bytes], joined[width * most_bytes];
    for (int64_t i = 0; i < width; ++i) {
      std::memcpy(before + i * bytes, total(data, set, strand - 1), static_cast<size_t>(bytes));
    }
    const int64_t first = start(set, strand) - (reversed_ ? size - 1 : 0);
    auto* out = static_cast<unsigned char*>(data.result) + first * bytes;
    for (int64_t i = 0; i < size; i += width) {
      const int64_t here = std::min(width, size - i);
      std::memcpy(joined, before, static_cast<size_t>(here * bytes));
      loops_.combine(joined, out + i * bytes, here);
      std::memcpy(out + i * bytes, joined, static_cast<size_t>(here * bytes));
    }
  }

  Lines lines_;
  bool reversed_;
  ComputedElements elements_;
  CombineLoops loops_;
  int64_t length_, segments_ = 1;                // of a strand; of a line
  int64_t together_ = few_together;              // strands of a group
  int64_t sets_ = 1, strands_ = 0, groups_ = 0;  // lines that are cut, strands of one, groups of them
  Pieces pieces_;
};

// h[j] = a[j] * h[j - 1] + b[j]; h[-1] = 0.
template <class T> class RecurrenceCall final : public Call {
 public:
  RecurrenceCall(const CallSpec& spec, int dim, bool reversed)
      : lines_(lines_of(spec.result.shape, dim)), blocks_(lines_, lines_.size), reversed_(reversed) {}

  int64_t chunks() const override { return blocks_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const T* a = static_cast<const T*>(data.operands[0]);
    const T* b = static_cast<const T*>(data.operands[1]);
    T* out = static_cast<T*>(data.result);
    using Total = Computed<T>;
    blocks_.each(chunk, [&](int64_t outer, int64_t first, int64_t count) {
      const Block block(lines_, outer, first, count);
      Total states[LineBlocks::width] = {};
      for (int64_t j = 0; j < block.size; ++j) {
        const int64_t at = block.at(j, reversed_);
        for (int64_t i = 0; i < count; ++i) {
          const Total b_here = static_cast<Total>(b[at + i]);
          states[i] = j == 0 ? b_here : plus(times(static_cast<Total>(a[at + i]), states[i]), b_here);
          out[at + i] = static_cast<T>(states[i]);
        }
      }
    });
  }

 private:
  Lines lines_;
  LineBlocks blocks_;
  bool reversed_;
};

// x (inner, n, outer) -> places (inner, 1, outer) of the first element that the reducer, which chooses one of its
// operands, gives; the first NaN wins. T: the type that elements are computed in.
template <class T> class PlaceCall final : public Call {
 public:
  PlaceCall(const CallSpec& spec, int dim, DType storage)
      : lines_(lines_of(spec.operands[0].shape, dim)), short_(lines_.inner == 1 && lines_.size <= short_line),
        blocks_(short_ ? Lines{lines_.outer, lines_.size, 1} : lines_, lines_.size),
        elements_(storage, scalar_type(storage)), loops_(spec.op->reducer->body.of(scalar_type(storage))) {}

  int64_t chunks() const override { return blocks_.count(); }

  void run(int64_t chunk, const CallData& data) override {
    const void* x = data.operands[0];
    int32_t* out = static_cast<int32_t*>(data.result);
    blocks_.each(chunk, [&](int64_t outer, int64_t first, int64_t count) {
      const Block block(lines_, outer, first, count);
      int32_t* places = out + outer * lines_.inner + first;
      if (short_) place_in_short_lines(x, first, count, places);
      else if (lines_.inner <= few_lines) place_in_lines(x, block, places);
      else place_in_block(x, block, places);
    });
  }

 private:
  static constexpr int64_t few_lines = 16, short_line = 64;

  // The best element of a line so far, and where it stands.
  struct Best {
    T value;
    int64_t place = -1;
  };

  // Looks through elements [from, from + count) of a line.
  void look(Best& best, const T* piece, int64_t count, int64_t from) const {
    T chosen;
    loops_.reduce(&chosen, piece, count, 1);
    if (best.place >= 0) {
      T joined = best.value;
      loops_.combine(&joined, &chosen, 1);
      if (joined == best.value || is_nan(best.value)) return;
    }
    const auto is_chosen = [&](T value) { return is_nan(chosen) ? is_nan(value) : value == chosen; };
    best = {chosen, from + (std::find_if(piece, piece + count, is_chosen) - piece)};
  }

  // Lines of neighbours, which are few: whole rows are read, and taken apart.
  void place_in_lines(const void* x, const Block& block, int32_t* out) const {
    T buffer[buffer_length], line[buffer_length];
    Best best[few_lines];
    const int64_t lines = block.count, rows = buffer_length / lines;
    for (int64_t j = 0; j < block.size; j += rows) {
      const int64_t here = std::min(rows, block.size - j);
      const auto* piece = static_cast<const T*>(static_cast<const void*>(
          elements_.read(x, block.at(j, false), here * lines, reinterpret_cast<unsigned char*>(buffer))));
      for (int64_t i = 0; i < lines; ++i) {
        for (int64_t r = 0; r < here && lines > 1; ++r) line[r] = piece[r * lines + i];
        look(best[i], lines > 1 ? line : piece, here, j);
      }
    }
    for (int64_t i = 0; i < lines; ++i) out[i] = static_cast<int32_t>(best[i].place);
  }

  void place_in_block(const void* x, const Block& block, int32_t* out) const {
    T spare[LineBlocks::width];
    place_in_rows(block.size, block.count, out, [&](int64_t j) {
      return elements_.read(x, block.at(j, false), block.count, reinterpret_cast<unsigned char*>(spare));
    });
  }

  // Short lines one after the other, from number `first` on: their elements are taken from all of them at once.
  void place_in_short_lines(const void* x, int64_t first, int64_t count, int32_t* out) const {
    T buffer[LineBlocks::width * short_line], column[LineBlocks::width];
    const int64_t size = lines_.size;
    const auto* elements = static_cast<const T*>(static_cast<const void*>(
        elements_.read(x, first * size, count * size, reinterpret_cast<unsigned char*>(buffer))));
    place_in_rows(size, count, out, [&](int64_t j) {
      copy_run(column, elements + j, size, count);
      return column;
    });
  }

  // row(j): elements j of `count` lines.
  template <class F> void place_in_rows(int64_t size, int64_t count, int32_t* out, F&& row) const {
    T best[LineBlocks::width], chosen[LineBlocks::width];
    int32_t places[LineBlocks::width] = {};
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    std::memcpy(best, row(0), bytes);
    for (int64_t j = 1; j < size; ++j) {
      std::memcpy(chosen, best, bytes);
      loops_.combine(chosen, row(j), count);
      for (int64_t i = 0; i < count; ++i) {
        const bool better = chosen[i] != best[i] && !is_nan(best[i]);
        places[i] = better ? static_cast<int32_t>(j) : places[i];
      }
      std::memcpy(best, chosen, bytes);
    }
    std::copy_n(places, count, out);
  }

  Lines lines_;
  bool short_;
  LineBlocks blocks_;
  ComputedElements elements_;
  CombineLoops loops_;
};

// Elements of a scan; Bool counts as 0 and 1 where its place is asked for.
std::unique_ptr<Call> prepare_place(const CallSpec& spec, int dim) {
  const DType given = spec.operands[0].type, type = given == DType::Bool ? DType::UInt8 : given;
  if (is_complex(type)) refuse_type(spec.op->name, type);
  return with_number(spec.op->name, storage_of(scalar_type(type)),
                     [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
                       return std::make_unique<PlaceCall<T>>(spec, dim, type);
                     });
}

std::unique_ptr<Call> prepare_recurrence(const CallSpec& spec, int dim, bool reversed) {
  return with_number(spec.op->name, spec.result.type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
    return std::make_unique<RecurrenceCall<T>>(spec, dim, reversed);
  });
}

std::unique_ptr<Call> prepare_running(const CallSpec& spec, int dim, bool reversed) {
  const DType type = spec.result.type;
  if (is_complex(type) || !spec.op->reducer->body.of(scalar_type(type)).running) refuse_type(spec.op->name, type);
  if (lines_of(spec.result.shape, dim).inner == 1) return std::make_unique<RunningStrands>(spec, dim, reversed);
  return std::make_unique<RunningCall>(spec, dim, reversed);
}

}  // namespace

std::unique_ptr<Call> prepare_scan(const CallSpec& spec) {
  const auto attributes = spec.attributes.as<ScanAttributes>();
  const int dim = static_cast<int>(attributes.dim);
  const bool reversed = attributes.reversed != 0;
  switch (spec.op->scan) {
    case Scan::running: return prepare_running(spec, dim, reversed);
    case Scan::recurrence: return prepare_recurrence(spec, dim, reversed);
    case Scan::place: return prepare_place(spec, dim);
    case Scan::none: break;
  }
  throw_unknown(*spec.op, "the CPU");
}

}  // namespace rosin::cpu
