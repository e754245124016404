// See device_steps.hpp.
#include "run/device_steps.hpp"

#include <algorithm>

#include "base/sizes.hpp"

namespace rosin {
namespace {

using kernels::LaunchBuffer;
using plan::Place;

/// All of its bytes are set, so that numbers can be compared.
rosin_number number_of(const kernels::LaunchNumber& number, const ScalarValue& value) {
  rosin_number made;
  made.int64 = 0;
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

}  // namespace

void DeviceSteps::make(const kernels::LaunchList& list, std::vector<LoadedKernel> kernels, const Fixed& fixed) {
  place_scratch(list);
  place_counters(list);
  for (size_t i = 0; i < kernels.size(); ++i) add(list.launches[i], std::move(kernels[i]));
  for (const Buffer& buffer : buffers) {
    const Memory* memory = buffer.value == LaunchBuffer::flag    ? fixed.flags
                           : buffer.value == LaunchBuffer::guard ? fixed.guard
                                                                 : fixed.counters;
    places.push_back(
        {buffer.value < Buffer::arena ? static_cast<rosin_memory*>(memory->data) : nullptr, buffer.offset});
  }
  find_last_writers();
}

namespace {

/// Where buffers begin that stand in one block.
constexpr uint64_t counter_alignment = 64;

uint64_t bytes_of_counters(int64_t count) {
  const uint64_t bytes = static_cast<uint64_t>(count) * sizeof(int32_t);
  return (bytes + counter_alignment - 1) / counter_alignment * counter_alignment;
}

}  // namespace

size_t DeviceSteps::counter_bytes(const kernels::LaunchList& list) {
  size_t bytes = 0;
  for (const int64_t count : list.counter_counts) bytes += bytes_of_counters(count);
  return bytes;
}

void DeviceSteps::place_counters(const kernels::LaunchList& list) {
  counter_offsets_.push_back(0);
  for (const int64_t count : list.counter_counts) {
    counter_offsets_.push_back(counter_offsets_.back() + bytes_of_counters(count));
  }
}

void DeviceSteps::find_last_writers() {
  written_after_.assign(layout_->places.size(), 0);
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const Buffer& buffer : buffers_of(steps[i])) {
      if (buffer.written && buffer.owner >= 0) written_after_[static_cast<size_t>(buffer.owner)] = i + 1;
    }
  }
}

void DeviceSteps::place_scratch(const kernels::LaunchList& list) {
  // Arrays without elements have a place too.
  const auto in_arena = [&](const kernels::LaunchBuffer& buffer) {
    return buffer.value >= 0 && layout_->places[static_cast<size_t>(buffer.value)].where == Place::Where::arena;
  };
  const bool has_values = std::any_of(list.launches.begin(), list.launches.end(), [&](const kernels::Launch& launch) {
    return std::any_of(launch.buffers.begin(), launch.buffers.end(), in_arena);
  });
  if (has_values) arena_bytes_ = aligned(layout_->arena_bytes);
  scratch_bytes_ = list.scratch_bytes;
  for (const int64_t bytes : scratch_bytes_) {
    scratch_offsets_.push_back(arena_bytes_);
    arena_bytes_ = sum_of_bytes(arena_bytes_, aligned(static_cast<size_t>(bytes)));
  }
  if (has_values || !scratch_offsets_.empty()) arena_bytes_ = std::max<size_t>(arena_bytes_, 1);
}

