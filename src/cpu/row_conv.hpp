// Convolutions of Float32 images (of halves too, by filters of few channels) in CWHN by machine code that is written
// for their sizes: of one or two spatial dims, forward and as their gradients.
#pragma once

#include <memory>

#include "cpu/row_writer.hpp"
#include "engines/vendor.hpp"

namespace rosin::cpu {

/// Such a convolution; null where it is another one, or an engine is faster. Products are of taps inside alone, so what
/// is not finite gives what the definition gives. Filters of single channels have the bits of plane_conv.cpp.
std::unique_ptr<engines::VendorCall> prepare_row_conv(const engines::ConvSpec& spec);

/// The same wherever code can be written, with registers of `block` Float32; for tests.
std::unique_ptr<engines::VendorCall> prepare_row_conv(const engines::ConvSpec& spec, int64_t block);

/// The gradient by weights of such a convolution, whose channels fill registers: row_weights.cpp.
std::unique_ptr<engines::VendorCall> prepare_row_weights(const engines::ConvSpec& spec, int64_t block);

}  // namespace rosin::cpu
