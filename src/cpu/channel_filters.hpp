// Convolutions of each channel by itself (depthwise), of Float32 images in CWHN: forward, and the gradient of the
// input.
#pragma once

#include <memory>

#include "cpu/filter_writer.hpp"
#include "engines/vendor.hpp"

namespace rosin::cpu {

/// Such a convolution by machine code, with the bits of plane_conv.cpp; null where there is none for it. Products are
/// of taps inside alone, so what is not finite gives what the definition gives. `block`: see FilterText.
std::unique_ptr<engines::VendorCall> prepare_channel_filters(const engines::ConvSpec& spec,
                                                             int64_t block = filter_block());

}  // namespace rosin::cpu
