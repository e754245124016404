// Kernels of argsort and sort: a stable merge sort of places. Short runs are sorted by counting, for each element,
// those that come before it; then runs are merged in pairs, where each element finds its place by binary search in the
// other run. Every merge is a launch of the same code; places go back and forth between two scratch blocks. Read first:
// elements.hpp.
#include <bit>

#include "kernels/elements.hpp"

namespace rosin::kernels {
namespace {

// Elements of a run that is sorted by counting: more would read more, fewer would take more launches.
constexpr int64_t counted_run = 32;

// One launch of a sort: item (line, q) moves one place of its line.
class SortKernel {
 public:
  // `results`: of the step, where it has several.
  SortKernel(const CallStep& step, std::span<const int32_t> results, LaunchList& list)
      : step_(step), results_(results), list_(list), x_view_(step.view(step.in(0))),
        attributes_(step.attributes<SortAttributes>()), dim_(static_cast<size_t>(attributes_.dim)),
        writer_(std::string(step.value.op->name), items_of_group, index()),
        line_sizes_(line_sizes(writer_, x_view_, static_cast<int>(dim_))), size_(writer_.number(x_view_.sizes[dim_])),
        x_(writer_, step, step.in(0)) {}

  /// Sorts runs of counted_run elements.
  void count(std::optional<int32_t> into) {
    set_target(into);
    const Term run = writer_.number(counted_run);
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
    const Term steps = writer_.number(static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(run))));
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
  // Twice a run's length must fit.
  ScalarType index() const { return x_view_.sizes[dim_] > int64_t{1} << 29 ? ScalarType::int64 : step_.index(); }

  // Nothing: the result, of which only the first places are wanted.
  void set_target(std::optional<int32_t> scratch) {
    is_last_ = !scratch;
    if (scratch) into_ = writer_.buffer(DType::Int32, {-1, *scratch});
    else if (results_.empty()) out_.emplace(writer_, step_, step_.node);
    else set_results();
    wanted_ = scratch ? size_ : writer_.number(step_.view(step_.node).sizes[dim_]);
  }

  // Values, places: what somebody reads of them.
  void set_results() {
    if (results_[0] >= 0) values_.emplace(writer_, step_, results_[0]);
    if (results_[1] >= 0) out_.emplace(writer_, step_, results_[1]);
  }

  template <class F> void each(F&& body) {
    launch_each(list_, writer_, x_view_.count(), [&](Term i) {
      const Term line = writer_.quotient(i, size_);
      start_ = line * size_;
      line_ = writer_.coordinates(line, line_sizes_);
      body(i - start_);
    });
  }

  Term key_of(Term place) {
    line_[dim_] = place;
    return ordered(x_.load(line_), step_.dtype(step_.in(0)));
  }
  Term place_at(Term at) { return writer_.convert(writer_.load(from_, start_ + at), writer_.index_type()); }
  Term before(Term x, Term y) const { return attributes_.descending != 0 ? is_below(y, x) : is_below(x, y); }

  void put(Term at, Term place) {
    const Term number = writer_.convert(place, ScalarType::int32);
    if (!is_last_) return writer_.store(into_, start_ + at, number);
    writer_.when(at < wanted_, [&] {
      std::vector<Term> from = line_;
      from[dim_] = place;
      line_[dim_] = at;
      if (out_) out_->store(line_, number);
      if (values_) values_->copy(line_, x_, from);
    });
  }

  const CallStep& step_;
  std::span<const int32_t> results_;
  LaunchList& list_;
  const View& x_view_;
  SortAttributes attributes_;
  size_t dim_;
  KernelWriter writer_;
  std::vector<Term> line_sizes_;
  Term size_;
  Elements x_;
  std::optional<Elements> out_, values_;
  bool is_last_ = false;
  int from_ = -1, into_ = -1;  // buffers
  Term wanted_{}, start_{};    // start_: of the line in scratch
  std::vector<Term> line_;     // coordinates of the line's elements
};

}  // namespace

void write_sort(const Layout& layout, const Step& call, LaunchList& list) {
  const CallStep step(layout, call.node);
  const View& x = step.view(step.in(0));
  const int64_t size = x.sizes[step.attributes<SortAttributes>().dim];
  if (x.count() == 0) return;
  if (size <= counted_run) return SortKernel(step, call.results, list).count({});
  const int64_t bytes = x.count() * static_cast<int64_t>(sizeof(int32_t));
  int32_t from = list.scratch(bytes), other = list.scratch(bytes);
  SortKernel(step, call.results, list).count(from);
  for (int64_t run = counted_run; run < size; run *= 2) {
    const bool last = run * 2 >= size;
    SortKernel(step, call.results, list).merge(run, from, last ? std::nullopt : std::optional(other));
    std::swap(from, other);
  }
}

}  // namespace rosin::kernels
