// Products and convolutions of halves that no engine computes as they are: operands become Float32, the engine for that
// answers, and its sums are rounded once. Read after vendor.hpp; next vendor.cpp.
#pragma once

#include <memory>

#include "engines/vendor.hpp"

namespace rosin::engines {

/// Of Float16 or BFloat16, without an epilogue. `prepare` makes the call of the same spec in Float32.
std::unique_ptr<VendorCall> converted(const MatmulSpec& spec,
                                      std::unique_ptr<VendorCall> (*prepare)(const MatmulSpec&, Engine));
std::unique_ptr<VendorCall> converted(const ConvSpec& spec,
                                      std::unique_ptr<VendorCall> (*prepare)(const ConvSpec&, Engine));

/// `count` elements of a half type as floats, and back, rounded to nearest even.
void widen(DType type, const void* from, float* to, int64_t count);
void narrow(DType type, const float* from, void* to, int64_t count);

}  // namespace rosin::engines
