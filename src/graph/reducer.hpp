// Reducer: one associative way to combine elements, stated once for reductions and for running reductions (scans) of
// it. Read first: scalar/combine.hpp. Read next: ops/reducers.cpp (all of them).
#pragma once

#include <string_view>

#include <rosin/array.hpp>

#include "scalar/combine.hpp"

namespace rosin {

/// The slopes of combine(before, x) at one place of a scan: by what was combined before and by x.
struct Slopes {
  Array by_before, by_x;
};

/// What reductions and scans combine elements with. Executors know the body and the neutral element, nothing else.
struct Reducer {
  std::string_view name;
  CombineBody body;
  /// Floats are combined in their order where each partial result comes out, as in a scan: a part of them may overflow
  /// where their whole does not.
  bool in_order = false;
  /// What the gradient of a scan is made of, where y = combine(before, x) in each place; null: no gradient.
  Slopes (*slopes)(const Array& before, const Array& x, const Array& y) = nullptr;
};

}  // namespace rosin
