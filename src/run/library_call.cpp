// See library_call.hpp.
#include "run/library_call.hpp"

#include <algorithm>
#include <atomic>

#include "plan/describe.hpp"
#include "run/call_choices.hpp"
#include "run/call_question.hpp"

namespace rosin {
namespace {

using plan::CallDescription;

std::atomic<int64_t> given{0}, refused{0};

constexpr uint64_t offset_unit = 64;  // offsets into blocks are multiples of it

/// The ways in which a call may be computed, what a library may do less exactly first.
std::vector<CallDescription> ways_of(const CallDescription& call) {
  std::vector<CallDescription> ways{call};
  if (call.unrounded) ways.emplace_back(call).unrounded = false;
  if (call.compute != plan::ComputeMode::exact) ways.emplace_back(call).take(MathMode::exact);
  return ways;
}

/// Whether the device takes calls like this one; `orders` gets its wishes.
bool ask(OpenDevice& device, const CallDescription& call, std::vector<int32_t>& orders) {
  constexpr auto last_known = static_cast<plan::Activation>(ROSIN_ACTIVATION_GELU_GRADIENT);
  const plan::Epilogue& epilogue = call.epilogue;
  if (!device.functions.call_takes || epilogue.activation > last_known || epilogue.normalises()) return false;
  for (const CallDescription& way : ways_of(call)) {
    const CallQuestion question(way);
    std::vector<int32_t> wishes = orders;
    const rosin_status status = device.functions.call_takes(device.device, question.plain(), wishes.data());
    if (status == ROSIN_UNSUPPORTED) continue;
    device.check(status, "vendor call");
    orders = std::move(wishes);
    return true;
  }
  return false;
}

}  // namespace

bool PluginTarget::takes(const CallDescription& call) const {
  std::vector<int32_t> orders(call.arrays.size());
  return ask(device_, call, orders);
}

plan::Order PluginTarget::order(const CallDescription& call, size_t i) const {
  std::vector<int32_t> orders;
  for (size_t k = 0; k < call.arrays.size(); ++k) {
    orders.push_back(static_cast<int32_t>(KernelTarget::order(call, k)));
  }
  const plan::Order usual = KernelTarget::order(call, i);
  return ask(device_, call, orders) ? static_cast<plan::Order>(orders[i]) : usual;
}

bool PluginTarget::writes_strided(const CallDescription& call) const {
  if (!KernelTarget::writes_strided(call)) return false;
  const auto is_result = [](const plan::CallArray& array) {
    using enum plan::CallRole;
    return array.role == query_gradient || array.role == key_gradient || array.role == value_gradient;
  };
  for (size_t i = 0; i < call.arrays.size(); ++i) {
    if (is_result(call.arrays[i]) && order(call, i) != plan::Order::strided) return false;
  }
  return true;
}

MathMode PluginTarget::usual_mode() const {
  return device_.info.kind == ROSIN_DEVICE_GPU ? MathMode::standard : MathMode::exact;
}

PluginTarget::Form PluginTarget::form() const {
  return device_.info.language == ROSIN_LANGUAGE_NONE ? Form::loops : Form::text;
}

int64_t PluginTarget::longest_row() const { return kernels::longest_row_of(abilities_of(device_.info)); }

bool LibraryCall::add(const plan::Layout& layout, int32_t value, bool written) {
  const auto at = static_cast<size_t>(value);
  const plan::View& view = layout.views[at];
  values_.push_back(view.root);
  offsets_.push_back(static_cast<uint64_t>(view.offset) * size_of(layout.structure->graph.values[at].dtype));
  written_.push_back(written);
  return offsets_.back() % offset_unit == 0;
}

bool LibraryCall::add_all(const plan::Layout& layout, const plan::Step& step) {
  const plan::Value& node = layout.structure->graph.values[static_cast<size_t>(step.node)];
  bool aligned = true;
  for (int i = 0; i < node.operands; ++i) aligned = add(layout, node.in[i], false) && aligned;
  if (whole_) {
    for (const int32_t value : plan::values_of_epilogue(step)) {
      const bool written = value == step.bias_gradient || (value == step.auxiliary && step.epilogue.writes_auxiliary());
      aligned = add(layout, value, written) && aligned;
    }
  }
  if (step.results.empty()) return add(layout, whole_ ? step.result : step.node, true) && aligned;
  for (const int32_t result : step.results) {
    if (result >= 0) aligned = add(layout, result, true) && aligned;
  }
  return aligned;
}

std::optional<LibraryCall> LibraryCall::prepare(OpenDevice& device, const plan::Layout& layout, const plan::Step& step,
                                                bool whole) {
  const std::optional<CallDescription> call = whole ? plan::describe(layout, step) : plan::describe_bare(layout, step);
  LibraryCall made(device);
  made.whole_ = whole;
  if (!call || !made.add_all(layout, step)) return std::nullopt;
  rosin_call* prepared = nullptr;
  rosin_status status = ROSIN_UNSUPPORTED;
  for (const CallDescription& way : ways_of(*call)) {
    if (status != ROSIN_UNSUPPORTED) break;
    status = prepare_call(device, *CallQuestion(way).plain(), prepared, made.workspace_);
  }
  if (status == ROSIN_UNSUPPORTED) return std::nullopt;
  device.check(status, layout.structure->graph.values[static_cast<size_t>(step.node)].op->name);
  made.call_.reset(prepared);
  made.scale_ = whole ? step.scale : -1;
  made.adds_ = call->epilogue.residual || call->accumulate;
  return made;
}

std::optional<LibraryCall> LibraryCall::prepare(OpenDevice& device, const plan::Layout& layout,
                                                const plan::Step& step) {
  std::optional<LibraryCall> made = prepare(device, layout, step, true);
  if (made) return made;
  refused.fetch_add(1, std::memory_order_relaxed);
  return step.epilogue.none() ? std::nullopt : prepare(device, layout, step, false);
}

rosin_call_numbers LibraryCall::numbers(double scale) const {
  rosin_call_numbers all{};
  all.size = sizeof all;
  all.alpha = scale;
  all.beta = adds_ ? 1 : 0;
  return all;
}

void LibraryCall::count_given() noexcept { given.fetch_add(1, std::memory_order_relaxed); }

rosin_status LibraryCall::run(const rosin_place* buffers, rosin_place workspace,
                              const rosin_call_numbers* numbers) const {
  count_given();
  return device_->functions.call_run(device_->compute().queue(), call_.get(), buffers, workspace, numbers);
}

LibraryCalls library_calls() {
  return {given.load(std::memory_order_relaxed), refused.load(std::memory_order_relaxed)};
}

}  // namespace rosin
