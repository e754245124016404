// Convolution of images x (spatial..., channels, batch) with one to three spatial dims (WHCN).
#pragma once

#include <rosin/array.hpp>
#include <rosin/export.hpp>
#include <rosin/pool.hpp>

namespace rosin {

struct ConvOptions {
  Extents stride = {};    // 1
  Extents pad = {};       // 0; one number, one for each dim, or low and high for each dim
  Extents dilation = {};  // 1: neighbouring elements
  int64_t groups = 1;
};

/// True convolution: the kernel is flipped in every spatial dim. w is (kernel..., in / groups, out).
/// Result sizes: (in + low + high - ((k - 1) * dilation + 1)) / stride + 1, rounded down.
/// Types: the common type; images and kernels both of Bool or integers give Int64 (UInt64: itself), exactly.
/// Errors: shape (channels do not fit; the input is smaller than the kernel; a missing batch dim), dtype (types
/// differ), argument (groups do not divide the channels). Source: NNlib.conv.
ROSIN_API Array conv(const Array& x, const Array& w, const ConvOptions& options = {});
/// Cross-correlation: as conv, kernel not flipped (what PyTorch calls convolution).
ROSIN_API Array crosscor(const Array& x, const Array& w, const ConvOptions& options = {});

/// Transposed convolution, the gradient of conv by its input: w is (kernel..., out / groups, in); result sizes
/// (in - 1) * stride + 1 + (k - 1) * dilation - (low + high) + outpad. Errors as conv. Source: Flux.ConvTranspose.
ROSIN_API Array conv_transpose(const Array& x, const Array& w, const ConvOptions& options = {},
                               const Extents& outpad = {});
/// The gradient of crosscor by its input: as conv_transpose, kernel not flipped (what PyTorch calls transposed
/// convolution).
ROSIN_API Array crosscor_transpose(const Array& x, const Array& w, const ConvOptions& options = {},
                                   const Extents& outpad = {});

}  // namespace rosin
