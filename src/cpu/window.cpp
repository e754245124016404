// Pooling of (spatial..., channels, batch) in logical order. A chunk owns whole planes (one channel of one image), so
// gradients need no synchronisation. Rows of results are computed together: dim 0 is the inner loop.
#include "cpu/contraction.hpp"
#include "cpu/dispatch.hpp"
#include "plan/describe.hpp"

namespace rosin::cpu {
namespace {

// Sizes of one plane and its windows; unused dims have size 1.
struct Plane {
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, window[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1},
          low[3] = {};
  int64_t planes = 1;

  int64_t in_count() const { return in[0] * in[1] * in[2]; }
  int64_t out_count() const { return out[0] * out[1] * out[2]; }
  int64_t window_count() const { return window[0] * window[1] * window[2]; }
  /// Whether any window touches padding.
  bool padded() const {
    for (int d = 0; d < 3; ++d) {
      if (low[d] > 0 || (out[d] - 1) * stride[d] + (window[d] - 1) * dilation[d] >= in[d] + low[d]) return true;
    }
    return false;
  }
};

Plane plane_of(const Shape& image, const Shape& pooled, const WindowAttributes& attributes) {
  Plane plane;
  const int spatial = image.rank() - 2;
  for (int d = 0; d < spatial; ++d) {
    plane.in[d] = image[d];
    plane.out[d] = pooled[d];
    plane.window[d] = attributes.window[d];
    plane.stride[d] = attributes.stride[d];
    plane.dilation[d] = attributes.dilation[d];
    plane.low[d] = attributes.pad_low[d];
  }
  plane.planes = image[spatial] * image[spatial + 1];
  return plane;
}

struct Range {
  int64_t first, last;
};

// Functions of one window stand once for all types: a division each makes them large.

// Of the window at out[d] = o: which of its elements lie inside the image.
[[gnu::noinline]] Range inside(const Plane& plane, int d, int64_t o) {
  const int64_t start = o * plane.stride[d] - plane.low[d], step = plane.dilation[d];
  const int64_t before = start < 0 ? (step - 1 - start) / step : 0, left = plane.in[d] - start;
  return {before, left <= 0 ? 0 : std::min(plane.window[d], (left + step - 1) / step)};
}

// Where element k of the window at out[d] = o stands.
int64_t place_of(const Plane& plane, int d, int64_t o, int64_t k) {
  return o * plane.stride[d] - plane.low[d] + k * plane.dilation[d];
}

// The places o of dim 0 for which window element k lies inside the image.
[[gnu::noinline]] Range reach(const Plane& plane, int64_t k) {
  const int64_t shift = k * plane.dilation[0] - plane.low[0], stride = plane.stride[0];
  const int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t last = plane.in[0] - 1 - shift < 0 ? 0 : (plane.in[0] - 1 - shift) / stride + 1;
  return {std::min(first, plane.out[0]), std::min(last, plane.out[0])};
}

// Calls f(row of the result, row of the image, k, places of dim 0) for all rows and all window elements that meet.
template <class F> void each_meeting(const Plane& plane, F&& f) {
  for (int64_t o2 = 0; o2 < plane.out[2]; ++o2) {
    for (int64_t o1 = 0; o1 < plane.out[1]; ++o1) {
      const Range k2 = inside(plane, 2, o2), k1 = inside(plane, 1, o1);
      for (int64_t k = k2.first; k < k2.last; ++k) {
        for (int64_t j = k1.first; j < k1.last; ++j) {
          const int64_t i2 = place_of(plane, 2, o2, k), i1 = place_of(plane, 1, o1, j);
          for (int64_t i = 0; i < plane.window[0]; ++i) {
            f(o2 * plane.out[1] + o1, i2 * plane.in[1] + i1, place_of(plane, 0, 0, i), reach(plane, i));
          }
        }
      }
    }
  }
}

// The common part of all window calls: planes are cut by their elements.
class WindowCall : public Call {
 public:
  explicit WindowCall(const Plane& plane)
      : plane_(plane), pieces_(Pieces::of(plane.planes, plane.in_count() + plane.out_count() * plane.window_count())) {}

