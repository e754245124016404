// Constants follow: where an op meets operands on several devices, those that were made from nothing but the program
// (numbers, ranges, draws, values in braces) and have no value yet are made where the others stand.
// Read next: record.cpp, which asks for it.
#pragma once

#include <vector>

#include "graph/op.hpp"

namespace rosin {

/// Whether the node, which is pending, is made from nothing but the program, on the CPU.
bool is_made_of_constants(const Node& node);

/// Operands of one op on one device: that of those which cannot follow.
class Gathered {
 public:
  /// Error (device): two operands that cannot follow stand on different devices.
  Gathered(const Op& op, const Node* const* operands, int count);

  const Array& operator[](int i) const { return arrays_[static_cast<size_t>(i)]; }
  const Node* const* nodes() const { return nodes_.data(); }

 private:
  std::vector<Array> arrays_;
  std::vector<const Node*> nodes_;
};

}  // namespace rosin
