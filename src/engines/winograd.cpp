// Convolution by kernels of 3x3 pixels at every pixel: F(2x2, 3x3) of Winograd's minimal filtering, with 16
// multiplications for each square of 2x2 pixels and pair of channels where the definition has 36. Images, weights and
// gradients are turned into 16 arrays (winograd_body.hpp); what is summed over channels (or, for the gradient by the
// weights, over squares) are 16 products of matrices, by the tile kernel. Sums are as exact as the definition's up to a
// small factor (winograd_test.cpp). Source: Lavin, Gray: Fast Algorithms for Convolutional Neural Networks (2015).
// Images whose values are not finite spoil their whole square: where a result is not finite, the call is not sure().
#include "engines/winograd.hpp"

#include <algorithm>
#include <vector>

#include <rosin/error.hpp>

#include "base/workers.hpp"
#include "engines/conv_shape.hpp"
#include "engines/cuts.hpp"
#include "engines/epilogue.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {

namespace {

constexpr int64_t taps = 9, arrays = 16;
constexpr int64_t most_rows = 32, block = 8;  // channels whose weights are turned together
constexpr int64_t no_offset = 0;
constexpr int64_t full_tiles = 12;  // squares of which the tile kernels take all they can side by side

/// Images in CWHN that are read or written square by square.
struct Plane {
  int64_t w, h, channels;
  int64_t count() const { return w * h * channels; }
};

/// The squares of 2x2 pixels of results, row by row, and the pixels of images under them.
struct Squares {
  Plane image, result;
  int64_t pad_w, pad_h, batch;
  int64_t wide = (result.w + 1) / 2, high = (result.h + 1) / 2;  // squares of one image

  int64_t rows() const { return batch * high; }
  int64_t count() const { return rows() * wide; }
  /// The first pixel of a row of squares, among those of all results.
  int64_t first_pixel(int64_t row) const {
    return (row / high * result.h + std::min(2 * (row % high), result.h)) * result.w;
  }

  /// The 4x4 pixels of `images` under a square; `nothing` where they are padding.
  void image_pixels(const float* images, const float* nothing, int64_t square, const float** pixels) const {
    const int64_t row = square / wide, left = square % wide * 2 - pad_w, top = row % high * 2 - pad_h;
    const float* base = images + row / high * image.count();
    for (int64_t y = top; y < top + 4; ++y) {
      for (int64_t x = left; x < left + 4; ++x) {
        const bool inside = y >= 0 && y < image.h && x >= 0 && x < image.w;
        *pixels++ = inside ? base + (y * image.w + x) * image.channels : nothing;
      }
    }
  }

  /// The 2x2 pixels of a square of `results`; `nothing` where there are none.
  template <class T> void result_pixels(T* results, T* nothing, int64_t square, T** pixels) const {
    const int64_t row = square / wide, left = square % wide * 2, top = row % high * 2;
    T* base = results + row / high * result.count();
    for (int64_t y = top; y < top + 2; ++y) {
      for (int64_t x = left; x < left + 2; ++x) {
        *pixels++ = y < result.h && x < result.w ? base + (y * result.w + x) * result.channels : nothing;
      }
    }
  }
};

Squares squares_of(const ConvSpec& spec) {
  const Plane x{spec.in[0], spec.in[1], spec.in_channels}, y{spec.out[0], spec.out[1], spec.out_channels};
  // The gradient by the image is a convolution of the gradient, with kernels that are turned round.
  if (spec.kind == ConvKind::backward_data) return {y, x, 2 - spec.pad_low[0], 2 - spec.pad_low[1], spec.batch};
  return {x, y, spec.pad_low[0], spec.pad_low[1], spec.batch};
}

/// Elements from one square's channels to the next's: not a power of two, whose lines would share their places in the
/// caches.
int64_t pitch_of(int64_t channels) { return round_up(channels, 16) + 16; }
int64_t step_of(int64_t elements) { return round_up(elements, 16) + 48; }  // from one array to the next, likewise

/// Weights in memory: (3, 3, in, out).
class Filters {
 public:
  explicit Filters(const ConvSpec& spec)
      : in_(spec.in_channels), reversed_(spec.flipped != (spec.kind == ConvKind::backward_data)) {}

