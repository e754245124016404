// The code of a convolution of each channel by itself, of images in CWHN: what it does with a block of neighbouring
// channels, which are the lanes of a register, for one row of results. Several neighbouring results have a register
// each; an element of a row is read once for all of them, and weights once for each row that is read. Taps that lie
// outside are left out when the code is written, as far as they lie outside along the row; which rows there are, the
// caller says. Read first: machine_loop.hpp. Read next: channel_filters.cpp (who calls it).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cpu/machine_loop.hpp"

namespace rosin::cpu {

/// Result r of a row is the sum over taps t, in their order, of weights[t] times the element at r * stride - pad +
/// t * dilation of a row; or as a gradient of the input (by_data) that at (r + pad - t * dilation) / stride, where
/// there is one. Rows of taps follow each other in the same way.
struct FilterText {
  int64_t block = 0;     // Float32 in a register: 16 with AVX-512, 8 with AVX2
  int64_t lanes = 0;     // of them that are channels
  int64_t channels = 0;  // of the images: the distance of neighbours
  int64_t elements = 0, results = 0, taps = 0, stride = 1, dilation = 1, pad = 0;  // along a row
  int64_t tap_rows = 1;      // from a row of taps to the next that is taken
  int64_t element_rows = 1;  // from its row of elements to the next one's
  bool by_data = false;
  bool bias = false, residual = false, rectified = false;  // what is done with sums, in this order
  float most = 0;                                          // of those that are rectified; 0: no bound

  bool operator==(const FilterText&) const = default;
  /// The element of a result and a tap; nothing where there is none.
  std::optional<int64_t> element_of(int64_t result, int64_t tap) const;
};

/// Those of the longest registers.
int64_t filter_block();

/// `memory`: the first lane of the row's results, of its first row of elements, of the first row of taps (a block for
/// each), of bias and residual. `rows`: of taps that are taken. The third
/// argument of run() counts nothing. Null where code cannot be written.
std::shared_ptr<const MachineLoop> filter_loop(const FilterText& text);

}  // namespace rosin::cpu
