// What a plug-in answers of its libraries: their versions, and why one is not used, which its first device is asked.
// Read first: driver/driver.hpp.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "driver/driver.hpp"

namespace rosin::vendor {

/// The first device, opened when it is first asked for and closed with this.
class FirstDevice {
 public:
  /// Null where it does not open: then there is a reason.
  rosin_device* get();
  const std::string& reason() const { return reason_; }

 private:
  bool asked_ = false;
  std::string reason_;
  std::unique_ptr<rosin_device, void (*)(rosin_device*)> device_{nullptr, driver::close};
};

/// The answer itself, which stays where it is.
class Capabilities {
 public:
  Capabilities() = default;
  Capabilities(const Capabilities&) = delete;
  Capabilities& operator=(const Capabilities&) = delete;

  void add(const char* name, const std::string& version, const std::string& reason = {});
  /// The library of blas.hpp.
  void add_blas(FirstDevice& first);
  void put(const rosin_capability** list, uint32_t* count) const;

 private:
  std::deque<std::string> texts_;
  std::vector<rosin_capability> list_;
};

}  // namespace rosin::vendor
