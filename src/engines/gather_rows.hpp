// Transposed copies of matrices, by squares that are turned in registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace rosin::engines {

/// A square block held in sixteen-byte vectors of the compiler, transposed in registers.
template <class T> struct Square;

template <> struct Square<float> {
  static constexpr int64_t side = 4;
  typedef float Row __attribute__((vector_size(16)));
  static void transpose(const float* in, int64_t in_row, float* out, int64_t out_step) {
    Row rows[4];
    for (int64_t i = 0; i < 4; ++i) std::memcpy(&rows[i], in + i * in_row, sizeof(Row));
    const Row low = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
    const Row low_next = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
    const Row high = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
    const Row high_next = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
    const Row columns[4] = {
        __builtin_shufflevector(low, low_next, 0, 1, 4, 5), __builtin_shufflevector(low, low_next, 2, 3, 6, 7),
        __builtin_shufflevector(high, high_next, 0, 1, 4, 5), __builtin_shufflevector(high, high_next, 2, 3, 6, 7)};
    for (int64_t i = 0; i < 4; ++i) std::memcpy(out + i * out_step, &columns[i], sizeof(Row));
  }
};

template <> struct Square<double> {
  static constexpr int64_t side = 2;
  typedef double Row __attribute__((vector_size(16)));
  static void transpose(const double* in, int64_t in_row, double* out, int64_t out_step) {
    Row first, second;
    std::memcpy(&first, in, sizeof(Row));
    std::memcpy(&second, in + in_row, sizeof(Row));
    const Row low = __builtin_shufflevector(first, second, 0, 2), high = __builtin_shufflevector(first, second, 1, 3);
    std::memcpy(out, &low, sizeof(Row));
    std::memcpy(out + out_step, &high, sizeof(Row));
  }
};

/// out[row + step * out_step] = in[step + row * in_row]. What lies in one line of memory is read at once: lines of rows
/// that are a power of two apart drive each other out of the cache.
template <class T>
void gather_rows(const T* in, int64_t in_row, T* out, int64_t out_step, int64_t rows, int64_t steps) {
  constexpr int64_t side = Square<T>::side, line = 64 / static_cast<int64_t>(sizeof(T));
  const int64_t square_rows = rows / side * side, square_steps = steps / side * side;
  for (int64_t first = 0; first < square_steps; first += line) {
    const int64_t last = std::min(first + line, square_steps);
    for (int64_t row = 0; row < square_rows; row += side) {
      for (int64_t step = first; step < last; step += side) {
        Square<T>::transpose(in + step + row * in_row, in_row, out + row + step * out_step, out_step);
      }
    }
  }
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t first = step < square_steps ? square_rows : 0;
    for (int64_t row = first; row < rows; ++row) out[row + step * out_step] = in[step + row * in_row];
  }
}

}  // namespace rosin::engines
