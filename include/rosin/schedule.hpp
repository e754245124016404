// Learning-rate schedules: small values that give the rate of a step. A step counts from 0.
//
//   const auto rate = warmup(100, CosineRate{.start = 1e-3, .steps = 10000});
//   adjust(state, rate(step));  // a changed rate compiles nothing
#pragma once

#include <cstdint>

#include <rosin/export.hpp>

namespace rosin {

namespace detail {

/// Error (argument) where a schedule has fewer steps than it needs; for the library.
ROSIN_API void check_steps(const char* schedule, int64_t steps, int64_t least);

}  // namespace detail

/// Always the same.
struct ConstantRate {
  double rate = 1e-3;
  double operator()(int64_t) const noexcept { return rate; }
};

/// start * decay^(step/steps), but not below `lowest`. Error (argument) of the call: steps below 1.
struct ROSIN_API ExponentialRate {
  double start = 1e-3;
  double decay = 0.1;
  int64_t steps = 1000;
  double lowest = 0;
  double operator()(int64_t step) const;
};

/// start, multiplied by `decay` after every so many steps. Error (argument) of the call: steps below 1.
struct ROSIN_API StepRate {
  double start = 1e-3;
  double decay = 0.1;
  int64_t steps = 1000;
  double operator()(int64_t step) const;
};

/// From start to end along half a cosine, then end. Error (argument) of the call: steps below 1.
struct ROSIN_API CosineRate {
  double start = 1e-3;
  double end = 0;
  int64_t steps = 1000;
  double operator()(int64_t step) const;
};

/// Grows evenly over `steps` steps, the last of which has the full first rate of `then`; then continues with that, at
/// once where `steps` is 0. Error (argument) of the call: steps below 0.
template <class Schedule> struct WarmupRate {
  int64_t steps = 100;
  Schedule then = {};
  double operator()(int64_t step) const {
    detail::check_steps("warmup", steps, 0);
    if (step >= steps) return then(step - steps);
    return then(0) * static_cast<double>(step + 1) / static_cast<double>(steps);
  }
};
template <class Schedule> WarmupRate<Schedule> warmup(int64_t steps, Schedule then) { return {steps, then}; }

}  // namespace rosin
