// See device_executor.hpp.
#include "run/device_executor.hpp"

#include <algorithm>
#include <atomic>

#include <rosin/error.hpp>

#include "base/environment.hpp"
#include "base/sizes.hpp"
#include "kernels/launches.hpp"

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

class PluginInstance final : public plan::Instance {
 public:
  PluginInstance(OpenDevice& device, std::shared_ptr<const plan::Layout> layout)
      : device_(device), layout_(std::move(layout)) {
    kernels::LaunchList list = kernels::write_launches(*layout_);
    std::erase_if(list.launches, [](const kernels::Launch& launch) {
      return launch.groups[0] == 0 || launch.groups[1] == 0 || launch.groups[2] == 0;
    });
    std::vector<LoadedKernel> kernels = device.kernels.kernels_for(list.launches);
    find_donating(list);
    for (size_t i = 0; i < kernels.size(); ++i) add(list.launches[i], std::move(kernels[i]));
    checks_ = std::move(list.checks);
    flag_scratch_ = list.flag_scratch;
    place_scratch(list);
  }

  void furnish() override {
    if (arena_bytes_ > 0) arena_.reset(device_.pool.allocate(arena_bytes_));
    if (scratch_bytes_ > 0) scratch_.reset(device_.pool.allocate(scratch_bytes_));
  }
  void strip() noexcept override {
    arena_.reset();
    scratch_.reset();
  }

