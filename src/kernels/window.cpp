// Pooling and its gradients: an item computes one element of the result. Gradients gather: an element of the image
// looks at the windows that hold it; where windows do not meet, an item computes all elements of one. Read first:
// launches.hpp, window_terms.hpp. Read next: the meaning in attributes.hpp (Window).
#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <vector>

#include <rosin/error.hpp>

#include "kernels/elements.hpp"
#include "kernels/launches.hpp"
#include "kernels/window_terms.hpp"

namespace rosin::kernels {
namespace {

/// A node with its operands: all (spatial..., channels, batch).
struct Pooling {
  const Layout& layout;
  int32_t node;
  const Value& call;
  WindowAttributes attributes;

  Pooling(const Layout& all, int32_t value)
      : layout(all), node(value), call(all.structure->graph.values[static_cast<size_t>(value)]),
        attributes(all.attributes[static_cast<size_t>(value)].as<WindowAttributes>()) {}

  Window what() const { return call.op->window; }
  const View& view(int32_t value) const { return layout.views[static_cast<size_t>(value)]; }
  const View& image() const {
    return what() == Window::maximum_gradient || what() == Window::mean_gradient ? view(node) : view(call.in[0]);
  }
  const View& pooled() const {
    return what() == Window::maximum_gradient ? view(call.in[2])
           : what() == Window::mean_gradient  ? view(call.in[0])
                                              : view(node);
  }
  ScalarType index() const {
    std::vector<int32_t> values{node};
    values.insert(values.end(), call.in.begin(), call.in.begin() + call.operands);
    return index_type(layout, values);
  }
};

/// The lowest finite element: what padding holds.
Term lowest(KernelWriter& w, DType type) {
  const ScalarType compute = scalar_type(type);
  switch (type) {
    case DType::UInt8:
    case DType::UInt16:
    case DType::UInt32:
    case DType::UInt64: return w.bits(compute, 0);
    case DType::Int8: return w.bits(compute, std::numeric_limits<int8_t>::min());
    case DType::Int16: return w.bits(compute, std::numeric_limits<int16_t>::min());
    case DType::Int32: return w.bits(compute, std::numeric_limits<int32_t>::min());
    case DType::Int64: return w.bits(compute, std::numeric_limits<int64_t>::min());
    case DType::Float16: return w.literal(compute, -65504);
    case DType::BFloat16: return w.bits(compute, std::bit_cast<int32_t>(0xff7f0000u));
    case DType::Float32: return w.literal(compute, std::numeric_limits<float>::lowest());
    default: return w.literal(compute, std::numeric_limits<double>::lowest());
  }
}

/// What every element of the window at `place` beats or equals: minus infinity where the type has it, but the lowest
/// finite element where the window holds padding.
Term below_all(KernelWriter& w, const WindowTerms& windows, std::span<const Term> place, DType type) {
  const Term finite = lowest(w, type);
  if (!is_float(type)) return finite;
  const Term infinite = w.literal(scalar_type(type), -std::numeric_limits<double>::infinity());
  return windows.has_padding() ? w.select(windows.touches_padding(place), finite, infinite) : infinite;
}

std::vector<Term> with_plane(std::span<const Term> spatial, std::span<const Term> plane) {
  std::vector<Term> all(spatial.begin(), spatial.end());
  all.insert(all.end(), plane.begin(), plane.end());
  return all;
}

bool is_float(Term x) { return x.type == ScalarType::float32 || x.type == ScalarType::float64; }

/// Whether no element is in two windows, and few are from the beginning of one to that of the next.
bool are_apart(const Pooling& pooling) {
  constexpr int64_t most = 16;
  const WindowAttributes& a = pooling.attributes;
  int64_t elements = 1;
  for (int d = 0; d < pooling.view(pooling.node).rank - 2; ++d) {
    if ((a.window[d] - 1) * a.dilation[d] >= a.stride[d]) return false;
    elements *= a.stride[d];
  }
  return elements <= most;
}

/// An image in cells, each from the beginning of a window to that of the next along every spatial dim.
struct Cells {
  /// One element of a cell, counted from where the window begins.
  struct Element {
    std::vector<int64_t> offset;
    bool is_tap;  // of the window
  };
  std::vector<int64_t> sizes;     // how many there are, with channels and batch
  bool whole = true;              // all lie inside the image, and have a window
  std::vector<Element> elements;  // dim 0 fastest
  int64_t count = 1;

