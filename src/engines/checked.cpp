// See checked.hpp.
#include "engines/checked.hpp"

#include <algorithm>
#include <atomic>
#include <new>

#include "base/hash.hpp"
#include "engines/cuts.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {
namespace {

/// Whether no element of [first, last) is infinite or NaN.
bool finite(DType type, const void* x, int64_t first, int64_t last) {
  if (type == DType::Float32) return tile_kernels().floats.finite(static_cast<const float*>(x) + first, last - first);
  const auto* bits = static_cast<const uint16_t*>(x);
  int endless = 0;
  for (int64_t i = first; i < last; ++i) endless |= (bits[i] & 0x7f80) == 0x7f80;
  return endless == 0;
}

class Checked final : public VendorCall {
 public:
  Checked(std::unique_ptr<VendorCall> fast, std::unique_ptr<VendorCall> exact, DType type, const Watched& watched)
      : fast_(std::move(fast)), exact_(std::move(exact)), type_(type), watched_(watched) {
    chunks_ = fast_->chunks();
    scratch_bytes_ = fast_->scratch_bytes_per_chunk();
    exact_scratch_at_ = static_cast<size_t>(round_up(static_cast<int64_t>(exact_->workspace_bytes()), 64));
    const size_t bytes = std::max(fast_->workspace_bytes(), exact_scratch_at_ + exact_->scratch_bytes_per_chunk());
    finite_at_ = static_cast<size_t>(round_up(static_cast<int64_t>(bytes), 64));
    workspace_bytes_ = finite_at_ + sizeof(std::atomic<bool>);
    has_begin_ = has_finish_ = true;
    may_fail_ = fast_->may_fail();
  }

  const char* engine() const noexcept override { return fast_->engine(); }
  size_t bytes() const noexcept override { return fast_->bytes() + exact_->bytes(); }

  /// Behind that of the call: whether all elements of the operand are finite.
  Form form(int operand) const override {
    const Form inner = fast_->form(operand);
    if (inner.bytes == 0 || watched_of(operand) == 0) return inner;
    return {mix(inner.name, static_cast<uint64_t>(watched_of(operand))), flag_at(inner) + 1};
  }
  void make_form(int operand, const void* from, void* to) const override {
    fast_->make_form(operand, from, to);
    const int64_t count = watched_of(operand);
    if (count > 0) static_cast<char*>(to)[flag_at(fast_->form(operand))] = finite(type_, from, 0, count);
  }

  void begin(const VendorBuffers& buffers) const override {
    new (static_cast<char*>(buffers.workspace) + finite_at_) std::atomic<bool>(true);
    if (fast_->has_begin()) fast_->begin(buffers);
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    fast_->run_chunk(chunk, buffers, scratch);
    if (part_finite(0, buffers.first, buffers, chunk) && part_finite(1, buffers.second, buffers, chunk)) return;
    all_finite(buffers).store(false, std::memory_order_relaxed);
  }

  void finish(const VendorBuffers& buffers) const override {
    const bool sure = fast_->sure(buffers) && all_finite(buffers).load(std::memory_order_relaxed);
    if (fast_->has_finish()) fast_->finish(buffers);
    if (sure && finite(type_, buffers.result, 0, watched_.result)) return;
    if (exact_->has_begin()) exact_->begin(buffers);
    void* scratch = static_cast<char*>(buffers.workspace) + exact_scratch_at_;
    for (int64_t chunk = 0; chunk < exact_->chunks(); ++chunk) exact_->run_chunk(chunk, buffers, scratch);
    if (exact_->has_finish()) exact_->finish(buffers);
  }

 private:
  /// Whether this execution's operands are, so far.
  std::atomic<bool>& all_finite(const VendorBuffers& buffers) const {
    return *std::launder(reinterpret_cast<std::atomic<bool>*>(static_cast<char*>(buffers.workspace) + finite_at_));
  }

  int64_t watched_of(int operand) const { return operand == 0 ? watched_.first : watched_.second; }
  static size_t flag_at(const Form& inner) {
    return static_cast<size_t>(round_up(static_cast<int64_t>(inner.bytes), 64));
  }

  bool part_finite(int operand, const void* x, const VendorBuffers& buffers, int64_t chunk) const {
    const int64_t count = watched_of(operand);
    if (const void* form = buffers.forms[operand]; form && count > 0)
      return static_cast<const char*>(form)[flag_at(fast_->form(operand))] != 0;
    return finite(type_, x, count * chunk / chunks_, count * (chunk + 1) / chunks_);
  }

  std::unique_ptr<VendorCall> fast_, exact_;
  DType type_;
  Watched watched_;
  size_t exact_scratch_at_ = 0, finite_at_ = 0;  // in the workspace
};

}  // namespace

std::unique_ptr<VendorCall> checked(std::unique_ptr<VendorCall> fast, std::unique_ptr<VendorCall> exact, DType type,
                                    const Watched& watched) {
  return std::make_unique<Checked>(std::move(fast), std::move(exact), type, watched);
}

}  // namespace rosin::engines
