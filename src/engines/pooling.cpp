// Pooling and its gradients: windows of a row that lie inside the image run side by side, with a shortened list of taps
// where the row is at the border, and windows at the ends of rows one by one. What windows share adds up row by row, in
// each from the last window to the first: so it does by planes. Halves become floats image by image. Read after
// conv_shape.hpp; next pool_body.hpp, plane_pool.cpp.
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <rosin/error.hpp>
#include <rosin/half.hpp>

#include "engines/conv_shape.hpp"
#include "engines/converted.hpp"
#include "engines/cuts.hpp"
#include "engines/tile.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {

namespace {

struct PoolShape {
  explicit PoolShape(const PoolSpec& spec)
      : channels(spec.channels), in(extent_of(spec.in, spec.spatial, 1)), out(extent_of(spec.out, spec.spatial, 1)),
        kernel(extent_of(spec.kernel, spec.spatial, 1)), stride(extent_of(spec.stride, spec.spatial, 1)),
        dilation(extent_of(spec.dilation, spec.spatial, 1)), pad_low(extent_of(spec.pad_low, spec.spatial, 0)) {}

  int64_t channels;
  Extent in, out, kernel, stride, dilation, pad_low;
};

/// Places along one dim: where window `index` starts, and whether it lies inside [0, size).
struct Axis {
  int64_t size, kernel, stride, dilation, pad;
  int64_t start(int64_t index) const { return index * stride - pad; }
  bool overlaps() const { return stride <= (kernel - 1) * dilation; }
  /// Each element from the first window's to the last one's is read by one tap of one of them.
  bool tiles() const { return stride == kernel && (dilation == 1 || kernel == 1); }
  bool covered_by(int64_t windows) const { return tiles() && pad == 0 && windows * kernel == size; }
  bool holds(int64_t index) const { return start(index) >= 0 && start(index) + (kernel - 1) * dilation < size; }
};

/// Whether windows beside each other read elements beside each other.
bool are_neighbours(const PoolSpec& spec) { return spec.stride[0] == 1; }

/// Elements that a tap reads of windows that are computed together.
int64_t lane_elements(const PoolSpec& spec) { return spec.channels * (are_neighbours(spec) ? spec.out[0] : 1); }

/// Half a wide vector is slower than a whole narrow one, but its parts are faster than parts of a narrow one. Windows
/// that may reach behind their channels have no parts, but the last of a row.
const TileKernels& kernels_for(int64_t bytes, bool may_reach) {
  const TileKernels& kernels = tile_kernels_for(bytes);
  return bytes % kernels.vector_bytes == 0 || (may_reach && bytes < kernels.vector_bytes) ? kernels : tile_kernels();
}

/// Of dim 0: along rows.
bool tiles(const PoolSpec& spec) {
  return Axis{spec.in[0], spec.kernel[0], spec.stride[0], spec.dilation[0], spec.pad_low[0]}.tiles();
}

template <class T> class Pool final : public VendorCall {
 public:
  /// `least`: the maximum of no elements.
  Pool(const PoolSpec& spec, T least)
      : spec_(spec), shape_(spec), least_(least),
        kernels_(kernels_for(lane_elements(spec) * int64_t{sizeof(T)}, is_forward(spec.kind) || tiles(spec)).of<T>()) {
    const PoolShape& s = shape_;
    const int64_t taps = s.kernel.count();
    cut(s.out.count() * taps * spec.channels);
    scratch_bytes_ = static_cast<size_t>(taps) * sizeof(int64_t);
    width_ = {s.in.w, s.kernel.w, s.stride.w, s.dilation.w, s.pad_low.w};
    height_ = {s.in.h, s.kernel.h, s.stride.h, s.dilation.h, s.pad_low.h};
    depth_ = {s.in.d, s.kernel.d, s.stride.d, s.dilation.d, s.pad_low.d};
    overlaps_ = width_.overlaps() || height_.overlaps() || depth_.overlaps();
    covered_ = width_.covered_by(s.out.w) && height_.covered_by(s.out.h) && depth_.covered_by(s.out.d);
    offsets_.resize(static_cast<size_t>(taps));
    for (int64_t tap = 0; tap < taps; ++tap) offsets_[static_cast<size_t>(tap)] = offset(tap_place(tap));
    first_inside_ = 0;
    while (first_inside_ < s.out.w && !width_.holds(first_inside_)) ++first_inside_;
    last_inside_ = first_inside_;
    while (last_inside_ < s.out.w && width_.holds(last_inside_)) ++last_inside_;
  }

  const char* engine() const noexcept override { return "tile"; }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const int64_t in = shape_.in.count() * spec_.channels, out = shape_.out.count() * spec_.channels;
    const T* first = static_cast<const T*>(buffers.first);
    T* result = static_cast<T*>(buffers.result);
    const int64_t images = chunk / parts_, part = chunk % parts_, rows = rows_of_image();
    for (int64_t n = images * step_; n < std::min(spec_.batch, (images + 1) * step_); ++n) {
      PoolRun<T> run;
      run.channels = spec_.channels;
      run.overlaps = overlaps_;
      run.tiles = width_.tiles() && !overlaps_;
      run.share = T(1) / static_cast<T>(shape_.kernel.count());
      run.least = least_;
      if (is_forward(spec_.kind)) {
        run.x = first + n * in;
        run.y = result + n * out;
      } else {
        run.dx = result + n * in;
        if (!covered_) std::fill(run.dx, run.dx + in, T(0));
        if (spec_.kind == PoolKind::max_backward) {
          run.x = first + n * in;
          run.y = const_cast<T*>(static_cast<const T*>(buffers.second)) + n * out;  // only read by this kernel
          run.dy = static_cast<const T*>(buffers.third) + n * out;
        } else {
          run.dy = first + n * out;
        }
      }
      for (int64_t row = part_begin(rows, parts_, part); row < part_begin(rows, parts_, part + 1); ++row)
        run_row(run, row, static_cast<int64_t*>(scratch));
    }
  }

