// Draws the digits of digit_strokes.hpp with a round pen: every stroke becomes a chain of short segments, every pixel
// takes the darkest coverage of the segments near it, noise comes last. Read next: digit_strokes.cpp.
#include <rosin/drawn_digits.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <string>
#include <vector>

#include <rosin/error.hpp>

#include "data/digit_strokes.hpp"

namespace rosin {

namespace {

constexpr int side = 28;
constexpr std::size_t pixels_per_image = static_cast<std::size_t>(side) * side;

// How far the hands differ. Wider ranges make the task harder, for a linear classifier most of all.
constexpr double height = 17.5;  // of a digit, in pixels
constexpr double width = 13.0;
constexpr double size_range = 0.22;      // relative
constexpr double rotation_range = 0.35;  // radians
constexpr double slant_range = 0.3;
constexpr double shift_range = 2.6;    // pixels
constexpr double wobble = 0.04;        // standard deviation of every pen point
constexpr double thinnest_pen = 0.75;  // radius in pixels
constexpr double thickest_pen = 1.65;
constexpr double faintest_ink = 0.65;
constexpr double noise = 0.07;  // standard deviation

// Random numbers as a function of (seed, image, position): the output step of SplitMix64 (Steele, Lea, Flood 2014).
class Draws {
 public:
  Draws(uint64_t seed, uint64_t image) : state_(mix(mix(seed) + image)) {}

  uint64_t bits() { return mix(state_ += golden); }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  double around_zero(double range) { return between(-range, range); }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(uniform() * static_cast<double>(count)); }

  // Nearly normal with deviation 1: the sum of the four 16-bit quarters, so that no library's log has a say.
  double normal() {
    const uint64_t word = bits();
    const uint64_t sum = (word & 0xffff) + (word >> 16 & 0xffff) + (word >> 32 & 0xffff) + (word >> 48);
    return (static_cast<double>(sum) * 0x1p-16 - 2.0) * std::numbers::sqrt3;
  }

 private:
  static constexpr uint64_t golden = 0x9e3779b97f4a7c15;

  static uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
  }

  uint64_t state_;
};

// From the box of a digit to pixels: scale, slant, rotate, move to the middle of the image and a little away from it.
class Placement {
 public:
  explicit Placement(Draws& draws) {
    const double across = width * (1 + draws.around_zero(size_range));
    const double down = height * (1 + draws.around_zero(size_range));
    const double slant = draws.around_zero(slant_range);
    const double angle = draws.around_zero(rotation_range);
    const double cosine = std::cos(angle);
    const double sine = std::sin(angle);
    xx_ = across * cosine;
    xy_ = -down * (slant * cosine + sine);
    yx_ = across * sine;
    yy_ = down * (cosine - slant * sine);
    x_ = side / 2.0 + draws.around_zero(shift_range);
    y_ = side / 2.0 + draws.around_zero(shift_range);
  }

  PenPoint operator()(PenPoint point) const {
    const double x = point.x - 0.5;
    const double y = point.y - 0.5;
    return {x_ + xx_ * x + xy_ * y, y_ + yx_ * x + yy_ * y};
  }

 private:
  double xx_, xy_, yx_, yy_, x_, y_;
};

using Ink = std::array<double, pixels_per_image>;  // 0: no ink, 1: full; row after row

double distance_to_segment(PenPoint at, PenPoint from, PenPoint to) {
  const double dx = to.x - from.x;
  const double dy = to.y - from.y;
  const double length = dx * dx + dy * dy;
  const double along = length > 0 ? ((at.x - from.x) * dx + (at.y - from.y) * dy) / length : 0;
  const double nearest = std::clamp(along, 0.0, 1.0);
  const double x = at.x - from.x - nearest * dx;
  const double y = at.y - from.y - nearest * dy;
  return std::sqrt(x * x + y * y);
}

int pixel_within_image(double place) { return static_cast<int>(std::clamp(place, 0.0, side - 1.0)); }

void draw_segment(Ink& ink, PenPoint from, PenPoint to, double radius) {
  const double reach = radius + 0.5;
  const int left = pixel_within_image(std::min(from.x, to.x) - reach);
  const int right = pixel_within_image(std::max(from.x, to.x) + reach);
  const int top = pixel_within_image(std::min(from.y, to.y) - reach);
  const int bottom = pixel_within_image(std::max(from.y, to.y) + reach);
  for (int row = top; row <= bottom; ++row) {
    for (int column = left; column <= right; ++column) {
      const double distance = distance_to_segment({column + 0.5, row + 0.5}, from, to);
      double& value = ink[static_cast<std::size_t>(row) * side + static_cast<std::size_t>(column)];
      value = std::max(value, std::clamp(reach - distance, 0.0, 1.0));
    }
  }
}

