// See executor.hpp. Prepares a layout's kernels and calls, and runs them step by step on the worker threads.
#include "cpu/executor.hpp"

#include <algorithm>
#include <utility>

#include <rosin/error.hpp>

#include "base/of_thread.hpp"
#include "base/sizes.hpp"
#include "base/workers.hpp"
#include "cpu/call.hpp"
#include "cpu/fused.hpp"
#include "graph/hooks.hpp"
#include "graph/kinds.hpp"
#include "graph/packed_forms.hpp"
#include "graph/recording_site.hpp"

namespace rosin::cpu {
namespace {

using namespace plan;

/// Where an operand of a call is.
struct CallOperand {
  int32_t root = -1;   // -1: there is none
  int64_t offset = 0;  // bytes
  bool is_scalar = false;
  int32_t packed = -1;  // which of the leaves whose memory runs are told, if it may be read in another form
};

/// One opaque call with where its operands are.
struct PreparedCall {
  std::unique_ptr<Call> call;
  int32_t result = -1;
  std::vector<int32_t> results;  // of an op of several, -1: nobody reads it
  std::vector<CallOperand> operands;
  bool many = false;  // more than stand in a CallData
};

CallArray call_array(const Value& value, const View& view) {
  CallArray array;
  array.type = value.dtype;
  array.shape = Shape(std::span<const int64_t>(view.sizes, view.rank));
  std::copy(view.strides, view.strides + Shape::max_rank, array.strides);
  return array;
}

class CpuPrepared final : public Prepared {
 public:
  explicit CpuPrepared(std::shared_ptr<const Layout> layout) : layout_(std::move(layout)), s_(*layout_->structure) {
    kernels_.reserve(s_.kernels.size());
    for (const Step& step : s_.steps) {
      if (step.kernel < 0) continue;  // those behind calls are not needed
      add_kernel(step.kernel);
      for (const int32_t end : step.ends) add_kernel(end);
    }
    prepare_calls();
    for (size_t i = 0; i < layout_->places.size(); ++i) {
      const Place& place = layout_->places[i];
      if (place.where == Place::Where::arena) in_arena_.push_back({i, place.at});
    }
    scratch_at_ = (layout_->arena_bytes + memory_alignment - 1) / memory_alignment * memory_alignment;
    arena_bytes_ = sum_of_bytes(scratch_at_, scratch_bytes_);
    // Arrays without elements have a place too.
    if (!in_arena_.empty()) arena_bytes_ = std::max(arena_bytes_, memory_alignment);
    may_run_behind_ = fits_behind();
  }

  void run(const RunMemory& memory) const override {
    auto* arena = memory.arena ? static_cast<unsigned char*>(memory.arena->data) : nullptr;
    for (const InArena& value : in_arena_) memory.values[value.value] = arena + value.at;
    const RunData data{memory.values, memory.scalars, arena ? arena + scratch_at_ : nullptr};
    Memory* const* const packed = packed_.empty() ? nullptr : memory.packed;
    const FusedKernel* kernel = kernels_.data();
    size_t i = 0;
    try {
      for (; i < s_.steps.size(); ++i) {
        const Step& step = s_.steps[i];
        if (step.kernel < 0) run_call(calls_[i], data, packed);
        else
          for (const FusedKernel* end = kernel + 1 + step.ends.size(); kernel != end;) run_kernel(*kernel++, data);
        if (memory.listener) memory.listener->over(i);
      }
    } catch (Error& error) {
      tell_site(error, s_.steps[i], memory.sites);
      throw;
    }
  }

  size_t arena_bytes() const override { return arena_bytes_; }
  bool may_run_behind() const override { return may_run_behind_; }
  std::span<const int32_t> packed() const override { return packed_; }

  size_t bytes() const override {
    size_t bytes = sizeof(*this) + in_arena_.capacity() * sizeof(InArena);
    for (const FusedKernel& kernel : kernels_) bytes += kernel.bytes();
    for (const PreparedCall& made : calls_) {
      bytes += (made.call ? made.call->bytes() : 0) + made.operands.capacity() * sizeof(CallOperand) +
               made.results.capacity() * sizeof(int32_t);
    }
    return bytes + calls_.capacity() * sizeof(PreparedCall);
  }

 private:
  struct InArena {
    size_t value;
    int64_t at;  // bytes
  };

  void add_kernel(int32_t kernel) {
    kernels_.emplace_back(s_, *layout_, kernel);
    scratch_bytes_ = std::max(scratch_bytes_, kernels_.back().partial_bytes());
  }

