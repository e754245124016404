// Matmul: operands whose strides the vendor calls understand are read where they stand (transposed or not), others are
// copied first; batch dims that broadcast become a batch stride of 0.
#include "cpu/contraction.hpp"

#include <optional>
#include <vector>

#include "cpu/dispatch.hpp"
#include "engines/call_spec.hpp"
#include "plan/describe.hpp"

namespace rosin::cpu {
namespace {

CallArray contiguous_array(const CallArray& like, const Shape& shape) {
  CallArray array{like.type, shape, {}, like.role};
  int64_t stride = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    array.strides[d] = stride;
    stride *= shape[d];
  }
  return array;
}

class MatmulCall final : public Call {
 public:
  explicit MatmulCall(const plan::CallDescription& given) {
    plan::CallDescription call = given;
    for (size_t i = 0; i < 2; ++i) {
      if (!engines::readable(call.arrays[i])) copy(i, given.arrays[i], given.arrays[i].shape, call);
    }
    if (!engines::one_batch(call)) {
      for (size_t i = 0; i < 2; ++i) copy(i, given.arrays[i], whole_batch(given.arrays[i], given.result()), call);
    }
    engines::MatmulSpec spec = engines::matmul_spec(call);
    for (int i = 0; i < 2; ++i) {
      if (engines::turning_pays(spec, i)) copy(static_cast<size_t>(i), given.arrays[i], given.arrays[i].shape, call);
    }
    if (copies_[0] || copies_[1]) spec = engines::matmul_spec(call);
    spec.activation = activation_loop(call);
    call_ = engines::prepare_matmul(spec);
    for (size_t i = 0; i < 2; ++i) {
      if (!copies_[i]) continue;
      copy_at_[i] = parts_.add(static_cast<size_t>(call.arrays[i].shape.count()) * size_of(call.arrays[i].type));
    }
    workspace_at_ = parts_.add(call_->workspace_bytes());
    chunk_bytes_ = (call_->scratch_bytes_per_chunk() + 63) / 64 * 64;
    chunks_at_ = parts_.add(chunk_bytes_ * static_cast<size_t>(call_->chunks()));
  }

  int64_t chunks() const override { return call_->chunks(); }
  size_t scratch_bytes() const override { return parts_.total(); }
  size_t bytes() const override { return sizeof(*this) + call_->bytes(); }
  bool may_fail() const override { return call_->may_fail(); }

  engines::Form form(int operand) const override { return copies_[operand] ? engines::Form{} : call_->form(operand); }
  void make_form(int operand, const void* from, void* to) const override { call_->make_form(operand, from, to); }

  void begin(const CallData& data) override {
    for (int i = 0; i < 2; ++i) {
      if (!copies_[i]) continue;
      CallData part;
      part.operands[0] = data.operands[i];
      part.result = part_at(data, copy_at_[i]);
      for (int64_t chunk = 0; chunk < copies_[i]->chunks(); ++chunk) copies_[i]->run(chunk, part);
    }
    if (call_->has_begin()) call_->begin(buffers(data));
  }
  void run(int64_t chunk, const CallData& data) override {
    call_->run_chunk(chunk, buffers(data), part_at(data, chunks_at_ + static_cast<size_t>(chunk) * chunk_bytes_));
  }
  void finish(const CallData& data) override {
    if (call_->has_finish()) call_->finish(buffers(data));
  }

 private:
  // Operand i is read from a copy of the given one, of this shape.
  void copy(size_t i, const CallArray& from, const Shape& shape, plan::CallDescription& call) {
    copies_[i] = prepare_copy(from, shape);
    call.arrays[i] = contiguous_array(from, shape);
  }

  // The operand's matrix with the result's batch dims.
  static Shape whole_batch(const CallArray& x, const CallArray& result) {
    std::vector<int64_t> sizes(result.shape.begin(), result.shape.end());
    sizes[0] = x.shape[0];
    sizes[1] = x.shape[1];
    return Shape(std::span<const int64_t>(sizes));
  }

  engines::VendorBuffers buffers(const CallData& data) const {
    return {copies_[0] ? part_at(data, copy_at_[0]) : data.operands[0],
            copies_[1] ? part_at(data, copy_at_[1]) : data.operands[1],
            data.operands[bias_operand],
            data.result,
            part_at(data, workspace_at_),
            data.operands[residual_operand],
            {data.forms[0], data.forms[1]}};
  }

  std::unique_ptr<Call> copies_[2];
  size_t copy_at_[2] = {};
  std::unique_ptr<engines::VendorCall> call_;
  ScratchParts parts_;
  size_t workspace_at_ = 0, chunks_at_ = 0, chunk_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Call> prepare_matmul_call(const plan::CallDescription& call) {
  const CallArray &a = call.arrays[0], &b = call.arrays[1];
  if (a.type != b.type || a.type != call.result().type || a.shape.rank() < 2 || b.shape.rank() < 2) {
    throw Error(ErrorKind::internal, std::string("matmul: operands must be matrices of one type; got ") +
                                         to_string(a.type) + to_string(a.shape) + " and " + to_string(b.type) +
                                         to_string(b.shape) + "; report it");
  }
  return std::make_unique<MatmulCall>(call);
}

std::unique_ptr<Call> prepare_contraction(const CallSpec& spec) {
  const plan::CallDescription call = described(spec);
  return call.kind == plan::CallKind::matmul ? prepare_matmul_call(call)
                                             : prepare_conv_call(call, (spec.stay & 2) != 0);
}

engines::ActivationLoop activation_loop(const plan::CallDescription& call) {
  if (call.epilogue.activation == plan::Activation::none) return nullptr;
  return plan::op_of(call.epilogue.activation).body.loops[static_cast<int>(scalar_type(call.result().type))];
}

plan::CallDescription described(const CallSpec& spec) {
  std::optional<plan::CallDescription> call = plan::describe(*spec.op, spec.attributes, spec.operands, spec.result);
  if (!call) {
    throw Error(ErrorKind::internal, std::string(spec.op->name) + ": no call is described for this op; report it");
  }
  plan::add_epilogue(*call, spec.epilogue, spec.additions);
  return std::move(*call);
}

}  // namespace rosin::cpu