  int64_t chunks() const override { return pieces_.count(); }
  void run(int64_t chunk, const CallData& data) override {
    for (int64_t p = pieces_.first(chunk); p < pieces_.last(chunk); ++p) run_plane(p, data);
  }

 protected:
  virtual void run_plane(int64_t p, const CallData& data) const = 0;
  const Plane plane_;

 private:
  Pieces pieces_;
};

// A window that touches padding has the lowest finite value as a candidate.
template <class T> Computed<T> lowest_of_type() {
  if constexpr (std::is_same_v<T, Half>) return -65504.0f;
  if constexpr (std::is_same_v<T, BFloat>) return bfloat_value(0xff7f);
  return std::numeric_limits<Computed<T>>::lowest();
}

[[gnu::noinline]] bool touches_padding(const Plane& plane, int64_t o0, int64_t o1, int64_t o2) {
  const int64_t o[3] = {o0, o1, o2};
  for (int d = 0; d < 3; ++d) {
    const Range range = inside(plane, d, o[d]);
    if (range.last - range.first < plane.window[d]) return true;
  }
  return false;
}

// The largest elements of up to `width` neighbouring windows without padding, and where they stand in the plane.
template <class T> struct LargestRow {
  static constexpr int64_t width = 64;
  Computed<T> best[width];
  int32_t places[width];

  // Windows [first, first + count) of the row (o1, o2) of results.
  [[gnu::noinline]] LargestRow(const Plane& plane, const T* x, int64_t first, int64_t count, int64_t o1, int64_t o2) {
    bool begun = false;
    for (int64_t k = 0; k < plane.window[2]; ++k) {
      for (int64_t j = 0; j < plane.window[1]; ++j) {
        const int64_t row = place_of(plane, 2, o2, k) * plane.in[1] + place_of(plane, 1, o1, j);
        for (int64_t i = 0; i < plane.window[0]; ++i) {
          const int64_t start = row * plane.in[0] + place_of(plane, 0, first, i);
          begun ? compare(x, start, plane.stride[0], count) : begin(x, start, plane.stride[0], count);
          begun = true;
        }
      }
    }
  }

 private:
  void begin(const T* x, int64_t start, int64_t stride, int64_t count) {
    for (int64_t o = 0; o < count; ++o) {
      best[o] = static_cast<Computed<T>>(x[start + o * stride]);
      places[o] = static_cast<int32_t>(start + o * stride);
    }
  }
  void compare(const T* x, int64_t start, int64_t stride, int64_t count) {
    for (int64_t o = 0; o < count; ++o) {
      const auto value = static_cast<Computed<T>>(x[start + o * stride]);
      const bool wins = value > best[o] || (is_nan(value) && !is_nan(best[o]));
      best[o] = wins ? value : best[o];
      places[o] = wins ? static_cast<int32_t>(start + o * stride) : places[o];
    }
  }
};

// Calls f(place of the result, place of the image, largest element) where no window touches padding.
template <class T, class F> void each_largest_unpadded(const Plane& plane, const T* x, F&& f) {
  for (int64_t row = 0; row < plane.out[1] * plane.out[2]; ++row) {
    for (int64_t first = 0; first < plane.out[0]; first += LargestRow<T>::width) {
      const int64_t count = std::min(LargestRow<T>::width, plane.out[0] - first);
      const LargestRow<T> largest(plane, x, first, count, row % plane.out[1], row / plane.out[1]);
      for (int64_t o = 0; o < count; ++o) f(row * plane.out[0] + first + o, largest.places[o], largest.best[o]);
    }
  }
}

template <class T> class MaximumCall final : public WindowCall {
 public:
  using WindowCall::WindowCall;

 private:
  void run_plane(int64_t p, const CallData& data) const override {
    const T* x = static_cast<const T*>(data.operands[0]) + p * plane_.in_count();
    T* y = static_cast<T*>(data.result) + p * plane_.out_count();
    if (!plane_.padded()) {
      each_largest_unpadded(plane_, x, [y](int64_t at, int32_t, Computed<T> best) { y[at] = static_cast<T>(best); });
      return;
    }
    start(y);
    each_meeting(plane_, [&](int64_t out_row, int64_t in_row, int64_t shift, Range places) {
      const T* from = x + in_row * plane_.in[0] + shift;
      T* to = y + out_row * plane_.out[0];
      for (int64_t o = places.first; o < places.last; ++o) {
        const T value = from[o * plane_.stride[0]];
        const auto number = static_cast<Computed<T>>(value);
        if (number > static_cast<Computed<T>>(to[o]) || is_nan(number)) to[o] = value;
      }
    });
  }

  // What every element beats, or the padding.
  void start(T* y) const {
    using Value = Computed<T>;
    const T lowest = static_cast<T>(lowest_of_type<T>());
    const T least = std::is_integral_v<T> ? lowest : static_cast<T>(-std::numeric_limits<Value>::infinity());
    int64_t at = 0;
    for (int64_t o2 = 0; o2 < plane_.out[2]; ++o2) {
      for (int64_t o1 = 0; o1 < plane_.out[1]; ++o1) {
        for (int64_t o0 = 0; o0 < plane_.out[0]; ++o0, ++at) {
          y[at] = touches_padding(plane_, o0, o1, o2) ? lowest : least;
        }
      }
    }
  }
};

// Calls f(place of the result, place of the image) with each window's first largest element; none if padding wins.
template <class T, class F> void each_largest(const Plane& plane, const T* x, F&& f) {
  if (!plane.padded() && plane.in_count() <= std::numeric_limits<int32_t>::max()) {
    each_largest_unpadded(plane, x, [&f](int64_t at, int32_t place, Computed<T>) { f(at, place); });
    return;
  }
  int64_t at = 0;
  for (int64_t o2 = 0; o2 < plane.out[2]; ++o2) {
    for (int64_t o1 = 0; o1 < plane.out[1]; ++o1) {
      for (int64_t o0 = 0; o0 < plane.out[0]; ++o0, ++at) {
        const Range k2 = inside(plane, 2, o2), k1 = inside(plane, 1, o1), k0 = inside(plane, 0, o0);
        const bool padded = touches_padding(plane, o0, o1, o2);
        Computed<T> best = lowest_of_type<T>();
        int64_t place = -1;
        for (int64_t k = k2.first; k < k2.last; ++k) {
          for (int64_t j = k1.first; j < k1.last; ++j) {
            const int64_t row = (place_of(plane, 2, o2, k) * plane.in[1] + place_of(plane, 1, o1, j)) * plane.in[0];
            for (int64_t i = k0.first; i < k0.last; ++i) {
              const int64_t at_image = row + place_of(plane, 0, o0, i);
              const auto value = static_cast<Computed<T>>(x[at_image]);
              const bool candidate = place < 0 && (!padded || value >= best);
              if (!candidate && !(value > best) && !(is_nan(value) && !is_nan(best))) continue;
              best = value;
              place = at_image;
            }
          }
        }
        if (place >= 0) f(at, place);
      }
    }
  }
}

// x, y, dy -> dx.
template <class T> class MaximumGradientCall final : public WindowCall {
 public:
  using WindowCall::WindowCall;
  size_t scratch_bytes() const override {
    return is_half<T> ? static_cast<size_t>(plane_.planes * plane_.in_count()) * sizeof(float) : 0;
  }

 private:
  void run_plane(int64_t p, const CallData& data) const override {
    const T* x = static_cast<const T*>(data.operands[0]) + p * plane_.in_count();
    const T* dy = static_cast<const T*>(data.operands[2]) + p * plane_.out_count();
    T* dx = static_cast<T*>(data.result) + p * plane_.in_count();
    Computed<T>* sums;
    if constexpr (is_half<T>) {
      sums = static_cast<float*>(data.scratch) + p * plane_.in_count();
    } else {
      sums = dx;
    }
    std::fill_n(sums, plane_.in_count(), Computed<T>{});
    each_largest(plane_, x,
                 [&](int64_t at, int64_t place) { sums[place] = plus(sums[place], static_cast<Computed<T>>(dy[at])); });
    if constexpr (is_half<T>) {
      for (int64_t i = 0; i < plane_.in_count(); ++i) dx[i] = T(sums[i]);
    }
  }
};

// x, v -> of v what stands at each window's first largest element of x; 0 where padding wins.
template <class T> class MaximumPickCall final : public WindowCall {
 public:
  using WindowCall::WindowCall;

 private:
  void run_plane(int64_t p, const CallData& data) const override {
    const T* x = static_cast<const T*>(data.operands[0]) + p * plane_.in_count();
    const T* v = static_cast<const T*>(data.operands[1]) + p * plane_.in_count();
    T* out = static_cast<T*>(data.result) + p * plane_.out_count();
    std::fill_n(out, plane_.out_count(), T{});
    each_largest(plane_, x, [&](int64_t at, int64_t place) { out[at] = v[place]; });
  }
};

// Sums over windows (to_image false: x -> y) or over the windows that hold an element (to_image true: dy -> dx), both
// divided by the window's size. Halves are added up in float.
template <class T, bool to_image> class MeanCall final : public WindowCall {
 public:
  using WindowCall::WindowCall;
  size_t scratch_bytes() const override {
    return is_half<T> ? static_cast<size_t>(plane_.planes * result_count()) * sizeof(float) : 0;
  }

 private:
  int64_t result_count() const { return to_image ? plane_.in_count() : plane_.out_count(); }

  void run_plane(int64_t p, const CallData& data) const override {
    const int64_t read = to_image ? plane_.out_count() : plane_.in_count();
    const T* from = static_cast<const T*>(data.operands[0]) + p * read;
    T* result = static_cast<T*>(data.result) + p * result_count();
    Computed<T>* sums;
    if constexpr (is_half<T>) {
      sums = static_cast<float*>(data.scratch) + p * result_count();
    } else {
      sums = result;
    }
    std::fill_n(sums, result_count(), Computed<T>{});
    const int64_t stride = plane_.stride[0];
    each_meeting(plane_, [&](int64_t out_row, int64_t in_row, int64_t shift, Range places) {
      const int64_t image = in_row * plane_.in[0] + shift, pooled = out_row * plane_.out[0];
      for (int64_t o = places.first; o < places.last; ++o) {
        if constexpr (to_image) {
          sums[image + o * stride] += static_cast<Computed<T>>(from[pooled + o]);
        } else {
          sums[pooled + o] += static_cast<Computed<T>>(from[image + o * stride]);
        }
      }
    });
    const auto size = static_cast<Computed<T>>(plane_.window_count());
    for (int64_t i = 0; i < result_count(); ++i) result[i] = T(sums[i] / size);
  }
};

}  // namespace

std::unique_ptr<Call> prepare_window(const CallSpec& spec) {
  if (const auto call = plan::describe(*spec.op, spec.attributes, spec.operands, spec.result);
      call && cpu_target().takes(*call)) {
    return prepare_pooling_call(*call);
  }
  const auto attributes = spec.attributes.as<WindowAttributes>();
  const Window window = spec.op->window;
  const bool backward = window == Window::maximum_gradient || window == Window::mean_gradient;
  const Shape& image = backward ? spec.result.shape : spec.operands[0].shape;
  const Shape& pooled = window == Window::maximum_gradient ? spec.operands[2].shape
                        : window == Window::mean_gradient  ? spec.operands[0].shape
                                                           : spec.result.shape;
  const Plane plane = plane_of(image, pooled, attributes);
  if (window == Window::mean || window == Window::mean_gradient) {
    return with_float(spec.op->name, spec.result.type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
      if (window == Window::mean) return std::make_unique<MeanCall<T, false>>(plane);
      return std::make_unique<MeanCall<T, true>>(plane);
    });
  }
  return with_number(spec.op->name, spec.result.type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Call> {
    if (window == Window::maximum) return std::make_unique<MaximumCall<T>>(plane);
    if (window == Window::maximum_pick) return std::make_unique<MaximumPickCall<T>>(plane);
    return std::make_unique<MaximumGradientCall<T>>(plane);
  });
}

}  // namespace rosin::cpu
