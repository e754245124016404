// The elements of an array as texts, for printing. Read first: number_text.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rosin/array.hpp>

namespace rosin {

/// Copies the values to the host once; numbers are then printed by their place, column-major.
class ElementTexts {
 public:
  /// `compact`: at most six significant digits, complex numbers without spaces: as in tables of several columns.
  ElementTexts(const Array& x, bool compact);
  /// "1.0", "3", "1.0 - 2.0im"; a Bool as 0 or 1, or where it stands alone as true or false.
  std::string text(int64_t at, bool alone = false) const;

 private:
  std::string complex_text(double real, double imaginary) const;

  DType type_;
  bool compact_;
  std::vector<double> floats_;  // both parts of complex elements
  std::vector<int64_t> integers_;
};

}  // namespace rosin
