// Text for people, in 80 columns. Words are not broken: only a path that is longer than a line stands out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace command {

inline constexpr size_t line_width = 80;

/// `text` in lines that begin with `indent` spaces, the first one with `head` instead, filled up to `indent`.
std::string paragraph(std::string_view head, size_t indent, std::string_view text);
/// Prints it.
void say(std::string_view head, size_t indent, std::string_view text);
void say(std::string_view line);

/// "1.5 GiB"
std::string bytes_text(uint64_t bytes);
/// With two digits: "1.2e-07"
std::string number_text(double number);
/// "0.35 ms", "12 ms", "3.4 s"
std::string duration_text(double milliseconds);
/// "1 device", "2 devices"
std::string count_text(size_t count, std::string_view noun);
/// The text with control characters as "\x1b", so that a foreign name changes nothing on a terminal.
std::string printable(std::string_view text);

}  // namespace command
