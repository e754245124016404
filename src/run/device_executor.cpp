// See device_executor.hpp.
#include "run/device_executor.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <optional>
#include <set>

#include <rosin/error.hpp>

#include "base/environment.hpp"
#include "kernels/launches.hpp"
#include "run/device_graph.hpp"
#include "run/device_run.hpp"
#include "run/device_steps.hpp"
#include "run/launch_clock.hpp"

namespace rosin {
namespace {

std::atomic<int64_t> launched{0};
constexpr int64_t most_unshared = int64_t{4} << 20;  // bytes of a call's workspace

/// ROSIN_SYNC=1: every launch is waited for, so that a fault names its op.
bool one_by_one() {
  static const bool on = environment_switch(Setting::sync).value_or(false);
  return on;
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

/// Steps with what they need but memory, and the graph of them. What changes from run to run (numbers, places)
/// is filled in and given to the device while the run has the device's turn: so all threads share it.
class PluginPrepared final : public plan::Prepared {
 public:
  PluginPrepared(OpenDevice& device, PluginCompiled& compiled, std::shared_ptr<const plan::Layout> layout)
      : device_(device), layout_(std::move(layout)) {
    const std::vector<kernels::ByLibrary> by_library = prepare_calls();
    kernels::LaunchList list = kernels::write_launches(*layout_, abilities_of(device.info), by_library);
    if (device.functions.graph_create) kernels::share_numbers(list);
    for (kernels::Launch& launch : list.launches) {
      if (launch.call >= 0) place_call(launch, list);
    }
    std::erase_if(list.launches, [](const kernels::Launch& launch) {
      return launch.groups[0] == 0 || launch.groups[1] == 0 || launch.groups[2] == 0;
    });
    std::vector<LoadedKernel> kernels = device.kernels.kernels_for(list.launches);
    compiled.keep(kernels);
    if (asks_guard(list)) guard_ = &device.flags.guard();
    if (!list.checks.empty()) {
      checked_ = std::make_shared<const CheckedPlan>(device, layout_, std::move(list.checks));
    }
    steps_ = std::make_unique<DeviceSteps>(layout_, calls_);
    if (!list.counter_counts.empty()) counters_.emplace(device, DeviceSteps::counter_bytes(list));
    steps_->make(list, std::move(kernels),
                 {checked_ ? &checked_->flags() : nullptr, guard_, counters_ ? &counters_->block() : nullptr});
    graph_ = std::make_unique<DeviceGraph>(device, *steps_, checked_ ? guard_ : nullptr);
    std::vector<std::string> ops;
    for (const kernels::Launch& launch : list.launches) {
      ops.push_back(launch.what);
      plan_steps_.push_back(launch.step);
    }
    ops_ = std::make_shared<const std::vector<std::string>>(std::move(ops));
  }

  size_t arena_bytes() const override { return graph_->arena_bytes(); }

  void run(const plan::RunMemory& memory) const override {
    if (!steps_->complete()) return;
    const Ticket ticket = give(memory);
    // (What it overwrites stays as it is where a run of another thread has failed.)
    const bool may_fail = checked_ || !memory.overwrites.empty();
    if (may_fail && !memory.defers) device_.flags.look(ticket, ticket);
  }

  size_t bytes() const override { return sizeof(*this) + steps_->bytes(); }

 private:
  static bool asks_guard(const kernels::LaunchList& list) {
    return std::any_of(list.launches.begin(), list.launches.end(), [](const kernels::Launch& launch) {
      return std::any_of(launch.buffers.begin(), launch.buffers.end(), [](const kernels::LaunchBuffer& buffer) {
        return buffer.scratch == kernels::LaunchBuffer::guard;
      });
    });
  }

  /// Gives the run to the device. Its ticket. What cannot be given at first throws, and nothing has happened; behind
  /// that, each call is tried once more, as arrays may have been overwritten.
  Ticket give(const plan::RunMemory& memory) const {
    if (checked_) device_.flags.make_room();
    const DeviceMarks marks(*steps_, memory);
    DeviceRun run(device_, memory, ops_, marks.cuts().size());
    if (guard_) run.reads(*guard_);
    if (checked_) run.reads(checked_->flags());
    if (counters_) run.reads(counters_->block());
    RunSites sites = checked_ ? sites_of(memory) : nullptr;
    const int place = checked_ ? device_.flags.reserve() : IndexFlags::none;
    steps_->fill(memory);
    std::optional<LaunchClock> clock;
    if (memory.listener && memory.listener->wants_times()) clock.emplace(device_, steps_->steps.size());
    const bool by_graph =
        !clock && graph_->launch(memory, checked_ ? device_.flags.word(place) : nullptr, marks.cuts());
    if (!by_graph) launch(0, clock);
    Ticket ticket;
    try {
      if (!by_graph) run.mark(marks.written_at(1));
      const size_t given = by_graph ? launch_parts(run, marks) : 1;
      launch_steps(run, marks, given, clock);
      launched.fetch_add(static_cast<int64_t>(steps_->steps.size()), std::memory_order_relaxed);
      if (checked_ && (!by_graph || given < steps_->steps.size())) device_.flags.send(place);
      ticket = run.finish();
      if (checked_) device_.flags.expect(place, ticket, checked_, std::move(sites));
    } catch (const Error& error) {
      if (!memory.overwrites.empty()) device_.give_up(error.what());
      throw;
    }
    if (clock) tell_times(*memory.listener, *clock);
    return ticket;
  }

  RunSites sites_of(const plan::RunMemory& memory) const {
    if (!std::ranges::equal(*sites_, memory.sites)) {
      sites_ = std::make_shared<const std::vector<plan::NodeSite>>(memory.sites.begin(), memory.sites.end());
    }
    return sites_;
  }

  /// Whether the step reads or writes an array without elements: that is no library's work.
  bool is_empty(const plan::Step& step) const {
    const auto empty = [&](int32_t value) { return layout_->views[static_cast<size_t>(value)].count() == 0; };
    return std::any_of(step.reads.begin(), step.reads.end(), empty) ||
           std::any_of(step.writes.begin(), step.writes.end(), empty);
  }

  /// What of each step a vendor's library computes.
  std::vector<kernels::ByLibrary> prepare_calls() {
    const std::vector<plan::Step>& steps = layout_->structure->steps;
    std::vector<kernels::ByLibrary> by_library(steps.size(), kernels::ByLibrary::nothing);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kernel >= 0 || !steps[i].taken || is_empty(steps[i])) continue;
      if (kernels::beats_libraries(*layout_, steps[i], abilities_of(device_.info))) continue;
      std::optional<LibraryCall> call = LibraryCall::prepare(device_, *layout_, steps[i]);
      if (!call) continue;
      by_library[i] = call->whole() ? kernels::ByLibrary::all : kernels::ByLibrary::product;
      call_steps_.push_back(static_cast<int32_t>(i));
      calls_.push_back(std::move(*call));
    }
    return by_library;
  }

