// Convolution by kernels of 3x3 pixels at every pixel: F(4x4, 3x3) of Winograd's minimal filtering, with 36
// multiplications for each square of 4x4 pixels and pair of channels where the definition has 144. Images, weights and
// gradients are turned into 36 arrays (winograd_body.hpp); what is summed over channels (or, for the gradient by the
// weights, over squares) are 36 products of matrices, by the tile kernel. Sums are as exact as the definition's up to a
// small factor (winograd_test.cpp). Source: Lavin, Gray: Fast Algorithms for Convolutional Neural Networks (2015); why
// the points matter: Barabasz et al.: Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural
// Networks (2020).
// Images whose values are not finite spoil their whole square: where a result is not finite, the call is not sure().
#include "engines/winograd.hpp"

#include <algorithm>
#include <vector>

#include <rosin/error.hpp>

#include "base/workers.hpp"
#include "engines/cuts.hpp"
#include "engines/epilogue.hpp"
#include "engines/form_name.hpp"
#include "engines/tile_kernel.hpp"
#include "engines/winograd_squares.hpp"

namespace rosin::engines {

namespace {

using namespace winograd;

/// Turned they are four times as many, which takes longer to read than turning what is turned where it is used.
constexpr int64_t many_weights = 400 * 400;

/// Forward, and the gradient by the image.
class WinogradConv : public VendorCall {
 public:
  explicit WinogradConv(const ConvSpec& spec)
      : squares_(squares_of(spec)), in_(squares_.image.channels), out_(squares_.result.channels),
        panel_(tile_kernels().row_vectors * tile_kernels().lanes<float>()), panels_((out_ + panel_ - 1) / panel_),
        filters_(spec), by_data_(spec.kind == ConvKind::backward_data), flipped_(spec.flipped),
        form_step_(step_of(panels_ * panel_ * in_)), nothing_(static_cast<size_t>(in_), 0.0f) {
    has_begin_ = true;
  }

  const char* engine() const noexcept override { return "winograd"; }
  size_t bytes() const noexcept override { return sizeof(*this) + nothing_.capacity() * sizeof(float); }

  /// All weights turned: 36 arrays, each of the panels one behind the other, (panel, in) of each.
  Form form(int operand) const override {
    if (operand == 0 || in_ * out_ >= many_weights) return {};
    const uint64_t name = form_name("winograd", {in_, out_, panel_, by_data_, flipped_});
    return {name, static_cast<size_t>(arrays * form_step_) * sizeof(float)};
  }
  void make_form(int, const void* weights, void* to) const override {
    parallel_for(panels_, [&](int64_t panel) {
      turn_weights(static_cast<const float*>(weights), panel, 0, in_, static_cast<float*>(to) + panel * in_ * panel_,
                   form_step_);
    });
  }

  bool sure(const VendorBuffers& buffers) const override {
    const char* chunks = static_cast<const char*>(buffers.workspace) + sure_at_;
    return std::all_of(chunks, chunks + chunks_, [](char sure) { return sure != 0; });
  }

 protected:
  /// The workspace: so many floats, and behind them whether each chunk is sure.
  void set_workspace(int64_t floats) {
    sure_at_ = static_cast<size_t>(floats) * sizeof(float);
    workspace_bytes_ = sure_at_ + static_cast<size_t>(chunks_);
  }
  void set_sure(int64_t chunk, const VendorBuffers& buffers, bool sure) const {
    static_cast<char*>(buffers.workspace)[sure_at_ + static_cast<size_t>(chunk)] = sure;
  }

  int64_t rows_of(int64_t panel) const { return std::min(panel_, out_ - panel * panel_); }

  /// The weights from the image's channels [first, last) to those of a panel: (panel, in) of each array.
  void turn_weights(const float* weights, int64_t panel, int64_t first, int64_t last, float* turned,
                    int64_t step) const {
    const int64_t rows = rows_of(panel);
    const int64_t next_block = filters_.distance(by_data_, block);
    float some[block * taps * most_rows];
    for (int64_t c = first; c < last; c += block) {
      const int64_t count = std::min(block, last - c);
      const bool goes_on = c + 2 * block <= in_;
      filters_.each(by_data_, c, count, panel * panel_, rows, some, [&](int64_t place, float* to) {
        if (goes_on) __builtin_prefetch(weights + place + next_block);
        for (int64_t tap = 0; tap < taps; ++tap) to[tap * rows] = weights[place + tap];
      });
      for (int64_t i = 0; i < count; ++i) {
        tile_kernels().winograd.weights(filters_.first_tap(some + i * taps * rows, rows), filters_.tap_step(rows), rows,
                                        turned + (c - first + i) * panel_, step);
      }
    }
  }

  void turn(const VendorBuffers& buffers, int64_t first, int64_t count, float* to, int64_t step) const {
    turn_images(squares_, static_cast<const float*>(buffers.first), nothing_.data(), first, count, to, pitch_of(in_),
                step);
  }

