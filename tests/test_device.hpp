// The device that the op suite runs on: that of ROSIN_TEST_DEVICE ("OpenCL:0", "reference:0"), else the CPU. Inputs are
// made on the CPU and moved there; results are read back by whatever compares them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include <rosin/device.hpp>
#include <rosin/move.hpp>

#include "runtime/devices.hpp"

namespace rosin {

inline const Device& test_device() {
  static const Device device = [] {
    const char* const wanted = std::getenv("ROSIN_TEST_DEVICE");
    if (!wanted || !*wanted) return Device();
    const std::string text = wanted;
    const size_t colon = text.find(':');
    const int id = colon == std::string::npos ? 0 : std::stoi(text.substr(colon + 1));
    return get_device(text.substr(0, colon), id).with(keep);
  }();
  return device;
}

inline bool on_other_device() { return test_device().position() != 0; }

/// x on the test device, in its own type.
inline Array there(const Array& x) { return x | test_device(); }

/// Whether arrays of this type can stand on the test device.
inline bool has_type_there(DType type) {
  const bool wide = type == Float64 || type == ComplexF64;
  return !wide || !on_other_device() || DeviceTable::instance().info_of(test_device().position()).float64;
}

}  // namespace rosin
