// What the checks of vendor calls share: arrays of small numbers on the device, and asking whether a call is taken.
// Read next: call_checks.cpp (matmul), convolution_checks.cpp.
#pragma once

#include <vector>

#include "oracle.hpp"
#include "rig.hpp"

namespace rosin::conformance {

size_t element_bytes(int32_t type);

/// Values of 16 bits as Float16 or BFloat16: rounded by the oracle's tables.
const SmallFloat& small_float(int32_t type);

/// An array on the device, and what stands in it as Float32: small integers, of which every order of summation gives
/// the same, in 16 bits as well.
class Operand {
 public:
  Operand(Rig& rig, int32_t type, size_t count, int seed);

  /// Writes `values`.
  void put();
  std::vector<float> read() const;
  rosin_place at() const { return memory_.at(); }

 private:
  Rig& rig_;
  int32_t type_;

 public:
  std::vector<float> values;

 private:
  Memory memory_;
};

/// Throws Broken unless `got` is `wanted` in the digits of the type. `size`: of what was added up on the way.
void expect_close(int32_t type, double got, double wanted, const std::string& what, double size = 0);

/// Whether call_takes takes it, with its sizes unknown.
bool takes(Rig& rig, const rosin_call_description& described);

}  // namespace rosin::conformance
