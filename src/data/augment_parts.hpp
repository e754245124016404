// What augmentations share: checks, coordinates of pixels, and picking pixels by them (augment.hpp).
#pragma once

#include <rosin/augment.hpp>

namespace rosin {

/// Error (shape) unless x is (width, height, channels, batch); Error (dtype) unless it is floating point.
void check_pictures(const char* op, const Array& x);
/// Of coordinates and draws, on x's device: Float64 for pictures of it, else Float32.
ArrayOptions for_places(const Array& x);
/// 0 ... n - 1 along one of the 4 dims of x.
Array places_along(const Array& x, int dim, int64_t n);
/// A number as (1, 1, 1, 1) on x's device, or (batch) as (1, 1, 1, batch), of this type. Error (shape).
Array for_each_picture(const char* op, const Array& x, const Array& value, DType type);
/// Uniform numbers (1, 1, 1, batch) in [low, high) on x's device.
Array draws_for(Rng& rng, const Array& x, double low, double high);
/// Pixels of x at columns and rows (width, height, 1, batch or 1), which are whole numbers; 0 outside.
Array pixels_at(const Array& x, const Array& columns, const Array& rows);

}  // namespace rosin
