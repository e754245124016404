// Augmentations of colours (augment.hpp). Read first: augment.cpp.
#include <algorithm>
#include <array>
#include <string>

#include <rosin/augment.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "data/augment_parts.hpp"

namespace rosin {
namespace {

void check_channels(const char* op, const Array& x, bool grey_too) {
  check_pictures(op, x);
  if (x.size(2) == 3 || (grey_too && x.size(2) == 1)) return;
  throw Error(ErrorKind::shape, std::string(op) + ": colours have 3 channels" + (grey_too ? ", grey 1" : "") +
                                    "; got " + to_string(x.shape()));
}

Array channel(const Array& x, int64_t at) { return slice(x, 2, at, at + 1); }

/// (width, height, 1, batch). Source: torchvision's rgb_to_grayscale.
Array grey(const Array& x) {
  return x.size(2) == 1 ? x : 0.2989 * channel(x, 0) + 0.587 * channel(x, 1) + 0.114 * channel(x, 2);
}

/// As for_each_picture, in the type of x.
Array factor_of(const char* op, const Array& x, const Array& value) {
  return for_each_picture(op, x, value, x.dtype());
}

Array blended(const char* op, const Array& x, const Array& other, const Array& factor) {
  const Array share = factor_of(op, x, factor);
  return clamp(share * x + (1 - share) * other, 0, 1);
}

}  // namespace

Array adjust_brightness(const Array& x, const Array& factor) {
  check_pictures("adjust_brightness", x);
  return clamp(factor_of("adjust_brightness", x, factor) * x, 0, 1);
}

Array adjust_contrast(const Array& x, const Array& factor) {
  check_channels("adjust_contrast", x, true);
  return blended("adjust_contrast", x, mean(grey(x), {0, 1, 2}), factor);
}

Array adjust_saturation(const Array& x, const Array& factor) {
  check_channels("adjust_saturation", x, true);
  return blended("adjust_saturation", x, grey(x), factor);
}

Array adjust_hue(const Array& x, const Array& turn) {
  check_channels("adjust_hue", x, false);
  const Array red = channel(x, 0), green = channel(x, 1), blue = channel(x, 2);
  const Array most = max(max(red, green), blue), range = most - min(min(red, green), blue);
  const Array divisor = where(range > 0, range, 1);
  const auto part = [&](const Array& colour) { return (most - colour) / divisor; };
  const Array sixth = where(most == red, part(blue) - part(green),
                            where(most == green, 2 + part(red) - part(blue), 4 + part(green) - part(red)));
  const Array hue = mod(sixth / 6 + factor_of("adjust_hue", x, turn), 1);
  // A channel falls from `most` by what its distance on the circle of six says.
  const auto colour = [&](double place) {
    const Array k = mod(place + 6 * hue, 6);
    return most - range * clamp(min(k, 4 - k), 0, 1);
  };
  return concat({colour(5), colour(3), colour(1)}, 2);
}

Array colour_jitter(Rng& rng, const Array& x, const ColourJitterOptions& options) {
  check_pictures("colour_jitter", x);
  const std::array strengths{options.brightness, options.contrast, options.saturation, options.hue};
  constexpr std::array steps{adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue};
  Array result = x;
  for (size_t i = 0; i < strengths.size(); ++i) {
    const bool turns = i + 1 == strengths.size();
    const double strength = strengths[i], middle = turns ? 0 : 1;
    if (!(strength >= 0) || (turns && strength > 0.5)) {
      throw Error(ErrorKind::argument,
                  "colour_jitter: strengths are not negative, hue at most 0.5; got " + std::to_string(strength));
    }
    if (strength > 0) {
      const double low = turns ? -strength : std::max(0.0, middle - strength);
      result = steps[i](result, draws_for(rng, x, low, middle + strength));
    }
  }
  return result;
}

Array colour_jitter(const Array& x, const ColourJitterOptions& options) {
  return colour_jitter(default_rng(), x, options);
}

}  // namespace rosin
