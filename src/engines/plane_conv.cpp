// Convolutions of each channel by itself, of images in logical order: a plane at a time, in blocks of rows that are
// copied into scratch with their padding, so that no window leaves them. The gradient of the input is such a
// convolution too, of planes whose elements stand as far apart as windows do. Sums have the order of the taps, so they
// have the bits that tile_conv.cpp gives. A filter that is not finite would meet padding: its planes are computed from
// the taps inside alone, and so are gradients by weights that are not finite. Read after tile_kernel.hpp.
#include <algorithm>
#include <vector>

#include "engines/conv_shape.hpp"
#include "engines/cuts.hpp"
#include "engines/epilogue.hpp"
#include "engines/tile.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {

namespace {

constexpr int64_t block_bytes = 16384;  // of padded rows, about: they stay in the first cache
constexpr int64_t row_unit = 4;         // rows of windows that kernels compute at a time

constexpr int64_t ceil_div(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

/// Windows along one dim, over places: elements `spread` apart behind `pad` places, and zeros elsewhere.
struct Windows {
  int64_t in = 1, windows = 1, taps = 1, stride = 1, dilation = 1;
  int64_t pad = 0;  // less than 0: the first elements are in no window
  int64_t spread = 1;

  Windows(const ConvSpec& spec, int dim) {
    if (dim >= spec.spatial) return;
    const bool by_data = spec.kind == ConvKind::backward_data;
    taps = spec.kernel[dim];
    dilation = spec.dilation[dim];
    in = by_data ? spec.out[dim] : spec.in[dim];
    windows = by_data ? spec.in[dim] : spec.out[dim];
    stride = by_data ? 1 : spec.stride[dim];
    spread = by_data ? spec.stride[dim] : 1;
    pad = by_data ? (taps - 1) * dilation - spec.pad_low[dim] : spec.pad_low[dim];
  }

  /// Places that so many windows reach over.
  int64_t places(int64_t count) const { return (count - 1) * stride + (taps - 1) * dilation + 1; }
  /// The element at a place, or -1.
  int64_t element(int64_t place) const {
    const int64_t at = place - pad;
    return at >= 0 && at % spread == 0 && at / spread < in ? at / spread : -1;
  }
};

/// What the kinds share: how the padded rows of a block stand. A row has `stride` parts, each of every so many places,
/// so that a tap reads neighbouring windows' elements beside each other.
template <class T> class PlaneConv : public VendorCall {
 public:
  PlaneConv(const ConvSpec& spec, int64_t results, int64_t planes_each, int64_t work)
      : spec_(spec), s_(spec), w_(spec, 0), h_(spec, 1), d_(spec, 2), planes_each_(planes_each),
        kernels_(tile_kernels_for(w_.windows * int64_t{sizeof(T)}).of<T>()) {
    part_ = ceil_div(w_.places(w_.windows), w_.stride);
    row_ = part_ * w_.stride;
    const int64_t slabs = planes_each * d_.taps, row_bytes = slabs * row_ * int64_t{sizeof(T)};
    const int64_t fitting = (block_bytes / row_bytes - (h_.taps - 1) * h_.dilation) / h_.stride;
    block_ = std::min(h_.windows, std::max(row_unit, fitting / row_unit * row_unit));
    slab_ = h_.places(block_) * row_;
    step_ = images_per_chunk(results, work, sizeof(T) == sizeof(float) ? 30 : 15);
    results_ = results;
    chunks_ = (results + step_ - 1) / step_;
    places_at_ = round_up(planes_each * s_.kernel.count(), 64 / int64_t{sizeof(T)});
    places_ = slabs * slab_;
    scratch_bytes_ = static_cast<size_t>((places_at_ + places_) * int64_t{sizeof(T)} + 64);
    for (int64_t plane = 0; plane < planes_each; ++plane) add_taps(plane);
  }

  const char* engine() const noexcept override { return "planes"; }

 protected:
  int64_t last(int64_t chunk) const { return std::min(results_, (chunk + 1) * step_); }
  int64_t taps() const { return s_.kernel.count(); }
  /// Output channels of an input channel.
  int64_t multiplier() const { return s_.out_channels; }
  int64_t logical_tap(int64_t tap) const { return spec_.flipped ? taps() - 1 - tap : tap; }

  /// Calls visit(depth, first row, rows) for each block of rows of windows.
  template <class Visit> void each_block(Visit visit) const {
    for (int64_t d = 0; d < d_.windows; ++d) {
      for (int64_t h = 0; h < h_.windows; h += block_) visit(d, h, std::min(block_, h_.windows - h));
    }
  }

  /// Whether all results read the same places.
  bool is_one_block() const { return d_.windows == 1 && h_.windows == block_; }

  /// Zeros that stay before and behind rows, between elements, and where each block has them.
  T* cleared(void* scratch) const {
    T* const places = static_cast<T*>(scratch) + places_at_;
    std::fill_n(places, places_, T(0));
    return places;
  }

  /// The places that a block reads, of `planes_each` planes one behind the other.
  void fill_block(const T* planes, int64_t d, int64_t h, int64_t rows, T* to) const {
    for (int64_t plane = 0; plane < planes_each_; ++plane) {
      for (int64_t tap = 0; tap < d_.taps; ++tap) {
        const int64_t element = d_.element(d * d_.stride + tap * d_.dilation);
        T* const slab = to + (plane * d_.taps + tap) * slab_;
        if (element < 0) {
          if (!is_one_block()) std::fill_n(slab, slab_, T(0));
          continue;
        }
        fill_slab(planes + (plane * d_.in + element) * h_.in * w_.in, h * h_.stride, h_.places(rows), slab);
      }
    }
  }

  ConvSpec spec_;
  ConvShape s_;
  Windows w_, h_, d_;
  int64_t planes_each_;  // that a result is summed over
  const TypedKernels<T>& kernels_;
  int64_t part_, row_, block_, slab_;  // elements of a part, of a row; rows of windows of a block; elements of a slab
  int64_t step_ = 1, results_ = 0;
  int64_t places_at_ = 0;                 // in the scratch, behind the weights or sums
  int64_t places_ = 0;                    // elements of a block
  std::vector<int64_t> offsets_, order_;  // of taps: in places, and in the filter

 private:
  /// Taps in the order of the kernel, which is that of places, or for gradients the reverse.
  void add_taps(int64_t plane) {
    const Extent& k = s_.kernel;
    const bool by_data = spec_.kind == ConvKind::backward_data;
    for (int64_t tap = 0; tap < taps(); ++tap) {
      const int64_t at = by_data ? taps() - 1 - tap : tap;
      const int64_t w = at % k.w * w_.dilation, h = at / k.w % k.h * h_.dilation, slab = plane * k.d + at / k.w / k.h;
      order_.push_back(plane * taps() + logical_tap(tap));
      offsets_.push_back(slab * slab_ + h * row_ + w % w_.stride * part_ + w / w_.stride);
    }
  }

  /// Rows of places of a plane, from `first` on.
  void fill_slab(const T* plane, int64_t first, int64_t rows, T* to) const {
    if (h_.spread == 1) {
      const int64_t begin = std::clamp<int64_t>(h_.pad - first, 0, rows);
      const int64_t end = std::clamp<int64_t>(h_.pad + h_.in - first, begin, rows);
      if (!is_one_block()) {
        std::fill_n(to, begin * row_, T(0));
        std::fill_n(to + end * row_, (rows - end) * row_, T(0));
      }
      if (begin < end) fill_rows(plane + (first + begin - h_.pad) * w_.in, end - begin, to + begin * row_);
      return;
    }
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t element = h_.element(first + row);
      if (element >= 0) fill_rows(plane + element * w_.in, 1, to + row * row_);
      else if (!is_one_block()) std::fill_n(to + row * row_, row_, T(0));
    }
  }

  void fill_rows(const T* from, int64_t rows, T* to) const {
    for (int64_t part = 0; part < w_.stride; ++part) {
      const int64_t shift = w_.pad - part;
      const int64_t begin = w_.spread == 1 ? ceil_div(shift, w_.stride) : ceil_div(-shift, w_.spread);
      const int64_t end = w_.spread == 1 ? std::min(part_, ceil_div(w_.in + shift, w_.stride))
                                         : std::min(w_.in, ceil_div(row_ - shift, w_.spread));
      if (begin >= end) continue;
      const bool spreads = w_.spread > 1;
      const T* first = from + (spreads ? begin : begin * w_.stride - shift);
      T* const places = to + part * part_ + (spreads ? shift + begin * w_.spread : begin);
      copy_rows({first, w_.stride, w_.in, places, row_, rows, end - begin});
    }
  }

  void copy_rows(const CopiedRows<T>& run) const {
    if (w_.spread == 1 && run.step <= 2) return kernels_.copy_rows(run);
    for (int64_t row = 0; row < run.rows; ++row) {
      const T* from = run.from + row * run.from_row;
      T* to = run.to + row * run.to_row;
      for (int64_t i = 0; i < run.count; ++i) to[i * w_.spread] = from[i * run.step];
    }
  }
};

/// Forward, and the gradient of the input: planes of results.
template <class T> class PlaneFilter final : public PlaneConv<T> {
  using Base = PlaneConv<T>;
  using Base::h_, Base::w_, Base::s_, Base::spec_;

 public:
  explicit PlaneFilter(const ConvSpec& spec)
      : Base(spec, spec.batch * (is_forward(spec) ? spec.out_channels : spec.in_channels),
             is_forward(spec) ? 1 : spec.out_channels / spec.groups, work(spec)) {
    const int64_t down = this->row_ * h_.stride;
    square_ = s_.kernel.w == 3 && s_.kernel.h == 3 && this->offsets_.size() == 9 && down == h_.dilation * this->row_;
  }

  std::optional<MatmulPart> part_of(int64_t chunk) const override {
    return MatmulPart{0, 1, chunk * this->step_, this->last(chunk), 0, points()};
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    T* const weights = static_cast<T*>(scratch);
    T* const places = this->cleared(scratch);
    for (int64_t plane = chunk * this->step_; plane < this->last(chunk); ++plane) {
      run_plane(plane, buffers, weights, places);
    }
  }

 private:
  static bool is_forward(const ConvSpec& spec) { return spec.kind == ConvKind::forward; }
  static int64_t work(const ConvSpec& spec) {
    const ConvShape s(spec);
    return s.kernel.count() * (is_forward(spec) ? s.out.count() : s.in.count() * s.out_channels);
  }
  int64_t points() const { return w_.windows * h_.windows * this->d_.windows; }

  void run_plane(int64_t plane, const VendorBuffers& buffers, T* weights, T* places) const {
    const int64_t channel = plane % (is_forward(spec_) ? spec_.out_channels : spec_.in_channels);
    // Output channels of an input channel stand beside each other.
    const int64_t given = is_forward(spec_) ? plane / this->multiplier() : plane * this->multiplier();
    const T* from = static_cast<const T*>(buffers.first) + given * w_.in * h_.in * this->d_.in;
    const auto count = static_cast<int64_t>(this->offsets_.size());
    const T* filter = static_cast<const T*>(buffers.second) + channel * count;
    T* result = static_cast<T*>(buffers.result) + plane * points();
    const T* bias = spec_.epilogue.bias ? static_cast<const T*>(buffers.third) + channel : nullptr;
    T zero = T(0);  // NaN where a tap is not finite
    for (int64_t t = 0; t < count; ++t) {
      weights[t] = filter[this->order_[static_cast<size_t>(t)]];
      zero += weights[t] * T(0);
    }
    if (zero != T(0)) return filter_inside(from, filter, bias, result);
    filter_blocks(from, weights, bias, result, places);
  }

  void filter_blocks(const T* from, const T* weights, const T* bias, T* result, T* places) const {
    PlaneRun<T> run;
    run.offsets = this->offsets_.data();
    run.weights = weights;
    run.taps = static_cast<int64_t>(this->offsets_.size());
    run.square = square_;
    run.windows = w_.windows;
    run.bias = bias;
    run.relu = spec_.epilogue.activation == Activation::relu;
    // A gradient's taps go up: so do its rows, for kernels that take three by three taps.
    const int64_t up = is_forward(spec_) ? 0 : 1;
    run.x_row = (1 - 2 * up) * this->row_ * h_.stride;
    run.y_row = (1 - 2 * up) * w_.windows;
    this->each_block([&](int64_t d, int64_t h, int64_t rows) {
      this->fill_block(from, d, h, rows, places);
      run.rows = rows;
      run.x = places - up * (rows - 1) * run.x_row;
      run.y = result + (d * h_.windows + h + up * (rows - 1)) * w_.windows;
      this->kernels_.filter_plane(run);
    });
  }

  /// The same sums, of no products that the definition does not have.
  void filter_inside(const T* from, const T* filter, const T* bias, T* result) const {
    const bool forward = is_forward(spec_);
    std::fill_n(result, points(), T(0));
    for (int64_t plane = 0; plane < this->planes_each_; ++plane) {
      const T* weights = filter + plane * this->taps();
      each_output(s_, [&](const Extent& at, int64_t out) {
        each_tap(s_, at, spec_.flipped, [&](int64_t tap, int64_t in) {
          if (forward) result[out] += from[in] * weights[tap];
          else result[in] += from[plane * s_.out.count() + out] * weights[tap];
        });
      });
    }
    for (int64_t i = 0; i < points(); ++i) {
      if (bias != nullptr) result[i] += *bias;
      if (spec_.epilogue.activation == Activation::relu && result[i] < T(0)) result[i] = T(0);
    }
  }

  bool square_ = false;
};

/// The gradient by weights: filters of results.
template <class T> class PlaneWeights final : public PlaneConv<T> {
  using Base = PlaneConv<T>;
  using Base::h_, Base::w_, Base::s_, Base::spec_;

 public:
  explicit PlaneWeights(const ConvSpec& spec)
      : Base(spec, spec.out_channels, 1, spec.batch * ConvShape(spec).out.count() * ConvShape(spec).kernel.count()) {}

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    T* const sums = static_cast<T*>(scratch);
    T* const places = this->cleared(scratch);
    for (int64_t channel = chunk * this->step_; channel < this->last(chunk); ++channel) {
      const auto x = [&](int64_t n) {
        const int64_t plane = n * spec_.in_channels + channel / this->multiplier();
        return static_cast<const T*>(buffers.first) + plane * s_.in.count();
      };
      const auto dy = [&](int64_t n) {
        return static_cast<const T*>(buffers.second) + (n * spec_.out_channels + channel) * s_.out.count();
      };
      std::fill_n(sums, this->taps(), T(0));
      for (int64_t n = 0; n < spec_.batch; ++n) add_products(x(n), dy(n), sums, places);
      if (!this->kernels_.finite(sums, this->taps())) {
        std::fill_n(sums, this->taps(), T(0));
        for (int64_t n = 0; n < spec_.batch; ++n) add_inside(x(n), dy(n), sums);
      }
      T* const result = static_cast<T*>(buffers.result) + channel * this->taps();
      for (int64_t tap = 0; tap < this->taps(); ++tap) result[this->logical_tap(tap)] = sums[tap];
    }
  }

