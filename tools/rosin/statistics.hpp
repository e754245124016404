// Statistics of an array's values, for `rosin inspect --stats`.
#pragma once

#include <cstdint>
#include <string>

#include <rosin/array.hpp>

#include "commands.hpp"

namespace command {

/// Of elements that are numbers and finite, unless it says else; without any, all but the counts are NaN.
struct Statistics {
  bool complex = false;
  double least = 0;  // of complex elements: absolute values
  double greatest = 0;
  double mean = 0;
  double imaginary_mean = 0;
  double deviation = 0;  // of these elements (divided by their number): the root of the mean of |x - mean|^2
  uint64_t nan = 0;      // in either part
  uint64_t inf = 0;      // of either sign
};

/// A Bool counts as 0 or 1.
Statistics statistics_of(const rosin::Array& x);
/// "min -1, max 2.5, mean 0.25, std 1.5, 2 NaN, 1 Inf", "min |x| 1, max |x| 2, mean 1 - 0.5i, std 1"; counts that are 0
/// are left out.
std::string statistics_text(const Statistics& found);
/// What is NaN is null; the mean of complex elements is a list of two.
Json statistics_json(const Statistics& found);

}  // namespace command
