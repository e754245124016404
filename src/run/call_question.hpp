// CallQuestion: a call of a plan as plug-ins get it. Read first: plan/call.hpp, include/rosin/backend_calls.h. Read
// next: library_call.hpp (who asks).
#pragma once

#include <vector>

#include <rosin/backend.h>

#include "plan/call.hpp"

namespace rosin {

/// A description in C; it owns what it points to. The only place that knows both.
class CallQuestion {
 public:
  explicit CallQuestion(const plan::CallDescription& call);
  CallQuestion(const CallQuestion&) = delete;
  CallQuestion& operator=(const CallQuestion&) = delete;
  const rosin_call_description* plain() const { return &plain_; }

 private:
  void take_window(const plan::CallWindow& from);
  void take_attributes(const plan::CallAttributes& from);

  std::vector<rosin_call_array> arrays_;
  std::vector<rosin_attribute> attributes_;
  rosin_call_description plain_{};
};

}  // namespace rosin
