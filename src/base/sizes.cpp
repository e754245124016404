// See sizes.hpp.
#include "base/sizes.hpp"

#include <string>

#include <rosin/error.hpp>

namespace rosin {
namespace {

using Sizes = std::initializer_list<int64_t>;

[[noreturn]] void refuse(std::string_view op, const char* rule, const char* sign, Sizes sizes) {
  std::string text = std::string(op) + ": " + rule + "; got ";
  for (const int64_t& size : sizes) text += (&size == sizes.begin() ? "" : sign) + std::to_string(size);
  throw Error(ErrorKind::shape, text + "; use smaller sizes");
}

void check_signs(std::string_view op, const char* sign, Sizes sizes) {
  for (const int64_t size : sizes) {
    if (size < 0) refuse(op, "a size cannot be negative", sign, sizes);
  }
}

constexpr const char* most = "an array has at most 2^58 elements";

}  // namespace

void refuse_sizes(std::string_view op, const int64_t* sizes, int rank) {
  std::string text = std::string(op) + ": " + most + "; got (";
  for (int d = 0; d < rank; ++d) text += (d == 0 ? "" : ", ") + std::to_string(sizes[d]);
  throw Error(ErrorKind::shape, text + "); use smaller sizes");
}

int64_t sum_of_sizes(std::string_view op, Sizes sizes) {
  check_signs(op, " + ", sizes);
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    if (__builtin_add_overflow(sum, size, &sum) || sum > largest_count) refuse(op, most, " + ", sizes);
  }
  return sum;
}

int64_t product_of_sizes(std::string_view op, Sizes sizes) {
  check_signs(op, " * ", sizes);
  int64_t product = 1;
  for (const int64_t size : sizes) {
    if (__builtin_mul_overflow(product, size, &product) || product > largest_count) refuse(op, most, " * ", sizes);
  }
  return product;
}

size_t sum_of_bytes(size_t a, size_t b) {
  constexpr size_t addresses = size_t{1} << 62;
  if (a <= addresses && b <= addresses - a) return a + b;
  throw Error(ErrorKind::memory, "allocate: one evaluation needs more bytes than memory has addresses; got " +
                                     std::to_string(a) + " + " + std::to_string(b) +
                                     "; use smaller sizes, or evaluate parts of it");
}

}  // namespace rosin
