// Numbers as Julia prints them: digits by std::to_chars, laid out by Julia's rules.
#include "model/number_text.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

#include <rosin/show.hpp>

#include "platform/decimals.hpp"

namespace rosin {
namespace {

/// Significant decimal digits without trailing zeros and the place of the point: value = 0.DIGITS * 10^point.
struct Decimal {
  std::string digits;
  int point = 0;
};

/// Takes apart "d.ddde±xx".
Decimal parse(const char* begin, const char* end) {
  Decimal decimal;
  for (; begin != end && *begin != 'e'; ++begin) {
    if (*begin != '.') decimal.digits += *begin;
  }
  if (begin != end) ++begin;
  if (begin != end && *begin == '+') ++begin;
  int exponent = 0;
  std::from_chars(begin, end, exponent);
  decimal.point = exponent + 1;
  while (decimal.digits.size() > 1 && decimal.digits.back() == '0') decimal.digits.pop_back();
  return decimal;
}

/// With `precision` digits after the first one, or the shortest that read back when it is negative.
template <class T> Decimal digits_of(T value, int precision) {
  char text[64];
  const auto end = precision < 0
                       ? std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr
                       : std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, precision).ptr;
  return parse(text, end);
}

/// Rounds to `bits` significant bits, with subnormals from 2^lowest on.
double round_to(double value, int bits, int lowest) {
  int exponent;
  std::frexp(value, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - bits, lowest));
  return std::nearbyint(value / unit) * unit;
}

/// The shortest digits that read back in a 16-bit type.
Decimal short_digits(double value, DType type) {
  const int bits = type == Float16 ? 11 : 8, lowest = type == Float16 ? -24 : -133;
  for (int precision = 0; precision < 8; ++precision) {
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, precision).ptr;
    double back = 0;
    platform::read_decimal(text, end, back);
    if (round_to(back, bits, lowest) == value) return parse(text, end);
  }
  return digits_of(value, -1);
}

/// Whether zeros after the digits would claim to be exact though the value is not a whole number of that unit.
bool would_mislead(double size, int zeros) {
  return zeros >= 0 && std::abs(std::fmod(size + 0.05, std::pow(10.0, zeros)) - 0.05) > 0.05;
}

std::string lay_out(const Decimal& decimal, double size, int last_plain_point) {
  const std::string& digits = decimal.digits;
  const int count = static_cast<int>(digits.size()), point = decimal.point;
  if (point <= -4 || point > last_plain_point || would_mislead(size, point - count)) {
    const std::string rest = count > 1 ? digits.substr(1) : "0";
    return digits.substr(0, 1) + "." + rest + "e" + std::to_string(point - 1);
  }
  if (point <= 0) return "0." + std::string(static_cast<size_t>(-point), '0') + digits;
  if (point >= count) return digits + std::string(static_cast<size_t>(point - count), '0') + ".0";
  return digits.substr(0, static_cast<size_t>(point)) + "." + digits.substr(static_cast<size_t>(point));
}

}  // namespace

std::string float_text(double value, DType type, bool compact) {
  if (std::isnan(value)) return "NaN";
  const std::string sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return sign + "Inf";
  if (value == 0) return sign + "0.0";
  const double size = std::abs(value);
  Decimal decimal = type == Float32   ? digits_of(static_cast<float>(size), -1)
                    : type == Float64 ? digits_of(size, -1)
                                      : short_digits(size, type);
  if (compact && decimal.digits.size() > 6) decimal = digits_of(size, 5);
  return sign + lay_out(decimal, size, type == Float16 || type == BFloat16 ? 5 : 6);
}

std::string number_text(double value) { return float_text(value, Float64, false); }
std::string number_text(float value) { return float_text(static_cast<double>(value), Float32, false); }

std::string grouped(int64_t value) {
  std::string text = std::to_string(value);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, '_');
  return text;
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  for (; value >= 1024 && unit < 5; ++unit) value /= 1024;
  char text[48];
  std::snprintf(text, sizeof text, "%.3f %s", value, units[unit]);
  return text;
}

std::string sizes_text(const int64_t* sizes, int rank) {
  if (rank == 0) return {};
  if (rank == 1) return std::to_string(sizes[0]) + "-element";
  std::string text;
  for (int d = 0; d < rank; ++d) text += (d > 0 ? "×" : "") + std::to_string(sizes[d]);
  return text;
}

std::string heading_text(const Shape& shape, DType type) {
  const std::string sizes = sizes_text(shape.begin(), shape.rank());
  return (sizes.empty() ? "0-dimensional" : sizes) + " Array{" + to_string(type) + "}";
}

size_t width_of(const std::string& text) {
  size_t width = 0;
  for (char c : text) width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return width;
}

}  // namespace rosin
