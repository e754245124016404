// DeviceKernels: the compiled kernels of one device. Codes that are new are compiled together, as one program, or come
// from disk. Read first: kernels/code.hpp. Read next: kernel_files.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <rosin/backend.h>

#include "kernels/launches.hpp"

namespace rosin {

class OpenDevice;

/// A kernel, and what keeps it loaded.
struct LoadedKernel {
  rosin_kernel* kernel = nullptr;
  std::shared_ptr<rosin_module> module;
};

/// What kernels may do on a device that says this of itself.
kernels::Abilities abilities_of(const rosin_device_info& info);

class DeviceKernels {
 public:
  explicit DeviceKernels(OpenDevice& device) : device_(device) {}

  /// The kernel of each launch, in their order. Error (backend) with the compiler's log when one does not compile,
  /// (dtype) when the device lacks a type that one computes in.
  std::vector<LoadedKernel> kernels_for(std::span<const kernels::Launch> launches);

  /// Whether there are so many kernels that those without a plan should go.
  bool has_many();
  /// Unloads what nobody else keeps. The device must have ended all work.
  void unload_unused();

  /// From now on codes that are new are noted instead of compiled, and null stands for their kernels; then they are
  /// compiled as one program. So tests, whose plans are small and many, wait for few compilations.
  void collect();
  void compile_collected();

  struct Counts {
    int64_t kernels = 0;   // compiled or loaded
    int64_t programs = 0;  // compiled by the plug-in
    int64_t from_disk = 0;
    int64_t loaded = 0;  // kernels that are ready to run
  };
  Counts counts();

 private:
  struct Entry {
    kernels::KernelCode code;
    rosin_kernel* kernel;
    std::weak_ptr<rosin_module> module;
  };
  const Entry* find(const kernels::KernelCode& code, uint64_t hash) const;
  void check_types(const kernels::Launch& launch) const;
  void note(const kernels::Launch& launch);
  void compile(const std::vector<const kernels::Launch*>& fresh);
  std::shared_ptr<rosin_module> load(const rosin_program& program, const std::string& ops);
  rosin_module* load_from_disk(const std::string& key);
  std::string key_of(const char* text) const;
  [[noreturn]] void throw_not_compiled(const rosin_program& program, const std::string& ops);

  OpenDevice& device_;
  std::mutex lock_;
  std::unordered_multimap<uint64_t, Entry> entries_;
  std::vector<std::shared_ptr<rosin_module>> modules_;  // that the kernels belong to
  size_t many_ = 4096;                                  // kernels after which unused ones go
  bool collecting_ = false;
  std::vector<kernels::Launch> collected_;
  Counts counts_;
};

}  // namespace rosin
