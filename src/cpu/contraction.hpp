// Matmul and convolution as calls: from operands as the graph has them to the vendor calls of vendor.hpp.
// Read next: contraction.cpp (matmul), conv_call.cpp.
#pragma once

#include <memory>

#include "cpu/call.hpp"
#include "engines/vendor.hpp"

namespace rosin::cpu {

/// The description of a contraction or pooling. Error (internal): the op is neither.
plan::CallDescription described(const CallSpec& spec);

/// What computes the activation of the call's epilogue, with the bits that it has in kernels; or null.
engines::ActivationLoop activation_loop(const plan::CallDescription& call);

/// Matmul operands may have any strides; convolutions take contiguous operands, images in CWHN or WHCN.
std::unique_ptr<Call> prepare_contraction(const CallSpec& spec);
std::unique_ptr<Call> prepare_matmul_call(const plan::CallDescription& call);
std::unique_ptr<Call> prepare_conv_call(const plan::CallDescription& call, bool weights_stay);
/// Pooling of Float32 and Float64 images in CWHN.
std::unique_ptr<Call> prepare_pooling_call(const plan::CallDescription& call);

/// Parts of a run's scratch memory, one after another, aligned to 64 bytes.
class ScratchParts {
 public:
  /// The offset of a new part.
  size_t add(size_t bytes) {
    const size_t at = total_;
    total_ += (bytes + 63) / 64 * 64;
    return at;
  }
  size_t total() const { return total_; }

 private:
  size_t total_ = 0;
};

inline void* part_at(const CallData& data, size_t offset) { return static_cast<char*>(data.scratch) + offset; }

}  // namespace rosin::cpu
