// See run_timer.hpp.
#include "run/run_timer.hpp"

#include <new>

#include "run/profile.hpp"

namespace rosin {

std::unique_ptr<RunTimer> RunTimer::of_profile(const Plan& plan) {
  return profile_is_under_way() ? std::make_unique<RunTimer>(plan) : nullptr;
}

RunTimer::RunTimer(const Plan& plan) : plan_(plan) { timed_.reserve(plan.layout->structure->steps.size()); }

plan::StepListener* RunTimer::begin(plan::StepListener* other) noexcept {
  other_ = other;
  begin_ = last_ = Clock::now();
  return this;
}

void RunTimer::finish() noexcept {
  try {
    add_to_profile(plan_, begin_, timed_);
  } catch (const std::bad_alloc&) {}
}

/// (There is room: each step of the CPU is over once.)
void RunTimer::over(size_t step) noexcept {
  const Clock::time_point now = Clock::now();
  timed_.push_back({static_cast<int32_t>(step), {}, std::chrono::duration<double>(now - last_).count()});
  if (other_) other_->over(step);
  last_ = other_ ? Clock::now() : now;
}

std::span<const plan::EarlyOutput> RunTimer::outputs() const noexcept {
  return other_ ? other_->outputs() : std::span<const plan::EarlyOutput>();
}

void RunTimer::took(int32_t step, const std::string& ops, double seconds) { timed_.push_back({step, ops, seconds}); }

}  // namespace rosin
