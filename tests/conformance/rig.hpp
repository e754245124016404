// Rig: one device of the plug-in under test, with what every check needs: memory, modules and launches that give
// themselves back, and expectations. Read first: rosin/backend.h. Read next: code.hpp, checks.hpp.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <rosin/backend.h>

#include "code.hpp"

namespace rosin::conformance {

/// A check that failed; the text says how.
struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void expect(bool holds, const std::string& what) {
  if (!holds) throw Broken(what);
}

const char* name_of(rosin_status status);

class Rig;

/// A block of device memory.
class Memory {
 public:
  Memory(Rig& rig, uint64_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  rosin_place at(uint64_t offset = 0) const { return {memory_, offset}; }

 private:
  Rig& rig_;
  rosin_memory* memory_ = nullptr;
};

class Module {
 public:
  Module(Rig& rig, std::span<const Code> codes);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  rosin_kernel* kernel(const std::string& name) const;

 private:
  Rig& rig_;
  rosin_module* module_ = nullptr;
};

class Rig {
 public:
  Rig(const rosin_backend& backend, int32_t device);
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  const rosin_backend& api;
  const int32_t number;
  rosin_device_info info{};
  rosin_device* device = nullptr;
  rosin_stream* stream = nullptr;

  /// Throws Broken with the error text unless the status is ROSIN_OK.
  void good(rosin_status status, const std::string& what) const;
  /// Throws Broken unless the status is this one, and error_text says something.
  void fails(rosin_status status, rosin_status wanted, const std::string& what) const;
  void sync() const { good(api.stream_sync(stream), "stream_sync"); }

  /// compile(), with the text of the kernels where the device takes text.
  rosin_status compile(std::span<const Code> codes, rosin_device* with, std::vector<char>& bytes) const;
  std::vector<char> compiled(std::span<const Code> codes) const;

  void launch(rosin_stream* on, rosin_kernel* kernel, std::span<const rosin_place> buffers, uint32_t groups,
              std::span<const rosin_number> parameters = {}) const;

  template <class T> void write(rosin_place to, std::span<const T> from) const {
    good(api.copy_in(stream, to, from.data(), from.size_bytes()), "copy_in");
  }
  /// After all work on the stream.
  template <class T> std::vector<T> read(rosin_place from, size_t count) const {
    std::vector<T> all(count);
    good(api.copy_out(stream, all.data(), from, count * sizeof(T)), "copy_out");
    return all;
  }
};

rosin_number number(int32_t value);

}  // namespace rosin::conformance