DeviceSteps::Buffer DeviceSteps::buffer_of(const kernels::LaunchBuffer& buffer) const {
  const auto from = [](int32_t value, int32_t owner, uint64_t offset, uint64_t bytes) {
    return Buffer{value, owner, offset, offset, offset + bytes};
  };
  if (buffer.scratch <= LaunchBuffer::first_counters) {
    const auto block = static_cast<size_t>(LaunchBuffer::first_counters - buffer.scratch);
    return from(LaunchBuffer::first_counters, LaunchBuffer::first_counters, counter_offsets_[block],
                counter_offsets_[block + 1] - counter_offsets_[block]);
  }
  if (buffer.scratch < -1) return from(buffer.scratch, buffer.scratch, 0, sizeof(int64_t));
  if (buffer.value < 0) {
    const auto scratch = static_cast<size_t>(buffer.scratch);
    return from(Buffer::arena, Buffer::arena, scratch_offsets_[scratch],
                static_cast<uint64_t>(scratch_bytes_[scratch]));
  }
  const auto at = static_cast<size_t>(buffer.value);
  const Place& place = layout_->places[at];
  const uint64_t bytes =
      static_cast<uint64_t>(layout_->views[at].count()) * size_of(layout_->structure->graph.values[at].dtype);
  if (place.where == Place::Where::arena) {
    return from(Buffer::arena, Buffer::arena, static_cast<uint64_t>(place.at), bytes);
  }
  const int32_t donor =
      place.where == Place::Where::output ? layout_->outputs[static_cast<size_t>(place.at)].donor : -1;
  return from(buffer.value, donor >= 0 ? donor : buffer.value, 0, bytes);
}

void DeviceSteps::add(const kernels::Launch& launch, LoadedKernel kernel) {
  complete_ = complete_ && (kernel.kernel || launch.call >= 0);
  Step step;
  step.kernel = std::move(kernel);
  if (launch.call >= 0) step.call = &calls_[static_cast<size_t>(launch.call)];
  std::transform(launch.groups, launch.groups + 3, step.groups, [](int64_t n) { return static_cast<uint32_t>(n); });
  step.first_buffer = buffers.size();
  step.buffer_count = launch.buffers.size();
  step.first_number = numbers.size();
  step.number_count = launch.numbers.size();
  const std::vector<char> stored = stored_buffers(launch.code);
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    Buffer buffer = buffer_of(launch.buffers[i]);
    if (!step.call) {
      buffer.written = stored[i] != 0;
    } else {
      const size_t arrays = step.call->values().size();
      buffer.written = i >= arrays || step.call->writes(i);  // (the last is the workspace)
      if (i < arrays) buffer.offset += step.call->offset(i);
    }
    buffers.push_back(buffer);
  }
  for (const kernels::LaunchNumber& number : launch.numbers) {
    if (number.scalar >= 0) patches_.push_back({numbers.size(), number});
    numbers.push_back(number_of(number, {static_cast<double>(number.integer), number.integer}));
  }
  steps.push_back(std::move(step));
}

void DeviceSteps::fill(const plan::RunMemory& memory) {
  auto* arena = memory.arena ? static_cast<rosin_memory*>(memory.arena->data) : nullptr;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (buffer.value < Buffer::arena) continue;
    places[i] = {buffer.value < 0 ? arena : static_cast<rosin_memory*>(memory.values[buffer.value]), buffer.offset};
  }
  for (const Patch& patch : patches_) {
    numbers[patch.number] = number_of(patch.what, memory.scalars[patch.what.scalar]);
  }
}

DeviceSteps::Arguments DeviceSteps::arguments_of(const Step& step) const {
  Arguments made;
  if (step.call) {
    if (step.number_count > 0) made.numbers = step.call->numbers(numbers[step.first_number].float64);
    return made;
  }
  made.launch.size = sizeof made.launch;
  std::copy(std::begin(step.groups), std::end(step.groups), made.launch.groups);
  made.launch.buffers = places_of(step);
  made.launch.parameters = numbers.data() + step.first_number;
  return made;
}

size_t DeviceSteps::written_after(int32_t output) const {
  const plan::Output& wanted = layout_->outputs[static_cast<size_t>(output)];
  return written_after_[static_cast<size_t>(wanted.donor < 0 ? wanted.value : wanted.donor)];
}

rosin_place DeviceSteps::workspace_of(const Step& step) const {
  return step.call->workspace() > 0 ? places[step.first_buffer + step.buffer_count - 1] : rosin_place{};
}

size_t DeviceSteps::bytes() const {
  return steps.size() * sizeof(Step) + buffers.size() * (sizeof(Buffer) + sizeof(rosin_place)) +
         numbers.size() * sizeof(rosin_number);
}

}  // namespace rosin
