// See measure.hpp.
#include "measure.hpp"

#include <rosin/rosin.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "json_line.hpp"
#include "workloads.hpp"

namespace gpu_check {
namespace {

using namespace rosin;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Times of whole repeats, and what was counted in the last of them.
struct Measured {
  std::vector<double> ms;  // of a step
  double host_us = 0;      // in which the program was busy giving a step to the device
  Stats counted;
  int64_t steps = 0;
};

Measured measured(Session& session, const Device& device, double seconds, int64_t repeats) {
  for (int i = 0; i < 3; ++i) session.step();  // the third run is the first of a graph
  synchronize(device);
  const double start = now();
  session.step();
  synchronize(device);
  const double each = std::max(now() - start, 1e-6);
  Measured found;
  found.steps = std::clamp<int64_t>(static_cast<int64_t>(seconds / static_cast<double>(repeats) / each), 1, 2000);
  for (int64_t i = 0; i < repeats; ++i) {
    reset_stats();
    const double begin = now();
    for (int64_t k = 0; k < found.steps; ++k) session.step();
    found.host_us = (now() - begin) / static_cast<double>(found.steps) * 1e6;
    synchronize(device);
    found.ms.push_back((now() - begin) / static_cast<double>(found.steps) * 1e3);
    found.counted = stats();
  }
  return found;
}

/// Of the first steps.
std::vector<double> values_of(Session& session, int64_t steps, double& first_ms) {
  std::vector<double> values;
  const double start = now();
  for (int64_t i = 0; i < steps; ++i) {
    session.step();
    values.push_back(session.value());
    if (i == 0) first_ms = (now() - start) * 1e3;
  }
  return values;
}

}  // namespace

void measure(const Device& device, const std::string& kind, const std::vector<std::string>& words) {
  const Sizes sizes(words);
  double first_ms = 0;
  const std::unique_ptr<Session> session = make_session(kind, sizes, device);
  const std::vector<double> values = values_of(*session, sizes.get("compared", 5), first_ms);
  const double seconds = static_cast<double>(sizes.get("milliseconds", 4000)) / 1e3;
  const Measured found = measured(*session, device, seconds, sizes.get("repeats", 5));
  const auto per_step = [&](int64_t count) { return static_cast<double>(count) / static_cast<double>(found.steps); };
  const Stats& counted = found.counted;
  JsonLine()
      .text("kind", kind)
      .numbers("ms", found.ms)
      .numbers("values", values)
      .number("first_ms", first_ms)
      .number("host_us", found.host_us)
      .number("launches", per_step(counted.launches))
      .number("graph_launches", per_step(counted.graph_launches))
      .number("library_calls", per_step(counted.library_calls))
      .number("bytes", per_step(counted.read_bytes + counted.written_bytes))
      .whole("peak_bytes", memory_stats(device).peak)
      .print();
}

void print_losses(const Device& device, const std::string& kind, const std::vector<std::string>& words) {
  double first_ms = 0;
  const std::unique_ptr<Session> session = make_session(kind, Sizes(words), device);
  for (const double value : values_of(*session, 20, first_ms)) std::printf("%a\n", value);
}

bool losses_agree(const Device& device, const std::string& kind, const std::vector<std::string>& words) {
  double first_ms = 0, worst = 0;
  const Sizes sizes(words);
  const std::vector<double> expected = values_of(*make_session(kind, sizes, Device()), 20, first_ms);
  const std::vector<double> found = values_of(*make_session(kind, sizes, device), 20, first_ms);
  for (size_t i = 0; i < expected.size(); ++i) {
    const double gap = std::abs(found[i] - expected[i]) / std::max(1e-3, std::abs(expected[i]));
    worst = gap <= worst ? worst : gap;  // NaN stays
  }
  const bool agree = worst <= 1e-4;
  std::printf("%s on %s: 20 losses %s those of the CPU, the last is %.6g; they differ by %.2g of the value at most\n",
              kind.c_str(), to_string(device).c_str(), agree ? "are" : "ARE NOT", found.back(), worst);
  return agree;
}

}  // namespace gpu_check
