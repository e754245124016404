// The code of a convolution's gradient by weights: for one tap, sums of products of channels of two images, of which
// one image's are the lanes of a few registers side by side, and the other's are taken one by one. All sums are in
// registers while the pixels of rows and images go by. Read first: row_writer.hpp. Read next: row_weights.cpp (who
// calls it).
#pragma once

#include <cstdint>
#include <memory>

#include "cpu/machine_loop.hpp"

namespace rosin::cpu {

/// How far apart the elements of an image stand, in elements.
struct PixelSteps {
  int64_t pixel = 0, row = 0, image = 0;
};

struct WeightsText {
  int64_t block = 0;     // Float32 in a register: 16 with AVX-512, 8 with AVX2
  int64_t vectors = 0;   // registers of lanes
  int64_t channels = 0;  // of the other image
  PixelSteps lane_steps, channel_steps;
  int64_t vector_step = 0;  // from the lanes of a register to those of the next

  int64_t sums() const { return vectors * block * channels; }
};

/// Registers of lanes side by side, at most; and channels whose sums find room then, which divide `block`.
constexpr int64_t most_weight_vectors = 3;
int64_t most_weight_channels(int64_t vectors, int64_t block);

/// `memory`: the sums (of each channel its lanes), which are added to, the lanes and channels of the first pixel, the
/// number of images (as an address). `rows`, `count`: of each image, of its pixels. Null where code cannot be written.
std::shared_ptr<const MachineLoop> weights_loop(const WeightsText& text);

}  // namespace rosin::cpu