  /// visit(place, i, row) for pairs of channels c + i and first + row, in the order of memory.
  template <class Visit>
  void each(bool by_data, int64_t c, int64_t count, int64_t first, int64_t rows, Visit visit) const {
    for (int64_t outer = 0; outer < (by_data ? count : rows); ++outer) {
      for (int64_t inner = 0; inner < (by_data ? rows : count); ++inner) {
        if (by_data) visit(((c + outer) * in_ + first + inner) * taps, outer, inner);
        else visit(((first + outer) * in_ + c + inner) * taps, inner, outer);
      }
    }
  }
  int64_t tap(int64_t i) const { return reversed_ ? taps - 1 - i : i; }

 private:
  int64_t in_;
  bool reversed_;
};

/// Forward, and the gradient by the image.
class WinogradConv final : public VendorCall {
 public:
  explicit WinogradConv(const ConvSpec& spec)
      : filters_(spec), squares_(squares_of(spec)), by_data_(spec.kind == ConvKind::backward_data),
        panel_(tile_kernels().row_vectors * tile_kernels().lanes<float>()),
        nothing_(static_cast<size_t>(squares_.image.channels), 0.0f) {
    const int64_t in = squares_.image.channels, out = squares_.result.channels;
    panels_ = (out + panel_ - 1) / panel_;
    const int64_t wanted = worthwhile_chunks(squares_.count() * arrays * in * out / products_per_microsecond);
    const int64_t least_rows = (least_together + squares_.wide - 1) / squares_.wide;
    rows_of_chunk_ = std::max(least_rows, (squares_.rows() + wanted - 1) / wanted);
    chunks_ = (squares_.rows() + rows_of_chunk_ - 1) / rows_of_chunk_;
    together_ = std::min(squares_together(in, out), rows_of_chunk_ * squares_.wide);
    scratch_bytes_ = static_cast<size_t>(arrays * together_ * (pitch_of(in) + pitch_of(out))) * sizeof(float);
    array_step_ = step_of(panels_ * panel_ * in);
    sure_at_ = static_cast<size_t>(arrays * array_step_) * sizeof(float);
    workspace_bytes_ = sure_at_ + static_cast<size_t>(chunks_);
    has_begin_ = true;
  }

  const char* engine() const noexcept override { return "winograd"; }
  size_t bytes() const noexcept override { return sizeof(*this) + nothing_.capacity() * sizeof(float); }

  std::optional<MatmulPart> part_of(int64_t chunk) const override {
    const int64_t last = std::min(squares_.rows(), (chunk + 1) * rows_of_chunk_);
    return MatmulPart{
        0, 1, squares_.first_pixel(chunk * rows_of_chunk_), squares_.first_pixel(last), 0, squares_.result.channels};
  }

  void begin(const VendorBuffers& buffers) const override {
    const float* weights = static_cast<const float*>(buffers.second);
    float* turned = static_cast<float*>(buffers.workspace);
    parallel_for(panels_, [&](int64_t panel) { turn_weights(weights, turned, panel); });
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const int64_t first = chunk * rows_of_chunk_ * squares_.wide;
    const int64_t last = std::min(squares_.count(), first + rows_of_chunk_ * squares_.wide);
    bool sure = true;
    for (int64_t square = first; square < last; square += together_) {
      sure = run_squares(square, std::min(together_, last - square), buffers, static_cast<float*>(scratch)) && sure;
    }
    static_cast<char*>(buffers.workspace)[sure_at_ + static_cast<size_t>(chunk)] = sure;
  }

  bool sure(const VendorBuffers& buffers) const override {
    const char* chunks = static_cast<const char*>(buffers.workspace) + sure_at_;
    return std::all_of(chunks, chunks + chunks_, [](char sure) { return sure != 0; });
  }

 private:
  static constexpr int64_t products_per_microsecond = 30'000;

  /// Squares that are computed together at least: weights, of which many do not fit the caches, are read for each.
  static constexpr int64_t least_together = 60;
  /// So many that their arrays stay in the second cache.
  static int64_t squares_together(int64_t in, int64_t out) {
    return std::clamp<int64_t>(8192 / (in + out) / full_tiles * full_tiles, least_together, 192);
  }

  /// The weights of one panel of the result's channels: (panel, in) of each array.
  void turn_weights(const float* weights, float* turned, int64_t panel) const {
    const int64_t in = squares_.image.channels, first = panel * panel_;
    const int64_t rows = std::min(panel_, squares_.result.channels - first);
    float some[block * taps * most_rows];
    for (int64_t c = 0; c < in; c += block) {
      const int64_t count = std::min(block, in - c);
      filters_.each(by_data_, c, count, first, rows, [&](int64_t place, int64_t i, int64_t row) {
        for (int64_t tap = 0; tap < taps; ++tap) {
          some[(i * taps + tap) * rows + row] = weights[place + filters_.tap(tap)];
        }
      });
      for (int64_t i = 0; i < count; ++i) {
        float* to = turned + (panel * in + c + i) * panel_;
        tile_kernels().winograd.weights(some + i * taps * rows, rows, to, array_step_);
      }
    }
  }

