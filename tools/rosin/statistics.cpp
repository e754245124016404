// Two passes over the values as doubles, which the 16 digits of a deviation need.
#include "statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdio>
#include <limits>
#include <vector>

#include <rosin/complex.hpp>

namespace command {
namespace {

std::string digits(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", number);
  return text.data();
}

bool is_finite(const std::complex<double>& value) { return std::isfinite(value.real()) && std::isfinite(value.imag()); }

Json number_or_null(double number) { return std::isnan(number) ? Json() : Json(number); }

}  // namespace

Statistics statistics_of(const rosin::Array& x) {
  const bool complex = rosin::is_complex(x.dtype());
  const std::vector<double> values = (complex ? rosin::real(x) : x).to_vector<double>();
  const std::vector<double> imaginary = complex ? rosin::imag(x).to_vector<double>() : std::vector<double>();
  const auto element = [&](size_t i) { return std::complex<double>(values[i], complex ? imaginary[i] : 0.0); };
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  Statistics found{complex, none, none, none, none, none, 0, 0};
  std::complex<double> sum;
  double count = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::complex<double> value = element(i);
    const bool nan = std::isnan(value.real()) || std::isnan(value.imag());
    found.nan += nan;
    found.inf += !nan && !is_finite(value);
    if (!is_finite(value)) continue;
    const double size = complex ? std::abs(value) : value.real();
    found.least = std::fmin(found.least, size);  // (of a NaN and a number it is the number)
    found.greatest = std::fmax(found.greatest, size);
    sum += value;
    ++count;
  }
  if (count == 0) return found;
  const std::complex<double> mean = sum / count;
  double squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_finite(element(i))) squares += std::norm(element(i) - mean);
  }
  found.mean = mean.real();
  found.imaginary_mean = mean.imag();
  found.deviation = std::sqrt(squares / count);
  return found;
}

std::string statistics_text(const Statistics& found) {
  std::string text = "no finite values";
  if (!std::isnan(found.mean)) {
    const std::string size = found.complex ? "|x| " : "";
    text =
        "min " + size + digits(found.least) + ", max " + size + digits(found.greatest) + ", mean " + digits(found.mean);
    if (found.complex) {
      text += (found.imaginary_mean < 0 ? " - " : " + ") + digits(std::abs(found.imaginary_mean)) + "i";
    }
    text += ", std " + digits(found.deviation);
  }
  if (found.nan > 0) text += ", " + std::to_string(found.nan) + " NaN";
  if (found.inf > 0) text += ", " + std::to_string(found.inf) + " Inf";
  return text;
}

Json statistics_json(const Statistics& found) {
  Json mean = number_or_null(found.mean);
  if (found.complex) mean = Json::array({mean, number_or_null(found.imaginary_mean)});
  return {{"min", number_or_null(found.least)},
          {"max", number_or_null(found.greatest)},
          {"mean", mean},
          {"std", number_or_null(found.deviation)},
          {"nan", found.nan},
          {"inf", found.inf}};
}

}  // namespace command
