// The discrete Fourier transform of lines, unscaled. A length is made of factors 8, 4, 2, 3, 5 and other primes up to
// 13, by kernels that take a line in each lane (engines/fourier_body.hpp). A long line is a matrix: its rows are
// transformed, then its columns (Bailey 1990). One with a larger prime becomes a convolution of a length that has none
// (Bluestein 1970). Read next: fourier.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <vector>

#include "engines/tile_kernel.hpp"

namespace rosin::cpu {

using engines::FourierView;
using engines::Pair;

/// exp(2 pi i numerator / denominator), by the angle nearest to 0.
template <class T> Pair<T> root(int64_t numerator, int64_t denominator) {
  numerator %= denominator;
  if (2 * numerator > denominator) numerator -= denominator;
  const double angle = 2 * std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator);
  return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
}

/// Memory of a run.
struct alignas(64) Block {
  unsigned char bytes[64];
  static int64_t holding(int64_t bytes) { return (bytes + 63) / 64; }
};

/// Lines that are transformed, and where the results go.
template <class T> struct Signal {
  FourierView<const T> in;
  bool real = false;  // numbers of `in` are real ones
  FourierView<T> out;
  int64_t lines = 1;

  Pair<T> number(int64_t line, int64_t k) const {
    const int64_t at = line * in.line + k * in.element;
    const Pair<T> z = real ? Pair<T>{in.first[at], 0} : Pair<T>{in.first[2 * at], in.first[2 * at + 1]};
    return in.swapped ? z.swapped() : z;
  }
  void set(int64_t line, int64_t k, Pair<T> z) const {
    const int64_t at = 2 * (line * out.line + k * out.element);
    if (out.swapped) z = z.swapped();
    out.first[at] = z.re;
    out.first[at + 1] = z.im;
  }
};

/// The passes over lines of one length, which has small factors alone.
template <class T> class Passes {
 public:
  static constexpr int64_t radices[] = {8, 4, 2, 3, 5, 7, 11, 13};

  explicit Passes(int64_t length) : length_(length) {
    for (int64_t left = length, stride = 1; left > 1;) {
      const int64_t radix = factor(left);
      left /= radix;
      passes_.push_back({.radix = radix, .parts = left, .stride = stride});
      stride *= radix;
    }
    for (auto& pass : passes_) make_tables(pass);
  }

  /// What is left of a length without its small factors.
  static int64_t rest(int64_t length) {
    for (const int64_t radix : radices) {
      while (length % radix == 0) length /= radix;
    }
    return length;
  }

  int64_t length() const { return length_; }
  int64_t blocks() const { return Block::holding(engines::FourierLines<T>::bytes_for(length_)); }

  engines::FourierLines<T> over(const Signal<T>& s, Block* memory, const Pair<T>* turns = nullptr) const {
    return {.in = s.in,
            .real = s.real,
            .out = s.out,
            .lines = s.lines,
            .length = length_,
            .passes = passes_.data(),
            .passes_count = static_cast<int>(passes_.size()),
            .turns = turns,
            .memory = memory};
  }
  void run(const Signal<T>& s, Block* memory, const Pair<T>* turns = nullptr) const {
    engines::tile_kernels().of<T>().fourier(over(s, memory, turns));
  }

 private:
  static int64_t factor(int64_t left) {
    if (left == 16) return 4;
    return *std::find_if(std::begin(radices), std::end(radices), [left](int64_t radix) { return left % radix == 0; });
  }

  void make_tables(engines::FourierPass<T>& pass) {
    std::vector<Pair<T>> turns, roots;
    for (int64_t part = 0; part < pass.parts; ++part) {
      for (int64_t k = 1; k < pass.radix; ++k) turns.push_back(root<T>(-part * k, pass.parts * pass.radix));
    }
    for (int64_t k = 0; k < pass.radix; ++k) roots.push_back(root<T>(k, pass.radix));
    pass.turns = tables_.emplace_back(std::move(turns)).data();
    pass.roots = tables_.emplace_back(std::move(roots)).data();
  }

  int64_t length_;
  std::vector<engines::FourierPass<T>> passes_;
  std::vector<std::vector<Pair<T>>> tables_;
};

