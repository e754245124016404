// What the kernels of Fourier transforms are given: some lines of complex numbers, and the passes over them. Read next:
// fourier_body.hpp (the kernels), cpu/fourier_transform.hpp (who calls them).
#pragma once

#include <cstdint>

namespace rosin::engines {

/// A complex number; products without the standard's cases for infinities.
template <class T> struct Pair {
  T re = 0, im = 0;

  friend Pair operator+(Pair a, Pair b) { return {a.re + b.re, a.im + b.im}; }
  friend Pair operator-(Pair a, Pair b) { return {a.re - b.re, a.im - b.im}; }
  friend Pair operator*(Pair a, Pair b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
  friend Pair operator*(Pair a, T b) { return {a.re * b, a.im * b}; }
  Pair conjugate() const { return {re, -im}; }
  Pair swapped() const { return {im, re}; }
};

/// One factor of a length: `parts` times `radix` numbers, each number `stride` of them side by side, become as many
/// transforms of `parts` numbers.
template <class T> struct FourierPass {
  int64_t radix = 1, parts = 1, stride = 1;
  const Pair<T>* turns = nullptr;  // (radix - 1, parts): number k of part p is multiplied by root(p k)
  const Pair<T>* roots = nullptr;  // `radix` of them, of an odd one
};

/// Where lines stand: number k of line l at first + (k element + l line) numbers.
template <class To> struct FourierView {
  To* first = nullptr;
  int64_t element = 1, line = 1;
  bool swapped = false;  // real and imaginary parts are exchanged, by which a transform becomes its way back
};

/// y[k] = sum of x[j] exp(-2 pi i j k / length), for each line by itself: results do not depend on how many there are.
template <class T> struct FourierLines {
  FourierView<const T> in;
  bool real = false;  // numbers of `in` are real ones
  FourierView<T> out;
  int64_t lines = 0, length = 0;
  const FourierPass<T>* passes = nullptr;
  int passes_count = 0;
  const Pair<T>* turns = nullptr;  // (lines, length), or null: what results are multiplied by
  void* memory = nullptr;          // bytes_for(length), from a multiple of 64 on

  /// For registers of 64 bytes, the widest.
  static constexpr int64_t bytes_for(int64_t length) { return 2 * 2 * 64 * length; }
};

}  // namespace rosin::engines