 private:
  Extent tap_place(int64_t tap) const {
    const Extent& k = shape_.kernel;
    return {tap % k.w * shape_.dilation.w, tap / k.w % k.h * shape_.dilation.h, tap / k.w / k.h * shape_.dilation.d};
  }
  int64_t offset(const Extent& place) const {
    return ((place.d * shape_.in.h + place.h) * shape_.in.w + place.w) * shape_.channels;
  }

  int64_t rows_of_image() const { return shape_.out.h * shape_.out.d; }

  /// Into images, or rows of windows of one that is worth more than a thread; what gradients add up is of whole images.
  void cut(int64_t operations) {
    constexpr int64_t thousands_per_microsecond = 2;
    step_ = images_per_chunk(spec_.batch, operations, thousands_per_microsecond);
    if (is_forward(spec_.kind) && step_ == 1 && spec_.batch > 0) {
      const int64_t wanted = worthwhile_chunks(spec_.batch * operations / (1000 * thousands_per_microsecond));
      parts_ = std::clamp<int64_t>((wanted + spec_.batch - 1) / spec_.batch, 1, std::max<int64_t>(1, rows_of_image()));
    }
    chunks_ = spec_.channels == 0 ? 0 : (spec_.batch + step_ - 1) / step_ * parts_;
  }

  void run_row(const PoolRun<T>& image, int64_t number, int64_t* border) const {
    const int64_t h = number % shape_.out.h, d = number / shape_.out.h, row = number * shape_.out.w;
    const bool row_inside = depth_.holds(d) && height_.holds(h);
    const int64_t first = first_inside_, last = last_inside_;
    for (int64_t w = shape_.out.w - 1; w >= last; --w) run_border(image, {w, h, d}, row + w, 1, border);
    if (first < last && !row_inside) run_border(image, {first, h, d}, row + first, last - first, border);
    if (first < last && row_inside) {
      PoolRun<T> inside = image;
      inside.least = -std::numeric_limits<T>::infinity();
      run_windows(inside, {first, h, d}, row + first, last - first, offsets_.data(), shape_.kernel.count());
    }
    for (int64_t w = first - 1; w >= 0; --w) run_border(image, {w, h, d}, row + w, 1, border);
  }

