// See text.hpp.
#include "text.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace command {
namespace {

/// Characters, not bytes: what continues a UTF-8 character takes no place.
size_t width_of(std::string_view text) {
  size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return width;
}

}  // namespace

std::string paragraph(std::string_view head, size_t indent, std::string_view text) {
  std::string lines(head);
  size_t column = width_of(head);
  bool fresh = true;  // nothing of the text stands on this line
  if (column >= indent && column > 0) {
    lines += "\n";
    column = 0;
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    const size_t width = width_of(word);
    if (!fresh && column + 1 + width > line_width) {
      lines += "\n";
      column = 0;
      fresh = true;
    }
    const size_t gap = fresh ? indent - std::min(column, indent) : 1;
    lines.append(gap, ' ').append(word);
    column += gap + width;
    fresh = false;
  }
  return lines + "\n";
}

void say(std::string_view head, size_t indent, std::string_view text) {
  std::fputs(paragraph(head, indent, text).c_str(), stdout);
}

void say(std::string_view line) { say({}, 0, line); }

std::string bytes_text(uint64_t bytes) {
  constexpr std::array<const char*, 6> units = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, units[unit]);
  return text.data();
}

std::string number_text(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2g", number);
  return text.data();
}

std::string duration_text(double milliseconds) {
  if (milliseconds < 9.95) return number_text(milliseconds) + " ms";
  std::array<char, 32> text{};
  const bool long_time = milliseconds >= 999.5;
  std::snprintf(text.data(), text.size(), long_time ? "%.1f s" : "%.0f ms", milliseconds / (long_time ? 1000 : 1));
  return text.data();
}

std::string count_text(size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      shown += c;
      continue;
    }
    std::array<char, 8> escaped{};
    std::snprintf(escaped.data(), escaped.size(), "\\x%02x", byte);
    shown += escaped.data();
  }
  return shown;
}

}  // namespace command
