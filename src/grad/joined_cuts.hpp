// JoinedCuts: gradients by slices of an array, which wait for each other, so that those of neighbouring slices become
// one copy instead of a padded array each. Read next: reverse_walk.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include <rosin/array.hpp>

namespace rosin {

class JoinedCuts {
 public:
  static constexpr int32_t none = -1;

  void clear() { cuts_.clear(); }
  /// Puts the gradient by elements start, start + 1, ... of dim `dim` before `list`; the list that this makes.
  int32_t add(int32_t list, int dim, int64_t start, Array gradient);
  /// What the list says of an array of this shape, zeros where no slice was. The list ends.
  Array take(int32_t list, const Shape& shape);

 private:
  struct Cut {
    int32_t next;
    int dim;
    int64_t start;
    Array gradient;
  };
  std::vector<Cut> cuts_;
  std::vector<Cut> waiting_, rest_;  // of the list that is taken
  std::vector<Array> parts_;

  Array join_row(const Shape& shape);
};

}  // namespace rosin