  bool run_squares(int64_t first, int64_t count, const VendorBuffers& buffers, float* scratch) const {
    const WinogradKernels& kernels = tile_kernels().winograd;
    const int64_t in = pitch_of(squares_.image.channels), out = pitch_of(squares_.result.channels);
    float* images = scratch;
    float* sums = scratch + arrays * together_ * in;
    for (int64_t i = 0; i < count; ++i) {
      const float* pixels[arrays];
      squares_.image_pixels(static_cast<const float*>(buffers.first), nothing_.data(), first + i, pixels);
      for (int row = 0; row < 4; ++row) {
        float* to = images + (4 * row * together_ + i) * in;
        kernels.image_row(row, pixels, squares_.image.channels, to, together_ * in);
      }
    }
    for (int64_t array = 0; array < arrays; ++array) {
      multiply(array, count, static_cast<const float*>(buffers.workspace), images + array * together_ * in,
               sums + array * together_ * out);
    }
    bool sure = true;
    for (int64_t i = 0; i < count; ++i) {
      float* pixels[4];
      squares_.result_pixels<float>(static_cast<float*>(buffers.result), nullptr, first + i, pixels);
      sure = kernels.result(sums + i * out, together_ * out, squares_.result.channels, pixels) && sure;
    }
    return sure;
  }

  /// Sums over the image's channels.
  void multiply(int64_t array, int64_t count, const float* weights, const float* images, float* sums) const {
    const int64_t in = squares_.image.channels;
    TileProduct<float> product;
    product.a_inner = panel_;
    product.b = images;
    product.b_offsets = &no_offset;
    product.b_inner = 1;
    product.b_column = pitch_of(in);
    product.c_column = pitch_of(squares_.result.channels);
    product.columns = count;
    product.inner = in;
    for (int64_t panel = 0; panel < panels_; ++panel) {
      product.a = weights + array * array_step_ + panel * in * panel_;
      product.c = sums + panel * panel_;
      product.rows = std::min(panel_, squares_.result.channels - panel * panel_);
      tile_kernels().floats.multiply(product);
    }
  }

  Filters filters_;
  Squares squares_;
  bool by_data_;
  int64_t panel_, panels_ = 0;  // channels of the result that the tile kernel computes side by side
  int64_t array_step_ = 0;      // from one array of weights to the next
  int64_t rows_of_chunk_ = 1;   // of squares
  int64_t together_ = 1;        // squares
  size_t sure_at_ = 0;          // in the workspace, behind the weights: whether each chunk is sure
  std::vector<float> nothing_;  // a pixel of the padding
};

/// The gradient by the weights: each chunk makes one row of four arrays, of all squares in order.
class WinogradWeights final : public VendorCall {
 public:
  explicit WinogradWeights(const ConvSpec& spec)
      : filters_(spec), squares_(squares_of(spec)),
        nothing_(static_cast<size_t>(std::max(spec.in_channels, spec.out_channels)), 0.0f) {
    const int64_t in = squares_.image.channels, out = squares_.result.channels;
    chunks_ = 4;
    together_ = std::min<int64_t>(squares_together, squares_.count());
    scratch_bytes_ = static_cast<size_t>(4 * together_ * (pitch_of(in) + pitch_of(out))) * sizeof(float);
    array_step_ = step_of(in * out);
    workspace_bytes_ = static_cast<size_t>(arrays * array_step_) * sizeof(float);
    has_finish_ = true;
  }

  const char* engine() const noexcept override { return "winograd"; }
  size_t bytes() const noexcept override { return sizeof(*this) + nothing_.capacity() * sizeof(float); }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    for (int64_t square = 0; square < squares_.count(); square += together_) {
      const int64_t count = std::min(together_, squares_.count() - square);
      add_squares(static_cast<int>(chunk), square, count, buffers, static_cast<float*>(scratch));
    }
  }