  /// One window that leaves the image, or some that do so only above or below: only the taps inside count.
  void run_border(const PoolRun<T>& image, const Extent& at, int64_t pixel, int64_t windows, int64_t* list) const {
    int64_t count = 0;
    for (int64_t tap = 0; tap < shape_.kernel.count(); ++tap) {
      const Extent place = tap_place(tap);
      const int64_t w = width_.start(at.w) + place.w, h = height_.start(at.h) + place.h;
      const int64_t d = depth_.start(at.d) + place.d;
      if (w < 0 || w >= shape_.in.w || h < 0 || h >= shape_.in.h || d < 0 || d >= shape_.in.d) continue;
      list[count++] = offset(place);
    }
    run_windows(image, at, pixel, windows, list, count);
  }

  /// `windows` windows from place `at` on, whose first output is pixel number `pixel`.
  void run_windows(const PoolRun<T>& image, const Extent& at, int64_t pixel, int64_t windows, const int64_t* offsets,
                   int64_t taps) const {
    const bool down = !is_forward(spec_.kind) && image.overlaps && !are_neighbours(spec_);
    const int64_t from = down ? windows - 1 : 0, step = down ? -shape_.channels : shape_.channels;
    const int64_t corner = offset({width_.start(at.w + from), height_.start(at.h), depth_.start(at.d)});
    const int64_t pooled = (pixel + from) * shape_.channels;
    PoolRun<T> run = image;
    if (run.x != nullptr) run.x += corner;
    if (run.dx != nullptr) run.dx += corner;
    if (run.y != nullptr) run.y += pooled;
    if (run.dy != nullptr) run.dy += pooled;
    run.x_step = shape_.stride.w * step;
    run.y_step = step;
    run.offsets = offsets;
    run.taps = taps;
    run.windows = windows;
    if (are_neighbours(spec_)) {  // all of them are as one with more channels
      run.channels *= std::exchange(run.windows, 1);
    }
    switch (spec_.kind) {
      case PoolKind::max_forward: kernels_.max_forward(run); break;
      case PoolKind::max_backward: kernels_.max_backward(run); break;
      case PoolKind::mean_forward: kernels_.mean_forward(run); break;
      case PoolKind::mean_backward: kernels_.mean_backward(run); break;
    }
  }

  PoolSpec spec_;
  PoolShape shape_;
  T least_;
  const TypedKernels<T>& kernels_;
  Axis width_, height_, depth_;
  std::vector<int64_t> offsets_;                // of all taps, from a window's corner
  int64_t first_inside_ = 0, last_inside_ = 0;  // windows along w that need no border
  bool overlaps_ = true;                        // whether two windows may share an element
  bool covered_ = false;                        // whether each element has a window, and only one
  int64_t step_ = 1, parts_ = 1;                // images of a chunk; chunks of an image
};

/// `least`: the maximum of no elements.
template <class T>
std::unique_ptr<VendorCall> prepared(const PoolSpec& spec, T least = std::numeric_limits<T>::lowest()) {
  if (spec.channels == 1 && plane_pool_pays(spec)) return prepare_plane_pool<T>(spec, least);
  const auto beside = [least](const PoolSpec& image) { return std::make_unique<Pool<T>>(image, least); };
  return spec.channels == 1 && spec.batch > 1 ? prepare_turned_pool(spec, beside) : beside(spec);
}

