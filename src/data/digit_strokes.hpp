// The pen strokes of the ten digits, several ways to write each. Read next: drawn_digits.cpp, which draws them.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

namespace rosin {

/// A place in the box of a digit: x to the right, y downwards, both from 0 to 1.
struct PenPoint {
  double x = 0;
  double y = 0;
};

/// One movement of the pen: straight from point to point, or a smooth curve through them.
struct PenStroke {
  static constexpr std::size_t most_points = 12;

  constexpr PenStroke() = default;
  constexpr PenStroke(bool is_smooth, std::initializer_list<PenPoint> list) : smooth(is_smooth) {
    for (const PenPoint& point : list) points[count++] = point;
  }

  bool smooth = false;
  std::size_t count = 0;
  std::array<PenPoint, most_points> points{};
};

/// One way to write a digit.
struct Glyph {
  static constexpr std::size_t most_strokes = 3;

  constexpr Glyph(int of_digit, std::initializer_list<PenStroke> list) : digit(of_digit) {
    for (const PenStroke& stroke : list) strokes[count++] = stroke;
  }

  int digit = 0;
  std::size_t count = 0;
  std::array<PenStroke, most_strokes> strokes{};
};

/// All glyphs, those of one digit next to each other, digits ascending.
std::span<const Glyph> glyphs();

}  // namespace rosin
