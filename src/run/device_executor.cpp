// See device_executor.hpp.
#include "run/device_executor.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

#include <rosin/error.hpp>

#include "base/environment.hpp"
#include "base/sizes.hpp"
#include "kernels/launches.hpp"
#include "run/device_run.hpp"

namespace rosin {
namespace {

using plan::Place;

constexpr size_t scratch_alignment = 256;

std::atomic<int64_t> launched{0};

/// ROSIN_SYNC=1: every launch is waited for, so that a fault names its op.
bool one_by_one() {
  static const bool on = environment_switch(Setting::sync).value_or(false);
  return on;
}

rosin_number number_of(const kernels::LaunchNumber& number, const ScalarValue& value) {
  rosin_number made{};
  switch (number.type) {
    case ScalarType::int64:
    case ScalarType::uint64: made.int64 = value.integer; break;  // the same bits
    case ScalarType::uint32: made.uint32 = static_cast<uint32_t>(value.integer); break;
    case ScalarType::float32: made.float32 = static_cast<float>(value.real); break;
    case ScalarType::float64: made.float64 = value.real; break;
    default: made.int32 = static_cast<int32_t>(value.integer); break;
  }
  return made;
}

/// The modules that layouts of the structure have been prepared with, so that they stay loaded for its other sizes.
class PluginCompiled final : public plan::Compiled {
 public:
  using Compiled::Compiled;

  void keep(const std::vector<LoadedKernel>& kernels) {
    std::lock_guard guard(lock_);
    for (const LoadedKernel& kernel : kernels) modules_.insert(kernel.module);
  }

 private:
  std::mutex lock_;
  std::set<std::shared_ptr<rosin_module>> modules_;
};

/// Launches with what they need but memory. What changes from run to run (numbers, places, flags) is filled in and
/// given to the device while the run has the device's turn: so all threads share it.
class PluginPrepared final : public plan::Prepared {
 public:
  PluginPrepared(OpenDevice& device, PluginCompiled& compiled, std::shared_ptr<const plan::Layout> layout)
      : device_(device), layout_(std::move(layout)) {
    const std::vector<char> by_library = prepare_calls();
    kernels::LaunchList list = kernels::write_launches(*layout_, by_library);
    for (kernels::Launch& launch : list.launches) {
      if (launch.call >= 0) place_call(launch, list);
    }
    std::erase_if(list.launches, [](const kernels::Launch& launch) {
      return launch.groups[0] == 0 || launch.groups[1] == 0 || launch.groups[2] == 0;
    });
    std::vector<LoadedKernel> kernels = device.kernels.kernels_for(list.launches);
    compiled.keep(kernels);
    for (size_t i = 0; i < kernels.size(); ++i) add(list.launches[i], std::move(kernels[i]));
    const auto asks = [](const kernels::LaunchBuffer& buffer) {
      return buffer.scratch == kernels::LaunchBuffer::guard;
    };
    if (std::any_of(buffers_.begin(), buffers_.end(), asks)) guard_ = &device.flags.guard();
    if (!list.checks.empty()) checked_ = std::make_shared<const CheckedPlan>(device, layout_, std::move(list.checks));
    place_scratch(list);
    ops_ = ops_of(list);
  }

  size_t arena_bytes() const override { return arena_bytes_; }

  void run(const plan::RunMemory& memory) const override {
    if (!complete_) return;
    const Ticket ticket = give(memory);
    // (What it overwrites stays as it is where a run of another thread has failed.)
    const bool may_fail = checked_ || !memory.overwrites.empty();
    if (may_fail && !memory.defers) device_.flags.look(ticket, ticket);
  }

  size_t bytes() const override {
    return sizeof(*this) + steps_.size() * sizeof(Step) + buffers_.size() * sizeof(kernels::LaunchBuffer) +
           numbers_.size() * sizeof(rosin_number);
  }

 private:
  struct Step {
    LoadedKernel kernel;
    int32_t call;  // into calls_, or -1
    uint32_t groups[3];
    size_t first_buffer, buffer_count, first_number;
  };
  struct Call {
    int32_t step;
    LibraryCall call;
  };
  struct Patch {
    size_t number;
    kernels::LaunchNumber what;
  };