/// Images of Float16 or BFloat16, each as one of Float32 while it is computed.
class HalfPool final : public VendorCall {
 public:
  explicit HalfPool(const PoolSpec& spec)
      : type_(spec.type), batch_(spec.batch), counts_(image_counts(spec)),
        one_(prepared(of_one_image(spec), lowest(spec.type))) {
    const PoolShape s(spec);
    step_ = images_per_chunk(batch_, s.out.count() * s.kernel.count() * spec.channels, 2);
    chunks_ = spec.channels == 0 ? 0 : (batch_ + step_ - 1) / step_;
    floats_at_ = static_cast<size_t>(round_up(static_cast<int64_t>(one_->scratch_bytes_per_chunk()), 64));
    int64_t floats = 0;
    for (const int64_t count : counts_) floats += count;
    scratch_bytes_ = floats_at_ + static_cast<size_t>(floats) * sizeof(float);
  }

  const char* engine() const noexcept override { return one_->engine(); }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    for (int64_t n = chunk * step_; n < std::min(batch_, (chunk + 1) * step_); ++n) run_image(n, buffers, scratch);
  }

 private:
  static float lowest(DType type) { return type == DType::Float16 ? half_value(0xfbff) : bfloat_value(0xff7f); }

  static PoolSpec of_one_image(PoolSpec spec) {
    spec.type = DType::Float32;
    spec.batch = 1;
    return spec;
  }

  void run_image(int64_t n, const VendorBuffers& buffers, void* scratch) const {
    const void* const given[] = {buffers.first, buffers.second, buffers.third};
    auto* floats = reinterpret_cast<float*>(static_cast<char*>(scratch) + floats_at_);
    const float* wide[3] = {};
    for (size_t i = 0; i < std::size(given); ++i) {
      if (counts_[i] > 0) widen(type_, static_cast<const uint16_t*>(given[i]) + n * counts_[i], floats, counts_[i]);
      wide[i] = floats;
      floats += counts_[i];
    }
    VendorBuffers image;
    image.first = wide[0];
    image.second = wide[1];
    image.third = wide[2];
    image.result = floats;
    for (int64_t chunk = 0; chunk < one_->chunks(); ++chunk) one_->run_chunk(chunk, image, scratch);
    narrow(type_, floats, static_cast<uint16_t*>(buffers.result) + n * counts_[3], counts_[3]);
  }

  DType type_;
  int64_t batch_;
  std::array<int64_t, 4> counts_;
  std::unique_ptr<VendorCall> one_;
  int64_t step_ = 1;
  size_t floats_at_ = 0;  // in the scratch
};

std::unique_ptr<VendorCall> prepared_of_halves(const PoolSpec& spec) {
  const auto by_images = [](const PoolSpec& images) { return std::make_unique<HalfPool>(images); };
  const bool turns = spec.channels == 1 && spec.batch > 1 && !plane_pool_pays(spec);
  return turns ? prepare_turned_pool(spec, by_images) : by_images(spec);
}

}  // namespace

namespace {

/// Images one element wide stand in memory as ones that are one element high: engines go along the first dim.
PoolSpec turned_lines(PoolSpec spec) {
  if (spec.spatial < 2 || spec.in[0] != 1 || spec.out[0] != 1) return spec;
  for (int64_t* sizes : {spec.in, spec.out, spec.kernel, spec.stride, spec.pad_low, spec.dilation}) {
    std::swap(sizes[0], sizes[1]);
  }
  return spec;
}

}  // namespace

std::unique_ptr<VendorCall> prepare_pool(const PoolSpec& given) {
  const PoolSpec spec = turned_lines(given);
  if (spec.spatial < 1 || spec.spatial > 3) {
    throw Error(ErrorKind::argument, "pool: there are 1 to 3 spatial dims; got " + std::to_string(spec.spatial) +
                                         "; correct the call's spec");
  }
  if (spec.type == DType::Float32) return prepared<float>(spec);
  if (spec.type == DType::Float64) return prepared<double>(spec);
  if (is_float(spec.type)) return prepared_of_halves(spec);
  throw Error(ErrorKind::dtype, std::string("pool: images are of floats; got ") + to_string(spec.type) +
                                    "; convert them, for example with f32(x)");
}

}  // namespace rosin::engines
