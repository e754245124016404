// How the items of a warp have square matrices that they multiply: the table of backend.h (MULTIPLY_MATRICES) as data,
// which kernels are written by. Read next: matrix_squares.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rosin::kernels {

/// Numbered as rosin_matrix_layout.
enum class MatrixLayout : uint8_t { none, mfma, wmma11, wmma12 };

/// X (16 rows, 8 words) * Y (8 words, 16 columns) + Z (16 rows, 16 columns). Item i has words of row i % 16 of X and of
/// column i % 16 of Y, and numbers of that column of Z.
struct SquareLayout {
  const char* prefix;  // of what HIP's text calls the product
  int warp;            // items
  int words;           // of an item, of X and of Y
  int sums;            // numbers of Z of an item
  int next_sum;        // rows from one of them to the next
  int next_part;       // rows from the first one of an item to that of the item 16 further on

  static constexpr int side = 16, words_of_row = 8;
  /// Items that share a row; 1: those that have the same row have all of it.
  constexpr int parts() const { return words_of_row / words; }
};

inline constexpr SquareLayout square_layouts[] = {
    {}, {"mfma_", 64, 2, 4, 1, 4}, {"wmma11_", 32, 8, 8, 2, 1}, {"wmma12_", 32, 4, 8, 1, 8}};

constexpr const SquareLayout& square_layout(MatrixLayout layout) { return square_layouts[static_cast<int>(layout)]; }

/// The one with so many words of an item.
constexpr const SquareLayout& square_with(size_t words) {
  for (const SquareLayout& layout : square_layouts) {
    if (static_cast<size_t>(layout.words) == words) return layout;
  }
  return square_layouts[0];
}

}  // namespace rosin::kernels