  bool fits_behind() const {
    const auto splits = [](const FusedKernel& kernel) { return kernel.chunks() > 1; };
    const auto stays = [](const PreparedCall& made) {
      return made.call && (made.call->may_fail() || made.call->chunks() > 1);
    };
    return std::none_of(kernels_.begin(), kernels_.end(), splits) && std::none_of(calls_.begin(), calls_.end(), stays);
  }

  /// On all threads: engines write code for their calls.
  void prepare_calls() {
    std::vector<size_t> steps;
    for (size_t i = 0; i < s_.steps.size(); ++i) {
      if (s_.steps[i].kernel < 0) steps.push_back(i);
    }
    calls_.resize(s_.steps.size());
    parallel_for(static_cast<int64_t>(steps.size()), [&](int64_t i) {
      const size_t step = steps[static_cast<size_t>(i)];
      calls_[step] = prepared(s_.steps[step]);
    });
    for (const size_t step : steps) {
      scratch_bytes_ = std::max(scratch_bytes_, calls_[step].call->scratch_bytes());
      list_packed(calls_[step]);
    }
  }

  /// Leaves that no run of the layout overwrites.
  bool stays(int32_t value) const {
    const auto at = static_cast<size_t>(value);
    if (layout_->places[at].where != Place::Where::leaf || s_.graph.values[at].is_scalar()) return false;
    return std::none_of(layout_->outputs.begin(), layout_->outputs.end(),
                        [&](const Output& output) { return output.donor == value; });
  }

  void list_packed(PreparedCall& made) {
    for (size_t i = 0; i < std::min<size_t>(2, made.operands.size()); ++i) {
      CallOperand& operand = made.operands[i];
      if (operand.root < 0 || !stays(operand.root) || made.call->form(static_cast<int>(i)).bytes == 0) continue;
      const auto known = std::find(packed_.begin(), packed_.end(), operand.root);
      operand.packed = static_cast<int32_t>(known - packed_.begin());
      if (known == packed_.end()) packed_.push_back(operand.root);
    }
  }

  /// Operand i of the call, and how the call sees it.
  CallArray take_operand(PreparedCall& made, size_t i, int32_t value) const {
    const Value& from = s_.graph.values[static_cast<size_t>(value)];
    const View& view = layout_->views[static_cast<size_t>(value)];
    made.operands.resize(std::max(made.operands.size(), i + 1));
    made.operands[i] = {view.root, view.offset * static_cast<int64_t>(size_of(from.dtype)), from.is_scalar()};
    return call_array(from, view);
  }

  PreparedCall prepared(const Step& step) const {
    const Value& value = s_.graph.values[static_cast<size_t>(step.node)];
    CallSpec spec;
    spec.op = value.op;
    spec.attributes = layout_->attributes[static_cast<size_t>(step.node)];
    spec.result = call_array(value, layout_->views[static_cast<size_t>(step.node)]);
    spec.epilogue = step.epilogue;
    for (size_t i = 0; i < step.results.size(); ++i) spec.unread |= static_cast<uint32_t>(step.results[i] < 0) << i;
    PreparedCall made;
    made.result = step.result;
    made.results = step.results;
    made.many = value.operands > Node::max_operands;
    made.operands.reserve(static_cast<size_t>(value.operands));
    for (int i = 0; i < value.operands; ++i) {
      spec.operands.push_back(take_operand(made, static_cast<size_t>(i), value.in[i]));
    }
    const bool has_gradient = s_.graph.backward < s_.graph.nodes;  // what that is taken by changes with each step
    for (int i = 0; i < 2 && i < value.operands && !has_gradient; ++i) {
      const int32_t root = made.operands[static_cast<size_t>(i)].root;
      spec.stay |= static_cast<uint32_t>(root >= 0 && stays(root)) << i;
    }
    if (step.bias >= 0) spec.additions.push_back(take_operand(made, bias_operand, step.bias));
    if (step.residual >= 0) spec.additions.push_back(take_operand(made, residual_operand, step.residual));
    if (step.center >= 0) spec.additions.push_back(take_operand(made, center_operand, step.center));
    if (step.factor >= 0) spec.additions.push_back(take_operand(made, factor_operand, step.factor));
    if (step.shift >= 0) spec.additions.push_back(take_operand(made, shift_operand, step.shift));
    made.call = prepare(spec);
    return made;
  }

  /// What is wrong with values is told where they were used.
  void tell_site(Error& error, const Step& step, std::span<const NodeSite> sites) const {
    const bool checks = step.kernel < 0 && info(s_.graph.values[static_cast<size_t>(step.node)].op->kind).checks;
    if (checks) add_site(error, site_of(sites, step.node));
  }

