// The real cuDNN, where it is installed, for a device that is described and need not be there.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "common/failure.hpp"
#include "cuda/cudnn_plan.hpp"
#include "tests/sanitizer_testing.hpp"

namespace rosin::cuda {

/// An H200, as cuDNN has its devices described: up to 9.20, and later.
constexpr const char* h200 = R"({"cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000, "isTccDriver": 0,
  "l2CacheSize": 62914560, "maxBlockSize": [1024, 1024, 64], "maxCtasPerSM": 32,
  "maxGridSize": [2147483647, 65535, 65535],
  "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "memClockRateKHz": 3201000, "multiProcessorCount": 132,
  "pciDeviceId": 0, "regsPerBlock": 65536, "reservedSharedMemoryPerBlock": 1024, "smClockRateKHz": 1980000,
  "smCountOrigin": 0, "oversizedSharedMemoryPerBlock": 0, "memoryBusWidth": 6144,
  "supportCoopLaunch": 1, "totalGlobalMem": 150754820096, "warpSize": 32, "deviceName": "NVIDIA H200"})";

class RealDnn : public testing::Test {
 protected:
  void SetUp() override {
    if (!counts_memory) GTEST_SKIP() << "NVIDIA's library knows no sanitizer nor emulator, and keeps memory";
    library_.emplace(13000);  // of any driver: none is needed
    if (!library_->reason().empty()) GTEST_SKIP() << library_->reason();
    try {
      properties_.emplace(*library_, dnn::Kind::device_properties);
      properties_->set_text(dnn::Attribute::device_json, h200);
      properties_->finish("description of a device");
    } catch (const plugin::Failure& failure) {
      GTEST_SKIP() << "cuDNN " << library_->version() << " takes no description of a device: " << failure.text;
    }
  }

  static constexpr uint64_t room = uint64_t{32} << 20;

  template <class Call> DnnWays ways(const Call& call, uint64_t workspace = room) const {
    const DnnTarget target{&*library_, nullptr, &*properties_, host_, "an H200"};
    return DnnWays(target, graph_of(target, call), workspace);
  }

  const rosin_host* host_ = nullptr;
  std::optional<DnnLibrary> library_;
  std::optional<DnnDescriptor> properties_;
};

}  // namespace rosin::cuda