  explicit Cells(const Pooling& pooling) {
    const WindowAttributes& a = pooling.attributes;
    const View &image = pooling.image(), &pooled = pooling.pooled();
    elements.push_back({{}, true});
    for (int d = 0; d < image.rank; ++d) {
      const bool spatial = d < image.rank - 2;
      sizes.push_back(spatial ? groups_for(image.sizes[d] + a.pad_low[d], a.stride[d]) : image.sizes[d]);
      count *= sizes.back();
      if (!spatial) continue;
      whole =
          whole && a.pad_low[d] == 0 && image.sizes[d] == sizes.back() * a.stride[d] && pooled.sizes[d] == sizes.back();
      spread(a.stride[d], a.window[d], a.dilation[d]);
    }
  }

 private:
  /// Along one dim more.
  void spread(int64_t stride, int64_t window, int64_t dilation) {
    std::vector<Element> wider;
    for (int64_t offset = 0; offset < stride; ++offset) {
      const bool is_tap = offset % dilation == 0 && offset / dilation < window;
      for (Element element : elements) {
        element.offset.push_back(offset);
        element.is_tap = element.is_tap && is_tap;
        wider.push_back(std::move(element));
      }
    }
    elements = std::move(wider);
  }
};

/// A kernel of one item for each element of the result; what stands in it is written by the functions below.
class WindowWriter {
 public:
  explicit WindowWriter(const Pooling& pooling, const std::string& what = "")
      : pooling_(pooling), type_(pooling.call.dtype),
        w_(std::string(pooling.call.op->name) + what, items_of_group, pooling.index()),
        result_(w_, pooling.layout, pooling.node),
        windows_(w_, pooling.image(), pooling.pooled(), window_sizes(pooling), pooling.attributes),
        channels_(w_.number(pooling.image().sizes[windows_.dims()])) {
    for (int i = 0; i < pooling.call.operands; ++i) from_.emplace_back(w_, pooling.layout, pooling.call.in[i]);
  }

  Launch run() {
    const int64_t count = pooling_.view(pooling_.node).count();
    const Term global = w_.global();
    w_.when(global < w_.number(count), [&] {
      const std::vector<Term> at = element(global, pooling_.view(pooling_.node));
      const auto dims = static_cast<size_t>(windows_.dims());
      plane_.assign(at.begin() + windows_.dims(), at.end());
      result_.store(at, value(std::span(at).first(dims)));
    });
    return w_.finish(groups_for(count));
  }

  /// Of a gradient: where the first largest element of each window stands in the image, one item a window. It is the
  /// first that equals y; -1 where padding does.
  Launch run_picks(int32_t scratch) {
    const int64_t count = pooling_.pooled().count();
    const int picks = picks_buffer(scratch);
    const Term global = w_.global();
    w_.when(global < w_.number(count), [&] {
      const std::vector<Term> at = element(global, pooling_.pooled());
      plane_.assign(at.begin() + windows_.dims(), at.end());
      const std::span<const Term> place = std::span(at).first(static_cast<size_t>(windows_.dims()));
      const Term y = load(1, place), picked = w_.variable(w_.index(-1));
      windows_.each_tap(place, [&](std::span<const Term> tap, std::span<const Term>) {
        w_.when(picked < 0 && same(load(0, tap), y), [&] { w_.assign(picked, place_in_image(tap)); });
      });
      w_.store(picks, global, picked);
    });
    return w_.finish(groups_for(count));
  }

  void take_picks(int32_t scratch) { picks_ = picks_buffer(scratch); }

