// Two passes over the values as doubles, which the 16 digits of a deviation need.
#include "statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

namespace command {
namespace {

std::string digits(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", number);
  return text.data();
}

Json number_or_null(double number) { return std::isnan(number) ? Json() : Json(number); }

}  // namespace

Statistics statistics_of(const rosin::Array& x) {
  const std::vector<double> values = x.to_vector<double>();
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  Statistics found{none, none, none, none, 0, 0};
  double sum = 0;
  uint64_t count = 0;
  for (const double value : values) {
    found.nan += std::isnan(value);
    found.inf += std::isinf(value);
    if (!std::isfinite(value)) continue;
    found.least = std::fmin(found.least, value);  // (of a NaN and a number it is the number)
    found.greatest = std::fmax(found.greatest, value);
    sum += value;
    ++count;
  }
  if (count == 0) return found;
  found.mean = sum / static_cast<double>(count);
  double squares = 0;
  for (const double value : values) {
    if (std::isfinite(value)) squares += (value - found.mean) * (value - found.mean);
  }
  found.deviation = std::sqrt(squares / static_cast<double>(count));
  return found;
}

std::string statistics_text(const Statistics& found) {
  std::string text = "no finite values";
  if (!std::isnan(found.mean)) {
    text = "min " + digits(found.least) + ", max " + digits(found.greatest) + ", mean " + digits(found.mean) +
           ", std " + digits(found.deviation);
  }
  if (found.nan > 0) text += ", " + std::to_string(found.nan) + " NaN";
  if (found.inf > 0) text += ", " + std::to_string(found.inf) + " Inf";
  return text;
}

Json statistics_json(const Statistics& found) {
  return {{"min", number_or_null(found.least)},
          {"max", number_or_null(found.greatest)},
          {"mean", number_or_null(found.mean)},
          {"std", number_or_null(found.deviation)},
          {"nan", found.nan},
          {"inf", found.inf}};
}

}  // namespace command
