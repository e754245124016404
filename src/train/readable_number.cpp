// See readable_number.hpp. to_chars knows no locale, printf does.
#include "train/readable_number.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace rosin {

namespace {

std::string text(double value, std::chars_format format, int digits) {
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, digits);
  return {buffer.data(), result.ptr};
}

std::string two_digits(int64_t value) { return (value < 10 ? "0" : "") + std::to_string(value); }

}  // namespace

std::string fixed_text(double value, int digits) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return text(value, std::abs(value) < 1e15 ? std::chars_format::fixed : std::chars_format::scientific, digits);
}

std::string loss_text(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value) || size == 0) return fixed_text(value, 4);
  if (size >= 1e5 || size < 1e-3) return text(value, std::chars_format::scientific, 2);
  return fixed_text(value, size >= 1000 ? 1 : size >= 100 ? 2 : 4);
}

std::string duration_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e12)) return "-";
  const int64_t whole = std::llround(seconds);
  const int64_t hours = whole / 3600;
  const int64_t minutes = whole / 60 % 60;
  const std::string tail = ":" + two_digits(whole % 60);
  return hours > 0 ? std::to_string(hours) + ":" + two_digits(minutes) + tail : std::to_string(minutes) + tail;
}

}  // namespace rosin