  static void run_kernel(const FusedKernel& kernel, const RunData& data) {
    if (kernel.chunks() <= 1) {
      if (kernel.chunks() == 1) kernel.run(0, data);
    } else {
      parallel_for(kernel.chunks(), [&](int64_t chunk) { kernel.run(chunk, data); });
    }
    if (kernel.has_roots()) kernel.finish(data);
  }

  static const void* place_of(const CallOperand& operand, const RunData& run) {
    return static_cast<const unsigned char*>(run.memory[static_cast<size_t>(operand.root)]) + operand.offset;
  }

  static void find_operands(const PreparedCall& prepared, const RunData& run, CallData& data) {
    for (size_t i = 0; i < prepared.operands.size(); ++i) {
      const CallOperand& operand = prepared.operands[i];
      if (operand.root < 0) continue;
      if (operand.is_scalar) {
        const ScalarValue& number = run.scalars[scalar_index(operand.root, -1)];
        data.scalars[i] = number.real;
        data.integers[i] = number.integer;
      } else {
        data.operands[i] = place_of(operand, run);
      }
    }
  }

  /// Operands that have no room in a CallData; they stand with the thread, so that a steady step allocates nothing.
  static const void* const* find_many(const PreparedCall& prepared, const RunData& run) {
    auto& places = of_thread<std::vector<const void*>, CpuPrepared>();
    places.clear();
    for (const CallOperand& operand : prepared.operands) {
      places.push_back(operand.is_scalar ? &run.scalars[scalar_index(operand.root, -1)] : place_of(operand, run));
    }
    return places.data();
  }

  /// Results of an op of several; they stand with the thread too.
  static void* const* find_results(const PreparedCall& prepared, const RunData& run) {
    auto& places = of_thread<std::vector<void*>, CpuPrepared>();
    places.clear();
    for (const int32_t value : prepared.results) {
      places.push_back(value < 0 ? nullptr : run.memory[static_cast<size_t>(value)]);
    }
    return places.data();
  }

  /// Of an operand; null where the call makes it by itself.
  static std::shared_ptr<const Memory> form_of(const Call& call, int i, const CallOperand& operand, const void* values,
                                               Memory* const* packed) {
    if (operand.packed < 0 || !packed[operand.packed]) return nullptr;
    const engines::Form form = call.form(i);
    return PackedForms::instance().find(*packed[operand.packed], {form.name, operand.offset, form.bytes},
                                        [&](void* to) { call.make_form(i, values, to); });
  }

  static void run_call(const PreparedCall& prepared, const RunData& run, Memory* const* packed) {
    CallData data;
    if (!prepared.many) find_operands(prepared, run, data);
    else data.many = find_many(prepared, run);
    if (!prepared.results.empty()) data.results = find_results(prepared, run);
    data.result = run.memory[static_cast<size_t>(prepared.result)];
    data.scratch = run.scratch;
    Call& call = *prepared.call;
    std::shared_ptr<const Memory> forms[2];
    for (int i = 0; packed && i < 2; ++i) {
      if (static_cast<size_t>(i) >= prepared.operands.size()) break;
      forms[i] = form_of(call, i, prepared.operands[static_cast<size_t>(i)], data.operands[i], packed);
      if (forms[i]) data.forms[i] = forms[i]->data;
    }
    call.begin(data);
    const int64_t chunks = call.chunks();
    if (chunks == 1) call.run(0, data);
    else parallel_for(chunks, [&](int64_t chunk) { call.run(chunk, data); });
    call.finish(data);
  }

  std::shared_ptr<const Layout> layout_;
  const Structure& s_;
  std::vector<FusedKernel> kernels_;  // in the order of their steps
  std::vector<PreparedCall> calls_;   // by step
  std::vector<InArena> in_arena_;
  std::vector<int32_t> packed_;  // leaves that calls may read in other forms
  size_t scratch_bytes_ = 0;     // of the step that needs most: steps run one after the other
  size_t scratch_at_ = 0;        // in the arena, after the values
  size_t arena_bytes_ = 0;
  bool may_run_behind_ = false;
};

class CpuExecutor final : public DeviceExecutor {
 public:
  const Target& target() const override { return cpu_target(); }
  std::unique_ptr<const Prepared> prepare(Compiled&, std::shared_ptr<const Layout> layout) override {
    return std::make_unique<CpuPrepared>(std::move(layout));
  }
  Memory* allocate(size_t bytes) override { return hooks.allocate({.bytes = bytes}); }
};

}  // namespace

DeviceExecutor& executor() {
  static CpuExecutor executor;
  return executor;
}

}  // namespace rosin::cpu
