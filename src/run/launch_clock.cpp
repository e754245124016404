// See launch_clock.hpp.
#include "run/launch_clock.hpp"

namespace rosin {

LaunchClock::LaunchClock(OpenDevice& device, size_t launches) : device_(device) {
  if (device.functions.event_create_timed) events_.reserve(launches + 1);
  else times_.reserve(launches + 1);
  mark();
}

LaunchClock::~LaunchClock() {
  for (rosin_event* event : events_) device_.functions.event_destroy(event);
}

void LaunchClock::mark() noexcept { works_ = works_ && record(); }

bool LaunchClock::record() noexcept {
  const rosin_backend& functions = device_.functions;
  rosin_stream* const queue = device_.compute().queue();
  if (!functions.event_create_timed) {
    if (functions.stream_sync(queue) != ROSIN_OK) return false;
    times_.push_back(std::chrono::steady_clock::now());
    return true;
  }
  rosin_event* event = nullptr;
  if (functions.event_create_timed(device_.device, &event) != ROSIN_OK) return false;
  events_.push_back(event);
  return functions.event_record(event, queue) == ROSIN_OK;
}

std::vector<double> LaunchClock::seconds() {
  std::vector<double> seconds;
  for (size_t i = 1; works_ && i < times_.size(); ++i) {
    seconds.push_back(std::chrono::duration<double>(times_[i] - times_[i - 1]).count());
  }
  if (!works_ || events_.empty() || device_.functions.event_sync(events_.back()) != ROSIN_OK) return seconds;
  for (size_t i = 1; i < events_.size(); ++i) {
    double took = 0;
    if (device_.functions.event_elapsed(events_[i - 1], events_[i], &took) != ROSIN_OK) return {};
    seconds.push_back(took);
  }
  return seconds;
}

}  // namespace rosin
