// A forward convolution of few images, cut into rows, so that one image has work for several threads. Read after
// conv_cuts.hpp.
#pragma once

#include <functional>
#include <memory>

#include "engines/vendor.hpp"

namespace rosin::engines {

using MakeConv = std::function<std::unique_ptr<VendorCall>(const ConvSpec& spec)>;

/// The convolution piece by piece, where it is worth several; else what `make` prepares for all of it. What `make`
/// prepares for two spatial dims or more packs weights the same for any number of rows, and has no finish().
std::unique_ptr<VendorCall> by_rows(const ConvSpec& spec, const MakeConv& make);

}  // namespace rosin::engines
