// The gradient by the weights of convolutions by Winograd's minimal filtering. Read after winograd.cpp.
#include "base/workers.hpp"
#include "engines/winograd_squares.hpp"

namespace rosin::engines {

namespace {

using namespace winograd;

class WinogradWeights : public VendorCall {
 public:
  explicit WinogradWeights(const ConvSpec& spec)
      : squares_(squares_of(spec)), in_(spec.in_channels), out_(spec.out_channels),
        nothing_(static_cast<size_t>(std::max(in_, out_)), 0.0f), filters_(spec) {}

  const char* engine() const noexcept override { return "winograd"; }
  size_t bytes() const noexcept override { return sizeof(*this) + nothing_.capacity() * sizeof(float); }

 protected:
  /// One row of six arrays of the gradient under a square: array k of it goes to `to` + k * step.
  void turn_gradient(int row, const VendorBuffers& buffers, int64_t square, float* to, int64_t step) const {
    const float* pixels[side * side];
    squares_.result_pixels(static_cast<const float*>(buffers.second), nothing_.data(), square, pixels);
    tile_kernels().winograd.gradient_row(row, pixels, out_, to, step);
  }

  /// sums(o, c) [+]= over squares, gradients(o) * images(c).
  static void multiply(int64_t rows, int64_t columns, int64_t squares, const float* gradients, int64_t gradient_pitch,
                       const float* images, int64_t image_pitch, float* sums, int64_t sums_pitch, bool accumulate) {
    TileProduct<float> product;
    product.a = gradients;
    product.a_inner = gradient_pitch;
    product.b = images;
    product.b_offsets = &no_offset;
    product.b_inner = image_pitch;
    product.b_column = 1;
    product.c = sums;
    product.c_column = sums_pitch;
    product.rows = rows;
    product.columns = columns;
    product.inner = squares;
    product.accumulate = accumulate;
    tile_kernels().floats.multiply(product);
  }

  /// The gradient of the weights from image channels [c, c + count) to result channels [o, o + rows), of sums with
  /// (o, c) at their beginning.
  void write(const float* sums, int64_t pitch, int64_t step, int64_t c, int64_t count, int64_t o, int64_t rows,
             float* result) const {
    float some[block * taps * most_rows];
    for (int64_t i = 0; i < count; ++i) {
      tile_kernels().winograd.weights_gradient(
          sums + i * pitch, step, rows, filters_.first_tap(some + i * taps * rows, rows), filters_.tap_step(rows));
    }
    filters_.each(false, c, count, o, rows, some, [&](int64_t place, const float* from) {
      for (int64_t tap = 0; tap < taps; ++tap) result[place + tap] = from[tap * rows];
    });
  }

  const Squares squares_;
  const int64_t in_, out_;            // channels
  const std::vector<float> nothing_;  // a pixel of the padding

 private:
  const Filters filters_;
};

/// Each chunk makes one row of six arrays, of all squares in order.
class WeightsBySquares final : public WinogradWeights {
 public:
  explicit WeightsBySquares(const ConvSpec& spec)
      : WinogradWeights(spec), step_(step_of(in_ * out_)),
        together_(std::min<int64_t>(most_together, squares_.count())) {
    chunks_ = window;
    scratch_bytes_ = static_cast<size_t>(window * together_ * (pitch_of(in_) + pitch_of(out_))) * sizeof(float);
    workspace_bytes_ = static_cast<size_t>(arrays * step_) * sizeof(float);
    has_finish_ = true;
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    for (int64_t square = 0; square < squares_.count(); square += together_) {
      const int64_t count = std::min(together_, squares_.count() - square);
      add_squares(static_cast<int>(chunk), square, count, buffers, static_cast<float*>(scratch));
    }
  }

  void finish(const VendorBuffers& buffers) const override {
    const float* sums = static_cast<const float*>(buffers.workspace);
    parallel_for((in_ + block - 1) / block, [&](int64_t piece) {
      const int64_t c = piece * block;
      for (int64_t o = 0; o < out_; o += most_rows) {
        write(sums + c * out_ + o, out_, step_, c, std::min(block, in_ - c), o, std::min(most_rows, out_ - o),
              static_cast<float*>(buffers.result));
      }
    });
  }

