// A picture of a training run: loss and accuracy over the epochs. Read next: progress.hpp (the same while it runs).
#pragma once

#include <string>
#include <vector>

#include <rosin/export.hpp>

namespace rosin {

/// The state of a training run after an epoch. A value that is NaN or infinite leaves a gap in its curve.
struct CurvePoint {
  double epoch = 0;
  double loss = 0;
  double accuracy = 0;
};

/// An SVG image that needs no other file: loss on the left axis, accuracy on the right one, epochs below, in the light
/// or dark colours the viewer prefers. Points come in the order of their epochs; none at all gives empty axes.
ROSIN_API std::string curve_svg(const std::vector<CurvePoint>& points, const std::string& title = "");

/// Writes that image to a file, which appears whole or not at all, as with save(). Error (io): it cannot be written.
ROSIN_API void save_curve_svg(const std::string& path, const std::vector<CurvePoint>& points,
                              const std::string& title = "");

}  // namespace rosin
