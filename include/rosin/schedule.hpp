// Learning-rate schedules: small values that give the rate of a step. A step counts from 0. Those of
// ParameterSchedulers are here, whose iterations count from 1.
//
//   const auto rate = warmup(100, CosineRate{.start = 1e-3, .steps = 10000});
//   adjust(state, rate(step));  // a changed rate compiles nothing
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <rosin/export.hpp>
#include <rosin/small_function.hpp>

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

/// start, multiplied by `decay` at each of these steps, which ascend. Source: torch's MultiStepLR.
struct ROSIN_API MultiStepRate {
  double start = 1e-3;
  double decay = 0.1;
  std::vector<int64_t> milestones = {};
  double operator()(int64_t step) const;
};

/// From start to end by (1 - step/steps)^degree, then end. Error (argument) of the call: steps below 1.
struct ROSIN_API PolynomialRate {
  double start = 1e-3;
  double end = 0;
  double degree = 1;
  int64_t steps = 1000;
  double operator()(int64_t step) const;
};

/// start / (1 + decay*step)^degree.
struct ROSIN_API InverseRate {
  double start = 1e-3;
  double decay = 1e-3;
  double degree = 1;
  double operator()(int64_t step) const;
};

/// From start to end along half a cosine, then end, or from start again with `restart`. Error (argument) of the call:
/// steps below 1. Source: Loshchilov, Hutter: SGDR (2017).
struct ROSIN_API CosineRate {
  double start = 1e-3;
  double end = 0;
  int64_t steps = 1000;
  bool restart = false;
  double operator()(int64_t step) const;
};

/// From low to high and back in each period along straight lines. The height over `low` is multiplied by `per_cycle`
/// after each period and by `per_step` after each step. Error (argument) of the call: a period below 1. Source: Smith:
/// Cyclical Learning Rates (2017).
struct ROSIN_API TriangleRate {
  double low = 1e-4;
  double high = 1e-3;
  int64_t period = 1000;
  double per_cycle = 1;
  double per_step = 1;
  double operator()(int64_t step) const;
};

/// The same along half a sine.
struct ROSIN_API SineRate {
  double low = 1e-4;
  double high = 1e-3;
  int64_t period = 1000;
  double per_cycle = 1;
  double per_step = 1;
  double operator()(int64_t step) const;
};

/// Up to `peak` along half a cosine over the share `rising` of the steps, then down to `end`, and end from then on.
/// Errors (argument) of the call: steps below 2, a share that leaves no step to rise or to fall. Source: Smith, Topin:
/// Super-Convergence (2018).
struct ROSIN_API OneCycleRate {
  double peak = 1e-2;
  int64_t steps = 1000;
  std::optional<double> start = {};  // peak/25
  std::optional<double> end = {};    // peak/1e5
  double rising = 0.25;
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

/// Any schedule: one of the above, a function of a step, or a number, which stays.
class AnyRate {
 public:
  AnyRate(double rate) : AnyRate(ConstantRate{rate}) {}
  template <class F>
    requires(!std::same_as<F, AnyRate> && !std::is_arithmetic_v<F> && std::is_invocable_r_v<double, const F&, int64_t>)
  AnyRate(F schedule) : function_(std::move(schedule)) {}
  double operator()(int64_t step) const { return function_(step); }

 private:
  SmallFunction<double(int64_t)> function_;
};

/// One schedule after another, each for so many steps, which it counts from 0; the last one goes on. Error (argument)
/// of the call: no stage, or one of less than 0 steps.
struct ROSIN_API SequenceRate {
  struct Stage {
    int64_t steps;
    AnyRate rate;
  };
  std::vector<Stage> stages;
  double operator()(int64_t step) const;
};

/// The first `period` steps again and again. Error (argument) of the call: a period below 1.
struct ROSIN_API LoopRate {
  AnyRate rate;
  int64_t period;
  double operator()(int64_t step) const;
};

/// rate(step + offset): a schedule that has begun before.
struct ShiftedRate {
  AnyRate rate;
  int64_t offset;
  double operator()(int64_t step) const { return rate(step + offset); }
};

/// rate(step / every): a schedule that counts epochs of so many steps. Error (argument) of the call: every below 1.
struct ROSIN_API SlowedRate {
  AnyRate rate;
  int64_t every;
  double operator()(int64_t step) const;
};

/// A schedule whose parameters are schedules: at each step `make` gets their values at that step, and gives the
/// schedule that is asked. Source: ParameterSchedulers.ComposedSchedule.
template <class Make, int count> struct ComposedRate {
  Make make;
  std::array<AnyRate, count> parameters;
  double operator()(int64_t step) const {
    return std::apply([&](const auto&... rate) { return make(rate(step)...)(step); }, parameters);
  }
};
///   composed([](double high) { return TriangleRate{.high = high, .period = 10}; }, ExponentialRate{.start = 0.1})
template <class Make, class... Rates>
ComposedRate<Make, static_cast<int>(sizeof...(Rates))> composed(Make make, Rates... parameters) {
  return {std::move(make), {AnyRate(std::move(parameters))...}};
}

}  // namespace rosin
