// Kernel: the code of one kernel (rosin/backend.h, Kernels), checked, and run with plain loops. Groups run one after
// the other; the items of a group go through each instruction together, so a barrier needs no waiting. What a GPU would
// leave undefined is a Fault here: elements outside of a buffer, shared memory read without a barrier.
// Read next: translate.cpp (checks), operations.cpp (primitives), memory.cpp (loads and stores), control.cpp (if,
// loop).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <rosin/backend.h>

#include "steps.hpp"

namespace rosin::reference {

/// The least that backend.h lets a device have, so that kernels which ask for more are found out here.
inline constexpr int32_t largest_group = 256;
inline constexpr int64_t shared_bytes = 16384;
/// More than that for kernels that ask for it; items that exchange values; bytes of a vector.
inline constexpr int64_t largest_shared = 65536;
inline constexpr int warp = 32;
inline constexpr int vector_bytes = 16;
/// Elements of matrices that warps multiply.
inline constexpr uint32_t matrix_types = 1u << ROSIN_FLOAT16 | 1u << ROSIN_BFLOAT16 | 1u << ROSIN_FLOAT32;

/// The code breaks backend.h.
struct InvalidCode : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A launch did what no launch may do; the text names kernel, instruction, group and item.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Kernel {
 public:
  /// Keeps nothing of `code`. Throws InvalidCode.
  explicit Kernel(const rosin_kernel_code& code);

  /// `buffers` and `parameters`: as many as the code has. May run on several threads at once. Throws Fault.
  void run(const uint32_t groups[3], const Block* buffers, const rosin_number* parameters) const;

  const std::string& name() const { return name_; }
  size_t buffer_count() const { return buffer_count_; }
  size_t parameter_count() const { return parameters_.size(); }
  /// Whether buffers or values of the code are Float64.
  bool uses_float64() const { return uses_float64_; }

 private:
  void check_read_only(const Frame& frame) const;

  friend class Translator;

  std::string name_;
  int items_ = 1;
  size_t buffer_count_ = 0;
  std::vector<int32_t> parameters_;  // rosin_scalar_type of each
  std::vector<SharedPlace> shared_;
  std::vector<char> read_only_, stored_;  // of each buffer: marked, stored to
  std::vector<int32_t> chosen_;           // rosin_type of each buffer that is chosen; the first stands behind the last
  std::vector<Step> once_;                // values that no group changes: literals, parameters, item numbers
  std::vector<Step> steps_;               // run for each group
  size_t register_bytes_ = 0;
  size_t shared_elements_ = 0;
  size_t shared_size_ = 0;  // bytes
  int depth_ = 0;           // of nested loops and ifs
  bool uses_float64_ = false;
};

}  // namespace rosin::reference
