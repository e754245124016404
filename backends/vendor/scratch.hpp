// Memory, streams and times for the plug-in's own short work on a device: trying a library, timing its algorithms. The
// device's context is current. Read first: driver/driver.hpp.
#pragma once

#include "driver/driver.hpp"

namespace rosin::vendor {

/// A block of device memory.
class ScratchMemory {
 public:
  explicit ScratchMemory(uint64_t bytes) : bytes_(bytes) {
    const driver::Driver& driver = driver::the_driver();
    driver.check(driver.functions.alloc(&address_, bytes), "allocation");
  }
  ~ScratchMemory() { driver::the_driver().functions.free(address_); }
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;

  driver::Address address() const { return address_; }
  uint64_t bytes() const { return bytes_; }

 private:
  driver::Address address_ = 0;
  uint64_t bytes_;
};

/// A stream; what its work uses is made before it, so that it goes later.
class ScratchStream {
 public:
  ScratchStream() {
    const driver::Driver& driver = driver::the_driver();
    driver.check(driver.functions.stream_create(&stream_, 1), "creation of a stream");
  }
  ~ScratchStream() { driver::the_driver().functions.stream_destroy(stream_); }
  ScratchStream(const ScratchStream&) = delete;
  ScratchStream& operator=(const ScratchStream&) = delete;

  driver::Stream stream() const { return stream_; }
  void copy_in(const ScratchMemory& to, const void* from) {
    const driver::Driver& driver = driver::the_driver();
    driver.check(driver.functions.copy_in(to.address(), from, to.bytes(), stream_), "copy to the device");
  }
  void copy_out(void* to, const ScratchMemory& from) {
    const driver::Driver& driver = driver::the_driver();
    driver.check(driver.functions.copy_out(to, from.address(), from.bytes(), stream_), "copy from the device");
  }
  void sync() {
    const driver::Driver& driver = driver::the_driver();
    driver.check(driver.functions.stream_sync(stream_), "wait for the stream");
  }

 private:
  driver::Stream stream_ = nullptr;
};

/// A point of a stream, with its time.
class Timer {
 public:
  Timer() {
    const driver::Driver& driver = driver::the_driver();
    driver.check(driver.functions.event_create(&event_, 0), "creation of an event");
  }
  ~Timer() { driver::the_driver().functions.event_destroy(event_); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void record(driver::Stream stream) const {
    const driver::Driver& driver = driver::the_driver();
    driver.check(driver.functions.event_record(event_, stream), "record of an event");
  }
  void wait() const {
    const driver::Driver& driver = driver::the_driver();
    driver.check(driver.functions.event_sync(event_), "wait for an event");
  }
  /// Milliseconds since another one, when both have passed.
  float since(const Timer& other) const {
    const driver::Driver& driver = driver::the_driver();
    const auto elapsed = driver::needed(driver.functions.event_elapsed, "time between events");
    float time = 0;
    driver.check(elapsed(&time, other.event_, event_), "time between events");
    return time;
  }

 private:
  driver::Event event_ = nullptr;
};

}  // namespace rosin::vendor
