// IndexCheck: which indices lie in their dim, and how a run tells of one that does not.
// Read first: code.hpp. Read next: indices.hpp.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/code.hpp"

namespace rosin::kernels {

/// Of the indices of a node into a dim of `size` elements. The flag of the node tells the last bad one: below 0 the
/// index itself, else the index plus 1, so that no bad index is 0; and the device's guard falls.
class IndexCheck {
 public:
  /// `checks`: the nodes that have flags, this one among them.
  IndexCheck(KernelWriter& writer, std::span<const int32_t> checks, int32_t node, int64_t size);

  /// Int64, as indices are.
  Term size() const { return size_; }
  Term is_good(Term index) const { return like(index, 0) <= index && index < size_; }
  void report(Term index) const;

 private:
  KernelWriter* writer_;
  Term size_;
  int flags_, guard_;
  Term flag_;
};

}  // namespace rosin::kernels