template <class T> class Transform {
 public:
  static constexpr int64_t together = 16;  // lines that go through it at a time, at least where there are as many

  /// `lines`: how many there are beside each other, each `apart` numbers from the next.
  Transform(int64_t length, int64_t lines, int64_t apart) : length_(length) {
    if (Passes<T>::rest(length) > 1) {
      prepare_convolution(lines);
      return;
    }
    const int64_t most = lines < together ? short_line : apart == 1 ? long_column : long_line;
    const int64_t rows = length > most ? rows_of(length) : 1;
    columns_ = std::make_unique<Passes<T>>(length / rows);
    if (rows == 1) return;
    rows_ = std::make_unique<Passes<T>>(rows);
    for (int64_t k = 0; k < length / rows; ++k) {
      for (int64_t j = 0; j < rows; ++j) roots_.push_back(root<T>(-j * k, length));
    }
  }

  /// That a run takes as its memory.
  int64_t blocks() const {
    if (inner_) return 2 * rows_blocks() + inner_->blocks();
    return rows_ ? matrix_blocks() + std::max(rows_->blocks(), columns_->blocks()) : columns_->blocks();
  }

  void run(const Signal<T>& s, Block* memory) const {
    if (!inner_ && !rows_) return columns_->run(s, memory);
    const int64_t step = inner_ ? together : 1;
    for (int64_t first = 0; first < s.lines; first += step) {
      Signal<T> some = s;
      some.in.first += first * s.in.line * (s.real ? 1 : 2);
      some.out.first += 2 * first * s.out.line;
      some.lines = std::min(step, s.lines - first);
      if (inner_) convolve(some, memory);
      else transform_matrix(some, memory);
    }
  }

 private:
  static constexpr int64_t short_line = 63, long_line = 511, long_column = 4096;  // longer ones are matrices

  int64_t matrix_blocks() const { return Block::holding(length_ * static_cast<int64_t>(sizeof(Pair<T>))); }
  int64_t rows_blocks() const {
    return Block::holding(together * inner_->length_ * static_cast<int64_t>(sizeof(Pair<T>)));
  }

  /// The largest divisor that is not above the root.
  static int64_t rows_of(int64_t length) {
    int64_t rows = static_cast<int64_t>(std::sqrt(static_cast<double>(length)));
    while (length % rows != 0) --rows;
    return rows;
  }

  /// Number j + rows i of a line is element (j, i) of its matrix.
  void transform_matrix(const Signal<T>& s, Block* memory) const {
    const int64_t rows = rows_->length(), columns = columns_->length();
    T* const matrix = reinterpret_cast<T*>(memory);
    Block* const rest = memory + matrix_blocks();
    Signal<T> first = s, second = s;
    first.in = {s.in.first, rows * s.in.element, s.in.element, s.in.swapped};
    first.out = {matrix, rows, 1, false};
    first.lines = rows;
    columns_->run(first, rest, roots_.data());
    second.in = {matrix, 1, rows, false};
    second.real = false;
    second.out = {s.out.first, columns * s.out.element, s.out.element, s.out.swapped};
    second.lines = columns;
    rows_->run(second, rest);
  }

  // x[j] root(j k) = chirp[k] sum of (x[j] chirp[j]) / chirp[k - j], as 2 j k = j j + k k - (k - j) (k - j).
  void prepare_convolution(int64_t lines) {
    int64_t longer = 1;
    while (longer < 2 * length_ - 1) longer *= 2;
    inner_ = std::make_unique<Transform>(longer, lines, longer);
    std::vector<Pair<T>> kernel(static_cast<size_t>(longer));
    for (int64_t k = 0; k < length_; ++k) {
      roots_.push_back(root<T>(-(k * k % (2 * length_)), 2 * length_));
      const Pair<T> value = roots_.back().conjugate() * (T{1} / static_cast<T>(longer));
      kernel[static_cast<size_t>(k)] = kernel[static_cast<size_t>((longer - k) % longer)] = value;
    }
    kernel_.resize(kernel.size());
    const auto memory = std::make_unique<Block[]>(static_cast<size_t>(inner_->blocks()));
    inner_->run({.in = {&kernel[0].re, 1, longer}, .out = {&kernel_[0].re, 1, longer}}, memory.get());
  }

  void convolve(const Signal<T>& s, Block* memory) const {
    const int64_t longer = inner_->length_;
    auto* const x = reinterpret_cast<Pair<T>*>(memory);
    auto* const y = reinterpret_cast<Pair<T>*>(memory + rows_blocks());
    Block* const rest = memory + 2 * rows_blocks();
    for (int64_t line = 0; line < s.lines; ++line) {
      Pair<T>* const row = x + line * longer;
      for (int64_t k = 0; k < length_; ++k) row[k] = s.number(line, k) * roots_[static_cast<size_t>(k)];
      std::fill(row + length_, row + longer, Pair<T>{});
    }
    inner_->run({.in = {&x->re, 1, longer}, .out = {&y->re, 1, longer}, .lines = s.lines}, rest);
    for (int64_t line = 0; line < s.lines; ++line) {
      Pair<T>* const row = y + line * longer;
      for (int64_t k = 0; k < longer; ++k) row[k] = row[k] * kernel_[static_cast<size_t>(k)];
    }
    inner_->run({.in = {&y->re, 1, longer, true}, .out = {&x->re, 1, longer, true}, .lines = s.lines}, rest);
    for (int64_t line = 0; line < s.lines; ++line) {
      for (int64_t k = 0; k < length_; ++k) s.set(line, k, x[line * longer + k] * roots_[static_cast<size_t>(k)]);
    }
  }

  int64_t length_;
  std::unique_ptr<Passes<T>> columns_, rows_;  // of a matrix; a short line is one column
  std::vector<Pair<T>> roots_, kernel_;        // of a matrix: (rows, columns); else the chirp, and its transform
  std::unique_ptr<Transform> inner_;           // of a convolution
};

}  // namespace rosin::cpu