  static std::shared_ptr<const std::vector<std::string>> ops_of(const kernels::LaunchList& list) {
    std::vector<std::string> ops;
    for (const kernels::Launch& launch : list.launches) ops.push_back(launch.what);
    return std::make_shared<const std::vector<std::string>>(std::move(ops));
  }

  /// Gives the run to the device. Its ticket.
  Ticket give(const plan::RunMemory& memory) const {
    DeviceRun run(device_, memory, ops_);
    if (guard_) run.reads(*guard_);
    if (checked_) run.reads(checked_->flags());
    for (const Patch& patch : patches_) {
      numbers_[patch.number] = number_of(patch.what, memory.scalars[patch.what.scalar]);
    }
    for (size_t i = 0; i < steps_.size(); ++i) launch(i, memory);
    launched.fetch_add(static_cast<int64_t>(steps_.size()), std::memory_order_relaxed);
    if (!checked_) return run.finish();
    const int place = device_.flags.send();
    const Ticket ticket = run.finish();
    device_.flags.expect(place, ticket, checked_);
    return ticket;
  }

  /// Whether the step reads or writes an array without elements: that is no library's work.
  bool is_empty(const plan::Step& step) const {
    const auto empty = [&](int32_t value) { return layout_->views[static_cast<size_t>(value)].count() == 0; };
    return empty(step.result) || std::any_of(step.reads.begin(), step.reads.end(), empty);
  }

  /// Which steps a vendor's library computes.
  std::vector<char> prepare_calls() {
    const std::vector<plan::Step>& steps = layout_->structure->steps;
    std::vector<char> by_library(steps.size(), 0);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kernel >= 0 || !steps[i].taken || is_empty(steps[i])) continue;
      std::optional<LibraryCall> call = LibraryCall::prepare(device_, *layout_, steps[i]);
      if (!call) continue;
      by_library[i] = 1;
      calls_.push_back({static_cast<int32_t>(i), std::move(*call)});
    }
    return by_library;
  }

  /// The buffers of a call: its arrays, then its workspace. From here on it is known by its place in calls_.
  void place_call(kernels::Launch& launch, kernels::LaunchList& list) const {
    const auto at = std::find_if(calls_.begin(), calls_.end(), [&](const Call& c) { return c.step == launch.call; });
    for (const int32_t value : at->call.values()) launch.buffers.push_back({value, -1});
    if (at->call.workspace() > 0) {
      launch.buffers.push_back({-1, list.scratch(static_cast<int64_t>(at->call.workspace()))});
    }
    launch.call = static_cast<int32_t>(at - calls_.begin());
  }

  void add(const kernels::Launch& launch, LoadedKernel kernel) {
    complete_ = complete_ && (kernel.kernel || launch.call >= 0);
    Step step{std::move(kernel), launch.call, {}, buffers_.size(), launch.buffers.size(), numbers_.size()};
    for (int d = 0; d < 3; ++d) step.groups[d] = static_cast<uint32_t>(launch.groups[d]);
    steps_.push_back(std::move(step));
    buffers_.insert(buffers_.end(), launch.buffers.begin(), launch.buffers.end());
    for (const kernels::LaunchNumber& number : launch.numbers) {
      if (number.scalar >= 0) patches_.push_back({numbers_.size(), number});
      numbers_.push_back(number_of(number, {static_cast<double>(number.integer), number.integer}));
    }
  }

  void place_scratch(const kernels::LaunchList& list) {
    // Arrays without elements have a place too.
    const auto in_arena = [&](const kernels::LaunchBuffer& buffer) {
      return buffer.value >= 0 && layout_->places[static_cast<size_t>(buffer.value)].where == Place::Where::arena;
    };
    const auto aligned = [](size_t bytes) {
      return (bytes + scratch_alignment - 1) / scratch_alignment * scratch_alignment;
    };
    const bool has_values = std::any_of(buffers_.begin(), buffers_.end(), in_arena);
    if (has_values) arena_bytes_ = aligned(layout_->arena_bytes);
    for (const int64_t bytes : list.scratch_bytes) {
      scratch_offsets_.push_back(arena_bytes_);
      arena_bytes_ = sum_of_bytes(arena_bytes_, aligned(static_cast<size_t>(bytes)));
    }
    if (has_values || !scratch_offsets_.empty()) arena_bytes_ = std::max<size_t>(arena_bytes_, 1);
    size_t most = 0;
    for (const Step& step : steps_) most = std::max(most, step.buffer_count);
    places_.resize(most);
  }

