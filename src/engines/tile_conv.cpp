// Convolution of images with few channels by the tile kernel. Images are CWHN, so one row of a kernel covers one run of
// width x channels neighbouring elements. Forward: a row of pixels is a product whose B columns (the runs) overlap.
// Gradient of the input: products are added into the rows of the padded image. Gradient of the weights: sums over
// pixels. Where the channels fill a vector badly, `group` neighbouring pixels are computed as one pixel with more
// channels, by a kernel row widened with zeros. Zeros times what is not finite are no zeros: an image that is not
// finite, or meets weights or gradients that are not in its padding, is computed window by window from the taps inside.
// Few images are cut into rows (conv_rows.hpp), each of which is a convolution here. Read after tile_kernel.hpp.
#include <algorithm>
#include <vector>

#include "engines/conv_rows.hpp"
#include "engines/conv_shape.hpp"
#include "engines/cuts.hpp"
#include "engines/epilogue.hpp"
#include "engines/gather_rows.hpp"
#include "engines/tile.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {

namespace {

constexpr int64_t largest_group = 4;
constexpr int64_t most_sums = 8;  // of a gradient by weights, which one thread adds up

struct Range {
  int64_t first, last;
  int64_t count() const { return std::max<int64_t>(0, last - first); }
};

/// What the three kinds share: sizes, padding, the packed order of weights.
template <class T> class TileConv : public VendorCall {
 public:
  explicit TileConv(const ConvSpec& spec)
      : spec_(spec), s_(spec), multiply_(tile_kernels().of<T>().multiply),
        joined_(spec.groups == 1 && spec.dilation[0] == 1) {
    padded_ = {s_.in.w + s_.pad_low.w + s_.pad_high.w, s_.in.h + s_.pad_low.h + s_.pad_high.h,
               s_.in.d + s_.pad_low.d + s_.pad_high.d};
    pads_ = padded_.count() != s_.in.count();
    if (spec.kind != ConvKind::backward_data) choose_group(tile_kernels().lanes<T>());
    row_taps_ = s_.kernel.w + (group_ - 1) * s_.stride.w;
    group_size_ = s_.kernel.d * s_.kernel.h * row_taps_ * s_.in_channels * s_.out_channels * group_;
    const int64_t per_image = s_.out.count() * s_.kernel.count() * s_.in_channels * spec.out_channels;
    image_step_ = images_per_chunk(spec.batch, per_image, sizeof(T) == sizeof(float) ? 30 : 20);
    if (spec.kind == ConvKind::backward_weights) {
      image_step_ = std::max(image_step_, (spec.batch + most_sums - 1) / most_sums);
    }
    chunks_ = (spec.batch + image_step_ - 1) / image_step_;
    if (pads_) scratch_bytes_ = static_cast<size_t>(padded_.count() * spec.in_channels) * sizeof(T);
  }

  const char* engine() const noexcept override { return "tile"; }

 protected:
  /// The number of pixels per group with the fewest vector operations per row; pixels at its end that make no group
  /// are computed one by one.
  void choose_group(int64_t lanes) {
    const auto cost_of = [&](int64_t group) {
      const int64_t vectors = (group * s_.out_channels + lanes - 1) / lanes;
      return vectors * (s_.kernel.w + (group - 1) * s_.stride.w);
    };
    int64_t least = INT64_MAX;
    for (int64_t group = 1; group <= std::min(joined_ ? largest_group : 1, s_.out.w); ++group) {
      const int64_t cost = s_.out.w / group * cost_of(group) + s_.out.w % group * cost_of(1);
      if (cost < least) {
        least = cost;
        group_ = group;
      }
    }
  }
  /// The first pixel of a row that belongs to no group.
  int64_t first_single() const { return s_.out.w / group_ * group_; }

  int64_t rows() const { return group_ * s_.out_channels; }  // of a packed forward kernel
  int64_t kernel_rows() const { return s_.kernel.d * s_.kernel.h; }
  /// Taps of one product: a whole kernel row where its runs are joined, else one tap at a time.
  int64_t steps_of_row() const { return joined_ ? 1 : s_.kernel.w; }

  /// Place of weight (kernel_row, w; in) of the first output channel for pixel `p` of a group, in the packed weights of
  /// one group of channels.
  int64_t packed_place(int64_t kernel_row, int64_t w, int64_t in, int64_t p) const {
    return ((kernel_row * row_taps_ + w + p * s_.stride.w) * s_.in_channels + in) * rows() + p * s_.out_channels;
  }
  /// Place of the same weight in the logical ones.
  int64_t logical_place(int64_t g, int64_t kernel_row, int64_t w, int64_t in) const {
    const int64_t taps = s_.kernel.count(), tap = kernel_row * s_.kernel.w + w;
    const int64_t filter = g * s_.out_channels * s_.in_channels + in;
    return filter * taps + (spec_.flipped ? taps - 1 - tap : tap);
  }
  /// Distance of the logical weights of one output channel from those of the next.
  int64_t filter_size() const { return s_.in_channels * s_.kernel.count(); }
  /// Calls visit(g, kernel_row, in) for the weights of a kernel row and all output channels.
  template <class Visit> void each_row(Visit visit) const {
    for (int64_t g = 0; g < s_.groups; ++g) {
      for (int64_t row = 0; row < kernel_rows(); ++row) {
        for (int64_t in = 0; in < s_.in_channels; ++in) visit(g, row, in);
      }
    }
  }
  /// Calls visit(g, kernel_row, w, in) for the weights of all output channels.
  template <class Visit> void each_line(Visit visit) const {
    each_row([&](int64_t g, int64_t row, int64_t in) {
      for (int64_t w = 0; w < s_.kernel.w; ++w) visit(g, row, w, in);
    });
  }

  int64_t pixel_offset(int64_t w, int64_t h, int64_t d) const {
    return ((d * padded_.h + h) * padded_.w + w) * spec_.in_channels;
  }
  /// Distance of a tap from its window's corner, in a padded image.
  int64_t tap_offset(int64_t kernel_row, int64_t w) const {
    const int64_t h = kernel_row % s_.kernel.h, d = kernel_row / s_.kernel.h;
    return pixel_offset(w * s_.dilation.w, h * s_.dilation.h, d * s_.dilation.d);
  }

  static bool finite(const T* x, int64_t count) { return tile_kernels().of<T>().finite(x, count); }

  /// The taps of window `out` that lie inside the image, in one dim.
  static Range taps_inside(int64_t out, int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) {
    const int64_t start = out * stride - pad;
    const int64_t first = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
    return {first, start >= in ? 0 : std::min(kernel, (in - 1 - start) / dilation + 1)};
  }
  /// The windows whose tap `tap` lies inside the image, in one dim.
  static Range windows_inside(int64_t tap, int64_t in, int64_t out, int64_t stride, int64_t dilation, int64_t pad) {
    const int64_t shift = tap * dilation - pad;  // of the tap from window 0's place in the image
    const int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    return {first, shift >= in ? 0 : std::min(out, (in - 1 - shift) / stride + 1)};
  }

  /// Copies rows between an image (channels, w, h, d) and its padded form; `padded` receives unless `crop`.
  void copy_rows(T* padded, const T* x, T* crop) const {
    const int64_t length = s_.in.w * spec_.in_channels;
    for (int64_t row = 0; row < s_.in.h * s_.in.d; ++row) {
      T* inner = padded + pixel_offset(s_.pad_low.w, row % s_.in.h + s_.pad_low.h, row / s_.in.h + s_.pad_low.d);
      if (crop != nullptr) {
        std::copy(inner, inner + length, crop + row * length);
      } else {
        std::copy(x + row * length, x + (row + 1) * length, inner);
      }
    }
  }

  int64_t image_size() const { return s_.in.count() * spec_.in_channels; }
  int64_t result_size() const { return s_.out.count() * spec_.out_channels; }
  int64_t last_image(int64_t chunk) const { return std::min(spec_.batch, (chunk + 1) * image_step_); }

  /// Image `index` of x, padded in scratch where the convolution pads.
  const T* image(const void* x, int64_t index, void* scratch) const {
    const T* own = static_cast<const T*>(x) + index * image_size();
    if (!pads_) return own;
    T* padded = static_cast<T*>(scratch);
    std::fill(padded, padded + padded_.count() * spec_.in_channels, T(0));
    copy_rows(padded, own, nullptr);
    return padded;
  }

  ConvSpec spec_;
  ConvShape s_;
  void (*multiply_)(const TileProduct<T>&);
  bool joined_;
  Extent padded_;
  bool pads_ = false;
  int64_t group_ = 1;       // pixels computed as one
  int64_t row_taps_ = 1;    // taps of a kernel row, widened for the group
  int64_t group_size_ = 0;  // packed weights of one group of channels
  int64_t image_step_ = 1;
};

template <class T> class TileForward final : public TileConv<T> {
  using Base = TileConv<T>;
  using Base::group_, Base::group_size_, Base::joined_, Base::s_, Base::spec_;

 public:
  explicit TileForward(const ConvSpec& spec) : Base(spec) {
    this->has_begin_ = true;
    this->workspace_bytes_ = static_cast<size_t>(finite_at() + 1) * sizeof(T);
    for (int64_t w = 0; w < s_.kernel.w; ++w) tap_offsets_.push_back(this->tap_offset(0, w));
    for (int64_t row = 0; row < this->kernel_rows(); ++row) {
      for (int64_t w = 0; w < this->steps_of_row(); ++w) offsets_.push_back(this->tap_offset(row, w));
    }
  }

  std::optional<MatmulPart> part_of(int64_t chunk) const override {
    return images_part(spec_, chunk * this->image_step_, this->last_image(chunk));
  }

  /// Packs the weights, and the bias once for each pixel of a group; notes whether the weights are finite.
  void begin(const VendorBuffers& buffers) const override {
    T* packed = static_cast<T*>(buffers.workspace);
    const T* w = static_cast<const T*>(buffers.second);
    packed[finite_at()] = this->finite(w, s_.kernel.count() * s_.in_channels * spec_.out_channels) ? T(1) : T(0);
    if (group_ > 1) std::fill(packed, packed + group_size_ * s_.groups, T(0));
    const int64_t first = spec_.flipped ? s_.kernel.w - 1 : 0;  // tap of a kernel row, in the order of the logical ones
    const int64_t step = (spec_.flipped ? -1 : 1) * s_.in_channels * this->rows();
    this->each_row([&](int64_t g, int64_t row, int64_t in) {
      const T* from = w + this->logical_place(g, row, first, in);
      for (int64_t p = 0; p < group_; ++p) {
        T* to = packed + g * group_size_ + this->packed_place(row, first, in, p);
        gather_rows(from, this->filter_size(), to, step, s_.out_channels, s_.kernel.w);
      }
    });
    if (!spec_.epilogue.bias) return;
    const T* bias = static_cast<const T*>(buffers.third);
    T* to = packed + group_size_ * s_.groups;
    for (int64_t g = 0; g < s_.groups; ++g) {
      const T* from = bias + g * s_.out_channels;
      for (int64_t p = 0; p < group_; ++p) to = std::copy(from, from + s_.out_channels, to);
    }
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const T* packed = static_cast<const T*>(buffers.workspace);
    const T* bias = !spec_.epilogue.bias ? nullptr : packed + group_size_ * s_.groups;
    const bool inside = this->pads_ && packed[finite_at()] == T(0);
    for (int64_t n = chunk * this->image_step_; n < this->last_image(chunk); ++n) {
      const T* x = this->image(buffers.first, n, scratch);
      T* y = static_cast<T*>(buffers.result) + n * this->result_size();
      const bool by_window =
          inside || (group_ > 1 &&
                     !this->finite(static_cast<const T*>(buffers.first) + n * this->image_size(), this->image_size()));
      for (int64_t g = 0; g < s_.groups; ++g) {
        const T* own_bias = bias == nullptr ? nullptr : bias + g * this->rows();
        const auto compute = by_window ? &TileForward::each_window : &TileForward::slide;
        (this->*compute)(packed + g * group_size_, x + g * s_.in_channels, own_bias, y + g * s_.out_channels);
      }
    }
  }

 private:
  /// Place in the workspace, behind weights and bias, of 1 where the weights are finite, else 0.
  int64_t finite_at() const { return s_.groups * (group_size_ + this->rows()); }

  /// The same sums in the same order, but of no products that the definition does not have.
  void each_window(const T* packed, const T* x, const T* bias, T* y) const {
    for (int64_t d = 0; d < s_.out.d; ++d) {
      for (int64_t h = 0; h < s_.out.h; ++h) {
        for (int64_t w = 0; w < s_.out.w; ++w) {
          T* c = y + ((d * s_.out.h + h) * s_.out.w + w) * spec_.out_channels;
          one_window(packed, x, {w, h, d}, c);
          for (int64_t out = 0; out < s_.out_channels; ++out) {
            if (bias != nullptr) c[out] += bias[out];
            if (spec_.epilogue.activation == Activation::relu && c[out] < T(0)) c[out] = T(0);
          }
        }
      }
    }
  }

  void one_window(const T* packed, const T* x, const Extent& at, T* c) const {
    const Range w = this->taps_inside(at.w, s_.in.w, s_.kernel.w, s_.stride.w, s_.dilation.w, s_.pad_low.w);
    const Range h = this->taps_inside(at.h, s_.in.h, s_.kernel.h, s_.stride.h, s_.dilation.h, s_.pad_low.h);
    const Range d = this->taps_inside(at.d, s_.in.d, s_.kernel.d, s_.stride.d, s_.dilation.d, s_.pad_low.d);
    const T* corner = x + this->pixel_offset(at.w * s_.stride.w, at.h * s_.stride.h, at.d * s_.stride.d);
    std::fill_n(c, s_.out_channels, T(0));
    TileProduct<T> product;
    product.rows = s_.out_channels;
    product.columns = product.b_inner = 1;
    product.a_inner = this->rows();
    product.inner = s_.in_channels;
    product.a_outer = product.inner * product.a_inner;
    product.outer = w.count();
    product.b_offsets = tap_offsets_.data() + w.first;
    product.c = c;
    product.accumulate = true;
    for (int64_t kd = d.first; kd < d.last; ++kd) {
      for (int64_t kh = h.first; kh < h.last; ++kh) {
        const int64_t row = kd * s_.kernel.h + kh;
        product.a = packed + this->packed_place(row, w.first, 0, 0);
        product.b = corner + this->tap_offset(row, 0);
        if (product.outer > 0) this->multiply_(product);
      }
    }
  }

  void slide(const T* packed, const T* x, const T* bias, T* y) const {
    TileProduct<T> product;
    product.a = packed;
    product.rows = product.a_inner = this->rows();
    product.outer = static_cast<int64_t>(offsets_.size());
    product.inner = (joined_ ? this->row_taps_ : 1) * s_.in_channels;
    product.a_outer = product.inner * product.a_inner;
    product.b_offsets = offsets_.data();
    product.b_inner = 1;
    product.b_column = group_ * s_.stride.w * spec_.in_channels;
    product.c_column = group_ * spec_.out_channels;
    product.columns = s_.out.w / group_;
    product.bias = bias;
    product.relu = spec_.epilogue.activation == Activation::relu;
    for (int64_t d = 0; d < s_.out.d; ++d) {
      for (int64_t h = 0; h < s_.out.h; ++h) {
        product.b = x + this->pixel_offset(0, h * s_.stride.h, d * s_.stride.d);
        product.c = y + (d * s_.out.h + h) * s_.out.w * spec_.out_channels;
        this->multiply_(product);
      }
    }
    slide_down(product, x, y);
  }

  /// Pixels that belong to no group, a column of them at a time: the first pixel of a group's weights.
  void slide_down(TileProduct<T> product, const T* x, T* y) const {
    product.rows = s_.out_channels;
    product.inner = (joined_ ? s_.kernel.w : 1) * s_.in_channels;
    product.b_column = this->pixel_offset(0, s_.stride.h, 0);
    product.c_column = s_.out.w * spec_.out_channels;
    product.columns = s_.out.h;
    for (int64_t d = 0; d < s_.out.d; ++d) {
      for (int64_t w = this->first_single(); w < s_.out.w; ++w) {
        product.b = x + this->pixel_offset(w * s_.stride.w, 0, d * s_.stride.d);
        product.c = y + (d * s_.out.h * s_.out.w + w) * spec_.out_channels;
        this->multiply_(product);
      }
    }
  }

  std::vector<int64_t> offsets_, tap_offsets_;  // of products; of the taps of one kernel row
};

/// dx: for each column of pixels and each kernel row, (kernel row x channels, pixels of the column) is added in place.
template <class T> class TileBackwardData final : public TileConv<T> {
  using Base = TileConv<T>;
  using Base::group_size_, Base::joined_, Base::s_, Base::spec_;

 public:
  explicit TileBackwardData(const ConvSpec& spec) : Base(spec) {
    this->has_begin_ = true;
    this->workspace_bytes_ = static_cast<size_t>(s_.groups * group_size_) * sizeof(T);
  }

  /// Packs the weights so that, for each kernel row and output channel, (in, w) are neighbours; one tap where not
  /// joined.
  void begin(const VendorBuffers& buffers) const override {
    T* packed = static_cast<T*>(buffers.workspace);
    const T* w = static_cast<const T*>(buffers.second);
    const int64_t kernel_w = s_.kernel.w, steps = this->steps_of_row(), run = kernel_w / steps * s_.in_channels;
    this->each_line([&](int64_t g, int64_t row, int64_t tap, int64_t in) {
      const int64_t step = joined_ ? row : row * kernel_w + tap;
      T* to = packed + g * group_size_ + step * s_.out_channels * run + (joined_ ? tap * s_.in_channels : 0) + in;
      const T* from = w + this->logical_place(g, row, tap, in);
      for (int64_t out = 0; out < s_.out_channels; ++out) to[out * run] = from[out * this->filter_size()];
    });
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const int64_t size = this->padded_.count() * spec_.in_channels;
    for (int64_t n = chunk * this->image_step_; n < this->last_image(chunk); ++n) {
      T* dx = static_cast<T*>(buffers.result) + n * this->image_size();
      T* target = this->pads_ ? static_cast<T*>(scratch) : dx;
      std::fill(target, target + size, T(0));
      const T* dy = static_cast<const T*>(buffers.first) + n * this->result_size();
      for (int64_t g = 0; g < s_.groups; ++g) {
        scatter(static_cast<const T*>(buffers.workspace) + g * group_size_, dy + g * s_.out_channels,
                target + g * s_.in_channels);
      }
      if (this->pads_) this->copy_rows(target, nullptr, dx);
    }
  }

 private:
  void scatter(const T* packed, const T* dy, T* dx) const {
    TileProduct<T> product;
    product.rows = product.a_inner = (joined_ ? s_.kernel.w : 1) * s_.in_channels;
    product.inner = s_.out_channels;
    product.b_offsets = &no_offset;
    product.b_inner = 1;
    product.b_column = s_.out.w * spec_.out_channels;
    product.c_column = s_.stride.h * this->padded_.w * spec_.in_channels;
    product.columns = s_.out.h;
    product.accumulate = true;
    for (int64_t d = 0; d < s_.out.d; ++d) {
      for (int64_t w = 0; w < s_.out.w; ++w) {
        product.b = dy + (d * s_.out.h * s_.out.w + w) * spec_.out_channels;
        product.a = packed;
        T* corner = dx + this->pixel_offset(w * s_.stride.w, 0, d * s_.stride.d);
        for (int64_t row = 0; row < this->kernel_rows(); ++row) {
          for (int64_t tap = 0; tap < this->steps_of_row(); ++tap) {
            product.c = corner + this->tap_offset(row, tap);
            this->multiply_(product);
            product.a += product.inner * product.a_inner;
          }
        }
      }
    }
  }

  static constexpr int64_t no_offset = 0;
};

/// dw: each chunk sums its images into a packed partial gradient; finish adds the partials in order. A partial holds,
/// for each kernel row, (out x group, run) or, where that fills vectors better, (run, out): `turned_`.
template <class T> class TileBackwardWeights final : public TileConv<T> {
  using Base = TileConv<T>;
  using Base::group_, Base::group_size_, Base::joined_, Base::s_, Base::spec_;

 public:
  explicit TileBackwardWeights(const ConvSpec& spec) : Base(spec) {
    const int64_t steps = this->kernel_rows() * this->steps_of_row(), run = turned_run();
    const int64_t lanes = tile_kernels().lanes<T>();
    const auto vectors = [&](int64_t rows) { return (rows + lanes - 1) / lanes; };
    turned_ = vectors(run) * s_.out_channels * group_ < vectors(this->rows()) * straight_run();
    if (turned_) {
      group_ = 1;
      group_size_ = steps * run * s_.out_channels;
    }
    this->has_finish_ = true;
    this->workspace_bytes_ = static_cast<size_t>(group_size_ * s_.groups * this->chunks_) * sizeof(T);
    for (int64_t h = 0; h < s_.out.h; ++h) {
      offsets_.push_back(turned_ ? h * s_.out.w * spec_.out_channels : this->pixel_offset(0, h * s_.stride.h, 0));
    }
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const int64_t first = chunk * this->image_step_;
    T* partial = static_cast<T*>(buffers.workspace) + chunk * group_size_ * s_.groups;
    for (int64_t n = first; n < this->last_image(chunk); ++n) {
      const T* x = this->image(buffers.first, n, scratch);
      const T* dy = static_cast<const T*>(buffers.second) + n * this->result_size();
      if (this->pads_ && !this->finite(dy, this->result_size())) {
        sum_inside(x, dy, partial, n != first);
        continue;
      }
      for (int64_t g = 0; g < s_.groups; ++g) {
        for (int64_t d = 0; d < s_.out.d; ++d) {
          sum_pixels(x + g * s_.in_channels + this->pixel_offset(0, 0, d * s_.stride.d),
                     dy + g * s_.out_channels + d * s_.out.h * s_.out.w * spec_.out_channels, partial + g * group_size_,
                     n != first || d != 0);
        }
      }
    }
  }

  void finish(const VendorBuffers& buffers) const override {
    T* sums = static_cast<T*>(buffers.workspace);
    const int64_t size = group_size_ * s_.groups;
    for (int64_t chunk = 1; chunk < this->chunks_; ++chunk) {
      const T* partial = sums + chunk * size;
      for (int64_t i = 0; i < size; ++i) sums[i] += partial[i];
    }
    T* dw = static_cast<T*>(buffers.result);
    const int64_t distance = turned_ ? turned_run() : 1;
    this->each_line([&](int64_t g, int64_t row, int64_t tap, int64_t in) {
      T* to = dw + this->logical_place(g, row, tap, in);
      for (int64_t out = 0; out < s_.out_channels; ++out) {
        T sum = T(0);
        for (int64_t p = 0; p < group_; ++p) {
          sum += sums[g * group_size_ + partial_place(row, tap, in, p) + out * distance];
        }
        to[out * this->filter_size()] = sum;
      }
    });
  }

 private:
  /// Neighbouring elements of x that one product takes: taps x channels.
  int64_t turned_run() const { return (joined_ ? s_.kernel.w : 1) * s_.in_channels; }
  int64_t straight_run() const { return (joined_ ? this->row_taps_ : 1) * s_.in_channels; }

  /// Of the first output channel.
  int64_t partial_place(int64_t row, int64_t tap, int64_t in, int64_t p) const {
    if (!turned_) return this->packed_place(row, tap, in, p);
    const int64_t step = joined_ ? row : row * s_.kernel.w + tap;
    return step * s_.out_channels * turned_run() + (joined_ ? tap * s_.in_channels : 0) + in;
  }

  /// One depth of pixels; x and dy are a's and b's operands, or b's and a's where turned.
  void sum_pixels(const T* x, const T* dy, T* partial, bool accumulate) const {
    const int64_t x_step = group_ * s_.stride.w * spec_.in_channels, dy_step = group_ * spec_.out_channels;
    TileProduct<T> product;
    product.a_inner = turned_ ? x_step : dy_step;
    product.a_outer = turned_ ? this->pixel_offset(0, s_.stride.h, 0) : s_.out.w * spec_.out_channels;
    product.outer = s_.out.h;
    product.inner = s_.out.w / group_;
    product.b_offsets = offsets_.data();
    product.b_inner = turned_ ? dy_step : x_step;
    product.b_column = 1;
    product.c = partial;
    product.rows = product.c_column = turned_ ? turned_run() : this->rows();
    product.columns = turned_ ? s_.out_channels : straight_run();
    product.accumulate = accumulate;
    for (int64_t row = 0; row < this->kernel_rows(); ++row) {
      for (int64_t tap = 0; tap < this->steps_of_row(); ++tap) {
        const T* corner = x + this->tap_offset(row, tap);
        product.a = turned_ ? corner : dy;
        product.b = turned_ ? dy : corner;
        this->multiply_(product);
        if (this->first_single() < s_.out.w) add_singles(product, corner, dy);
        product.c += product.columns * product.c_column;
      }
    }
  }

  /// The same for the pixels that belong to no group, into the weights of a group's first pixel. There are none where
  /// turned.
  void add_singles(TileProduct<T> product, const T* corner, const T* dy) const {
    const int64_t w = this->first_single();
    product.a = dy + w * spec_.out_channels;
    product.a_inner = spec_.out_channels;
    product.b = corner + w * s_.stride.w * spec_.in_channels;
    product.b_inner = s_.stride.w * spec_.in_channels;
    product.inner = s_.out.w - w;
    product.rows = s_.out_channels;
    product.columns = turned_run();
    product.accumulate = true;
    this->multiply_(product);
  }

  /// One image, tap by tap: only the windows whose tap lies inside it.
  void sum_inside(const T* x, const T* dy, T* partial, bool accumulate) const {
    if (!accumulate) std::fill_n(partial, group_size_ * s_.groups, T(0));
    for (int64_t g = 0; g < s_.groups; ++g) {
      for (int64_t row = 0; row < this->kernel_rows(); ++row) {
        for (int64_t tap = 0; tap < s_.kernel.w; ++tap) {
          sum_tap(x + g * s_.in_channels, dy + g * s_.out_channels, row, tap, partial + g * group_size_);
        }
      }
    }
  }

  void sum_tap(const T* x, const T* dy, int64_t row, int64_t tap, T* partial) const {
    const int64_t kh = row % s_.kernel.h, kd = row / s_.kernel.h;
    const Range w = this->windows_inside(tap, s_.in.w, s_.out.w, s_.stride.w, s_.dilation.w, s_.pad_low.w);
    const Range h = this->windows_inside(kh, s_.in.h, s_.out.h, s_.stride.h, s_.dilation.h, s_.pad_low.h);
    const Range d = this->windows_inside(kd, s_.in.d, s_.out.d, s_.stride.d, s_.dilation.d, s_.pad_low.d);
    const int64_t x_step = s_.stride.w * spec_.in_channels, dy_step = spec_.out_channels;
    TileProduct<T> product;
    product.a_inner = turned_ ? x_step : dy_step;
    product.a_outer = turned_ ? this->pixel_offset(0, s_.stride.h, 0) : s_.out.w * spec_.out_channels;
    product.outer = h.count();
    product.inner = w.count();
    product.b_offsets = offsets_.data();
    product.b_inner = turned_ ? dy_step : x_step;
    product.b_column = 1;
    product.c = partial + partial_place(row, tap, 0, 0);
    product.c_column = turned_ ? turned_run() : this->rows();
    product.rows = turned_ ? s_.in_channels : s_.out_channels;
    product.columns = turned_ ? s_.out_channels : s_.in_channels;
    product.accumulate = true;
    for (int64_t at = d.first; at < d.last && product.outer * product.inner > 0; ++at) {
      const T* from = x + this->pixel_offset(w.first * s_.stride.w, h.first * s_.stride.h, at * s_.stride.d) +
                      this->tap_offset(row, tap);
      const T* by = dy + ((at * s_.out.h + h.first) * s_.out.w + w.first) * spec_.out_channels;
      product.a = turned_ ? from : by;
      product.b = turned_ ? by : from;
      this->multiply_(product);
    }
  }

  bool turned_ = false;
  std::vector<int64_t> offsets_;  // of b's rows of pixels
};

template <class T> std::unique_ptr<VendorCall> prepare_typed(const ConvSpec& spec) {
  if (spec.kind == ConvKind::forward) return std::make_unique<TileForward<T>>(spec);
  if (spec.kind == ConvKind::backward_data) return std::make_unique<TileBackwardData<T>>(spec);
  return std::make_unique<TileBackwardWeights<T>>(spec);
}

}  // namespace

std::unique_ptr<VendorCall> prepare_tile_conv(const ConvSpec& spec) {
  require_tile_type(spec.type, "conv");
  return with_epilogue(spec, spec.kind == ConvKind::forward, [](const ConvSpec& inner) {
    return by_rows(inner, inner.type == DType::Float64 ? &prepare_typed<double> : &prepare_typed<float>);
  });
}

}  // namespace rosin::engines
