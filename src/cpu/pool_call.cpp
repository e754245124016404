// Pooling of images in CWHN as a call: one vendor call, whose chunks are ours.
#include "cpu/contraction.hpp"

namespace rosin::cpu {
namespace {

engines::PoolKind kind_of(Window window) {
  switch (window) {
    case Window::maximum: return engines::PoolKind::max_forward;
    case Window::maximum_gradient: return engines::PoolKind::max_backward;
    case Window::mean: return engines::PoolKind::mean_forward;
    default: return engines::PoolKind::mean_backward;
  }
}

engines::PoolSpec pool_spec(const CallSpec& spec) {
  const auto attributes = spec.attributes.as<WindowAttributes>();
  engines::PoolSpec pool;
  pool.kind = kind_of(spec.op->window);
  pool.type = spec.result.type;
  const bool backward = pool.kind == engines::PoolKind::max_backward || pool.kind == engines::PoolKind::mean_backward;
  const Shape& image = backward ? spec.result.shape : spec.operands[0].shape;
  const Shape& pooled = backward ? spec.operands[spec.operands.size() - 1].shape : spec.result.shape;
  pool.spatial = image.rank() - 2;
  pool.batch = image[-1];
  pool.channels = image[-2];
  for (int d = 0; d < pool.spatial; ++d) {
    pool.in[d] = image[d];
    pool.out[d] = pooled[d];
    pool.kernel[d] = attributes.window[d];
    pool.stride[d] = attributes.stride[d];
    pool.pad_low[d] = attributes.pad_low[d];
    pool.dilation[d] = attributes.dilation[d];
  }
  return pool;
}

class PoolCall final : public Call {
 public:
  explicit PoolCall(const CallSpec& spec) : call_(engines::prepare_pool(pool_spec(spec))) {
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

std::unique_ptr<Call> prepare_pool_call(const CallSpec& spec) { return std::make_unique<PoolCall>(spec); }

}  // namespace rosin::cpu