  static rosin_place place_in(const Memory& block, uint64_t offset) {
    return {static_cast<rosin_memory*>(block.data), offset};
  }
  rosin_place scratch_place(int32_t scratch, const plan::RunMemory& memory) const {
    return place_in(*memory.arena, scratch_offsets_[static_cast<size_t>(scratch)]);
  }

  rosin_place place_of(const kernels::LaunchBuffer& buffer, const plan::RunMemory& memory) const {
    if (buffer.scratch == kernels::LaunchBuffer::guard) return place_in(*guard_, 0);
    if (buffer.scratch == kernels::LaunchBuffer::flag) return place_in(checked_->flags(), 0);
    if (buffer.value < 0) return scratch_place(buffer.scratch, memory);
    const Place& place = layout_->places[static_cast<size_t>(buffer.value)];
    if (place.where == Place::Where::arena) return place_in(*memory.arena, static_cast<uint64_t>(place.at));
    return {static_cast<rosin_memory*>(memory.values[buffer.value]), 0};
  }

  void launch(size_t number, const plan::RunMemory& memory) const {
    const Step& step = steps_[number];
    for (size_t i = 0; i < step.buffer_count; ++i) places_[i] = place_of(buffers_[step.first_buffer + i], memory);
    device_.check(step.call < 0 ? launch_kernel(step) : run_call(step), (*ops_)[number]);
    if (one_by_one()) device_.check(device_.functions.stream_sync(device_.compute().queue()), (*ops_)[number]);
  }

  rosin_status run_call(const Step& step) const {
    const LibraryCall& call = calls_[static_cast<size_t>(step.call)].call;
    return call.run(places_.data(), call.workspace() > 0 ? places_[call.values().size()] : rosin_place{});
  }

  rosin_status launch_kernel(const Step& step) const {
    rosin_launch launch{};
    launch.size = sizeof launch;
    std::copy(std::begin(step.groups), std::end(step.groups), launch.groups);
    launch.buffers = places_.data();
    launch.parameters = numbers_.data() + step.first_number;
    return device_.functions.launch(device_.compute().queue(), step.kernel.kernel, &launch);
  }

  OpenDevice& device_;
  std::shared_ptr<const plan::Layout> layout_;
  std::vector<Step> steps_;
  std::shared_ptr<const std::vector<std::string>> ops_;  // of each step, for messages
  std::vector<Call> calls_;
  bool complete_ = true;  // not while kernels are collected: see DeviceKernels::collect
  std::vector<kernels::LaunchBuffer> buffers_;
  std::vector<Patch> patches_;
  const DeviceBlock* guard_ = nullptr;          // of the device, where kernels ask it
  std::shared_ptr<const CheckedPlan> checked_;  // null: the plan checks nothing
  size_t arena_bytes_ = 0;
  std::vector<size_t> scratch_offsets_;  // in the arena, after the values
  // Of the run that has the device's turn:
  mutable std::vector<rosin_number> numbers_;
  mutable std::vector<rosin_place> places_;
};

}  // namespace

std::shared_ptr<plan::Compiled> PluginExecutor::compile(std::shared_ptr<const plan::Structure> structure) {
  return std::make_shared<PluginCompiled>(std::move(structure));
}

std::unique_ptr<const plan::Prepared> PluginExecutor::prepare(plan::Compiled& compiled,
                                                              std::shared_ptr<const plan::Layout> layout) {
  if (device_.kernels.has_many()) device_.unload_kernels();
  return std::make_unique<PluginPrepared>(device_, static_cast<PluginCompiled&>(compiled), std::move(layout));
}

int64_t device_launches() { return launched.load(std::memory_order_relaxed); }

}  // namespace rosin
