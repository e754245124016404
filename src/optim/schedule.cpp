// Schedules that need mathematics.
#include <rosin/schedule.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rosin {

double ExponentialRate::operator()(int64_t step) const noexcept {
  const double part = static_cast<double>(step) / static_cast<double>(std::max<int64_t>(steps, 1));
  return std::max(start * std::pow(decay, part), lowest);
}

double StepRate::operator()(int64_t step) const noexcept {
  return start * std::pow(decay, static_cast<double>(step / std::max<int64_t>(steps, 1)));
}

double CosineRate::operator()(int64_t step) const noexcept {
  if (step >= steps) return end;
  const double part = static_cast<double>(step) / static_cast<double>(steps);
  return end + (start - end) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

}  // namespace rosin
