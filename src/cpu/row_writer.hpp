// The code of a convolution of images in CWHN: a row of results, for a group of neighbouring channels, which are the
// lanes of a few registers side by side. Several neighbouring results have registers each, so that a weight is read
// once for all of them. Either lanes are channels that have filters of their own, or a few filters in common: then
// an element of a row is read once for all results. Or results are summed over channels of elements, which are read
// into all lanes one by one. Taps that lie outside are left out when the code is written, as far as they lie outside
// along the row; which rows there are, the caller says. Read first: machine_loop.hpp. Read next: row_conv.cpp (who
// calls it).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cpu/machine_loop.hpp"

namespace rosin::cpu {

/// Result r of a row is the sum over taps t, in their order, of weights[t] times the element at r * stride - pad +
/// t * dilation of a row; or as a gradient of the input (by_data) that at (r + pad - t * dilation) / stride, where
/// there is one. Rows of taps follow each other in the same way.
struct RowText {
  int64_t block = 0;                          // Float32 in a register: 16 with AVX-512, 8 with AVX2
  int64_t lanes = 0;                          // of them that are channels, of all registers side by side
  int64_t depth = 0;                          // channels that are summed; 0: those of lanes
  int64_t spread = 1;                         // of these, neighbours of which each lane's result is the sum
  Packing packing = Packing::none;            // of elements and results: halves, of lanes, with AVX-512
  int64_t result_step = 0, element_step = 0;  // from a channel to that of the neighbour
  int64_t elements = 0, results = 0, taps = 0, stride = 1, dilation = 1, pad = 0;  // along a row
  int64_t tap_rows = 1;      // from a row of taps to the next that is taken
  int64_t element_rows = 1;  // from its row of elements to the next one's
  bool by_data = false;
  bool bias = false, center = false, factor = false, shift = false;  // what is done with sums, in this order
  bool residual = false, rectified = false;
  float most = 0;     // of those that are rectified; 0: no bound
  int64_t ahead = 0;  // lines of memory that are asked for with every `channels_together` channels that are summed

  static constexpr int64_t channels_together = 4;

  int64_t bytes() const { return packing == Packing::none ? 4 : 2; }  // of an element, of a result
  int64_t vectors() const { return (lanes + block - 1) / block; }
  /// Float32 that one tap takes among the weights: for each channel that is summed, the lanes of whole registers.
  int64_t tap_weights() const { return (depth > 0 ? depth : spread) * vectors() * block; }
  /// The element of a result and a tap; nothing where there is none.
  std::optional<int64_t> element_of(int64_t result, int64_t tap) const;
};

/// Float32 in the longest registers.
int64_t row_block();
/// Registers that the lanes of a group take at most, so that enough results find room.
int64_t most_row_vectors(int64_t block);
/// About what such a row takes for one tap and channel that is summed: its products, and what is read for them. (Which
/// of the numbers of registers is best was measured on Zen 5: one is up to 1.35 times as slow as the best; from two on
/// they are within 16 % of it, but four of rows of seven results, 1.4 times.)
int64_t row_cost(int64_t results, int64_t vectors, int64_t block);
/// Tiles of results that it takes, for each of which the weights are read.
int64_t row_tiles(int64_t results, int64_t vectors, int64_t block);

/// `memory`: the first lane of the row's results, of its first row of elements, the first row of taps, the first lane
/// of bias and residual, what is asked for ahead, the first lane of center, factor and shift, and one place more.
/// `rows`: of taps that are taken. The third argument of run() counts nothing. Null where code cannot be written.
std::shared_ptr<const MachineLoop> row_loop(const RowText& text);

}  // namespace rosin::cpu
