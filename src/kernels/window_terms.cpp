// Loops over windows; see window_terms.hpp.
#include "kernels/window_terms.hpp"

namespace rosin::kernels {

WindowTerms::WindowTerms(KernelWriter& writer, const View& image, const View& pooled, std::span<const int64_t> windows,
                         const WindowAttributes& attributes)
    : w_(writer) {
  for (int d = 0; d < image.rank - 2; ++d) {
    axes_.push_back({writer.number(image.sizes[d]), writer.number(pooled.sizes[d]),
                     writer.number(windows[static_cast<size_t>(d)]), writer.number(attributes.stride[d]),
                     writer.number(attributes.dilation[d]), writer.number(attributes.pad_low[d]),
                     attributes.dilation[d] == 1});
    has_padding_ = has_padding_ || attributes.pad_low[d] != 0 || attributes.pad_high[d] != 0;
  }
}

WindowTerms::Range WindowTerms::taps(const Axis& axis, Term place) const {
  const Term start = place * axis.stride - axis.low;
  const Term before = w_.index(0) - start, after = axis.image - start;
  if (axis.dense) return {start, max(before, w_.index(0)), min(after, axis.window)};
  // Rounded up: the first tap at or beyond an end. (A quotient of a number below 0 is at most 0, and so is no tap.)
  const auto rounded_up = [&](Term x) { return (x + axis.dilation - 1) / axis.dilation; };
  return {start, max(rounded_up(before), w_.index(0)), min(rounded_up(after), axis.window)};
}

WindowTerms::Range WindowTerms::places(const Axis& axis, Term at) const {
  const Term start = at + axis.low;
  // From the first place whose last tap reaches `at` to the last one that starts before it.
  const Term reach = start - (axis.window - 1) * axis.dilation;
  const Term first = w_.quotient(max(reach, w_.index(0)) + axis.stride - 1, axis.stride);
  return {start, first, min(w_.quotient(start, axis.stride) + 1, axis.pooled)};
}

std::vector<WindowTerms::Range> WindowTerms::ranges_of_taps(std::span<const Term> place) const {
  std::vector<Range> ranges;
  for (size_t d = 0; d < axes_.size(); ++d) ranges.push_back(taps(axes_[d], place[d]));
  return ranges;
}

void WindowTerms::each_tap(std::span<const Term> place, const Visit& visit) const {
  const std::vector<Range> ranges = ranges_of_taps(place);
  std::vector<Term> at(axes_.size()), tap(axes_.size());
  const std::function<void(size_t)> walk = [&](size_t left) {
    if (left == 0) return visit(at, tap);
    const size_t d = left - 1;
    w_.loop(ranges[d].first, ranges[d].last, w_.index(1), [&](Term k) {
      tap[d] = k;
      at[d] = ranges[d].start + (axes_[d].dense ? k : k * axes_[d].dilation);
      walk(d);
    });
  };
  walk(axes_.size());
}

void WindowTerms::each_window(std::span<const Term> at, const Visit& visit) const {
  std::vector<Range> ranges;
  for (size_t d = 0; d < axes_.size(); ++d) ranges.push_back(places(axes_[d], at[d]));
  std::vector<Term> place(axes_.size()), tap(axes_.size());
  const std::function<void(size_t)> walk = [&](size_t left) {
    if (left == 0) return visit(place, tap);
    const size_t d = left - 1;
    w_.loop(ranges[d].first, ranges[d].last, w_.index(1), [&](Term o) {
      place[d] = o;
      const Term distance = ranges[d].start - o * axes_[d].stride;
      if (axes_[d].dense) {
        tap[d] = distance;
        return walk(d);
      }
      tap[d] = w_.quotient(distance, axes_[d].dilation);
      w_.when(tap[d] * axes_[d].dilation == distance, [&] { walk(d); });
    });
  };
  walk(axes_.size());
}

void WindowTerms::when_inside(std::span<const Term> place, std::span<const Term> tap, const Visit& visit) const {
  std::vector<Term> at;
  Term inside{};
  for (size_t d = 0; d < axes_.size(); ++d) {
    const Axis& axis = axes_[d];
    at.push_back(place[d] * axis.stride - axis.low + tap[d] * axis.dilation);
    const Term here = w_.index(0) <= at.back() && at.back() < axis.image;
    inside = d > 0 ? inside && here : here;
  }
  if (!has_padding_) return visit(at, tap);
  w_.when(inside, [&] { visit(at, tap); });
}

std::vector<Term> WindowTerms::element(std::span<const Term> place, std::span<const int64_t> distance) const {
  std::vector<Term> at;
  for (size_t d = 0; d < axes_.size(); ++d) at.push_back(place[d] * axes_[d].stride - axes_[d].low + distance[d]);
  return at;
}

Term WindowTerms::is_inside(std::span<const Term> at) const {
  Term inside = w_.bits(ScalarType::boolean, 1);
  for (size_t d = 0; d < axes_.size(); ++d) {
    inside = inside && at[d] < axes_[d].image;
    if (has_padding_) inside = inside && w_.index(0) <= at[d];
  }
  return inside;
}

Term WindowTerms::is_place(std::span<const Term> place) const {
  Term inside = w_.bits(ScalarType::boolean, 1);
  for (size_t d = 0; d < axes_.size(); ++d) inside = inside && place[d] < axes_[d].pooled;
  return inside;
}

Term WindowTerms::touches_padding(std::span<const Term> place) const {
  Term any{};
  const std::vector<Range> ranges = ranges_of_taps(place);
  for (size_t d = 0; d < axes_.size(); ++d) {
    const Term some = ranges[d].last - ranges[d].first < axes_[d].window;
    any = d > 0 ? any || some : some;
  }
  return any;
}

}  // namespace rosin::kernels
