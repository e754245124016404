// The text of kernels in Metal's language, for the stand-in of Metal: compiled for the host, and run by the machine of
// ../fake_cuda with all of its checks. Read first: ../fake_cuda/machine.hpp. Read next: msl.cpp, metal_stdlib.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "machine.hpp"

namespace fake_metal {

/// What the device calls an address is this much more than what the host calls it.
constexpr uint64_t device_offset = uint64_t{1} << 52;

constexpr int most_threads = 1024;
constexpr uint64_t most_shared = 32 << 10, most_bytes = 4096;  // of threadgroup memory, and of setBytes

/// What is bound as buffer 0: a copy of the bytes given to setBytes, or what is left of a buffer behind an offset.
struct Binding {
  const void* address = nullptr;
  uint64_t bytes = 0;
};

/// A buffer that the encoder uses: bound, or named by useResource. `address` is the host's.
struct Resource {
  uint64_t address = 0, bytes = 0;
  bool written = false;  // may be
};

class Library;

struct Kernel {
  std::string name;
  int max_threads = most_threads;  // maxTotalThreadsPerThreadgroup
  uint64_t shared_bytes = 0;       // staticThreadgroupMemoryLength
  uint64_t argument_bytes = 0;     // of the struct that buffer 0 is
  std::shared_ptr<const Library> library;

  /// Runs all threadgroups. Throws fake::Trouble: launch_failed for what validation refuses (check() says so before),
  /// illegal_address for what goes wrong on the device. The memory is the machine's, see Machine::alloc.
  void run(const Binding& arguments, std::span<const Resource> resources, const std::array<uint32_t, 3>& groups,
           const std::array<uint32_t, 3>& threads) const;
  /// What Metal's validation says of such a dispatch; empty: nothing.
  std::string check(const Binding& arguments, const std::array<uint32_t, 3>& groups,
                    const std::array<uint32_t, 3>& threads) const;
  /// Why newComputePipelineState fails; empty: it does not.
  std::string pipeline_error() const;
};

/// What a compiler of Metal has against the text, as it writes errors; empty: nothing. Looks at the front of it alone.
std::string errors_of(const std::string& text);

class Library : public std::enable_shared_from_this<Library> {
 public:
  /// Null and an error as Metal's compiler writes it, where the text is none of its language. Kernels that were
  /// compiled before, by any process, come from FAKE_METAL_KERNELS.
  static std::shared_ptr<Library> build(const std::string& text, bool fast_math, std::string& error);
  ~Library();

  std::vector<std::string> names() const;
  /// Null where there is none.
  std::shared_ptr<const Kernel> find(const std::string& name) const;

 private:
  friend struct Kernel;
  Library() = default;
  void* library_ = nullptr;
  std::map<std::string, Kernel> kernels_;
};

}  // namespace fake_metal
