// Weights as MIOpen reads them, from weights as rosin has them, and gradients back: MIOpen has no true convolutions,
// whose kernels are flipped, and wants weights in the order of its images. The kernel for that is rosin's own.
// Read first: hip.hpp. Read next: miopen_ways.hpp.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "amdgpu/hip.hpp"

namespace rosin::amdgpu {

/// Weights of `count` elements: `taps` of one filter and channel follow each other, then come channels, then filters.
struct WeightOrder {
  unsigned count = 0, channels = 0, taps = 0;
  unsigned element_bytes = 4;
  bool flipped = false;         // the taps of MIOpen stand in reverse
  bool channels_first = false;  // and its channels follow each other

  /// Whether MIOpen's are the same.
  bool is_usual() const { return taps == 1 || (!flipped && !(channels_first && channels > 1)); }
  uint64_t bytes() const { return uint64_t{count} * element_bytes; }
};

/// The kernel, on one device, whose context is current in all functions.
class WeightKernel {
 public:
  explicit WeightKernel(const rosin_device& device) : target_(device.target) {}
  ~WeightKernel();
  WeightKernel(const WeightKernel&) = delete;
  WeightKernel& operator=(const WeightKernel&) = delete;

  /// Loads it, the first time.
  void get_ready();
  enum class To { library, rosin };
  void run(driver::Stream stream, const WeightOrder& order, To whom, driver::Address from, driver::Address to) const;

 private:
  void load();

  std::string target_;
  std::mutex compiling_;
  driver::Module module_ = nullptr;
  driver::Function of_halves_ = nullptr, of_singles_ = nullptr;
};

}  // namespace rosin::amdgpu
