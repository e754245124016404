// The profile under way. Read first: include/rosin/profile.hpp, run_timer.hpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "run/run_timer.hpp"

namespace rosin {

bool profile_is_under_way() noexcept;

/// A run of the plan that began then, with its steps one after the other. Nothing where no profile is taken any more.
void add_to_profile(const Plan& plan, RunTimer::Clock::time_point begin, std::span<const RunTimer::Timed> timed);

/// A copy that began then and is over, between this device and another place.
void add_copy_to_profile(const std::string& device, const std::string& what, size_t bytes,
                         RunTimer::Clock::time_point begin);

}  // namespace rosin
