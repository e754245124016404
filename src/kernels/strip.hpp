// Part of an array in shared memory, for kernels of convolutions: places along spatial dims with what lies around the
// image as zeros, some channels and some images.
// Read first: convolution.hpp. Read next: convolution_strips.cpp, convolution_tiles.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/convolution.hpp"

namespace rosin::kernels {

inline constexpr int64_t most_shared = 32 * 1024;  // of a group, so that some share a multiprocessor
inline constexpr int64_t least_groups = 32;        // below, other kernels have more items

/// The size of equal parts, as few as have at most `most` each.
constexpr int64_t balanced(int64_t count, int64_t most) { return groups_for(count, groups_for(count, most)); }

/// The sizes of a part, and how it lies to its array. Dims: (spatial..., channels, images).
struct Box {
  std::vector<int64_t> sizes;
  std::vector<int64_t> low;  // elements of the part that lie before the array
  std::vector<char> beyond;  // whether elements may lie outside the array

  /// All of an array.
  static Box of(const View& view);

  /// From one line along dim 0 to the next: odd, so that lines begin in different memory banks.
  int64_t pitch() const { return sizes[0] | 1; }
  int64_t stride(size_t d) const;
  int64_t count() const;
  int64_t room() const { return stride(sizes.size() - 1) * sizes.back(); }
};

/// An operand, a part of which stands in shared memory.
class Strip {
 public:
  Strip(KernelWriter& writer, const Convolution& conv, int32_t value, Box box);

  /// Brings the part that begins `from` the element where the first one does (of each dim; no writer: 0).
  void fill(std::span<const Term> from) const;
  Term load(Term at) const { return w_.shared_load(shared_, at); }
  int64_t stride(size_t d) const { return box_.stride(d); }

 private:
  std::vector<size_t> order_in_memory() const;
  Term place_of(std::span<const Term> at) const;
  Term moved(std::vector<Term>& at, std::span<const Term> from) const;

  KernelWriter& w_;
  const View& view_;
  ArrayTerm array_;
  Box box_;
  int shared_;
};

}  // namespace rosin::kernels
