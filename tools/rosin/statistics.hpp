// Statistics of an array's values, for `rosin inspect --stats`.
#pragma once

#include <cstdint>
#include <string>

#include <rosin/array.hpp>

#include "commands.hpp"

namespace command {

/// Of elements that are numbers and finite, unless it says else; without any, all but the counts are NaN.
struct Statistics {
  double least = 0;
  double greatest = 0;
  double mean = 0;
  double deviation = 0;  // of these elements (divided by their number)
  uint64_t nan = 0;
  uint64_t inf = 0;  // of either sign
};

/// Of a real array; a Bool counts as 0 or 1.
Statistics statistics_of(const rosin::Array& x);
/// "min -1, max 2.5, mean 0.25, std 1.5, 2 NaN, 1 Inf"; counts that are 0 are left out.
std::string statistics_text(const Statistics& found);
/// What is NaN is null.
Json statistics_json(const Statistics& found);

}  // namespace command
