// UTF-8 and classes of code points (unicode_classes.hpp).
#include <algorithm>

#include "data/unicode_classes.hpp"

namespace rosin {
namespace {

bool is_inside(std::span<const CodeRange> ranges, uint32_t value) noexcept {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), value,
                                      [](uint32_t wanted, const CodeRange& range) { return wanted < range.first; });
  return after != ranges.begin() && value <= (after - 1)->last;
}

/// Above ASCII.
constexpr bool is_space(uint32_t value) noexcept {
  return value == 0x85 || value == 0xa0 || value == 0x1680 || (value >= 0x2000 && value <= 0x200a) || value == 0x2028 ||
         value == 0x2029 || value == 0x202f || value == 0x205f || value == 0x3000;
}

}  // namespace

CodePoint code_point_at(std::string_view text, size_t at) noexcept {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[at + i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  const CodePoint broken{first, 1, false};
  const size_t count = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (count == 0 || text.size() - at < count) return broken;
  uint32_t value = first & (0xffu >> (count + 1));
  for (size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return broken;
    value = value << 6 | (byte(i) & 0x3f);
  }
  const bool overlong = (count == 3 && value < 0x800) || (count == 4 && value < 0x10000);
  if (overlong || (value >= 0xd800 && value < 0xe000) || value > 0x10ffff) return broken;
  return {value, static_cast<uint8_t>(count), true};
}

void append_code_point(std::string& text, uint32_t value) {
  const auto tail = [&](int shift) { text.push_back(static_cast<char>(0x80 | ((value >> shift) & 0x3f))); };
  if (value < 0x80) {
    text.push_back(static_cast<char>(value));
  } else if (value < 0x800) {
    text.push_back(static_cast<char>(0xc0 | value >> 6));
    tail(0);
  } else if (value < 0x10000) {
    text.push_back(static_cast<char>(0xe0 | value >> 12));
    tail(6);
    tail(0);
  } else {
    text.push_back(static_cast<char>(0xf0 | value >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

CodeClass class_of(uint32_t value) noexcept {
  if (value < 0x80) return ascii_class(value);
  if (is_space(value)) return CodeClass::space;
  if (is_inside(letter_ranges(), value)) return CodeClass::letter;
  return is_inside(number_ranges(), value) ? CodeClass::number : CodeClass::other;
}

}  // namespace rosin
