// Runs a workload on a device: times for scripts, losses for comparison. Read next: measure.cpp, workloads.hpp.
#pragma once

#include <rosin/device.hpp>

#include <string>
#include <vector>

namespace gpu_check {

/// Prints one line of JSON: milliseconds of a step in each repeat, the values of the first steps, the host's time,
/// launches, bytes, memory. Beside the sizes of the workload it takes compared=5, repeats=5, milliseconds=4000.
void measure(const rosin::Device& device, const std::string& kind, const std::vector<std::string>& words);

/// Prints 20 losses with all bits, one a line.
void print_losses(const rosin::Device& device, const std::string& kind, const std::vector<std::string>& words);

/// Whether 20 losses are those of the CPU, to 1e-4; says so.
bool losses_agree(const rosin::Device& device, const std::string& kind, const std::vector<std::string>& words);

}  // namespace gpu_check
