// What the self-test expects: the same work done by plain loops in Float64, without the library. Arrays are
// column-major. Read next: checks.cpp, which compares.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace command::plain {

using Values = std::vector<double>;

/// `count` Float32 numbers in [-1, 1), the same in every run; another `series`, other numbers.
std::vector<float> numbers(size_t count, uint32_t series);
/// The same, as they are expected.
Values wide(const std::vector<float>& x);

/// a is (m, k), b (k, n) -> (m, n).
Values matmul(const Values& a, const Values& b, size_t m, size_t k, size_t n);
/// x is (n, m) -> (n, m), softmax along dim 0.
Values softmax(const Values& x, size_t n, size_t m);
/// x is (n, m) -> the n sums along dim 1 after the m sums along dim 0.
Values sums(const Values& x, size_t n, size_t m);
/// x is (size, size, in), w (3, 3, in, out), not flipped, one zero around x -> (size, size, out).
Values crosscor(const Values& x, const Values& w, size_t size, size_t in, size_t out);
/// x is (size, size), size even -> (size / 2, size / 2), the largest of each two by two.
Values maxpool(const Values& x, size_t size);
/// x is (a, b, c) -> (c, a, b).
Values permuted(const Values& x, size_t a, size_t b, size_t c);
/// Uniform numbers in [0, 1) of Philox4x32-10 with this key, from counter 0 on.
Values philox_uniform(uint64_t key, size_t count);

}  // namespace command::plain