  /// The buffers of a call: its arrays, then its workspace. From here on it is known by its place in calls_.
  void place_call(kernels::Launch& launch, kernels::LaunchList& list) {
    launch.call =
        static_cast<int32_t>(std::find(call_steps_.begin(), call_steps_.end(), launch.call) - call_steps_.begin());
    const LibraryCall& call = calls_[static_cast<size_t>(launch.call)];
    for (const int32_t value : call.values()) launch.buffers.push_back({value, -1});
    if (call.scale() >= 0) launch.numbers.push_back({.type = ScalarType::float64, .scalar = call.scale()});
    if (call.workspace() > 0) launch.buffers.push_back({-1, room_for(static_cast<int64_t>(call.workspace()), list)});
  }

  /// A scratch block. Calls that want much share one and so run one after the other: each fills the device anyway.
  int32_t room_for(int64_t bytes, kernels::LaunchList& list) {
    if (bytes <= most_unshared) return list.scratch(bytes);
    if (shared_room_ < 0) shared_room_ = list.scratch(0);
    int64_t& shared = list.scratch_bytes[static_cast<size_t>(shared_room_)];
    shared = std::max(shared, bytes);
    return shared_room_;
  }

  /// The parts of the graph but the first, as far as the device takes them: how many steps have been given then.
  size_t launch_parts(DeviceRun& run, const DeviceMarks& marks) const {
    for (size_t part = 1; part < graph_->parts(); ++part) {
      const size_t given = graph_->first_step(part);
      run.mark(marks.written_at(given));
      if (!graph_->launch_part(part)) return given;
    }
    return steps_->steps.size();
  }
  void launch_steps(DeviceRun& run, const DeviceMarks& marks, size_t given, std::optional<LaunchClock>& clock) const {
    for (size_t i = given; i < steps_->steps.size(); ++i) {
      launch(i, clock);
      run.mark(marks.written_at(i + 1));
    }
  }

  void launch(size_t number, std::optional<LaunchClock>& clock) const {
    if (number == steps_->steps.size()) return;
    const DeviceSteps::Step& step = steps_->steps[number];
    const std::string& ops = (*ops_)[number];
    const DeviceSteps::Arguments arguments = steps_->arguments_of(step);
    const auto give = [&] {
      if (step.call) {
        return step.call->run(steps_->places_of(step), steps_->workspace_of(step), arguments.call_numbers());
      }
      return device_.functions.launch(device_.compute().queue(), step.kernel.kernel, &arguments.launch);
    };
    if (number == 0) device_.check(give(), ops);
    else device_.insist(give, ops);
    if (one_by_one()) device_.check(device_.functions.stream_sync(device_.compute().queue()), ops);
    if (clock) clock->mark();
  }

  /// (What fails here leaves the run as it is, and the profile without it.)
  void tell_times(plan::StepListener& listener, LaunchClock& clock) const noexcept {
    try {
      const std::vector<double> seconds = clock.seconds();
      for (size_t i = 0; i < seconds.size(); ++i) listener.took(plan_steps_[i], (*ops_)[i], seconds[i]);
    } catch (const std::bad_alloc&) {}
  }

  OpenDevice& device_;
  std::shared_ptr<const plan::Layout> layout_;
  std::vector<LibraryCall> calls_;
  std::vector<int32_t> call_steps_;                      // of the plan, one for each call
  int32_t shared_room_ = -1;                             // the scratch block of calls that want much
  const DeviceBlock* guard_ = nullptr;                   // of the device, where kernels ask it
  std::optional<PlanZeros> counters_;                    // of groups that arrive
  std::shared_ptr<const CheckedPlan> checked_;           // null: the plan checks nothing
  std::shared_ptr<const std::vector<std::string>> ops_;  // of each launch, for messages
  std::vector<int32_t> plan_steps_;                      // of each launch, -1: of none, or several
  mutable RunSites sites_ = std::make_shared<const std::vector<plan::NodeSite>>();  // of the last run
  // Of the run that has the device's turn; the graph goes before the calls that stand in it:
  std::unique_ptr<DeviceSteps> steps_;
  std::unique_ptr<DeviceGraph> graph_;
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
