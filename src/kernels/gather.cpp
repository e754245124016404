// Kernels of gather, take_along and one-hot, one item an element of the result. Where an index is bad the element is
// not written and the step's flag tells. Read first: indices.hpp.
#include "graph/gather_form.hpp"
#include "kernels/indices.hpp"

namespace rosin::kernels {
namespace {

/// Coordinates in x of the element at `at` of the result, in which `rank` coordinates of the indices stand for one.
std::vector<Term> with_place(const std::vector<Term>& at, int64_t dim, int rank, Term place) {
  std::vector<Term> from(at.begin(), at.begin() + dim);
  from.push_back(place);
  from.insert(from.end(), at.begin() + dim + rank, at.end());
  return from;
}

// x (before..., n, after...), indices -> (before..., sizes of the indices..., after...).
void write_slices(const CallStep& step, int64_t dim, LaunchList& list) {
  KernelWriter writer = step.writer();
  const View& x_view = step.view(step.in(0));
  const int strip = dim > 0 ? step.strip({step.node, step.in(0)}, list.device) : 1, bytes = list.device.vector_bytes;
  const std::vector<Term> sizes =
      in_strips(writer, size_terms(writer, step.layout, step.node), step.view(step.node).sizes[0], strip);
  const Elements out(writer, step, step.node), x(writer, step, step.in(0));
  const Indices indices(writer, step, list, step.in(1), x_view.sizes[dim]);
  const int rank = step.view(step.in(1)).rank;
  launch_each(list, writer, step.view(step.node).count() / strip, [&](Term i) {
    const std::vector<Term> at = strip_begin(writer.coordinates(i, sizes), strip);
    const auto first = at.begin() + dim;
    indices.at(std::vector<Term>(first, first + rank), true,
               [&](Term place) { out.copy_strip(at, x, with_place(at, dim, rank, place), strip, bytes); });
  });
}

// The same where the indices are known to be good: nothing is reported.
void write_slices_in_range(const CallStep& step, int64_t dim, LaunchList& list) {
  KernelWriter writer = step.writer();
  const int strip = dim > 0 ? step.strip({step.node, step.in(0)}, list.device) : 1, bytes = list.device.vector_bytes;
  const std::vector<Term> sizes =
      in_strips(writer, size_terms(writer, step.layout, step.node), step.view(step.node).sizes[0], strip);
  const Elements out(writer, step, step.node), x(writer, step, step.in(0)), indices(writer, step, step.in(1));
  const int rank = step.view(step.in(1)).rank;
  launch_each(list, writer, step.view(step.node).count() / strip, [&](Term i) {
    const std::vector<Term> at = strip_begin(writer.coordinates(i, sizes), strip);
    const auto first = at.begin() + dim;
    const Term place = writer.convert(indices.load(std::vector<Term>(first, first + rank)), writer.index_type());
    out.copy_strip(at, x, with_place(at, dim, rank, place), strip, bytes);
  });
}

// x (before..., n, after...), indices (before..., m, after...) -> the shape of the indices.
void write_along(const CallStep& step, int64_t dim, LaunchList& list) {
  KernelWriter writer = step.writer();
  const std::vector<Term> sizes = size_terms(writer, step.layout, step.node);
  const Elements out(writer, step, step.node), x(writer, step, step.in(0));
  const Indices indices(writer, step, list, step.in(1), step.view(step.in(0)).sizes[dim]);
  launch_each(list, writer, step.view(step.node).count(), [&](Term i) {
    const std::vector<Term> at = writer.coordinates(i, sizes);
    indices.at(at, true, [&](Term place) {
      std::vector<Term> from = at;
      from[static_cast<size_t>(dim)] = place;
      out.copy(at, x, from);
    });
  });
}

/// Writes sums of few elements, each times a weight.
class WeighedWriting {
 public:
  WeighedWriting(const CallStep& step, LaunchList& list)
      : writer_(step.writer()), how_(step.attributes<WeighedAttributes>()), type_(scalar_type(step.dtype(step.node))),
        out_(writer_, step, step.node), x_(writer_, step, step.in(0)), places_(writer_, step, step.in(1)),
        weights_(writer_, step, step.in(2)) {
    const auto begins = table_begins(how_, step.view(step.node).sizes, step.view(step.in(0)).sizes);
    for (int d = 0; d < how_.dims; ++d) {
      begins_.push_back(writer_.number(begins[static_cast<size_t>(d)]));
      taps_.push_back(writer_.number(how_.taps_of(d)));
    }
    const std::vector<size_t> order = memory_order(step.view(step.node));
    const std::vector<Term> sizes = size_terms(writer_, step.layout, step.node);
    std::vector<Term> ordered;
    for (const size_t dim : order) ordered.push_back(sizes[dim]);
    launch_each(list, writer_, step.view(step.node).count(), [&](Term i) {
      const std::vector<Term> found = writer_.coordinates(i, ordered);
      std::vector<Term> at = found;
      for (size_t d = 0; d < order.size(); ++d) at[order[d]] = found[d];
      out_.store(at, sum(at, at, how_.dims - 1));
    });
  }