// A point of the Catmull-Rom curve from b to c; a and d are the points before and after.
PenPoint on_curve(PenPoint a, PenPoint b, PenPoint c, PenPoint d, double t) {
  const auto blend = [t](double p, double q, double r, double s) {
    return q + 0.5 * t * (r - p + t * (2 * p - 5 * q + 4 * r - s + t * (3 * (q - r) + s - p)));
  };
  return {blend(a.x, b.x, c.x, d.x), blend(a.y, b.y, c.y, d.y)};
}

void draw_curve(Ink& ink, const PenStroke& stroke, double radius) {
  constexpr int pieces = 4;
  const auto& points = stroke.points;
  const std::size_t last = stroke.count - 1;
  for (std::size_t k = 0; k < last; ++k) {
    const PenPoint before = points[k == 0 ? 0 : k - 1];
    const PenPoint after = points[std::min(k + 2, last)];
    PenPoint from = points[k];
    for (int piece = 1; piece <= pieces; ++piece) {
      const PenPoint to = on_curve(before, points[k], points[k + 1], after, static_cast<double>(piece) / pieces);
      draw_segment(ink, from, to, radius);
      from = to;
    }
  }
}

void draw_stroke(Ink& ink, const PenStroke& stroke, double radius) {
  if (stroke.smooth) return draw_curve(ink, stroke, radius);
  for (std::size_t k = 0; k + 1 < stroke.count; ++k) {
    draw_segment(ink, stroke.points[k], stroke.points[k + 1], radius);
  }
}

// Strokes that meet in the table meet on the paper: equal points wobble equally.
void wobble_points(Glyph& glyph, Draws& draws) {
  const Glyph model = glyph;
  for (std::size_t s = 0; s < glyph.count; ++s) {
    for (std::size_t k = 0; k < glyph.strokes[s].count; ++k) {
      const PenPoint original = model.strokes[s].points[k];
      PenPoint moved{original.x + wobble * draws.normal(), original.y + wobble * draws.normal()};
      for (std::size_t earlier = 0; earlier <= s; ++earlier) {
        const std::size_t end = earlier == s ? k : glyph.strokes[earlier].count;
        for (std::size_t j = 0; j < end; ++j) {
          const PenPoint met = model.strokes[earlier].points[j];
          if (met.x == original.x && met.y == original.y) moved = glyph.strokes[earlier].points[j];
        }
      }
      glyph.strokes[s].points[k] = moved;
    }
  }
}

const Glyph& choose_glyph(int digit, Draws& draws) {
  const auto of_digit = [digit](const Glyph& glyph) { return glyph.digit == digit; };
  const auto all = glyphs();
  const auto begin = std::find_if(all.begin(), all.end(), of_digit);
  const auto count = static_cast<std::size_t>(std::count_if(all.begin(), all.end(), of_digit));
  return begin[static_cast<std::ptrdiff_t>(draws.below(count))];
}

// pixels: side * side bytes, row after row. Returns the digit.
uint8_t draw_digit(uint8_t* pixels, Draws draws) {
  const int digit = static_cast<int>(draws.below(10));
  Glyph glyph = choose_glyph(digit, draws);
  wobble_points(glyph, draws);
  const Placement place(draws);
  const double radius = draws.between(thinnest_pen, thickest_pen);
  const double darkness = draws.between(faintest_ink, 1.0);
  Ink ink{};
  for (std::size_t s = 0; s < glyph.count; ++s) {
    for (PenPoint& point : glyph.strokes[s].points) point = place(point);
    draw_stroke(ink, glyph.strokes[s], radius);
  }
  for (const double value : ink) {
    const double grey = std::clamp(darkness * value + noise * draws.normal(), 0.0, 1.0);
    *pixels++ = static_cast<uint8_t>(std::lround(255.0 * grey));
  }
  return static_cast<uint8_t>(digit);
}

}  // namespace

LabelledImages draw_digits(int64_t count, uint64_t seed) {
  constexpr int64_t most = int64_t{1} << 24;
  if (count < 0 || count > most) {
    throw Error(ErrorKind::argument, "draw_digits: the number of images must be in [0, " + std::to_string(most) +
                                         "]; got " + std::to_string(count) + "; draw parts with several seeds");
  }
  const auto images = static_cast<std::size_t>(count);
  LabelledImages drawn{count, side, side, std::vector<uint8_t>(images * pixels_per_image),
                       std::vector<uint8_t>(images)};
  for (std::size_t k = 0; k < images; ++k) {
    drawn.labels[k] = draw_digit(&drawn.pixels[k * pixels_per_image], Draws(seed, k));
  }
  return drawn;
}

}  // namespace rosin
