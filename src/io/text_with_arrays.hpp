// A file as text with gaps for the elements of arrays, which are written from the arrays themselves.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <rosin/array.hpp>

namespace rosin {

struct ArrayGap {
  size_t place;  // in the text
  Array array;
};

/// Replaces the file whole or not at all. Error (io): it cannot be written.
void write_text_with_arrays(const std::string& path, const std::string& text, const std::vector<ArrayGap>& gaps);

}  // namespace rosin