  void finish(const VendorBuffers& buffers) const override {
    const float* sums = static_cast<const float*>(buffers.workspace);
    float* result = static_cast<float*>(buffers.result);
    const int64_t in = squares_.image.channels, out = squares_.result.channels;
    parallel_for((in + block - 1) / block, [&](int64_t piece) {
      for (int64_t o = 0; o < out; o += most_rows) {
        write_weights(sums, piece * block, std::min(block, in - piece * block), o, std::min(most_rows, out - o),
                      result);
      }
    });
  }

 private:
  static constexpr int64_t squares_together = 96;

  /// The gradient of the weights from `count` image channels from c on to `rows` result channels from o on.
  void write_weights(const float* sums, int64_t c, int64_t count, int64_t o, int64_t rows, float* result) const {
    float some[block * taps * most_rows];
    for (int64_t i = 0; i < count; ++i) {
      const float* from = sums + (c + i) * squares_.result.channels + o;
      tile_kernels().winograd.weights_gradient(from, array_step_, rows, some + i * taps * rows);
    }
    filters_.each(false, c, count, o, rows, [&](int64_t place, int64_t i, int64_t row) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        result[place + filters_.tap(tap)] = some[(i * taps + tap) * rows + row];
      }
    });
  }

  void add_squares(int row, int64_t first, int64_t count, const VendorBuffers& buffers, float* scratch) const {
    const WinogradKernels& kernels = tile_kernels().winograd;
    const int64_t in = pitch_of(squares_.image.channels), out = pitch_of(squares_.result.channels);
    float* images = scratch;
    float* gradients = scratch + 4 * together_ * in;
    for (int64_t i = 0; i < count; ++i) {
      const float* pixels[arrays];
      squares_.image_pixels(static_cast<const float*>(buffers.first), nothing_.data(), first + i, pixels);
      kernels.image_row(row, pixels, squares_.image.channels, images + i * in, together_ * in);
      squares_.result_pixels(static_cast<const float*>(buffers.second), nothing_.data(), first + i, pixels);
      kernels.gradient_row(row, pixels, squares_.result.channels, gradients + i * out, together_ * out);
    }
    TileProduct<float> product;
    product.a_inner = out;
    product.b_offsets = &no_offset;
    product.b_inner = in;
    product.b_column = 1;
    product.rows = product.c_column = squares_.result.channels;
    product.columns = squares_.image.channels;
    product.inner = count;
    product.accumulate = first > 0;
    for (int64_t j = 0; j < 4; ++j) {
      product.a = gradients + j * together_ * out;
      product.b = images + j * together_ * in;
      product.c = static_cast<float*>(buffers.workspace) + (4 * row + j) * array_step_;
      tile_kernels().floats.multiply(product);
    }
  }

  Filters filters_;
  Squares squares_;
  int64_t array_step_ = 0;  // from one array of sums to the next
  int64_t together_ = 1;    // squares
  std::vector<float> nothing_;
};

std::unique_ptr<VendorCall> prepared(const ConvSpec& spec) {
  if (spec.kind == ConvKind::backward_weights) return std::make_unique<WinogradWeights>(spec);
  return std::make_unique<WinogradConv>(spec);
}

}  // namespace

bool winograd_can(const ConvSpec& spec) {
  bool possible = spec.type == DType::Float32 && spec.spatial == 2 && spec.groups == 1;
  for (int i = 0; i < 2 && possible; ++i) {
    possible = spec.kernel[i] == 3 && spec.stride[i] == 1 && spec.dilation[i] == 1 && spec.pad_low[i] <= 2 &&
               spec.pad_high[i] <= 2;
  }
  return possible && spec.batch * spec.in_channels * spec.out_channels > 0;
}

/// Measured on AVX2 (Milan): below these numbers, turning images and weights costs more than the products save. Weights
/// that do not fit the second cache cost more.
bool winograd_pays(const ConvSpec& spec) {
  constexpr int64_t least_channels = 32, least_squares = 32, many_weights = 160 * 160, squares_of_many = 128;
  if (!winograd_can(spec) || std::min(spec.in_channels, spec.out_channels) < least_channels) return false;
  const bool many = spec.kind != ConvKind::backward_weights && spec.in_channels * spec.out_channels > many_weights;
  return squares_of(spec).count() >= (many ? squares_of_many : least_squares);
}

std::unique_ptr<VendorCall> prepare_winograd_conv(const ConvSpec& spec) {
  if (!winograd_can(spec)) {
    throw Error(ErrorKind::argument,
                "conv: Winograd's filtering is of Float32 images with kernels of 3x3 at every pixel; got another "
                "convolution; let the library choose the engine");
  }
  return with_epilogue(spec, false, &prepared);
}

}  // namespace rosin::engines
