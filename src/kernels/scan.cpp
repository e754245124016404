// Kernels of running sums and products, recurrences, and places of extrema along a dim. One item takes a line in order,
// or, where there are few long lines, one group takes a line together: in chunks with a carry, or each item every 256th
// element. The order depends on sizes only. Float products and recurrences are always taken in order, because a product
// of a part of the line may overflow where the line's does not.
// Read first: elements.hpp.
#include "graph/reducer.hpp"
#include "kernels/elements.hpp"

namespace rosin::kernels {
namespace {

class ScanKernel {
 public:
  ScanKernel(const CallStep& step, LaunchList& list)
      : step_(step), list_(list), writer_(step.writer()), x_view_(step.view(step.in(0))),
        attributes_(step.attributes<ScanAttributes>()), dim_(static_cast<size_t>(attributes_.dim)),
        line_sizes_(line_sizes(writer_, x_view_, static_cast<int>(dim_))), size_(writer_.number(x_view_.sizes[dim_])),
        x_(writer_, step, step.in(0)), out_(writer_, step, step.node) {}

  void write() {
    const int64_t lines = count_lines(x_view_, static_cast<int>(dim_));
    if (lines == 0 || x_view_.sizes[dim_] == 0) return;
    if (can_be_taken_together() && x_view_.sizes[dim_] > items_of_group && lines < enough_lines) {
      line_ = writer_.coordinates(writer_.group(0), line_sizes_);
      if (form() == Scan::place) write_place_together();
      else write_running_together();
      list_.launches.push_back(writer_.finish(lines));
      return;
    }
    launch_each(list_, writer_, lines, [&](Term line) {
      line_ = writer_.coordinates(line, line_sizes_);
      write_line();
    });
  }

 private:
  // So many lines keep a device busy with one item each.
  static constexpr int64_t enough_lines = 2048;

  Scan form() const { return step_.value.op->scan; }
  const CombineBody& body() const { return step_.value.op->reducer->body; }
  bool can_be_taken_together() const {
    switch (form()) {
      case Scan::running: return !step_.value.op->reducer->in_order || !is_float(step_.value.dtype);
      case Scan::place: return true;
      case Scan::recurrence:
      case Scan::none: break;
    }
    return false;
  }

  void write_line() {
    switch (form()) {
      case Scan::running: return write_running();
      case Scan::recurrence: return write_recurrence();
      case Scan::place: return write_place();
      case Scan::none: break;
    }
    throw_unknown(*step_.value.op, "the writer of kernels");
  }

  const std::vector<Term>& at(Term j) {
    line_[dim_] = attributes_.reversed != 0 ? size_ - 1 - j : j;
    return line_;
  }
  Term element(Term j) { return ordered(x_.load(at(j)), step_.dtype(step_.in(0))); }
  Term combined(Term x, Term y) { return writer_.combine(body(), x, y); }
  Term neutral() {
    const ScalarType type = scalar_type(step_.value.dtype);
    return writer_.bits(type, body().neutral_bits(type));
  }

  void write_running() {
    const Term total = writer_.variable(neutral());
    writer_.loop(size_, [&](Term j) {
      writer_.assign(total, combined(total, x_.load(at(j))));
      out_.store(at(j), total);
    });
  }

  // h[j] = a[j] * h[j - 1] + b[j]; the first is b[0], whatever a[0] is.
  void write_recurrence() {
    const Elements b(writer_, step_, step_.in(1));
    const Term state = writer_.variable(b.load(at(writer_.index(0))));
    out_.store(at(writer_.index(0)), state);
    writer_.loop(writer_.index(1), size_, writer_.index(1), [&](Term j) {
      writer_.assign(state, x_.load(at(j)) * state + b.load(at(j)));
      out_.store(at(j), state);
    });
  }

  void write_running_together() {
    const Term item = writer_.item(), last = writer_.index(items_of_group - 1), start = neutral();
    const int shared = writer_.shared(start.type, items_of_group);
    const Term carry = writer_.variable(start);
    writer_.loop(writer_.index(0), size_, writer_.index(items_of_group), [&](Term first) {
      const Term j = first + item, own = writer_.variable(start);
      writer_.when(j < size_, [&] { writer_.assign(own, x_.load(at(j))); });
      writer_.shared_store(shared, item, own);
      writer_.barrier();
      for (int reach = 1; reach < items_of_group; reach *= 2) {
        writer_.when(writer_.index(reach) <= item,
                     [&] { writer_.assign(own, combined(writer_.shared_load(shared, item - reach), own)); });
        writer_.barrier();
        writer_.shared_store(shared, item, own);
        writer_.barrier();
      }
      writer_.when(j < size_, [&] { out_.store(at(j), combined(carry, own)); });
      writer_.assign(carry, combined(carry, writer_.shared_load(shared, last)));
      writer_.barrier();
    });
  }

  // Whether the reducer gives x rather than `best`, and that is not only another form of the same: the first NaN stays.
  Term wins(Term x, Term best) {
    const Term beats = combined(best, x) != best;
    const bool real = x.type == ScalarType::float32 || x.type == ScalarType::float64;
    return real ? beats && best == best : beats;
  }
  Term same(Term x, Term y) { return !wins(x, y) && !wins(y, x); }

  void store_place(Term place) {
    line_[dim_] = writer_.index(0);
    out_.store(line_, writer_.convert(place, ScalarType::int32));
  }

  // The best of elements from, from + step, ...
  std::pair<Term, Term> best_of(Term from, Term step) {
    const Term best = writer_.variable(element(from)), place = writer_.variable(from);
    writer_.loop(from + step, size_, step, [&](Term j) {
      const Term x = element(j), better = wins(x, best);
      writer_.assign(place, writer_.select(better, j, place));
      writer_.assign(best, writer_.select(better, x, best));
    });
    return {best, place};
  }

  void write_place() { store_place(best_of(writer_.index(0), writer_.index(1)).second); }

  // Of equal elements of two items the one before stays.
  void write_place_together() {
    const Term item = writer_.item();
    const auto [best, place] = best_of(item, writer_.index(items_of_group));
    const int values = writer_.shared(best.type, items_of_group);
    const int places = writer_.shared(place.type, items_of_group);
    for (int half = items_of_group / 2; half > 0; half /= 2) {
      writer_.shared_store(values, item, best);
      writer_.shared_store(places, item, place);
      writer_.barrier();
      writer_.when(item < half, [&] {
        const Term x = writer_.shared_load(values, item + half), j = writer_.shared_load(places, item + half);
        const Term better = wins(x, best) || (same(x, best) && j < place);
        writer_.assign(place, writer_.select(better, j, place));
        writer_.assign(best, writer_.select(better, x, best));
      });
      writer_.barrier();
    }
    writer_.when(item == 0, [&] { store_place(place); });
  }

  const CallStep& step_;
  LaunchList& list_;
  KernelWriter writer_;
  const View& x_view_;
  ScanAttributes attributes_;
  size_t dim_;
  std::vector<Term> line_sizes_;
  Term size_;
  Elements x_, out_;
  std::vector<Term> line_;  // coordinates of the line's elements
};

}  // namespace

void write_scan(const Layout& layout, int32_t node, LaunchList& list) {
  ScanKernel(CallStep(layout, node), list).write();
}

}  // namespace rosin::kernels