 private:
  void add_products(const T* x, const T* dy, T* sums, T* places) const {
    PlaneDots<T> run;
    run.x = places;
    run.x_row = this->row_ * h_.stride;
    run.offsets = this->offsets_.data();
    run.taps = this->taps();
    run.y_row = run.windows = w_.windows;
    run.sums = sums;
    this->each_block([&](int64_t d, int64_t h, int64_t rows) {
      this->fill_block(x, d, h, rows, places);
      run.y = dy + (d * h_.windows + h) * w_.windows;
      run.rows = rows;
      this->kernels_.dot_planes(run);
    });
  }

  void add_inside(const T* x, const T* dy, T* sums) const {
    each_output(s_, [&](const Extent& at, int64_t out) {
      each_tap(s_, at, false, [&](int64_t tap, int64_t in) { sums[tap] += x[in] * dy[out]; });
    });
  }
};

template <class T> std::unique_ptr<VendorCall> prepared(const ConvSpec& spec) {
  if (spec.kind == ConvKind::backward_weights) return std::make_unique<PlaneWeights<T>>(spec);
  return with_epilogue(spec, true, [](const ConvSpec& inner) { return std::make_unique<PlaneFilter<T>>(inner); });
}

}  // namespace

bool planes_can(const ConvSpec& spec) {
  const ConvShape s(spec);
  const bool of_type = spec.type == DType::Float32 || spec.type == DType::Float64;
  return of_type && spec.groups == spec.in_channels && spec.batch * spec.out_channels * s.in.count() > 0;
}

std::unique_ptr<VendorCall> prepare_plane_conv(const ConvSpec& spec) {
  require_tile_type(spec.type, "conv");
  return spec.type == DType::Float32 ? prepared<float>(spec) : prepared<double>(spec);
}

}  // namespace rosin::engines
