// See library_call.hpp.
#include "run/library_call.hpp"

#include <algorithm>
#include <atomic>

#include "plan/describe.hpp"
#include "run/call_choices.hpp"

namespace rosin {
namespace {

using plan::CallDescription;

// The enums of plans are those of backend.h, by their first and last entries.
static_assert(static_cast<int>(plan::CallKind::convolution_weights) == ROSIN_CALL_CONVOLUTION_WEIGHTS);
static_assert(static_cast<int>(plan::CallKind::collective) == ROSIN_CALL_COLLECTIVE);
static_assert(static_cast<int>(plan::CallRole::output) == ROSIN_ROLE_OUTPUT);
static_assert(static_cast<int>(plan::CallRole::residual) == ROSIN_ROLE_RESIDUAL);
static_assert(static_cast<int>(plan::CallRole::state) == ROSIN_ROLE_STATE);
static_assert(static_cast<int>(plan::Activation::tanh) == ROSIN_ACTIVATION_TANH);
static_assert(static_cast<int>(plan::ComputeMode::bfloat16) == ROSIN_COMPUTE_BFLOAT16);
static_assert(static_cast<int>(plan::Order::channels_first) == ROSIN_ORDER_CHANNELS_FIRST);

std::atomic<int64_t> given{0}, refused{0};

constexpr uint64_t offset_unit = 64;  // offsets into blocks are multiples of it

/// A description as plug-ins get it; it owns what it points to.
class PluginCall {
 public:
  explicit PluginCall(const CallDescription& call) {
    for (const plan::CallArray& from : call.arrays) arrays_.push_back(array(from));
    plain_.size = sizeof plain_;
    plain_.kind = static_cast<int32_t>(call.kind);
    plain_.array_count = static_cast<uint32_t>(arrays_.size());
    plain_.arrays = arrays_.data();
    if (call.window.spatial > 0) take_window(call.window);
    const plan::Epilogue& epilogue = call.epilogue;
    plain_.epilogue = {epilogue.bias, epilogue.residual, static_cast<int32_t>(epilogue.activation), epilogue.auxiliary,
                       epilogue.bias_gradient};
    plain_.accumulate = call.accumulate;
    plain_.scaled = epilogue.scaled;
    plain_.compute = static_cast<int32_t>(call.compute);
    plain_.deterministic = call.deterministic;
  }
  PluginCall(const PluginCall&) = delete;
  PluginCall& operator=(const PluginCall&) = delete;
  const rosin_call_description* plain() const { return &plain_; }

 private:
  static rosin_call_array array(const plan::CallArray& from) {
    rosin_call_array to{static_cast<int32_t>(from.role), static_cast<int32_t>(from.type), from.shape.rank(), {}, {}};
    std::copy(from.shape.begin(), from.shape.end(), to.sizes);
    std::copy(std::begin(from.strides), std::end(from.strides), to.strides);
    return to;
  }

  void take_window(const plan::CallWindow& from) {
    rosin_call_window& to = plain_.window;
    to.spatial = from.spatial;
    std::copy_n(from.stride, 3, to.stride);
    std::copy_n(from.dilation, 3, to.dilation);
    std::copy_n(from.pad_low, 3, to.pad_low);
    std::copy_n(from.pad_high, 3, to.pad_high);
    std::copy_n(from.window, 3, to.window);
    to.groups = from.groups;
    to.flipped = from.flipped;
    to.mean = from.mean;
  }

  std::vector<rosin_call_array> arrays_;
  rosin_call_description plain_{};
};

/// Whether the device takes calls like this one; `orders` gets its wishes.
bool ask(OpenDevice& device, const CallDescription& call, std::vector<int32_t>& orders) {
  if (!device.functions.call_takes) return false;
  const PluginCall question(call);
  const rosin_status status = device.functions.call_takes(device.device, question.plain(), orders.data());
  if (status == ROSIN_UNSUPPORTED) return false;
  device.check(status, "vendor call");
  return true;
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

PluginTarget::Form PluginTarget::form() const {
  return device_.info.language == ROSIN_LANGUAGE_NONE ? Form::loops : Form::text;
}

std::optional<LibraryCall> LibraryCall::prepare(OpenDevice& device, const plan::Layout& layout,
                                                const plan::Step& step) {
  const std::optional<CallDescription> call = plan::describe(layout, step);
  if (!step.taken || !call) return std::nullopt;
  LibraryCall made(device);
  std::vector<int32_t> arrays;
  const plan::Value& node = layout.structure->graph.values[static_cast<size_t>(step.node)];
  arrays.insert(arrays.end(), node.in.begin(), node.in.begin() + node.operands);
  for (const int32_t value : {step.bias, step.residual}) {
    if (value >= 0) arrays.push_back(value);
  }
  arrays.push_back(step.result);
  bool aligned = true;
  for (const int32_t value : arrays) {
    const plan::View& view = layout.views[static_cast<size_t>(value)];
    made.values_.push_back(view.root);
    made.offsets_.push_back(static_cast<uint64_t>(view.offset) *
                            size_of(layout.structure->graph.values[static_cast<size_t>(value)].dtype));
    aligned = aligned && made.offsets_.back() % offset_unit == 0;
  }
  rosin_call* prepared = nullptr;
  const PluginCall question(*call);
  const rosin_status status =
      aligned ? prepare_call(device, *question.plain(), prepared, made.workspace_) : ROSIN_UNSUPPORTED;
  if (status == ROSIN_UNSUPPORTED) {
    refused.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  device.check(status, node.op->name);
  made.call_.reset(prepared);
  made.scale_ = step.scale;
  made.adds_ = call->epilogue.residual || call->accumulate;
  return made;
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
