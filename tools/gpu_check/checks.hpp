// Ops on a device against the same ops on the CPU. Needs the library and its public headers only, so that it can be
// built where nothing else is. Read next: checks.cpp (the table), main.cpp (who is asked).
#pragma once

#include <rosin/array.hpp>
#include <rosin/device.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gpu_check {

/// What the checks compute from, the same numbers on every device; made once on the CPU and moved as a whole.
struct Inputs {
  rosin::Array x, y;         // (37, 19), from -2 to 2
  rosin::Array positive;     // (37, 19), from 0.1 to 3
  rosin::Array unit;         // (37, 19), from -0.95 to 0.95
  rosin::Array row, column;  // (37, 1) and (1, 19), from -2 to 2
  rosin::Array cube;         // (5, 6, 7), from -2 to 2
  rosin::Array whole;        // (37, 19) of Int32, from -50 to 50
  rosin::Array places;       // (11) of Int64, from 0 to 18
  rosin::Array images;       // (13, 12, 4, 3), from -2 to 2
  rosin::Array filters;      // (3, 3, 4, 6), from -1 to 1
  rosin::Array left, right;  // (45, 70) and (70, 33), from -1 to 1
  rosin::Array labels;       // (10, 19) of Bool, one-hot
};

Inputs make_inputs();

/// One thing to compute. Results of all its arrays are compared.
struct Check {
  std::string name;
  double bound;  // of the greatest difference in Float32, relative to the value or to 1 where that is less
  std::vector<rosin::Array> (*compute)(const Inputs& in);
  bool floats;  // whether other types of floats make sense too
};

const std::vector<Check>& all_checks();

struct Report {
  int64_t passed = 0, failed = 0;
  std::vector<std::string> lines;  // one for each failure
};

/// All checks in Float32, and those of floats in Float16, BFloat16 and, where the device has it, Float64; or each
/// `every`th of them.
Report check_ops(const rosin::Device& device, bool float64, size_t every);

}  // namespace gpu_check