  /// sums [+]= weights * images: over `inner` channels of `count` squares, for a panel.
  void multiply(int64_t panel, int64_t inner, int64_t count, const float* weights, const float* images, float* sums,
                int64_t pitch, bool accumulate) const {
    TileProduct<float> product;
    product.a = weights;
    product.a_inner = panel_;
    product.b = images;
    product.b_offsets = &no_offset;
    product.b_inner = 1;
    product.b_column = pitch_of(in_);
    product.c = sums;
    product.c_column = pitch;
    product.rows = rows_of(panel);
    product.columns = count;
    product.inner = inner;
    product.accumulate = accumulate;
    tile_kernels().floats.multiply(product);
  }

  /// The result's `channels` channels from `channel` on, of the squares from `first` on. Whether all are finite.
  bool write(const VendorBuffers& buffers, int64_t first, int64_t count, int64_t channel, int64_t channels,
             const float* sums, int64_t pitch, int64_t step) const {
    bool sure = true;
    float* const result = static_cast<float*>(buffers.result) + channel;
    for (int64_t i = 0; i < count; ++i) {
      float* pixels[side * side];
      squares_.result_pixels<float>(result, nullptr, first + i, pixels);
      sure = tile_kernels().winograd.result(sums + i * pitch, step, channels, pixels) && sure;
    }
    return sure;
  }

  const Squares squares_;
  const int64_t in_, out_;        // channels
  const int64_t panel_, panels_;  // channels of the result that the tile kernel computes side by side
  static const float* form_of(const VendorBuffers& buffers) { return static_cast<const float*>(buffers.forms[1]); }
  int64_t form_step() const { return form_step_; }  // from one of its arrays to the next

 private:
  const Filters filters_;
  const bool by_data_, flipped_;
  size_t sure_at_ = 0;  // in the workspace
  const int64_t form_step_;
  const std::vector<float> nothing_;  // a pixel of the padding
};

/// Each chunk computes some squares: all weights are turned before.
class ConvBySquares final : public WinogradConv {
 public:
  explicit ConvBySquares(const ConvSpec& spec) : WinogradConv(spec) {
    const int64_t wanted = worthwhile_chunks(squares_.count() * arrays * in_ * out_ / products_per_microsecond);
    rows_of_chunk_ = (squares_.rows() + wanted - 1) / wanted;
    chunks_ = (squares_.rows() + rows_of_chunk_ - 1) / rows_of_chunk_;
    together_ = std::min(squares_together(), rows_of_chunk_ * squares_.wide);
    scratch_bytes_ = static_cast<size_t>(arrays * together_ * (pitch_of(in_) + pitch_of(out_))) * sizeof(float);
    set_workspace(arrays * form_step());
  }

  std::optional<MatmulPart> part_of(int64_t chunk) const override {
    const int64_t last = std::min(squares_.rows(), (chunk + 1) * rows_of_chunk_);
    return MatmulPart{0, 1, squares_.first_pixel(chunk * rows_of_chunk_), squares_.first_pixel(last), 0, out_};
  }

  void begin(const VendorBuffers& buffers) const override {
    if (!form_of(buffers)) make_form(1, buffers.second, buffers.workspace);
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const int64_t first = chunk * rows_of_chunk_ * squares_.wide;
    const int64_t last = std::min(squares_.count(), first + rows_of_chunk_ * squares_.wide);
    bool sure = true;
    for (int64_t square = first; square < last; square += together_) {
      sure = run_squares(square, std::min(together_, last - square), buffers, static_cast<float*>(scratch)) && sure;
    }
    set_sure(chunk, buffers, sure);
  }

 private:
  static constexpr int64_t products_per_microsecond = 30'000;

  /// So many that their arrays stay in the second cache, in whole tiles.
  int64_t squares_together() const {
    constexpr int64_t tile = 12, floats = 6000;
    return std::clamp(floats / (in_ + out_) / tile, int64_t{1}, int64_t{8}) * tile;
  }

  bool run_squares(int64_t first, int64_t count, const VendorBuffers& buffers, float* scratch) const {
    const int64_t in = together_ * pitch_of(in_), out = together_ * pitch_of(out_);
    float* images = scratch;
    float* sums = scratch + arrays * in;
    const float* const weights = form_of(buffers) ? form_of(buffers) : static_cast<const float*>(buffers.workspace);
    turn(buffers, first, count, images, in);
    for (int64_t array = 0; array < arrays; ++array) {
      for (int64_t panel = 0; panel < panels_; ++panel) {
        multiply(panel, in_, count, weights + array * form_step() + panel * in_ * panel_, images + array * in,
                 sums + array * out + panel * panel_, pitch_of(out_), false);
      }
    }
    return write(buffers, first, count, 0, out_, sums, pitch_of(out_), out);
  }