  void run(void* const* memory, const ScalarValue* scalars) override {
    if (!complete_) return;
    for (const Patch& patch : patches_) {
      numbers_[patch.number] = number_of(patch.what, scalars[patch.what.scalar]);
    }
    const OpenDevice::Turn turn(device_);
    if (!checks_.empty()) clear_flags();
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (i == first_donating_) check_flags(turn);
      launch(steps_[i], memory, turn);
    }
    if (first_donating_ >= steps_.size()) check_flags(turn);
    launched.fetch_add(static_cast<int64_t>(steps_.size()), std::memory_order_relaxed);
  }

  size_t bytes() const override {
    return sizeof(*this) + steps_.size() * sizeof(Step) + buffers_.size() * sizeof(kernels::LaunchBuffer) +
           numbers_.size() * sizeof(rosin_number) + (arena_ ? arena_->bytes : 0) + (scratch_ ? scratch_->bytes : 0);
  }

 private:
  struct ReleaseMemory {
    void operator()(Memory* memory) const { release(memory); }
  };
  using Block = std::unique_ptr<Memory, ReleaseMemory>;

  struct Step {
    LoadedKernel kernel;
    uint32_t groups[3];
    size_t first_buffer, buffer_count, first_number;
    std::string what;
  };
  struct Patch {
    size_t number;
    kernels::LaunchNumber what;
  };

  /// The first launch that overwrites memory of a leaf: what can fail has been checked by then.
  void find_donating(const kernels::LaunchList& list) {
    const auto overwrites = [&](const kernels::LaunchBuffer& buffer) {
      if (buffer.value < 0) return false;
      const Place& place = layout_->places[static_cast<size_t>(buffer.value)];
      return place.where == Place::Where::output && layout_->outputs[static_cast<size_t>(place.at)].donor >= 0;
    };
    const auto first = std::find_if(list.launches.begin(), list.launches.end(), [&](const kernels::Launch& launch) {
      return std::any_of(launch.buffers.begin(), launch.buffers.end(), overwrites);
    });
    first_donating_ = static_cast<size_t>(first - list.launches.begin());
  }

  void add(const kernels::Launch& launch, LoadedKernel kernel) {
    complete_ = complete_ && kernel.kernel;
    Step step{std::move(kernel), {}, buffers_.size(), launch.buffers.size(), numbers_.size(), launch.what};
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
    if (std::any_of(buffers_.begin(), buffers_.end(), in_arena))
      arena_bytes_ = std::max<size_t>(layout_->arena_bytes, 1);
    size_t total = 0;
    for (const int64_t bytes : list.scratch_bytes) {
      scratch_offsets_.push_back(total);
      total = sum_of_bytes(
          total, (static_cast<size_t>(bytes) + scratch_alignment - 1) / scratch_alignment * scratch_alignment);
    }
    if (!scratch_offsets_.empty()) scratch_bytes_ = std::max<size_t>(total, 1);
    size_t most = 0;
    for (const Step& step : steps_) most = std::max(most, step.buffer_count);
    places_.resize(most);
    flags_.resize(checks_.size());
  }

  static rosin_place place_in(const Block& block, uint64_t offset) {
    return {static_cast<rosin_memory*>(block->data), offset};
  }

  rosin_place place_of(const kernels::LaunchBuffer& buffer, void* const* memory) const {
    if (buffer.value < 0) return place_in(scratch_, scratch_offsets_[static_cast<size_t>(buffer.scratch)]);
    const Place& place = layout_->places[static_cast<size_t>(buffer.value)];
    if (place.where == Place::Where::arena) return place_in(arena_, static_cast<uint64_t>(place.at));
    return {static_cast<rosin_memory*>(memory[buffer.value]), 0};
  }

  void launch(const Step& step, void* const* memory, const OpenDevice::Turn& turn) {
    for (size_t i = 0; i < step.buffer_count; ++i) places_[i] = place_of(buffers_[step.first_buffer + i], memory);
    rosin_launch launch{};
    launch.size = sizeof launch;
    std::copy(std::begin(step.groups), std::end(step.groups), launch.groups);
    launch.buffers = places_.data();
    launch.parameters = numbers_.data() + step.first_number;
    device_.note(step.what);
    device_.check(device_.functions.launch(device_.stream, step.kernel.kernel, &launch), step.what);
    if (one_by_one()) {
      device_.check(device_.functions.stream_sync(device_.stream), step.what);
      device_.settle(turn);
    }
  }

  rosin_place flags_place() const { return place_in(scratch_, scratch_offsets_[static_cast<size_t>(flag_scratch_)]); }

  void clear_flags() {
    std::fill(flags_.begin(), flags_.end(), 0);
    device_.check(device_.functions.copy_in(device_.stream, flags_place(), flags_.data(), flags_.size() * 8),
                  "check of indices");
  }

  /// Waits for the checks of values that the plan has, and throws what they found.
  void check_flags(const OpenDevice::Turn& turn) {
    if (checks_.empty()) return;
    device_.check(device_.functions.copy_out(device_.stream, flags_.data(), flags_place(), flags_.size() * 8),
                  "check of indices");
    device_.settle(turn);
    for (size_t i = 0; i < flags_.size(); ++i) {
      if (flags_[i] != 0) kernels::throw_index_error(*layout_, checks_[i], flags_[i]);
    }
  }

  OpenDevice& device_;
  std::shared_ptr<const plan::Layout> layout_;
  std::vector<Step> steps_;
  bool complete_ = true;  // not while kernels are collected: see DeviceKernels::collect
  size_t first_donating_ = 0;
  std::vector<kernels::LaunchBuffer> buffers_;
  std::vector<rosin_number> numbers_;
  std::vector<Patch> patches_;
  std::vector<rosin_place> places_;
  std::vector<int32_t> checks_;
  std::vector<int64_t> flags_;
  int32_t flag_scratch_ = -1;
  Block arena_, scratch_;
  size_t arena_bytes_ = 0, scratch_bytes_ = 0;
  std::vector<size_t> scratch_offsets_;
};

}  // namespace

std::unique_ptr<plan::Instance> PluginExecutor::prepare(std::shared_ptr<const plan::Layout> layout) {
  if (device_.kernels.has_many()) device_.unload_kernels();
  return std::make_unique<PluginInstance>(device_, std::move(layout));
}

void PluginExecutor::expect(Memory& memory) {
  auto& block = static_cast<DeviceBlock&>(memory);
  if (!block.arriving) return;
  const OpenDevice::Turn turn(device_);
  device_.arrived(block);
}

int64_t device_launches() { return launched.load(std::memory_order_relaxed); }

}  // namespace rosin
