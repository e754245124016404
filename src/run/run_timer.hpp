// RunTimer: tells the profile under way, if there is one, how long the steps of a run take. Read first:
// include/rosin/profile.hpp. Read next: profile.cpp (who is told), evaluate.cpp (who runs).
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/device.hpp"
#include "run/plan_cache.hpp"

namespace rosin {

class RunTimer final : public plan::StepListener {
 public:
  using Clock = std::chrono::steady_clock;

  /// What was timed, in order, from when it was begun on.
  struct Timed {
    int32_t step;     // -1: for several
    std::string ops;  // empty: those of the step
    double seconds;
  };

  /// Null where no profile is taken.
  static std::unique_ptr<RunTimer> of_profile(const Plan& plan);

  explicit RunTimer(const Plan& plan);
  /// The run begins now; `other` listens to it too, if it is not null.
  plan::StepListener* begin(plan::StepListener* other) noexcept;
  /// It is over: the profile is told, where there is memory for that.
  void finish() noexcept;

 private:
  void over(size_t step) noexcept override;
  std::span<const plan::EarlyOutput> outputs() const noexcept override;
  bool wants_times() const noexcept override { return true; }
  void took(int32_t step, const std::string& ops, double seconds) override;

  const Plan& plan_;
  plan::StepListener* other_ = nullptr;
  Clock::time_point begin_, last_;
  std::vector<Timed> timed_;
};

}  // namespace rosin
