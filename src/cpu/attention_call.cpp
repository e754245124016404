// Attention and its gradient as calls: see engines/attention.hpp. Sequences whose features do not stand side by side
// are copied first; the memory of a chunk is its thread's.
#include <array>
#include <optional>
#include <span>

#include "cpu/contraction.hpp"
#include "cpu/dispatch.hpp"
#include "cpu/draw.hpp"
#include "cpu/executor.hpp"
#include "cpu/fused_state.hpp"
#include "engines/attention.hpp"
#include "engines/attention_bfloats.hpp"

namespace rosin::cpu {
namespace {

using engines::AttentionSpec;
using engines::SequenceStrides;

/// Operands of the gradient are q, k, v, y, state, dy, those of attention q, k, v; then come bias, mask, key
/// and counter of the draw.
constexpr size_t state_at = 4, optional_of_forward = 3, optional_of_gradient = 6;

int64_t size_of_dim(const CallArray& x, int dim) { return dim < x.shape.rank() ? x.shape[dim] : 1; }

engines::LogitStrides logit_strides(const CallArray& x) {
  const auto stride = [&](int dim) { return x.shape[dim] == 1 ? 0 : x.strides[dim]; };
  return {stride(0), stride(1), stride(2), stride(3)};
}

AttentionSpec spec_of(const CallSpec& call, size_t first_optional) {
  const auto how = call.attributes.as<AttentionAttributes>();
  const CallArray &q = call.operands[0], &k = call.operands[1], &v = call.operands[2];
  AttentionSpec spec;
  spec.heads = how.heads;
  spec.kv_heads = how.kv_heads;
  spec.features = q.shape[0] / how.heads;
  spec.value_features = v.shape[0] / how.kv_heads;
  spec.queries = q.shape[1];
  spec.keys = k.shape[1];
  spec.batch = size_of_dim(q, 2);
  spec.scale = how.scale;
  spec.causal = how.causal != 0;
  if (how.is_dropped != 0) spec.kept = how.kept;
  spec.numbers = draw_loop(ScalarType::float32);
  size_t next = first_optional;
  if (how.has_bias != 0) spec.bias = logit_strides(call.operands[next++]);
  if (how.has_mask != 0) spec.mask = logit_strides(call.operands[next]);
  return spec;
}

/// A sequence: read where it stands, or from a copy without gaps.
struct Sequence {
  size_t operand = 0;
  SequenceStrides strides;
  std::unique_ptr<Call> copy;
  size_t copy_at = 0;
};

template <class Work> class AttentionCall final : public Call {
  using T = typename Work::Element;
  using Logit = engines::LogitOf<T>;

 public:
  AttentionCall(const CallSpec& call, size_t first_optional, std::span<const size_t> sequences)
      : how_(call.attributes.as<AttentionAttributes>()), optional_(first_optional) {
    for (const size_t operand : sequences) sequences_.push_back(sequence_of(call.operands[operand], operand));
    AttentionSpec spec = spec_of(call, first_optional);
    SequenceStrides* const strides[] = {&spec.q, &spec.k, &spec.v, &spec.y, &spec.dy};
    for (size_t i = 0; i < sequences_.size(); ++i) *strides[i] = sequences_[i].strides;
    // Results that nobody reads are written into memory of the run: the slopes, or the sums of values.
    int64_t counts[] = {call.operands[0].shape.count(), call.operands[1].shape.count(), call.operands[2].shape.count()};
    if (!Work::is_gradient) counts[0] = spec.value_features * spec.heads * spec.queries * spec.batch;
    for (size_t i = 0; i < written; ++i) {
      unread_at_[i] = parts_.add((call.unread >> i & 1) != 0 ? bytes_of(counts[i]) : 0);
    }
    work_.emplace(spec);
    reserve_scratch(work_->scratch_bytes());
  }

  int64_t chunks() const override { return work_->chunks(); }
  size_t scratch_bytes() const override { return parts_.total(); }
  size_t bytes() const override { return sizeof(*this); }
  bool may_fail() const override { return false; }

  void begin(const CallData& data) override {
    for (const Sequence& x : sequences_) {
      if (!x.copy) continue;
      CallData part;
      part.operands[0] = data.operand(static_cast<int>(x.operand));
      part.result = part_at(data, x.copy_at);
      for (int64_t chunk = 0; chunk < x.copy->chunks(); ++chunk) x.copy->run(chunk, part);
    }
  }

  void run(int64_t chunk, const CallData& data) override {
    std::unique_lock<std::mutex> reserve;
    work_->run(chunk, buffers(data), results(data), thread_scratch(work_->scratch_bytes(), reserve));
  }

 private:
  static constexpr size_t written = Work::is_gradient ? 3 : 1;  // results that are written, read or not

  static size_t bytes_of(int64_t count) { return static_cast<size_t>(count) * sizeof(T); }

  Sequence sequence_of(const CallArray& x, size_t operand) {
    Sequence made{operand, {x.strides[1], x.shape.rank() == 3 ? x.strides[2] : 0}, nullptr, 0};
    if (x.strides[0] == 1 || x.shape[0] == 1) return made;
    made.strides = {x.shape[0], x.shape[0] * x.shape[1]};
    made.copy = prepare_copy(x, x.shape);
    made.copy_at = parts_.add(bytes_of(x.shape.count()));
    return made;
  }

  const T* sequence(const CallData& data, size_t i) const {
    const Sequence& x = sequences_[i];
    return static_cast<const T*>(x.copy ? part_at(data, x.copy_at) : data.operand(static_cast<int>(x.operand)));
  }

  engines::AttentionBuffers<T> buffers(const CallData& data) const {
    engines::AttentionBuffers<T> in{.q = sequence(data, 0), .k = sequence(data, 1), .v = sequence(data, 2)};
    if constexpr (Work::is_gradient) {
      in.y = sequence(data, 3);
      in.dy = sequence(data, 4);
      in.state = static_cast<const Logit*>(data.operand(state_at));
    }
    int next = static_cast<int>(optional_);
    if (how_.has_bias != 0) in.bias = static_cast<const Logit*>(data.operand(next++));
    if (how_.has_mask != 0) in.mask = static_cast<const unsigned char*>(data.operand(next++));
    if (how_.is_dropped != 0) {
      in.key = static_cast<uint64_t>(data.integer(next));
      in.counter = static_cast<uint64_t>(data.integer(next + 1));
    }
    return in;
  }

  engines::AttentionResults<T> results(const CallData& data) const {
    T* given[3] = {};
    for (size_t i = 0; i < written; ++i) given[i] = static_cast<T*>(data.results[i]);
    for (size_t i = 0; i < written; ++i) {
      if (!given[i]) given[i] = static_cast<T*>(part_at(data, unread_at_[i]));
    }
    if constexpr (Work::is_gradient) return {.dq = given[0], .dk = given[1], .dv = given[2]};
    else return {.y = given[0], .state = static_cast<Logit*>(data.results[1])};
  }

  AttentionAttributes how_;
  size_t optional_;
  ScratchParts parts_;
  std::vector<Sequence> sequences_;
  std::array<size_t, 3> unread_at_{};
  std::optional<Work> work_;
};

template <class Work> std::unique_ptr<Call> prepare_forward(const CallSpec& spec) {
  return std::make_unique<AttentionCall<Work>>(spec, optional_of_forward, std::array<size_t, 3>{0, 1, 2});
}

template <class T> std::unique_ptr<Call> prepare(const CallSpec& spec) {
  if (spec.op->results == 2) return prepare_forward<engines::AttentionForward<T>>(spec);
  return std::make_unique<AttentionCall<engines::AttentionGradient<T>>>(spec, optional_of_gradient,
                                                                        std::array<size_t, 5>{0, 1, 2, 3, 5});
}

}  // namespace

bool attends_bfloats() noexcept { return engines::attends_bfloats(); }

std::unique_ptr<Call> prepare_attention(const CallSpec& spec) {
  if (spec.operands[0].type == DType::BFloat16) return prepare_forward<engines::AttentionOfBFloats>(spec);
  return spec.operands[0].type == DType::Float64 ? prepare<double>(spec) : prepare<float>(spec);
}

}  // namespace rosin::cpu
