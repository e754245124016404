// Images at other sizes and places: interpolation to any size, sampling at the points of a grid, and the windows of
// images as columns. Images are (spatial..., channels, batch) with one to three spatial dims. All of it has gradients
// of any order and runs on every device.
#pragma once

#include <cstdint>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/export.hpp>
#include <rosin/pool.hpp>

namespace rosin {

/// How values between elements are found. area: means of the elements that a new one covers. nearest takes the element
/// in which a new one begins, nearest_exact that in which its middle lies.
enum class Interpolation : uint8_t { nearest, linear, cubic, area, nearest_exact };

/// Either the size to reach or the factor, of all spatial dims or of each.
struct InterpolateOptions {
  Extents size = {};
  std::vector<double> scale = {};  // any factor above 0; sizes are rounded down
  Interpolation mode = Interpolation::linear;
  bool align_corners = false;  // linear, cubic: corners stay at corners, else elements are areas
  bool antialias = false;      // linear, cubic: smaller images are smoothed first
};
/// x at another size. Errors: shape (x is no image), argument (both or none of size and scale, a size below 1, an
/// option that the mode does not have). Source: torch.nn.functional.interpolate.
ROSIN_API Array interpolate(const Array& x, const InterpolateOptions& options);

/// The windows of images: (positions, window elements * channels, batch), dims of positions and windows counted from
/// the first on, elements of the window before channels. Source: torch.nn.functional.unfold, NNlib.unfold.
struct UnfoldOptions {
  Extents stride = {};    // 1
  Extents pad = {};       // 0; zeros; one number, one for each dim, or low and high for each dim
  Extents dilation = {};  // 1
};
ROSIN_API Array unfold(const Array& x, const Extents& window, const UnfoldOptions& options = {});
/// The sum of windows (positions, window elements * channels, batch) where they stand, in images of that size: the
/// adjoint of unfold. Errors: shape, argument. Source: torch.nn.functional.fold.
ROSIN_API Array fold(const Array& y, const Extents& size, const Extents& window, const UnfoldOptions& options = {});

/// Points (d, sizes..., batch) to which the affine maps theta (d, d + 1, batch) take those of an image of d dims and
/// these sizes; coordinates are -1 to 1 from end to end (of corner elements' middles with align_corners, else of their
/// outer edges). Error (shape). Source: torch.nn.functional.affine_grid.
ROSIN_API Array affine_grid(const Array& theta, const Extents& size, bool align_corners = false);

/// What stands outside of the image.
enum class GridBorder : uint8_t { zeros, border, reflection };
struct GridSampleOptions {
  Interpolation mode = Interpolation::linear;  // or nearest, cubic
  GridBorder border = GridBorder::zeros;
  bool align_corners = false;  // as affine_grid; NNlib's is true
};
/// x (spatial..., channels, batch) at the points of grid (d, sizes..., batch), first coordinate along dim 0:
/// (sizes..., channels, batch). Errors: shape; argument (another mode). Source: torch.nn.functional.grid_sample,
/// NNlib.grid_sample.
ROSIN_API Array grid_sample(const Array& x, const Array& grid, const GridSampleOptions& options = {});

}  // namespace rosin
