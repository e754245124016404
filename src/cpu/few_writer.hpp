// The code of convolutions of images of one channel to few channels, and of their gradients by weights: neighbouring
// results fill registers with all their channels, side by side as they stand in memory. Elements are repeated before,
// each once for every channel of the results, so that what a register of results reads under a tap stands side by side
// as well. Read first: row_writer.hpp. Read next: few_conv.cpp (who calls it).
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>

#include "cpu/machine_loop.hpp"

namespace rosin::cpu {

/// Steps are one, in both dims. A row of repeated elements begins and ends with zeros, for the padding.
struct FewText {
  int64_t block = 0;     // Float32 in a register: 16 with AVX-512, 8 with AVX2
  int64_t channels = 0;  // of results, fewer than that
  int64_t elements = 0;  // of a row
  int64_t results = 0;   // of a row
  int64_t pad = 0;       // before its first element
  int64_t taps = 0;      // of a row
  int64_t tap_rows = 0;
  bool bias = false;       // is added to sums
  bool rectified = false;  // what is less than 0 is 0 then

  /// Registers of a row of results.
  int64_t vectors() const { return (results * channels + block - 1) / block; }
  /// After so many registers channels are the same lanes again.
  int64_t phases() const { return channels / std::gcd(channels, block); }
  /// Float32 from a row of repeated elements to the next one.
  int64_t pitch() const;
  /// Float32 that the elements of a row are then; where they begin; where they end, with a whole register; and what the
  /// first result reads under a tap.
  int64_t repeated() const { return elements * channels; }
  int64_t first_at() const { return (pad * channels + block - 1) / block * block; }
  int64_t repeated_end() const { return first_at() + (repeated() + block - 1) / block * block; }
  int64_t read_at(int64_t tap) const { return first_at() + (tap - pad) * channels; }
  /// Registers beside the one in which AVX2 keeps a mask.
  int64_t free_registers() const;
  /// Float32 that the weights of a row of taps take: by tap, the lanes of each phase.
  int64_t row_weights() const { return taps * phases() * block; }
};

/// Repeats the elements of an image, with zeros beside them. `memory`: the first row of them, and the first element.
/// `rows`: how many there are.
std::shared_ptr<const MachineLoop> repeating_loop(const FewText& text);

/// Some rows of results `together`. `memory`: the results, the first row of repeated elements under them, the
/// weights, the bias in the lanes of each phase. The other arguments count nothing.
std::shared_ptr<const MachineLoop> sums_loop(const FewText& text, int64_t together);

/// Taps side by side whose sums find room.
int64_t most_taps_together(const FewText& text);

/// Adds the products of repeated elements and of gradients to the sums of some taps of each row, of the registers of
/// one phase. `memory`: the sums (by row of taps, by tap, lanes), the first row of elements, and for each row of
/// elements the rows of gradients that stand under each row of taps. `rows`: of elements.
std::shared_ptr<const MachineLoop> few_weights_loop(const FewText& text, int64_t phase, int64_t first_tap,
                                                    int64_t count);

}  // namespace rosin::cpu
