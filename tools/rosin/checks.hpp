// The self-test: a table of named checks, each of which computes something on a device and compares it with plain
// loops. Read next: checks.cpp, selftest.hpp (who runs them where).
#pragma once

#include <span>
#include <string>
#include <vector>

#include <rosin/device.hpp>

#include "plain.hpp"

namespace command {

struct Check {
  const char* name;
  bool brief;  // part of the short self-test too
  bool needs_float64;
  double bound;  // of the error: the greatest difference, relative to the largest value expected or to 1
  plain::Values (*computed)(const rosin::Device& device);
  plain::Values (*expected)();
};

std::span<const Check> all_checks();

enum class Outcome { ok, failed, left_out };

struct CheckResult {
  std::string name;
  Outcome outcome = Outcome::failed;
  double error = 0;
  double bound = 0;
  double milliseconds = 0;  // the kernels' compilation included
  std::string reason;       // why it failed or was left out; empty where the figures say it
};

CheckResult run_check(const Check& check, const rosin::Device& device, bool has_float64);

}  // namespace command
