// Numbers as Julia prints them. Read next: show_array.cpp, show.cpp.
#pragma once

#include <cstdint>
#include <string>

#include <rosin/dtype.hpp>
#include <rosin/shape.hpp>

namespace rosin {

/// The shortest digits that read back as `value` in the floating-point type; with `compact` at most six significant
/// ones. "1.0", "0.5", "1.0e-8", "NaN", "Inf". The value must be exact in the type.
std::string float_text(double value, DType type, bool compact);

/// Thousands apart: 1_234_567.
std::string grouped(int64_t value);

/// "744 bytes", "3.004 KiB".
std::string bytes_text(int64_t bytes);

/// Sizes before an array's type: "2×5", "10-element"; empty for 0-d.
std::string sizes_text(const int64_t* sizes, int rank);

/// An array's sizes and type: "2×5 Array{Float32}".
std::string heading_text(const Shape& shape, DType type);

/// Characters (not bytes) of UTF-8 text.
size_t width_of(const std::string& text);

}  // namespace rosin
