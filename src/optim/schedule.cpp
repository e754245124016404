// Schedules that need mathematics.
#include <rosin/schedule.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include <rosin/error.hpp>

namespace rosin {

void detail::check_steps(const char* schedule, int64_t steps, int64_t least) {
  if (steps >= least) return;
  throw Error(ErrorKind::argument, std::string(schedule) + ": steps must be at least " + std::to_string(least) +
                                       "; got " + std::to_string(steps) + "; ConstantRate keeps the rate");
}

double ExponentialRate::operator()(int64_t step) const {
  detail::check_steps("ExponentialRate", steps, 1);
  const double part = static_cast<double>(step) / static_cast<double>(steps);
  return std::max(start * std::pow(decay, part), lowest);
}

double StepRate::operator()(int64_t step) const {
  detail::check_steps("StepRate", steps, 1);
  return start * std::pow(decay, static_cast<double>(step / steps));
}

double MultiStepRate::operator()(int64_t step) const {
  const auto passed = std::upper_bound(milestones.begin(), milestones.end(), step) - milestones.begin();
  return start * std::pow(decay, static_cast<double>(passed));
}

namespace {

double share_of(int64_t step, int64_t steps) { return static_cast<double>(step) / static_cast<double>(steps); }

/// From `from` to `to` along half a cosine.
double along_cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

/// What is left of a wave's height.
template <class Wave> double height(const Wave& wave, int64_t step) {
  const auto cycles = static_cast<double>(step / wave.period);
  return (wave.high - wave.low) * std::pow(wave.per_cycle, cycles) * std::pow(wave.per_step, static_cast<double>(step));
}

}  // namespace

double PolynomialRate::operator()(int64_t step) const {
  detail::check_steps("PolynomialRate", steps, 1);
  return step >= steps ? end : end + (start - end) * std::pow(1 - share_of(step, steps), degree);
}

double InverseRate::operator()(int64_t step) const {
  return start / std::pow(1 + decay * static_cast<double>(step), degree);
}

double CosineRate::operator()(int64_t step) const {
  detail::check_steps("CosineRate", steps, 1);
  if (restart) return along_cosine(start, end, share_of(step % steps, steps));
  return step >= steps ? end : along_cosine(start, end, share_of(step, steps));
}

double TriangleRate::operator()(int64_t step) const {
  detail::check_steps("TriangleRate", period, 1);
  const double share = share_of(step % period, period);
  return low + height(*this, step) * (1 - std::abs(2 * share - 1));
}

double SineRate::operator()(int64_t step) const {
  detail::check_steps("SineRate", period, 1);
  return low + height(*this, step) * std::sin(std::numbers::pi * share_of(step % period, period));
}

double OneCycleRate::operator()(int64_t step) const {
  detail::check_steps("OneCycleRate", steps, 2);
  const auto up = static_cast<int64_t>(std::ceil(static_cast<double>(steps) * rising));
  if (up < 1 || up >= steps) {
    throw Error(ErrorKind::argument, "OneCycleRate: the share that rises must leave steps to rise and to fall; got " +
                                         std::to_string(rising) + " of " + std::to_string(steps) + "; use 0.25");
  }
  if (step < up) return along_cosine(start.value_or(peak / 25), peak, share_of(step, up));
  const double last = end.value_or(peak / 1e5);
  return step >= steps ? last : along_cosine(peak, last, share_of(step - up, steps - up));
}

double SequenceRate::operator()(int64_t step) const {
  if (stages.empty()) {
    throw Error(ErrorKind::argument, "SequenceRate: it needs a stage; got none; write {{steps, rate}, ...}");
  }
  for (size_t i = 0; i + 1 < stages.size(); ++i) {
    detail::check_steps("SequenceRate", stages[i].steps, 0);
    if (step < stages[i].steps) return stages[i].rate(step);
    step -= stages[i].steps;
  }
  return stages.back().rate(step);
}

double LoopRate::operator()(int64_t step) const {
  detail::check_steps("LoopRate", period, 1);
  return rate(step % period);
}

double SlowedRate::operator()(int64_t step) const {
  detail::check_steps("SlowedRate", every, 1);
  return rate(step / every);
}

}  // namespace rosin
