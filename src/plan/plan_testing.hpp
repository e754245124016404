// What tests of plans count: kernels and calls that an evaluation launches, and bytes that it moves.
#pragma once

#include <cstdint>
#include <ostream>

#include <rosin/array.hpp>
#include <rosin/stats.hpp>

namespace rosin {

/// The counters of one evaluation of the arrays that f returns.
template <class F> Stats counted(F&& f) {
  eval();
  const Stats before = stats();
  [[maybe_unused]] const auto held = f();
  eval();
  Stats made = stats();
  made.kernels -= before.kernels;
  made.calls -= before.calls;
  made.read_bytes -= before.read_bytes;
  made.written_bytes -= before.written_bytes;
  made.kept_bytes -= before.kept_bytes;
  return made;
}

struct Launched {
  int64_t kernels = 0, calls = 0;
  bool operator==(const Launched&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Launched& l) {
  return out << l.kernels << " kernels, " << l.calls << " calls";
}

template <class F> Launched launches(F&& f) {
  const Stats made = counted(f);
  return {made.kernels, made.calls};
}

}  // namespace rosin
