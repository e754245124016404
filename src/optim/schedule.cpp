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

double CosineRate::operator()(int64_t step) const {
  detail::check_steps("CosineRate", steps, 1);
  if (step >= steps) return end;
  const double part = static_cast<double>(step) / static_cast<double>(steps);
  return end + (start - end) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

}  // namespace rosin