  int64_t rows_of_chunk_ = 1;  // of squares
  int64_t together_ = 1;       // squares
};

/// Each chunk computes a panel of channels: all squares are turned before, weights where they are used.
class ConvByChannels final : public WinogradConv {
 public:
  explicit ConvByChannels(const ConvSpec& spec)
      : WinogradConv(spec), step_(step_of(squares_.count() * pitch_of(in_))),
        sums_step_(step_of(squares_.count() * panel_)), weights_step_(step_of(together * panel_)) {
    chunks_ = panels_;
    scratch_bytes_ = static_cast<size_t>(arrays * (weights_step_ + sums_step_)) * sizeof(float);
    set_workspace(arrays * step_);
  }

  std::optional<MatmulPart> part_of(int64_t chunk) const override {
    const int64_t first = chunk * panel_;
    return MatmulPart{0, 1, 0, squares_.first_pixel(squares_.rows()), first, first + rows_of(chunk)};
  }

  void begin(const VendorBuffers& buffers) const override {
    constexpr int64_t piece = 4;  // squares
    parallel_for((squares_.count() + piece - 1) / piece, [&](int64_t i) {
      turn(buffers, i * piece, std::min(piece, squares_.count() - i * piece),
           static_cast<float*>(buffers.workspace) + i * piece * pitch_of(in_), step_);
    });
  }

  void run_chunk(int64_t panel, const VendorBuffers& buffers, void* scratch) const override {
    float* const weights = static_cast<float*>(scratch);
    float* const sums = weights + arrays * weights_step_;
    for (int64_t c = 0; c < in_; c += together) {
      const int64_t inner = std::min(together, in_ - c);
      const float* turned = weights;
      if (form_of(buffers)) turned = form_of(buffers) + (panel * in_ + c) * panel_;
      else turn_weights(static_cast<const float*>(buffers.second), panel, c, c + inner, weights, weights_step_);
      const int64_t turned_step = form_of(buffers) ? form_step() : weights_step_;
      for (int64_t array = 0; array < arrays; ++array) {
        multiply(panel, inner, squares_.count(), turned + array * turned_step,
                 static_cast<const float*>(buffers.workspace) + array * step_ + c, sums + array * sums_step_, panel_,
                 c > 0);
      }
    }
    set_sure(panel, buffers,
             write(buffers, 0, squares_.count(), panel * panel_, rows_of(panel), sums, panel_, sums_step_));
  }

 private:
  static constexpr int64_t together = 64;  // channels of the image

  const int64_t step_, sums_step_, weights_step_;  // from one array to the next
};

/// Measured on AVX-512 (Zen 4): few squares do not repay the turning of all weights before, of which many do not even
/// stay in the last cache.
bool by_channels(const Squares& squares) {
  constexpr int64_t few_squares = 12, most_squares = 160;
  const int64_t weights = squares.image.channels * squares.result.channels;
  return squares.count() <= (weights >= many_weights ? most_squares : few_squares);
}

/// Whether the definition's products are, with weights that oneDNN need not reorder. Measured on Granite Rapids: of 16
/// squares 0.56 to 0.82 of the time for 128 to 256 channels, 1.2 for 64 and 1.12 for 512; of 25 squares 1.2 and more.
bool packed_weights_are_faster(const ConvSpec& spec, int64_t squares) {
  constexpr int64_t most_squares = 16, least_weights = 96 * 96;
  const int64_t weights = spec.in_channels * spec.out_channels;
  return squares <= most_squares && weights >= least_weights && weights < many_weights;
}

std::unique_ptr<VendorCall> prepared(const ConvSpec& spec) {
  if (spec.kind == ConvKind::backward_weights) return prepare_winograd_weights(spec);
  if (by_channels(squares_of(spec))) return std::make_unique<ConvByChannels>(spec);
  return std::make_unique<ConvBySquares>(spec);
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

/// Measured on AVX-512 (Zen 4), beside oneDNN: turning a kind's weights takes as long as so many squares, and all of it
/// as long as the definition's products of so many pixels.
bool winograd_pays(const ConvSpec& spec) {
  constexpr int64_t least_channels = 24;
  if (!winograd_can(spec) || std::min(spec.in_channels, spec.out_channels) < least_channels) return false;
  const Squares squares = squares_of(spec);
  const int64_t pixels = squares.batch * squares.result.w * squares.result.h;
  if (spec.weights_stay && packed_weights_are_faster(spec, squares.count())) return false;
  const int64_t for_weights = spec.kind == ConvKind::backward_weights ? 2 : 8;
  return 10 * pixels >= 64 * (squares.count() + for_weights);
}

/// Measured as above: images that fill their squares, of many channels.
bool winograd_beats_pairs(const ConvSpec& spec) {
  constexpr int64_t least_channels = 64, least_squares = 24;
  ConvSpec floats = spec;
  floats.type = DType::Float32;
  if (!winograd_can(floats) || std::min(spec.in_channels, spec.out_channels) < least_channels) return false;
  const Squares squares = squares_of(floats);
  const int64_t pixels = squares.batch * squares.result.w * squares.result.h;
  return squares.count() >= least_squares && 4 * pixels >= 3 * squares.count() * side * side;
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
