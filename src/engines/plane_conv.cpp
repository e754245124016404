// Convolutions of each channel by itself, of images in logical order: a plane at a time, in blocks of padded rows. The
// gradient of the input is such a convolution too, of planes whose elements stand as far apart as windows do. Sums have
// the order of the taps, so they have the bits that tile_conv.cpp gives. A filter that is not finite would meet
// padding: its planes are computed from the taps inside alone, and so are gradients by weights that are not finite.
// Read after plane_rows.hpp.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/strided_copy.hpp"
#include "engines/conv_shape.hpp"
#include "engines/cuts.hpp"
#include "engines/epilogue.hpp"
#include "engines/plane_rows.hpp"
#include "engines/tile.hpp"

namespace rosin::engines {

namespace {

/// Along one dim.
Windows windows_of(const ConvSpec& spec, int dim) {
  if (dim >= spec.spatial) return {};
  const bool by_data = spec.kind == ConvKind::backward_data;
  Windows windows;
  windows.taps = spec.kernel[dim];
  windows.dilation = spec.dilation[dim];
  windows.in = by_data ? spec.out[dim] : spec.in[dim];
  windows.windows = by_data ? spec.in[dim] : spec.out[dim];
  windows.stride = by_data ? 1 : spec.stride[dim];
  windows.spread = by_data ? spec.stride[dim] : 1;
  windows.pad = by_data ? windows.reach() - 1 - spec.pad_low[dim] : spec.pad_low[dim];
  return windows;
}

/// What the kinds share.
template <class T> class PlaneConv : public VendorCall {
 public:
  PlaneConv(const ConvSpec& spec, int64_t results, int64_t planes_each, int64_t work)
      : spec_(spec), s_(spec), w_(windows_of(spec, 0)), h_(windows_of(spec, 1)), d_(windows_of(spec, 2)),
        planes_each_(planes_each), kernels_(tile_kernels_for(w_.windows * int64_t{sizeof(T)}).of<T>()),
        rows_(w_, h_, d_, planes_each) {
    step_ = images_per_chunk(results, work, sizeof(T) == sizeof(float) ? 30 : 15);
    results_ = results;
    chunks_ = (results + step_ - 1) / step_;
    places_at_ = round_up(planes_each * s_.kernel.count(), 64 / int64_t{sizeof(T)});
    scratch_bytes_ = static_cast<size_t>((places_at_ + rows_.count()) * int64_t{sizeof(T)} + 64);
    for (int64_t plane = 0; plane < planes_each; ++plane) add_taps(plane);
  }

  const char* engine() const noexcept override { return "planes"; }

 protected:
  int64_t last(int64_t chunk) const { return std::min(results_, (chunk + 1) * step_); }
  int64_t taps() const { return s_.kernel.count(); }
  /// Output channels of an input channel.
  int64_t multiplier() const { return s_.out_channels; }
  int64_t logical_tap(int64_t tap) const { return spec_.flipped ? taps() - 1 - tap : tap; }

  /// Zeros that stay before and behind rows, between elements, and where each block has them.
  T* cleared(void* scratch) const {
    T* const places = static_cast<T*>(scratch) + places_at_;
    std::fill_n(places, rows_.count(), T(0));
    return places;
  }

  ConvSpec spec_;
  ConvShape s_;
  Windows w_, h_, d_;
  int64_t planes_each_;  // that a result is summed over
  const TypedKernels<T>& kernels_;
  PaddedRows<T> rows_;
  int64_t step_ = 1, results_ = 0;
  int64_t places_at_ = 0;                 // in the scratch, behind the weights or sums
  std::vector<int64_t> offsets_, order_;  // of taps: in places, and in the filter

 private:
  /// Taps in the order of the kernel, which is that of places, or for gradients the reverse.
  void add_taps(int64_t plane) {
    const Extent& k = s_.kernel;
    const bool by_data = spec_.kind == ConvKind::backward_data;
    for (int64_t tap = 0; tap < taps(); ++tap) {
      const int64_t at = by_data ? taps() - 1 - tap : tap;
      order_.push_back(plane * taps() + logical_tap(tap));
      offsets_.push_back(rows_.offset({at % k.w, at / k.w % k.h, at / k.w / k.h}, plane));
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
    square_ = s_.kernel.w == 3 && s_.kernel.h == 3 && this->offsets_.size() == 9 && h_.stride == h_.dilation;
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
    run.x_row = (1 - 2 * up) * this->rows_.row() * h_.stride;
    run.y_row = (1 - 2 * up) * w_.windows;
    this->rows_.each_block([&](int64_t d, int64_t h, int64_t rows) {
      this->rows_.fill(from, d, h, rows, T(0), places);
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
    run.x_row = this->rows_.row() * h_.stride;
    run.offsets = this->offsets_.data();
    run.taps = this->taps();
    run.y_row = run.windows = w_.windows;
    run.sums = sums;
    this->rows_.each_block([&](int64_t d, int64_t h, int64_t rows) {
      this->rows_.fill(x, d, h, rows, T(0), places);
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

/// The same of images in CWHN, of which the channels of a line are turned at a time.
template <class T> class TurnedPlaneWeights final : public VendorCall {
 public:
  explicit TurnedPlaneWeights(const ConvSpec& spec)
      : spec_(spec), side_(std::min(spec.in_channels, 64 / int64_t{sizeof(T)})), whole_(spec, side_) {
    chunks_ = (spec.in_channels + side_ - 1) / side_;
    if (spec.in_channels % side_ != 0) rest_ = Part(spec, spec.in_channels % side_);
    scratch_bytes_ = whole_.bytes();
  }

  const char* engine() const noexcept override { return "planes"; }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const int64_t first = chunk * side_;
    (first + side_ <= spec_.in_channels ? whole_ : rest_).run(first, buffers, scratch);
  }

 private:
  /// So many input channels.
  class Part {
   public:
    Part() = default;
    Part(const ConvSpec& all, int64_t channels)
        : multiplier_(all.out_channels / all.in_channels), taps_(ConvShape(all).kernel.count()),
          x_(turning(all.in_channels, channels, ConvShape(all).in.count(), all.batch)),
          dy_(turning(all.out_channels, channels * multiplier_, ConvShape(all).out.count(), all.batch)) {
      ConvSpec some = all;
      some.logical = true;
      some.in_channels = some.groups = channels;
      some.out_channels = channels * multiplier_;
      call_ = std::make_unique<PlaneWeights<T>>(some);
      dy_at_ = round_up(channels * ConvShape(all).in.count() * all.batch, 64);
      scratch_at_ = dy_at_ + round_up(some.out_channels * ConvShape(all).out.count() * all.batch, 64);
    }

    size_t bytes() const { return static_cast<size_t>(scratch_at_) * sizeof(T) + call_->scratch_bytes_per_chunk(); }

    void run(int64_t first, const VendorBuffers& buffers, void* scratch) const {
      T *const x = static_cast<T*>(scratch), *const dy = x + dy_at_;
      const int64_t first_out = first * multiplier_;
      x_.run_here(x, static_cast<const T*>(buffers.first) + first);
      dy_.run_here(dy, static_cast<const T*>(buffers.second) + first_out);
      const VendorBuffers inside{x, dy, nullptr, static_cast<T*>(buffers.result) + first_out * taps_, nullptr};
      for (int64_t chunk = 0; chunk < call_->chunks(); ++chunk) call_->run_chunk(chunk, inside, x + scratch_at_);
    }

   private:
    static BlockCopy turning(int64_t all, int64_t channels, int64_t points, int64_t batch) {
      return {{.rank = 3,
               .sizes = {channels, points, batch},
               .target = {points, 1, points * channels},
               .source = {1, all, all * points}},
              sizeof(T),
              1,
              0};
    }

    int64_t multiplier_ = 1, taps_ = 1;
    BlockCopy x_, dy_;
    std::unique_ptr<PlaneWeights<T>> call_;
    int64_t dy_at_ = 0, scratch_at_ = 0;
  };

  ConvSpec spec_;
  int64_t side_;
  Part whole_, rest_;
};

template <class T> std::unique_ptr<VendorCall> prepared(const ConvSpec& spec) {
  if (!spec.logical) return std::make_unique<TurnedPlaneWeights<T>>(spec);
  if (spec.kind == ConvKind::backward_weights) return std::make_unique<PlaneWeights<T>>(spec);
  return with_epilogue(spec, true, [](const ConvSpec& inner) { return std::make_unique<PlaneFilter<T>>(inner); });
}

}  // namespace

bool planes_can(const ConvSpec& spec) {
  const ConvShape s(spec);
  const bool of_type = spec.type == DType::Float32 || spec.type == DType::Float64;
  return of_type && spec.groups == spec.in_channels && spec.batch * spec.out_channels * s.in.count() > 0;
}

/// Measured on Granite Rapids: oneDNN takes 10 times as long for filters larger than 3x3; filters of a single channel
/// are a product, which takes a third of the time.
bool turned_planes_pay(const ConvSpec& given) {
  ConvSpec spec = given;
  if (spec.type == DType::BFloat16) spec.type = DType::Float32;  // as which they are computed then
  return spec.kind == ConvKind::backward_weights && spec.groups > 1 && planes_can(spec) &&
         ConvShape(spec).kernel.count() > plan::most_taps_in_blocks;
}

std::unique_ptr<VendorCall> prepare_plane_conv(const ConvSpec& spec) {
  require_tile_type(spec.type, "conv");
  return spec.type == DType::Float32 ? prepared<float>(spec) : prepared<double>(spec);
}

}  // namespace rosin::engines