 private:
  /// Along dims 0 to d, at places `from` along the dims behind them.
  Term sum(const std::vector<Term>& at, const std::vector<Term>& from, int d) {
    if (d < 0) return x_.load(from);
    const auto number = static_cast<size_t>(d), dim = static_cast<size_t>(how_.dim + d);
    const Term begin = begins_[number] + at[dim] * taps_[number];
    const Term total = writer_.variable(writer_.literal(type_, -0.0));
    writer_.loop(taps_[number], [&](Term tap) {
      const Term weight = weights_.load(std::vector<Term>{begin + tap});
      writer_.when(weight != writer_.literal(type_, 0), [&] {
        std::vector<Term> there = from;
        there[dim] = writer_.convert(places_.load(std::vector<Term>{begin + tap}), writer_.index_type());
        writer_.assign(total, total + weight * sum(at, there, d - 1));
      });
    });
    return total;
  }

  KernelWriter writer_;
  WeighedAttributes how_;
  ScalarType type_;
  Elements out_, x_, places_, weights_;
  std::vector<Term> begins_, taps_;
};

// labels -> Bool (classes, sizes of the labels...).
void write_onehot(const CallStep& step, LaunchList& list) {
  KernelWriter writer = step.writer();
  const View& view = step.view(step.node);
  const std::vector<Term> sizes = size_terms(writer, step.layout, step.node);
  const Elements out(writer, step, step.node);
  const Indices labels(writer, step, list, step.in(0), view.sizes[0]);
  launch_each(list, writer, view.count(), [&](Term i) {
    const std::vector<Term> at = writer.coordinates(i, sizes);
    labels.at(std::vector<Term>(at.begin() + 1, at.end()), false, [&](Term label) { out.store(at, label == at[0]); });
  });
}

// labels -> Bool (1, sizes of the labels...), true where none is wrong.
void write_labels(const CallStep& step, int64_t classes, LaunchList& list) {
  KernelWriter writer = step.writer();
  const std::vector<Term> sizes = size_terms(writer, step.layout, step.node);
  const Elements out(writer, step, step.node);
  const Indices labels(writer, step, list, step.in(0), classes);
  launch_each(list, writer, step.view(step.node).count(), [&](Term i) {
    const std::vector<Term> at = writer.coordinates(i, sizes);
    labels.at(std::vector<Term>(at.begin() + 1, at.end()), false,
              [&](Term) { out.store(at, writer.bits(ScalarType::boolean, 1)); });
  });
}

}  // namespace

void write_gather(const Layout& layout, int32_t node, LaunchList& list) {
  const CallStep step(layout, node);
  const bool labels = step.value.operands == 1;
  const auto [dim, along] = labels ? GatherAttributes() : step.attributes<GatherAttributes>();
  if (along == weighed_sums) {
    WeighedWriting(step, list);
    return;
  }
  if (along == slices_in_range) return write_slices_in_range(step, dim, list);
  list.checks.push_back(node);
  const int64_t classes = labels ? step.attributes<LabelAttributes>().classes : 0;
  if (labels) return classes > 0 ? write_labels(step, classes, list) : write_onehot(step, list);
  if (along != 0) return write_along(step, dim, list);
  write_slices(step, dim, list);
}

}  // namespace rosin::kernels
