// Self-tests of devices, each in a child process of its own. Read first: checks.hpp.
#pragma once

#include <string>
#include <vector>

#include <rosin/diagnostics.hpp>

#include "checks.hpp"
#include "commands.hpp"

namespace command {

struct DeviceResult {
  std::string device;    // "CUDA:0"
  std::string hardware;  // "NVIDIA GeForce GTX 1650"
  std::string trouble;   // how the self-test ended before its end; empty: it did not
  std::vector<CheckResult> checks;

  bool ok() const;
  double milliseconds() const;
};

/// `brief`: the five checks of `rosin devices`.
DeviceResult test_device(const rosin::Device& device, bool brief, double seconds);

/// "error 1.2e-07, at most 1e-06"
std::string figures_text(const CheckResult& check);
Json json_of(const DeviceResult& result);

}  // namespace command
