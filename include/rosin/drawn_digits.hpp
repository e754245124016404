// Pictures of digits that rosin draws itself, so that a first training run needs no download.
// Read next: idx.hpp (pictures from files, and as arrays).
#pragma once

#include <cstdint>

#include <rosin/export.hpp>
#include <rosin/idx.hpp>

namespace rosin {

/// Draws `count` grey pictures of 28x28 pixels of the digits 0 to 9, each in a random hand: glyph, wobble, size,
/// rotation, slant, place, pen width, darkness and noise. Image k depends on `seed` and k alone: the same on every run,
/// and a longer set begins with the shorter one. A linear classifier stays below 0.85 on them, a small network with one
/// hidden layer passes 0.95. Negative `count`: an Error of kind argument.
ROSIN_API LabelledImages draw_digits(int64_t count, uint64_t seed);

}  // namespace rosin
