// Pooling over windows at places that are drawn. Read first: pool.hpp.
#pragma once

#include <rosin/array.hpp>
#include <rosin/export.hpp>
#include <rosin/pool.hpp>

namespace rosin {

/// The largest elements of windows at places of each plane's own, spread so that the image becomes `out` elements in
/// each dim: window i of a dim begins at floor((i + u) a) - floor(u a) with a = (in - window) / (out - 1), the last one
/// at in - window. u is `samples` (spatial dims, channels, batch) in [0, 1); nothing: drawn by this thread's generator.
/// Places as of maxpool_with_indices. Errors: shape (a window larger than the image, other samples), dtype. Source:
/// Graham: Fractional Max-Pooling (2014); torch.nn.functional.fractional_max_pool2d (in its form for volumes samples
/// come in the opposite order of dims).
ROSIN_API MaxPooled fractional_maxpool(const Array& x, const Extents& window, const Extents& out,
                                       const Array& samples = {});

}  // namespace rosin
