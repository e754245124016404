// The file of MIOpen, and a handle of it. Read first: hip.hpp, miopen_types.hpp. Read next: miopen_ways.hpp.
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "amdgpu/hip.hpp"
#include "amdgpu/miopen_types.hpp"

namespace rosin::amdgpu {

/// The library, opened when it is first asked for.
class DnnLibrary {
 public:
  DnnLibrary();

  /// Why it cannot be used; empty: it can.
  const std::string& reason() const { return reason_; }
  const std::string& version() const { return version_; }
  bool is_at_least(size_t major, size_t minor) const { return number_ >= std::pair(major, minor); }
  const miopen::Functions& functions() const { return functions_; }
  /// Throws what a status means; `what` is what was asked for.
  void check(int status, const char* what) const;

 private:
  void find_version(const Library& library);
  void find_functions(const Library& library);

  miopen::Functions functions_{};
  std::pair<size_t, size_t> number_;  // of the version, in short
  std::string reason_, version_;
};

/// The one library. Throws ROSIN_UNSUPPORTED where there is no driver.
const DnnLibrary& dnn_library();

/// MIOpen's state of the current device, for one thread and one stream at a time.
class DnnHandle {
 public:
  DnnHandle();
  ~DnnHandle();
  DnnHandle(const DnnHandle&) = delete;
  DnnHandle& operator=(const DnnHandle&) = delete;

  /// The status of work(handle).
  template <class Work> int ask(Work&& work) {
    const std::lock_guard guard(using_);
    return work(handle_);
  }
  /// Gives work to the stream: work(handle) has a status. Throws what that means; `what` is what was asked for.
  template <class Work> void give(driver::Stream stream, const char* what, Work&& work) {
    const std::lock_guard guard(using_);
    set_stream(stream);
    check(work(handle_), what);
  }

 private:
  void set_stream(driver::Stream stream);
  static void check(int status, const char* what);

  miopen::Handle handle_ = nullptr;
  driver::Stream stream_ = nullptr;
  std::mutex using_;
};

}  // namespace rosin::amdgpu
