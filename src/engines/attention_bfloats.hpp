// Attention of BFloat16 on processors with matrix registers (AMX), without dropout and without what a gradient needs:
// logits and sums are Float32, the weights that values are multiplied by rounded to BFloat16. Read first:
// attention.hpp, amx_kernel.hpp.
#pragma once

#include <rosin/half.hpp>

#include "engines/attention.hpp"

namespace rosin::engines {

/// Whether this processor has the registers.
bool attends_bfloats() noexcept;

/// A chunk is some blocks of queries of one head.
class AttentionOfBFloats {
 public:
  using Element = BFloat;
  static constexpr bool is_gradient = false;
  explicit AttentionOfBFloats(const AttentionSpec& spec);
  int64_t chunks() const { return parts_ * spec_.heads * spec_.batch; }
  size_t scratch_bytes() const;
  void run(int64_t chunk, const AttentionBuffers<BFloat>& in, const AttentionResults<BFloat>& out, void* scratch) const;

 private:
  AttentionSpec spec_;
  int64_t blocks_ = 0, parts_ = 1;  // of queries, of a head; chunks of a head
};

}  // namespace rosin::engines
