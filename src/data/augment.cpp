// Augmentations that move pixels (augment.hpp). Read next: augment_colours.cpp (colours), augment_mixes.cpp (rectangles
// and mixtures).
#include <rosin/augment.hpp>

#include <numbers>
#include <string>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/index.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>

#include "data/augment_parts.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"

namespace rosin {

void check_pictures(const char* op, const Array& x) {
  if (x.is_nothing() || x.rank() != 4) {
    throw Error(ErrorKind::shape, std::string(op) + ": pictures are (width, height, channels, batch); got " +
                                      (x.is_nothing() ? "nothing" : to_string(x.shape())) +
                                      "; write unsqueeze(x, -1) for one picture");
  }
  if (!is_float(x.dtype())) {
    throw Error(ErrorKind::dtype, std::string(op) + ": pictures are floating point; got " + to_string(x.dtype()) +
                                      "; write cast(x, Float32) / 255 for bytes");
  }
}

ArrayOptions for_places(const Array& x) { return ArrayOptions(x.dtype() == Float64 ? Float64 : Float32, x.device()); }

Array places_along(const Array& x, int dim, int64_t n) {
  int64_t sizes[] = {1, 1, 1, 1};
  sizes[dim] = n;
  return reshape(arange(0, static_cast<double>(n), 1, for_places(x)), Shape(sizes));
}

Array for_each_picture(const char* op, const Array& x, const Array& value, DType type) {
  const bool fits = !value.is_nothing() && (value.count() == 1 || value.count() == x.size(3));
  if (!fits) {
    throw Error(ErrorKind::shape, std::string(op) + ": an option is a number or has one for each of the " +
                                      std::to_string(x.size(3)) + " pictures; got " +
                                      (value.is_nothing() ? "nothing" : to_string(value.shape())));
  }
  if (is_scalar(*value.node())) return value + zeros({1, 1, 1, 1}, ArrayOptions(type, x.device()));
  return cast(reshape(value, {1, 1, 1, -1}), type);
}

Array draws_for(Rng& rng, const Array& x, double low, double high) {
  return uniform(rng, {1, 1, 1, x.size(3)}, low, high, for_places(x));
}

Array pixels_at(const Array& x, const Array& columns, const Array& rows) {
  const int64_t width = x.size(0), height = x.size(1), channels = x.size(2), batch = x.size(3);
  const Array inside =
      (columns >= 0) & (columns < static_cast<double>(width)) & (rows >= 0) & (rows < static_cast<double>(height));
  const Array place = cast(clamp(columns, 0, static_cast<double>(width - 1)), Int64) +
                      width * cast(clamp(rows, 0, static_cast<double>(height - 1)), Int64);
  const Array picture =
      reshape(arange(0, static_cast<double>(batch), 1, ArrayOptions(Int64, x.device())), {1, 1, 1, batch});
  const Array found =  // (channels, columns and rows of the result, 1, batch)
      gather(reshape(permute(x, {2, 0, 1, 3}), {channels, -1}), place + picture * (width * height));
  return where(inside, permute(squeeze(found, 3), {1, 2, 0, 3}), 0);
}

Array normalise_channels(const Array& x, std::span<const float> mean, std::span<const float> deviation) {
  check_pictures("normalise_channels", x);
  const int64_t channels = x.size(2);
  if (mean.size() != static_cast<size_t>(channels) || deviation.size() != mean.size()) {
    throw Error(ErrorKind::shape, "normalise_channels: there is a mean and a deviation for each of the " +
                                      std::to_string(channels) + " channels; got " + std::to_string(mean.size()) +
                                      " and " + std::to_string(deviation.size()));
  }
  const auto of_channels = [&](std::span<const float> values) {
    return cast(Array(values, {1, 1, channels}) | x.device(), x.dtype());
  };
  return (x - of_channels(mean)) / of_channels(deviation);
}

namespace {

Array sampled(const Array& x, const Array& columns, const Array& rows, PixelMode mode) {
  if (mode == PixelMode::nearest) return pixels_at(x, round(columns), round(rows));
  const Array left = floor(columns), top = floor(rows);
  const Array across = cast(columns - left, x.dtype()), down = cast(rows - top, x.dtype());
  const Array above = (1 - across) * pixels_at(x, left, top) + across * pixels_at(x, left + 1, top);
  const Array below = (1 - across) * pixels_at(x, left, top + 1) + across * pixels_at(x, left + 1, top + 1);
  return (1 - down) * above + down * below;
}

/// Places in `from` pixels of `to` pixels that cover the same.
Array resized_places(const Array& x, int dim, int64_t to, PixelMode mode) {
  const double from = static_cast<double>(x.size(dim)), step = from / static_cast<double>(to);
  const Array places = places_along(x, dim, to);
  if (mode == PixelMode::nearest) return floor(places * step);
  return clamp((places + 0.5) * step - 0.5, 0, from - 1);
}

/// Pixels along one dim at places within it.
Array resized_along(const Array& x, int dim, int64_t to, PixelMode mode) {
  if (to == x.size(dim)) return x;
  const Array places = resized_places(x, dim, to, mode);
  const double last = static_cast<double>(x.size(dim) - 1);
  const auto at = [&](const Array& whole) { return gather(x, cast(reshape(whole, {to}), Int64), dim); };
  const Array low = clamp(floor(places), 0, last);
  if (mode == PixelMode::nearest) return at(low);
  const Array part = cast(places - low, x.dtype());
  return (1 - part) * at(low) + part * at(clamp(low + 1, 0, last));
}

void check_sizes(const char* op, int64_t width, int64_t height) {
  if (width >= 1 && height >= 1) return;
  throw Error(ErrorKind::argument, std::string(op) + ": sizes are 1 or more; got " + std::to_string(width) + " and " +
                                       std::to_string(height));
}

}  // namespace

Array resize(const Array& x, int64_t width, int64_t height, PixelMode mode) {
  check_pictures("resize", x);
  check_sizes("resize", width, height);
  return resized_along(resized_along(x, 0, width, mode), 1, height, mode);
}

Array affine(const Array& x, const AffineOptions& options) {
  check_pictures("affine", x);
  const DType type = for_places(x).type_or(Float32);
  const auto option = [&](const Array& value) { return for_each_picture("affine", x, value, type); };
  const auto radians = [&](const Array& degrees) { return option(degrees) * (std::numbers::pi / 180); };
  const Array angle = radians(options.angle), along = radians(options.shear_x), up = radians(options.shear_y);
  // The matrix is the product of a turn, shears and a scale; its inverse takes places of the result to those in x.
  const Array a = cos(angle - up) / cos(up), b = -cos(angle - up) * tan(along) / cos(up) - sin(angle);
  const Array c = sin(angle - up) / cos(up), d = -sin(angle - up) * tan(along) / cos(up) + cos(angle);
  const Array scale = option(options.scale);
  const double middle_x = 0.5 * static_cast<double>(x.size(0) - 1), middle_y = 0.5 * static_cast<double>(x.size(1) - 1);
  const Array from_x = places_along(x, 0, x.size(0)) - middle_x - option(options.move_x);
  const Array from_y = places_along(x, 1, x.size(1)) - middle_y - option(options.move_y);
  return sampled(x, (d * from_x - b * from_y) / scale + middle_x, (a * from_y - c * from_x) / scale + middle_y,
                 options.mode);
}

Array random_affine(Rng& rng, const Array& x, const RandomAffineOptions& options) {
  check_pictures("random_affine", x);
  const auto either_way = [&](double most) { return draws_for(rng, x, -most, most); };
  AffineOptions drawn{.mode = options.mode};
  if (options.degrees != 0) drawn.angle = either_way(options.degrees);
  if (options.move[0] != 0) drawn.move_x = round(either_way(options.move[0] * static_cast<double>(x.size(0))));
  if (options.move[1] != 0) drawn.move_y = round(either_way(options.move[1] * static_cast<double>(x.size(1))));
  if (options.scale[0] != options.scale[1]) drawn.scale = draws_for(rng, x, options.scale[0], options.scale[1]);
  else drawn.scale = options.scale[0];
  if (options.shear != 0) drawn.shear_x = either_way(options.shear);
  return affine(x, drawn);
}

Array random_affine(const Array& x, const RandomAffineOptions& options) {
  return random_affine(default_rng(), x, options);
}

Array random_crop(Rng& rng, const Array& x, int64_t width, int64_t height, int64_t padding) {
  check_pictures("random_crop", x);
  check_sizes("random_crop", width, height);
  const int64_t room_x = x.size(0) + 2 * padding - width, room_y = x.size(1) + 2 * padding - height;
  if (padding < 0 || room_x < 0 || room_y < 0) {
    throw Error(ErrorKind::shape, "random_crop: the part is within the padded picture; got " + std::to_string(width) +
                                      "x" + std::to_string(height) + " of " + to_string(x.shape()) +
                                      " with the padding " + std::to_string(padding));
  }
  const ArrayOptions there(Int32, x.device());
  const Array left = randint(rng, -padding, room_x - padding + 1, {1, 1, 1, x.size(3)}, there);
  const Array top = randint(rng, -padding, room_y - padding + 1, {1, 1, 1, x.size(3)}, there);
  return pixels_at(x, places_along(x, 0, width) + left, places_along(x, 1, height) + top);
}

Array random_crop(const Array& x, int64_t width, int64_t height, int64_t padding) {
  return random_crop(default_rng(), x, width, height, padding);
}

Array random_flip(Rng& rng, const Array& x, double p, int dim) {
  check_pictures("random_flip", x);
  return where(draws_for(rng, x, 0, 1) < p, flip(x, dim), x);
}

Array random_flip(const Array& x, double p, int dim) { return random_flip(default_rng(), x, p, dim); }

}  // namespace rosin
