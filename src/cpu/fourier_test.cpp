// Fourier transforms of lines against the definition in Float64: every way of making a length, lines that stand side by
// side or one after the other, and the kernels of each processor.
#include "cpu/fourier_transform.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <random>
#include <string>
#include <vector>

namespace rosin::cpu {
namespace {

using Complex = std::complex<double>;

/// Lines of numbers in memory, as a call sees them.
template <class T> struct Lines {
  int64_t length, count;
  bool side_by_side, real;
  std::vector<T> numbers, found;

  Lines(int64_t n, int64_t lines, bool side, bool real_ones)
      : length(n), count(lines), side_by_side(side), real(real_ones),
        numbers(static_cast<size_t>(n * lines * (real_ones ? 1 : 2))), found(static_cast<size_t>(2 * n * lines)) {
    std::mt19937 generator(static_cast<unsigned>(n));
    std::normal_distribution<double> normal;
    for (T& number : numbers) number = static_cast<T>(normal(generator));
  }

  Signal<T> signal(bool inverse) {
    const int64_t element = side_by_side ? count : 1, line = side_by_side ? 1 : length;
    return {.in = {numbers.data(), element, line, inverse},
            .real = real,
            .out = {found.data(), element, line, inverse},
            .lines = count};
  }
  size_t place(int64_t line, int64_t k) const {
    return static_cast<size_t>(side_by_side ? k * count + line : line * length + k);
  }
  Complex number(int64_t line, int64_t k) const {
    const size_t at = place(line, k);
    return real ? Complex(numbers[at]) : Complex(numbers[2 * at], numbers[2 * at + 1]);
  }
  Complex result(int64_t line, int64_t k) const { return {found[2 * place(line, k)], found[2 * place(line, k) + 1]}; }

  /// The largest distance from the definition, of a line.
  double error(int64_t line, bool inverse) const {
    std::vector<Complex> roots, x;
    for (int64_t k = 0; k < length; ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length);
      roots.push_back(std::polar(1.0, inverse ? angle : -angle));
      x.push_back(number(line, k));
    }
    double most = 0;
    for (int64_t k = 0; k < length; ++k) {
      Complex sum = 0;
      for (int64_t j = 0; j < length; ++j) {
        sum += x[static_cast<size_t>(j)] * roots[static_cast<size_t>(j * k % length)];
      }
      most = std::max(most, std::abs(sum - result(line, k)));
    }
    return most;
  }
};

template <class T> void check(int64_t length, int64_t count, bool side_by_side, bool real, bool inverse) {
  Lines<T> lines(length, count, side_by_side, real);
  const Transform<T> transform(length, count, side_by_side ? 1 : length);
  const auto memory = std::make_unique<Block[]>(static_cast<size_t>(transform.blocks()));
  transform.run(lines.signal(inverse), memory.get());
  const double bound = 8 * static_cast<double>(std::numeric_limits<T>::epsilon()) *
                       std::sqrt(static_cast<double>(length)) * std::log2(static_cast<double>(length) + 1);
  for (int64_t line = length < 200 ? 0 : count - 1; line < count; line += std::max<int64_t>(count - 1, 1)) {
    EXPECT_LE(lines.error(line, inverse), bound)
        << length << " numbers, line " << line << " of " << count << (side_by_side ? " side by side" : "")
        << (real ? ", real" : "") << (inverse ? ", back" : "");
  }
}

template <class T> void check_layouts(int64_t length) {
  check<T>(length, 1, false, false, false);
  check<T>(length, 19, false, false, true);
  check<T>(length, 19, false, true, false);
  check<T>(length, 37, true, false, false);
  check<T>(length, 3, true, false, true);
  check<T>(length, 3, true, true, true);
}

TEST(FourierTransform, EveryShortLengthFollowsTheDefinition) {
  for (int64_t length = 1; length <= 100; ++length) {
    check_layouts<float>(length);
    check_layouts<double>(length);
  }
}

TEST(FourierTransform, LongLengthsFollowTheDefinition) {
  for (const int64_t length : {121, 128, 143, 169, 251, 343, 384, 509, 512, 600, 1001, 1024, 1155}) {
    check_layouts<float>(length);
    check_layouts<double>(length);
  }
  for (const int64_t length : {2187, 4100, 4608}) check<float>(length, 16, true, false, false);
}

TEST(FourierTransform, AWayForthAndBackOfAVeryLongLineUndoes) {
  for (const int64_t length : {1 << 18, 360360, 100003}) {
    Lines<float> lines(length, 1, false, false);
    const Transform<float> transform(length, 1, length);
    const auto memory = std::make_unique<Block[]>(static_cast<size_t>(transform.blocks()));
    transform.run(lines.signal(false), memory.get());
    Signal<float> back = lines.signal(true);
    std::vector<float> again(lines.found.size());
    back.in.first = lines.found.data();
    back.out.first = again.data();
    transform.run(back, memory.get());
    double most = 0;
    for (size_t i = 0; i < again.size(); ++i) {
      most = std::max(most, std::abs(static_cast<double>(again[i]) / static_cast<double>(length) - lines.numbers[i]));
    }
    EXPECT_LE(most, 4e-6) << length;
  }
}

std::vector<const engines::TileKernels*> kernels_of_this_machine() {
  std::vector<const engines::TileKernels*> kernels{&engines::portable_tile_kernels};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) kernels.push_back(&engines::fma_tile_kernels);
  if (std::string(engines::tile_kernels().name) == "avx512") kernels.push_back(&engines::wide_tile_kernels);
#endif
  return kernels;
}

template <class T> void check_kernels(int64_t length, int64_t count, bool side_by_side, bool real, bool inverse) {
  const Passes<T> passes(length);
  const auto memory = std::make_unique<Block[]>(static_cast<size_t>(passes.blocks()));
  std::vector<T> first;
  for (const engines::TileKernels* kernels : kernels_of_this_machine()) {
    Lines<T> lines(length, count, side_by_side, real);
    kernels->of<T>().fourier(passes.over(lines.signal(inverse), memory.get()));
    if (first.empty()) first = lines.found;
    EXPECT_EQ(first, lines.found) << kernels->name << ' ' << length << ' ' << count;
    // A line is transformed in the same way whatever is beside it.
    Lines<T> alone(length, count, side_by_side, real);
    Signal<T> one = alone.signal(inverse);
    one.lines = 1;
    kernels->of<T>().fourier(passes.over(one, memory.get()));
    for (int64_t k = 0; k < length; ++k) EXPECT_EQ(alone.result(0, k), lines.result(0, k)) << kernels->name;
  }
}

TEST(FourierTransform, KernelsOfAllProcessorsGiveTheSameBits) {
  for (const int64_t length : {1, 2, 8, 15, 16, 33, 77, 128, 130}) {
    for (const int64_t count : {1, 2, 5, 16, 23}) {
      check_kernels<float>(length, count, false, false, false);
      check_kernels<float>(length, count, true, true, true);
      check_kernels<double>(length, count, true, false, true);
      check_kernels<double>(length, count, false, true, false);
    }
  }
}

}  // namespace
}  // namespace rosin::cpu
