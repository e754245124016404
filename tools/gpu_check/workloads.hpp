// What is measured on a device: training steps and single kernels, of sizes that come from outside (measure.py has the
// table). Every number that a workload starts from follows from its place, so that peers start from the same without a
// file. Read next: training_workloads.cpp, kernel_workloads.cpp, measure.cpp.
#pragma once

#include <rosin/array.hpp>
#include <rosin/device.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gpu_check {

/// Sizes by name, from words such as batch=128.
class Sizes {
 public:
  /// Error (std::invalid_argument): a word that is none.
  explicit Sizes(const std::vector<std::string>& words);
  /// Error (std::invalid_argument): it is not there.
  int64_t operator[](const std::string& name) const;
  int64_t get(const std::string& name, int64_t otherwise) const;

 private:
  std::map<std::string, int64_t> sizes_;
};

/// Arrays in a fixed order: element i of array n is the same number in every program that counts alike.
class Numbers {
 public:
  /// Float32, uniform in [-scale, scale).
  rosin::Array uniform(const rosin::Shape& shape, double scale);
  /// Int32, uniform in [0, bound).
  rosin::Array whole(const rosin::Shape& shape, int64_t bound);

 private:
  uint32_t arrays_ = 0;
};

/// Something that is done again and again on one device.
class Session {
 public:
  virtual ~Session() = default;
  /// Gives one step to the device.
  virtual void step() = 0;
  /// What is compared with peers: the loss of the last step, before its update, or the mean of its result.
  virtual double value() = 0;
};

/// Error (std::invalid_argument): no such kind, or a size that it needs is missing.
std::unique_ptr<Session> make_session(const std::string& kind, const Sizes& sizes, const rosin::Device& device);

// Null where the kind is none of them.
std::unique_ptr<Session> make_training(const std::string& kind, const Sizes& sizes, const rosin::Device& device);
std::unique_ptr<Session> make_kernel(const std::string& kind, const Sizes& sizes, const rosin::Device& device);

}  // namespace gpu_check
