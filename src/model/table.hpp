// A table of printed numbers, elided to a terminal of 80x24 as Julia does.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace rosin {

/// The text of the element at (row, column).
using ElementText = std::function<std::string(int64_t row, int64_t column)>;

/// Rows of a matrix, each with a leading space, columns aligned at the decimal point. No final newline.
std::string table_text(int64_t rows, int64_t columns, const ElementText& element);

}  // namespace rosin
