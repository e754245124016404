// Convolutions of Float32 images of one channel to fewer channels than fill a register, and their gradients by weights,
// by machine code that is written for their sizes.
#pragma once

#include <memory>

#include "engines/vendor.hpp"

namespace rosin::cpu {

/// Such a convolution with registers of `block` Float32; null where it is another one, or code cannot be written.
std::unique_ptr<engines::VendorCall> prepare_few_conv(const engines::ConvSpec& spec, int64_t block);

/// Whether it can, and other engines are slower.
bool few_pays(const engines::ConvSpec& spec, int64_t block);

}  // namespace rosin::cpu
