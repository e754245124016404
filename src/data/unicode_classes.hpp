// UTF-8 and the classes of code points that cut text into words. Read next: unicode_classes.cpp (a generated table).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rosin {

/// Code points from first to last, both included.
struct CodeRange {
  uint32_t first;
  uint32_t last;
};
/// Sorted; what lies above ASCII.
std::span<const CodeRange> letter_ranges() noexcept;
std::span<const CodeRange> number_ranges() noexcept;

/// One code point of a text. What is no UTF-8 is read byte by byte.
struct CodePoint {
  uint32_t value;
  uint8_t bytes;
  bool valid;  // false: `value` is the byte, `bytes` is 1
};
/// The code point at `at`, which must be inside. UTF-8 as RFC 3629 has it: no overlong forms, surrogates, or values
/// above 0x10FFFF.
CodePoint code_point_at(std::string_view text, size_t at) noexcept;
/// The code point in UTF-8 at the end of `text`.
void append_code_point(std::string& text, uint32_t value);

enum class CodeClass : uint8_t { other, letter, number, space };
/// Of an ASCII character.
constexpr CodeClass ascii_class(uint32_t value) noexcept {
  if (value == ' ' || (value >= 9 && value <= 13)) return CodeClass::space;
  if ((value | 0x20) - 'a' < 26) return CodeClass::letter;
  return value - '0' < 10 ? CodeClass::number : CodeClass::other;
}
/// Letters (L*), numbers (N*) and white space (White_Space) of Unicode.
CodeClass class_of(uint32_t value) noexcept;

}  // namespace rosin
