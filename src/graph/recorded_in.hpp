// RecordedIn: what a node was recorded in, as one word that recording copies. Read next: context.hpp.
#pragma once

#include <cstdint>

#include <rosin/math_mode.hpp>

namespace rosin {

class RecordedIn {
 public:
  /// The region of checkpoint(), which the reverse walk records again instead of keeping; 0: none.
  uint32_t region() const { return word_ & most_regions; }
  MathMode mode() const { return static_cast<MathMode>(word_ >> region_bits); }
  RecordedIn with(uint32_t region) const { return RecordedIn((word_ & ~most_regions) | region); }
  RecordedIn with(MathMode mode) const { return RecordedIn(region() | static_cast<uint32_t>(mode) << region_bits); }

  RecordedIn() = default;

  static constexpr int region_bits = 30;
  static constexpr uint32_t most_regions = (1u << region_bits) - 1;

 private:
  explicit RecordedIn(uint32_t word) : word_(word) {}

  uint32_t word_ = 0;
};

}  // namespace rosin
