// What rules are written with: numbers as arguments of the plan, counters of steps, epsilon of a type.
#pragma once

#include <algorithm>
#include <cmath>

#include <rosin/array.hpp>

#include "optim/step.hpp"

namespace rosin {

/// A hyper-parameter as a weak 0-d array, one for all parameters of the step.
inline Array number(double value) { return Step::of_thread().number(value); }

/// A counter: a 0-d Int64 that is known on the host.
inline Array counter(int64_t value) { return Step::of_thread().counter(value); }

/// Counts one more and gives the new count. It reads a counter that was loaded or moved once.
inline int64_t counted(Array& t) {
  const int64_t count = t.item<int64_t>() + 1;
  t = counter(count);
  return count;
}

inline bool is_half(const Array& x) { return x.dtype() == Float16 || x.dtype() == BFloat16; }

/// epsilon as Optimisers.jl takes it: Float16 would lose what is below 1e-7.
inline double epsilon_of(const Array& x, double epsilon) {
  return x.dtype() == Float16 && epsilon != 0 ? std::max(epsilon, 1e-7) : epsilon;
}

}  // namespace rosin
