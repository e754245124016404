// Arithmetic of sizes. No product or sum of them overflows unseen: every shape is checked when it is made, and what is
// computed before there is a shape (paddings, windows, bytes of a plan) goes through the functions here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace rosin {

/// The most elements an array can have: its bytes, of any type, and the strides of its dims fit 63 bits.
inline constexpr int64_t largest_count = int64_t{1} << 58;

/// Whether arrays can have these sizes, which are not negative. Sizes of 0 count as 1: the strides of an array without
/// elements are numbers too.
inline bool can_be_sizes(const int64_t* sizes, int rank) noexcept {
  int64_t count = 1;
  bool overflows = false;
  for (int d = 0; d < rank; ++d) overflows |= __builtin_mul_overflow(count, sizes[d] + (sizes[d] == 0), &count);
  return !overflows && count <= largest_count;
}

/// `op: an array has at most 2^58 elements; got (SIZES); use smaller sizes`, an Error (shape).
[[noreturn]] void refuse_sizes(std::string_view op, const int64_t* sizes, int rank);

/// The sum, or the product, of sizes. Error (shape) naming `op`: one is negative, or the result is more than an array
/// can have.
int64_t sum_of_sizes(std::string_view op, std::initializer_list<int64_t> sizes);
int64_t product_of_sizes(std::string_view op, std::initializer_list<int64_t> sizes);

/// a + b bytes. Error (memory) where that is more than memory has addresses.
size_t sum_of_bytes(size_t a, size_t b);

}  // namespace rosin
