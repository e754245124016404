// Augmentation of pictures (width, height, channels, batch), floating point, as ops on arrays of any device, with
// gradients. Each picture of a batch draws for itself, from `rng` or from this thread's generator, which in code that a
// DataLoader calls depends on its generator, the epoch and the place alone. Read next: image.hpp (pictures in files).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include <rosin/array.hpp>
#include <rosin/export.hpp>
#include <rosin/random.hpp>

namespace rosin {

/// How values between pixels are found; source: torch.nn.functional.interpolate and grid_sample, align_corners=False.
enum class PixelMode : uint8_t { nearest, bilinear };

/// (x - mean) / deviation, with a number of each for each channel: ImageNet's are {0.485f, 0.456f, 0.406f} and {0.229f,
/// 0.224f, 0.225f}. Error (shape): not as many as channels. Source: torchvision's Normalize.
ROSIN_API Array normalise_channels(const Array& x, std::span<const float> mean, std::span<const float> deviation);
inline Array normalise_channels(const Array& x, std::initializer_list<float> mean,
                                std::initializer_list<float> deviation) {
  return normalise_channels(x, std::span<const float>(mean.begin(), mean.size()),
                            std::span<const float>(deviation.begin(), deviation.size()));
}

/// (width, height, channels, batch) of other sizes, without a filter before pictures shrink. Errors: argument (a size
/// below 1), shape. Source: torchvision's resize with antialias=False.
ROSIN_API Array resize(const Array& x, int64_t width, int64_t height, PixelMode mode = PixelMode::bilinear);

/// One picture, or each of a batch, moved about its centre: turned by `angle` degrees (clockwise as shown), then moved
/// by pixels, enlarged by `scale` and sheared by degrees. Each is a number or an array (batch).
struct AffineOptions {
  Array angle = 0;
  Array move_x = 0, move_y = 0;
  Array scale = 1;
  Array shear_x = 0, shear_y = 0;
  PixelMode mode = PixelMode::bilinear;
};
/// What comes from outside is 0. Errors: shape (x has no 4 dims; an option does not broadcast to the batch). Source:
/// torchvision's functional.affine.
ROSIN_API Array affine(const Array& x, const AffineOptions& options);

struct RandomAffineOptions {
  double degrees = 0;                    // turned by -degrees to degrees
  std::array<double, 2> move = {0, 0};   // at most this share of width and height, either way
  std::array<double, 2> scale = {1, 1};  // from, to
  double shear = 0;                      // along x, by -shear to shear degrees
  PixelMode mode = PixelMode::bilinear;
};
/// Source: torchvision's RandomAffine.
ROSIN_API Array random_affine(Rng& rng, const Array& x, const RandomAffineOptions& options);
ROSIN_API Array random_affine(const Array& x, const RandomAffineOptions& options);

/// A part of (width, height) at a place of each picture's own, after `padding` zeros on all sides. Errors: argument (a
/// size below 1), shape (larger than the padded picture). Source: torchvision's RandomCrop.
ROSIN_API Array random_crop(Rng& rng, const Array& x, int64_t width, int64_t height, int64_t padding = 0);
ROSIN_API Array random_crop(const Array& x, int64_t width, int64_t height, int64_t padding = 0);

/// Mirrored along `dim` (0: left and right, 1: up and down) with probability p.
ROSIN_API Array random_flip(Rng& rng, const Array& x, double p = 0.5, int dim = 0);
ROSIN_API Array random_flip(const Array& x, double p = 0.5, int dim = 0);

/// Colours from 0 to 1, clamped afterwards; `factor` (a number, or (batch)) is 1 for the same picture: towards black,
/// the picture's mean grey, grey, as torchvision's adjust_brightness, adjust_contrast and adjust_saturation. Saturation
/// is of 3 channels, or 1 that stays; contrast of 1 or 3. Error (shape): other numbers of channels.
ROSIN_API Array adjust_brightness(const Array& x, const Array& factor);
ROSIN_API Array adjust_contrast(const Array& x, const Array& factor);
ROSIN_API Array adjust_saturation(const Array& x, const Array& factor);
/// Hues of 3 channels moved on by `turn` (-0.5 to 0.5 of the circle). Source: torchvision's adjust_hue.
ROSIN_API Array adjust_hue(const Array& x, const Array& turn);

/// Factors are drawn from [1 - it, 1 + it], the turn of hues from [-hue, hue].
struct ColourJitterOptions {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double hue = 0;
};
/// Brightness, contrast, saturation and hue, in this order. Error (argument): a negative one, hue above 0.5. Source:
/// torchvision's ColorJitter, which shuffles the order.
ROSIN_API Array colour_jitter(Rng& rng, const Array& x, const ColourJitterOptions& options);
ROSIN_API Array colour_jitter(const Array& x, const ColourJitterOptions& options);

struct ErasingOptions {
  double p = 0.5;                             // of a picture to be changed
  std::array<double, 2> area = {0.02, 0.33};  // share of the picture, from, to
  std::array<double, 2> ratio = {0.3, 3.3};   // of the rectangle's height to its width, from, to
  double value = 0;
};
/// A rectangle of each picture becomes `value`; one that would be larger than the picture is cut to it. Source:
/// torchvision's RandomErasing; Zhong et al. (2020).
ROSIN_API Array random_erasing(Rng& rng, const Array& x, const ErasingOptions& options = {});
ROSIN_API Array random_erasing(const Array& x, const ErasingOptions& options = {});

/// Pictures and their targets (classes, batch), each mixed with those of another of the batch, by a share from
/// beta(alpha, alpha) of the batch. Targets are floating point afterwards. Error (argument): alpha <= 0; (shape).
/// Source: Zhang et al. (2018), torchvision's MixUp.
ROSIN_API std::pair<Array, Array> mixup(Rng& rng, const Array& x, const Array& y, double alpha = 1);
ROSIN_API std::pair<Array, Array> mixup(const Array& x, const Array& y, double alpha = 1);
/// As mixup, with a rectangle of the other picture in the place of this one's; targets by its area. Source: Yun et al.
/// (2019), torchvision's CutMix.
ROSIN_API std::pair<Array, Array> cutmix(Rng& rng, const Array& x, const Array& y, double alpha = 1);
ROSIN_API std::pair<Array, Array> cutmix(const Array& x, const Array& y, double alpha = 1);

}  // namespace rosin