  /// Of a gradient whose windows do not meet: the first element of each window that equals y gets dy, and all others 0,
  /// one item a cell.
  Launch run_cells() {
    const Cells cells(pooling_);
    const Term global = w_.global();
    w_.when(global < w_.number(cells.count), [&] {
      const std::vector<Term> at = element(global, pooling_.image(), cells.sizes);
      plane_.assign(at.begin() + windows_.dims(), at.end());
      write_cell(cells, std::span(at).first(static_cast<size_t>(windows_.dims())));
    });
    return w_.finish(groups_for(cells.count));
  }

 private:
  /// All loads before the first store.
  void write_cell(const Cells& cells, std::span<const Term> cell) {
    const auto when = [&](Term condition, auto&& body) { cells.whole ? body() : w_.when(condition, body); };
    const Term y = w_.variable(zero()), slope = w_.variable(zero()), found = w_.variable(w_.bits(boolean, 0));
    const Term has_window = windows_.is_place(cell);
    when(has_window, [&] {
      w_.assign(y, load(1, cell));
      w_.assign(slope, load(2, cell));
    });
    std::vector<Term> values;
    std::vector<std::vector<Term>> places;
    for (const Cells::Element& element : cells.elements) {
      values.push_back(w_.variable(zero()));
      places.push_back(windows_.element(cell, element.offset));
      if (!element.is_tap) continue;
      when(has_window && windows_.is_inside(places.back()), [&] { w_.assign(values.back(), load(0, places.back())); });
    }
    for (size_t i = 0; i < values.size(); ++i) {
      if (!cells.elements[i].is_tap) continue;
      Term first = !found && same(values[i], y);
      if (!cells.whole) first = first && has_window && windows_.is_inside(places[i]);
      w_.assign(found, found || first);
      w_.assign(values[i], w_.select(first, slope, zero()));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      when(windows_.is_inside(places[i]), [&] { result_.store(with_plane(places[i], plane_), values[i]); });
    }
  }

  int picks_buffer(int32_t scratch) {
    return w_.buffer(w_.index_type() == ScalarType::int32 ? DType::Int32 : DType::Int64, {-1, scratch});
  }

  /// The coordinates of element `number` of an image, in the order of its memory.
  std::vector<Term> element(Term number, const View& image) {
    return element(number, image, std::span(image.sizes, static_cast<size_t>(image.rank)));
  }

  /// The same among `sizes`, in the order of the image's memory.
  std::vector<Term> element(Term number, const View& image, std::span<const int64_t> sizes) {
    const std::vector<size_t> order = memory_order(image);
    std::vector<Term> ordered, at(sizes.size());
    for (const size_t d : order) ordered.push_back(sizes[d] == 1 ? w_.index(1) : w_.number(sizes[d]));
    const std::vector<Term> found = w_.coordinates(number, ordered);
    for (size_t i = 0; i < order.size(); ++i) at[order[i]] = found[i];
    return at;
  }

  static std::vector<int64_t> window_sizes(const Pooling& pooling) {
    return {pooling.attributes.window, pooling.attributes.window + 3};
  }

  Term value(std::span<const Term> at) {
    switch (pooling_.what()) {
      case Window::maximum: return maximum(at);
      case Window::maximum_gradient: return maximum_gradient(at);
      case Window::maximum_pick: return maximum_pick(at);
      case Window::mean: return mean(at, false);
      case Window::mean_gradient: return mean(at, true);
      case Window::none: break;
    }
    throw_unknown(*pooling_.call.op, "the writer of kernels");
  }

  /// Of operand i, the element of this item's channel and image.
  Term load(size_t i, std::span<const Term> at) const { return from_[i].load(with_plane(at, plane_)); }
  Term zero() { return w_.literal(scalar_type(type_), 0); }

  Term maximum(std::span<const Term> place) {
    const Term best = w_.variable(below_all(w_, windows_, place, type_));
    windows_.each_tap(
        place, [&](std::span<const Term> at, std::span<const Term>) { w_.assign(best, max(load(0, at), best)); });
    return best;
  }

