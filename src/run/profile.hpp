// The profile under way. Read first: include/rosin/profile.hpp, run_timer.hpp.
#pragma once

#include <span>

#include "run/run_timer.hpp"

namespace rosin {

bool profile_is_under_way() noexcept;

/// A run of the plan that began then, with its steps one after the other. Nothing where no profile is taken any more.
void add_to_profile(const Plan& plan, RunTimer::Clock::time_point begin, std::span<const RunTimer::Timed> timed);

}  // namespace rosin
