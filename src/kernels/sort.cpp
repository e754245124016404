// Kernels of argsort and sort; all of them are stable. Of a short line each element counts those that come before it.
// Longer lines are sorted tile by tile, each by one group; a line of several tiles then has its tiles merged in pairs,
// where each element finds its place by binary search in the other run, or, where that reads too much, is sorted by
// radix from the beginning. Every merge is a launch of the same code; places go back and forth between two scratch
// blocks. Read first: sort_lines.hpp.
#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/sort_lines.hpp"

namespace rosin::kernels {
namespace {

// Elements of a line, or of a run, that is sorted by counting: one launch, and as many loads an element.
constexpr int64_t counted_line = 128;
constexpr int64_t counted_run = 32;  // where tiles cannot be sorted

// Accesses of all items together that take as long as one more launch: those of an H100's second cache in 3 us.
constexpr int64_t accesses_of_launch = int64_t{1} << 19;

int64_t halvings(int64_t n) { return std::bit_width(static_cast<uint64_t>(n)); }

// One launch of a sort by comparing: item (line, q) moves one place of its line.
class SortKernel {
 public:
  explicit SortKernel(const SortCall& call)
      : call_(call), writer_(std::string(call.step.value.op->name), items_of_group, call.index(call.size)),
        lines_(writer_, call, call.type), size_(writer_.number(call.size)) {
    lines_.open_elements();
  }

  /// Sorts runs of `length` elements.
  void count(int64_t length, std::optional<int32_t> into) {
    set_target(into);
    const Term run = writer_.number(length);
    each([&](Term place) {
      const Term key = key_of(place), start = writer_.quotient(place, run) * run, end = min(start + run, size_);
      const Term rank = writer_.variable(writer_.index(0));
      writer_.loop(start, end, writer_.index(1), [&](Term other) {
        const Term other_key = key_of(other);
        const Term first = writer_.select(other < place, !before(key, other_key), before(other_key, key));
        writer_.assign(rank, rank + writer_.convert(first, writer_.index_type()));
      });
      put(start + rank, place);
    });
  }

  /// Merges sorted runs of `run` elements. In the left run an element stays before equal ones of the right.
  void merge(int64_t run, int32_t from, std::optional<int32_t> into) {
    from_ = writer_.buffer(DType::Int32, {-1, from});
    set_target(into);
    const Term length = writer_.number(run);
    const Term steps = writer_.number(halvings(run));
    each([&](Term at) {
      const Term place = place_at(at), key = key_of(place);
      const Term start = at / (length * 2) * (length * 2), middle = min(start + length, size_);
      const Term end = min(middle + length, size_), left = at < middle;
      const Term low = writer_.variable(writer_.select(left, middle, start));
      const Term high = writer_.variable(writer_.select(left, end, middle));
      writer_.loop(steps, [&](Term) {
        writer_.when(low < high, [&] {
          const Term half = low + (high - low) / 2, other = key_of(place_at(half));
          const Term first = writer_.select(left, before(other, key), !before(key, other));
          writer_.assign(high, writer_.select(first, high, half));
          writer_.assign(low, writer_.select(first, half + 1, low));
        });
      });
      put(at + low - middle, place);
    });
  }

 private:
  // Nothing: the result, of which only the first places are wanted.
  void set_target(std::optional<int32_t> scratch) {
    is_last_ = !scratch;
    if (scratch) into_ = writer_.buffer(DType::Int32, {-1, *scratch});
    else lines_.open_results();
  }

  template <class F> void each(F&& body) {
    launch_each(call_.list, writer_, call_.x_view.count(), [&](Term i) {
      const Term line = writer_.quotient(i, size_);
      start_ = line * size_;
      lines_.go_to(line);
      body(i - start_);
    });
  }

  Term key_of(Term place) { return ordered(lines_.load(place), call_.type); }
  Term place_at(Term at) { return writer_.convert(writer_.load(from_, start_ + at), writer_.index_type()); }
  Term before(Term x, Term y) const { return call_.attributes.descending != 0 ? is_below(y, x) : is_below(x, y); }

  void put(Term at, Term place) {
    if (is_last_) lines_.put(at, place);
    else writer_.store(into_, start_ + at, writer_.convert(place, ScalarType::int32));
  }

  const SortCall& call_;
  KernelWriter writer_;
  SortLines lines_;
  Term size_;
  bool is_last_ = false;
  int from_ = -1, into_ = -1;  // buffers
  Term start_{};               // of the line in scratch
};

// Merges sorted runs in the first of two scratch blocks until a line is one.
void merge_runs(const SortCall& call, int64_t run, int32_t from, int32_t other) {
  for (; run < call.size; run *= 2) {
    const bool last = run * 2 >= call.size;
    SortKernel(call).merge(run, from, last ? std::nullopt : std::optional(other));
    std::swap(from, other);
  }
}

// Whether radix pays for its launches, of which it has more unless lines are long. An element of a tile reads its key
// once a digit, and writes its place. A merge reads two places and two keys, or half of that, at each step of a search.
// A digit of a sort by radix reads the key three times and the place once, and writes both.
bool radix_pays(const SortCall& call) {
  const int64_t digits = key_digits(call.type);
  int64_t merging = digits + 1, merging_launches = 1;
  for (int64_t run = sorted_tile; run < call.size; run *= 2, ++merging_launches) merging += 2 * halvings(run) + 3;
  const int64_t saved = merging - 6 * digits, more_launches = 3 * digits - merging_launches;
  return saved > 0 && saved * call.x_view.count() > more_launches * accesses_of_launch;
}

}  // namespace

void write_sort(const Layout& layout, const Step& step, LaunchList& list) {
  const CallStep node(layout, step.node);
  const SortCall call(node, step.results, list);
  if (call.x_view.count() == 0) return;
  if (call.size <= counted_line) return SortKernel(call).count(counted_line, {});
  const bool tiles = has_keys(call);
  if (tiles && call.size <= sorted_tile) return write_sorted_tiles(call, {});
  if (tiles && radix_pays(call)) return write_sort_by_radix(call);
  const int64_t bytes = call.x_view.count() * static_cast<int64_t>(sizeof(int32_t));
  const int32_t from = list.scratch(bytes), other = list.scratch(bytes);
  if (tiles) write_sorted_tiles(call, from);
  else SortKernel(call).count(counted_run, from);
  merge_runs(call, tiles ? sorted_tile : counted_run, from, other);
}

}  // namespace rosin::kernels
