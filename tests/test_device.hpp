// The device that the op suite runs on: that of ROSIN_TEST_DEVICE ("OpenCL:0", "reference:0"), else the CPU. Inputs are
// made on the CPU and moved there; results are read back by whatever compares them.
#pragma once

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

#include <rosin/device.hpp>
#include <rosin/error.hpp>
#include <rosin/math_mode.hpp>
#include <rosin/stats.hpp>

#include "graph/transfer.hpp"
#include "run/device_table.hpp"

namespace rosin {

inline const Device& test_device() {
  static const Device device = [] {
    const char* const wanted = std::getenv("ROSIN_TEST_DEVICE");
    if (!wanted || !*wanted || std::string_view(wanted) == "CPU") return Device();
    math_mode(MathMode::exact);  // the mode in which all devices give the same bits
    const std::string text = wanted;
    const size_t colon = text.find(':');
    const int id = colon == std::string::npos ? 0 : std::stoi(text.substr(colon + 1));
    return get_device(text.substr(0, colon), id).with(keep);
  }();
  return device;
}

inline bool on_other_device() { return test_device().position() != 0; }

/// For tests of devices alone: the test device, or the reference one where that is the CPU. Types stay.
inline Device some_device() { return on_other_device() ? test_device() : get_device("reference", 0).with(keep); }

/// x on the test device, in its own type.
inline Array there(const Array& x) { return transferred(x, test_device().position()); }

/// Whether arrays of this type can stand on the test device.
inline bool has_type_there(DType type) {
  const bool wide = type == Float64 || type == ComplexF64;
  return !wide || !on_other_device() || DeviceTable::instance().info_of(test_device().position()).float64;
}

/// Whether kernels are compiled from text there, each for a tenth of a second.
inline bool compiles_there() {
  return on_other_device() && DeviceTable::instance().info_of(test_device().position()).language != ROSIN_LANGUAGE_NONE;
}

/// Whether there are so many kernels to compile that some checks stand for others, unless ROSIN_ALL_DEVICE_TESTS=1.
inline bool is_short_there() {
  const char* const all = std::getenv("ROSIN_ALL_DEVICE_TESTS");
  return compiles_there() && !(all && std::string_view(all) == "1");
}

/// Where many checks are alike, how many one of them stands for; those of kernels that OpenCL compiles take longest.
inline size_t checks_alike() {
  if (!is_short_there()) return 1;
  return DeviceTable::instance().info_of(test_device().position()).language == ROSIN_LANGUAGE_OPENCL ? 3 : 1;
}

/// Random program number `seed` of a test, or, with ROSIN_FIRST_PROGRAM=N, another: a campaign runs the tests again
/// with other programs.
inline uint64_t program_seed(uint64_t seed) {
  const char* const first = std::getenv("ROSIN_FIRST_PROGRAM");
  return seed + (first ? std::strtoull(first, nullptr, 10) : 0);
}

/// Finds out which kernels the checks from `first` to `last` need, without running any, and compiles them as one
/// program.
inline void compile_for(size_t first, size_t last, const std::function<void(size_t)>& check) {
  DeviceKernels& kernels = DeviceTable::instance().open(test_device().position()).kernels;
  kernels.collect();
  testing::TestPartResultArray ignored;  // values that were never computed are wrong, and may throw
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &ignored);
    for (size_t i = first; i < last; ++i) {
      try {
        check(i);
      } catch (const std::exception&) {}
    }
  }
  try {
    kernels.compile_collected();
  } catch (const Error&) {  // the check that needs the kernel will say so
  }
  trim();  // forgets the plans without kernels
}

/// check(i) for every i below the count. Where kernels are compiled, some dozens of checks run twice: see compile_for.
inline void run_checks(size_t count, const std::function<void(size_t)>& check) {
  constexpr size_t together = 32;
  for (size_t first = 0; first < count; first += together) {
    const size_t last = std::min(first + together, count);
    if (compiles_there()) compile_for(first, last, check);
    for (size_t i = first; i < last; ++i) check(i);
  }
}

}  // namespace rosin
