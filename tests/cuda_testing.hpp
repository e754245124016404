// What tests on the pretended GPUs of tests/fake_cuda and tests/fake_hip share. Read first: run_itself.hpp.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <rosin/device.hpp>
#include <rosin/diagnostics.hpp>

#include "run_itself.hpp"

namespace rosin {

inline Device cuda() { return get_device("CUDA", 0); }

/// Of the vendor whose GPUs are pretended: "CUDA", "AMDGPU".
inline std::string pretended_backend() {
  const char* const named = std::getenv("ROSIN_TEST_BACKEND");
  return named ? named : "CUDA";
}
inline Device pretended_gpu() { return get_device(pretended_backend(), 0); }

/// A test on pretended GPUs. `options`: of FAKE_CUDA, see its README; `more`: other variables.
inline Outcome on_pretended_gpu(const std::string& test, const std::string& options = "devices=1",
                                const std::string& more = "") {
  const std::filesystem::path libraries = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake_cuda";
  return run_itself(test, "ROSIN_CUDA_LIBRARIES='" + libraries.string() + "' FAKE_CUDA=" + options + " " + more);
}

/// The same on pretended GPUs of AMD's; `options`: of FAKE_HIP.
inline Outcome on_pretended_amd_gpu(const std::string& test, const std::string& options = "devices=1",
                                    const std::string& more = "") {
  const std::filesystem::path libraries = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fake_hip";
  return run_itself(test, "ROSIN_TEST_BACKEND=AMDGPU ROSIN_ROCM_LIBRARIES='" + libraries.string() +
                              "' FAKE_HIP=" + options + " " + more);
}

/// What the stand-ins of libraries were asked for, a product or convolution a line.
class Products {
 public:
  Products() : path_(std::filesystem::temp_directory_path() / ("rosin-products-" + std::to_string(getpid()))) {
    std::filesystem::remove(path_);
  }
  ~Products() { std::filesystem::remove(path_); }
  std::string variable() const { return "FAKE_CUDA_PRODUCTS='" + path_.string() + "' "; }
  std::vector<std::string> lines() const {
    std::ifstream file(path_);
    std::vector<std::string> all;
    for (std::string line; std::getline(file, line);) all.push_back(line);
    return all;
  }
  int64_t count(const std::string& text) const {
    const std::vector<std::string> all = lines();
    return std::count_if(all.begin(), all.end(), [&](const auto& line) { return line.find(text) != line.npos; });
  }

 private:
  std::filesystem::path path_;
};

/// Numbers bit by bit, a line each, and these lines of a process that print() made.
inline void print(const std::vector<float>& values) {
  for (const float value : values) std::printf("bits %a\n", static_cast<double>(value));
}
inline std::string printed(const std::string& text) {
  std::string all;
  for (size_t at = text.find("bits "); at != text.npos; at = text.find("bits ", at + 1)) {
    all += text.substr(at, text.find('\n', at) + 1 - at);
  }
  return all;
}

/// Why a library of the vendor is not used; empty: it is.
inline std::string reason_of_library(const std::string& name) {
  const BackendReport report = backend_report(pretended_backend());
  const auto found =
      std::find_if(report.found.begin(), report.found.end(), [&](const Capability& one) { return one.name == name; });
  return found == report.found.end() ? "not looked for" : found->reason;
}

}  // namespace rosin
