// Convolutions by Winograd's minimal filtering. Read after vendor.hpp; next winograd.cpp.
#pragma once

#include <memory>

#include "engines/vendor.hpp"

namespace rosin::engines {

/// Whether the convolution can be computed so: Float32 images with kernels of 3x3 pixels, at every pixel, of one group.
bool winograd_can(const ConvSpec& spec);
/// Whether it can, and is then faster.
bool winograd_pays(const ConvSpec& spec);
/// Whether a convolution of BFloat16 is faster so, in Float32, than by instructions that multiply pairs of BFloat16.
bool winograd_beats_pairs(const ConvSpec& spec);

/// Throws Error(argument) where it cannot. sure() of the call says whether the result is the definition's.
std::unique_ptr<VendorCall> prepare_winograd_conv(const ConvSpec& spec);

}  // namespace rosin::engines
