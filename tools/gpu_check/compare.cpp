// Runs the checks of checks.cpp on a device and on the CPU, and compares.
#include <rosin/rosin.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <sstream>

#include "checks.hpp"

namespace gpu_check {
namespace {

using namespace rosin;

/// A type of floats that the checks run in, and how much coarser than Float32 it is.
struct Precision {
  DType type;
  double bound;  // where the row has none or a smaller one
};

/// The greatest difference, relative to the value or to 1; infinite where one side alone is not a number.
double difference(const std::vector<double>& found, const std::vector<double>& expected) {
  if (found.size() != expected.size()) return HUGE_VAL;
  double most = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(found[i]) && std::isnan(expected[i])) continue;
    if (found[i] == expected[i]) continue;
    const double gap = std::abs(found[i] - expected[i]) / std::max(1.0, std::abs(expected[i]));
    most = std::isnan(gap) ? HUGE_VAL : std::max(most, gap);
  }
  return most;
}

/// Empty, or why the check failed.
std::string trouble(const Check& check, const Inputs& here, const Inputs& there, const Device& device, double bound) {
  const std::vector<Array> expected = check.compute(here), found = check.compute(there);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (found[i].device() != device) return "result " + std::to_string(i) + " is on " + to_string(found[i].device());
    if (found[i].dtype() != expected[i].dtype()) return "result " + std::to_string(i) + " has another type";
    const double most = difference(found[i].to_vector<double>(), expected[i].to_vector<double>());
    if (most <= bound) continue;
    std::ostringstream text;
    text << "result " << i << " differs by " << most << ", at most " << bound << " allowed";
    return text.str();
  }
  return {};
}

/// Blocks that are free afterwards, and handed out again, hold NaN: an element that is never written shows.
void poison(const Device& device) {
  std::vector<Array> blocks;
  for (int64_t count = 64; count <= 16384; count *= 4) blocks.push_back(full({count}, NAN, {Float32, device}) + 1);
  for (const Array& block : blocks) eval(block);
}

void run(const Check& check, const Inputs& here, const Inputs& there, const Device& device, const Precision& precision,
         Report& report) {
  std::string why;
  try {
    poison(device);
    why = trouble(check, here, there, device, std::max(check.bound, precision.bound));
  } catch (const std::exception& error) {
    why = error.what();
  }
  ++(why.empty() ? report.passed : report.failed);
  if (!why.empty()) report.lines.push_back(check.name + " in " + std::string(to_string(precision.type)) + ": " + why);
}

}  // namespace

Report check_ops(const Device& device, bool float64, size_t every) {
  std::vector<Precision> precisions = {{Float32, 0}, {Float16, 4e-3}, {BFloat16, 3e-2}};
  if (float64) precisions.push_back({Float64, 0});
  Report report;
  size_t number = 0;
  const Inputs made = make_inputs();
  for (const Precision& precision : precisions) {
    const Inputs here = with_floats(made, precision.type);
    const Inputs there = here | device.with(keep);
    for (const Check& check : all_checks()) {
      if (precision.type != Float32 && !check.floats) continue;
      if (++number % every == 0) run(check, here, there, device, precision, report);
    }
  }
  return report;
}

}  // namespace gpu_check