  /// The sum of the window, or (gradient) over the windows that hold the element, divided by the window's size.
  Term mean(std::span<const Term> place, bool gradient) {
    const Term sum = w_.variable(zero());
    const auto add = [&](std::span<const Term> at, std::span<const Term>) { w_.assign(sum, sum + load(0, at)); };
    if (gradient) windows_.each_window(place, add);
    else windows_.each_tap(place, add);
    Term size = windows_.window(0);
    for (int d = 1; d < windows_.dims(); ++d) size = size * windows_.window(d);
    return sum / w_.convert(size, sum.type);
  }

  /// Of operand 1, what stands at the window's first largest element; 0 where padding wins.
  Term maximum_pick(std::span<const Term> place) {
    const Term best = w_.variable(below_all(w_, windows_, place, type_)), found = w_.variable(w_.bits(boolean, 0));
    const Term picked = w_.variable(zero());
    windows_.each_tap(place, [&](std::span<const Term> at, std::span<const Term>) {
      const Term x = load(0, at);
      Term wins = best < x || (!found && x == best);
      if (is_float(x)) wins = wins || (x != x && best == best);
      w_.when(wins, [&] {
        w_.assign(best, x);
        w_.assign(found, w_.bits(boolean, 1));
        w_.assign(picked, load(1, at));
      });
    });
    return picked;
  }

  /// x, y, dy: the sum of dy of the windows that have picked this element.
  Term maximum_gradient(std::span<const Term> at) {
    const Term sum = w_.variable(zero()), own = place_in_image(at);
    windows_.each_window(at, [&](std::span<const Term> place, std::span<const Term>) {
      w_.when(w_.load(picks_, place_in_pooled(place)) == own, [&] { w_.assign(sum, sum + load(2, place)); });
    });
    return sum;
  }

  /// Equal, or both NaN.
  static Term same(Term x, Term y) { return is_float(x) ? x == y || (x != x && y != y) : x == y; }

  Term place_in_image(std::span<const Term> at) const {
    Term number = at.back();
    for (int d = windows_.dims() - 2; d >= 0; --d) number = number * windows_.image(d) + at[static_cast<size_t>(d)];
    return number;
  }

  /// The number of the window at this place of this item's plane, as run_picks() counts them.
  Term place_in_pooled(std::span<const Term> place) const {
    const std::vector<Term> at = with_plane(place, plane_);
    const std::vector<size_t> order = memory_order(pooling_.pooled());
    const auto dims = static_cast<size_t>(windows_.dims());
    Term number = at[order.back()];
    for (size_t i = order.size() - 1; i-- > 0;) {
      number = number * (order[i] == dims ? channels_ : windows_.pooled(static_cast<int>(order[i]))) + at[order[i]];
    }
    return number;
  }

  static constexpr ScalarType boolean = ScalarType::boolean;

  const Pooling& pooling_;
  DType type_;
  KernelWriter w_;
  ArrayTerm result_;
  WindowTerms windows_;
  std::vector<ArrayTerm> from_;
  std::vector<Term> plane_;  // channel and image of this item
  Term channels_;
  int picks_ = -1;  // of a gradient whose windows meet: where their largest elements stand
};

}  // namespace

void write_window(const Layout& layout, int32_t node, LaunchList& list) {
  const Pooling pooling(layout, node);
  const DType type = pooling.call.dtype;
  const bool mean = pooling.what() == Window::mean || pooling.what() == Window::mean_gradient;
  if (type == DType::Bool || is_complex(type) || (mean && !is_float(type))) {
    throw Error(ErrorKind::dtype, std::string(pooling.call.op->name) + ": devices pool numbers, means of floats; got " +
                                      to_string(type) + "; convert them, for example with f32(x)");
  }
  if (pooling.view(node).count() == 0) return;
  WindowWriter writer(pooling);
  if (pooling.what() == Window::maximum_gradient) {
    if (are_apart(pooling)) return list.launches.push_back(writer.run_cells());
    const int64_t windows = pooling.pooled().count();
    const int32_t picks = list.scratch(windows * bytes_of(pooling.index()));
    if (windows > 0) list.launches.push_back(WindowWriter(pooling, "_picks").run_picks(picks));
    writer.take_picks(picks);
  }
  list.launches.push_back(writer.run());
}

}  // namespace rosin::kernels