 private:
  static constexpr int64_t most_together = 96;

  void add_squares(int row, int64_t first, int64_t count, const VendorBuffers& buffers, float* scratch) const {
    const int64_t in = pitch_of(in_), out = pitch_of(out_);
    float* images = scratch;
    float* gradients = scratch + window * together_ * in;
    for (int64_t i = 0; i < count; ++i) {
      const float* pixels[arrays];
      squares_.image_pixels(static_cast<const float*>(buffers.first), nothing_.data(), first + i, pixels);
      tile_kernels().winograd.image_row(row, pixels, in_, images + i * in, together_ * in);
      turn_gradient(row, buffers, first + i, gradients + i * out, together_ * out);
    }
    for (int64_t j = 0; j < window; ++j) {
      multiply(out_, in_, count, gradients + j * together_ * out, out, images + j * together_ * in, in,
               static_cast<float*>(buffers.workspace) + (window * row + j) * step_, out_, first > 0);
    }
  }

  const int64_t step_;      // from one array of sums to the next
  const int64_t together_;  // squares
};

/// Each chunk computes the weights between two blocks of channels: all squares are turned before.
class WeightsByChannels final : public WinogradWeights {
 public:
  explicit WeightsByChannels(const ConvSpec& spec)
      : WinogradWeights(spec), step_(step_of(squares_.count() * pitch_of(in_))),
        gradient_step_(step_of(squares_.count() * pitch_of(out_))), high_((out_ + part - 1) / part) {
    chunks_ = high_ * ((in_ + part - 1) / part);
    scratch_bytes_ = static_cast<size_t>(arrays * sums_step) * sizeof(float);
    workspace_bytes_ = static_cast<size_t>(arrays * (step_ + gradient_step_)) * sizeof(float);
    has_begin_ = true;
  }

  void begin(const VendorBuffers& buffers) const override {
    float* const images = static_cast<float*>(buffers.workspace);
    float* const gradients = images + arrays * step_;
    parallel_for(squares_.count(), [&](int64_t square) {
      turn_images(squares_, static_cast<const float*>(buffers.first), nothing_.data(), square, 1,
                  images + square * pitch_of(in_), pitch_of(in_), step_);
      for (int row = 0; row < window; ++row) {
        turn_gradient(row, buffers, square, gradients + window * row * gradient_step_ + square * pitch_of(out_),
                      gradient_step_);
      }
    });
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const float* const images = static_cast<const float*>(buffers.workspace);
    const float* const gradients = images + arrays * step_;
    float* const sums = static_cast<float*>(scratch);
    const int64_t o = chunk % high_ * part, c = chunk / high_ * part;
    const int64_t rows = std::min(part, out_ - o), columns = std::min(part, in_ - c);
    for (int64_t array = 0; array < arrays; ++array) {
      multiply(rows, columns, squares_.count(), gradients + array * gradient_step_ + o, pitch_of(out_),
               images + array * step_ + c, pitch_of(in_), sums + array * sums_step, part, false);
    }
    for (int64_t i = 0; i < columns; i += block) {
      for (int64_t row = 0; row < rows; row += most_rows) {
        write(sums + i * part + row, part, sums_step, c + i, std::min(block, columns - i), o + row,
              std::min(most_rows, rows - row), static_cast<float*>(buffers.result));
      }
    }
  }

 private:
  static constexpr int64_t part = 64, sums_step = part * part + 48;  // channels; from one array of sums to the next

  const int64_t step_, gradient_step_;  // from one array of squares to the next
  const int64_t high_;                  // blocks of the result's channels
};

}  // namespace

std::unique_ptr<VendorCall> prepare_winograd_weights(const ConvSpec& spec) {
  constexpr int64_t few_squares = 200;  // measured on AVX-512 (Zen 4)
  if (squares_of(spec).count() <= few_squares) return std::make_unique<WeightsByChannels>(spec);
  return std::make_unique<WeightsBySquares>(spec);
}

}  // namespace rosin::engines
