// Pooling of images in CWHN or in logical order as a call: one vendor call, whose chunks are ours.
#include "cpu/contraction.hpp"
#include "engines/call_spec.hpp"

namespace rosin::cpu {
namespace {

class PoolingCall final : public Call {
 public:
  explicit PoolingCall(const plan::CallDescription& call) : call_(engines::prepare_pool(engines::pool_spec(call))) {
    workspace_at_ = parts_.add(call_->workspace_bytes());
    for (int64_t chunk = 0; chunk < call_->chunks(); ++chunk)
      scratch_at_ = parts_.add(call_->scratch_bytes_per_chunk());
  }

  int64_t chunks() const override { return call_->chunks(); }
  size_t scratch_bytes() const override { return parts_.total(); }
  void begin(const CallData& data) override { call_->begin(buffers(data)); }
  void run(int64_t chunk, const CallData& data) override {
    const size_t step = (call_->scratch_bytes_per_chunk() + 63) / 64 * 64;
    const size_t back = static_cast<size_t>(call_->chunks() - 1 - chunk) * step;
    call_->run_chunk(chunk, buffers(data), part_at(data, scratch_at_ - back));
  }
  void finish(const CallData& data) override { call_->finish(buffers(data)); }

 private:
  engines::VendorBuffers buffers(const CallData& data) const {
    return {data.operands[0], data.operands[1], data.operands[2], data.result, part_at(data, workspace_at_)};
  }

  std::unique_ptr<engines::VendorCall> call_;
  ScratchParts parts_;
  size_t workspace_at_ = 0, scratch_at_ = 0;
};

}  // namespace

std::unique_ptr<Call> prepare_pooling_call(const plan::CallDescription& call) {
  return std::make_unique<PoolingCall>(call);
}

}  // namespace rosin::cpu
