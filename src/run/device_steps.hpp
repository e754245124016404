// DeviceSteps: what a layout gives to its device, launch by launch, and the arguments of the run under way.
// Read first: kernels/launches.hpp. Read next: device_executor.cpp (who fills them and gives them one by one),
// device_graph.hpp (all of them as one).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/launches.hpp"
#include "plan/device.hpp"
#include "run/device_kernels.hpp"
#include "run/library_call.hpp"

namespace rosin {

/// Arguments are those of one run at a time: of who has the device's turn.
class DeviceSteps {
 public:
  /// A kernel or a call.
  struct Step {
    LoadedKernel kernel;
    const LibraryCall* call = nullptr;
    uint32_t groups[3] = {};
    size_t first_buffer = 0, buffer_count = 0;  // of a call: its arrays, and its workspace if it has one
    size_t first_number = 0, number_count = 0;
  };
  /// Where a step reads or writes: bytes of the arena, of the memory of a leaf or an output, or of what is Fixed.
  struct Buffer {
    static constexpr int32_t arena = -1;
    int32_t value = arena;
    int32_t owner = arena;        // whose memory that is: an output may have that of a leaf
    uint64_t offset = 0;          // of element 0
    uint64_t begin = 0, end = 0;  // bytes that the step may touch
    bool written = false;
  };

  /// `calls`: of the launches that libraries compute; they live as long as this.
  DeviceSteps(std::shared_ptr<const plan::Layout> layout, const std::vector<LibraryCall>& calls)
      : layout_(std::move(layout)), calls_(calls) {}

  /// What stands where it stands, as far as launches ask for it: LaunchBuffer::flag, guard and counters.
  struct Fixed {
    const Memory* flags = nullptr;
    const Memory* guard = nullptr;
    const Memory* counters = nullptr;
  };
  /// Bytes of all counters of the list.
  static size_t counter_bytes(const kernels::LaunchList& list);

  /// `list.launches[i].call`, where it is one, is a place in `calls`.
  void make(const kernels::LaunchList& list, std::vector<LoadedKernel> kernels, const Fixed& fixed);
  /// Places and numbers of this run.
  void fill(const plan::RunMemory& memory);

  std::span<const Buffer> buffers_of(const Step& step) const {
    return std::span(buffers).subspan(step.first_buffer, step.buffer_count);
  }
  /// What a step is given beside its places: a kernel's launch, a scaled call's numbers.
  struct Arguments {
    rosin_launch launch{};
    std::optional<rosin_call_numbers> numbers;

    const rosin_call_numbers* call_numbers() const { return numbers ? &*numbers : nullptr; }
  };
  Arguments arguments_of(const Step& step) const;
  const rosin_place* places_of(const Step& step) const { return places.data() + step.first_buffer; }
  rosin_place workspace_of(const Step& step) const;
  /// Of the arena: values, then scratch blocks.
  size_t arena_bytes() const { return arena_bytes_; }
  /// Whether all kernels are there; not while they are collected, see DeviceKernels::collect.
  bool complete() const { return complete_; }
  size_t bytes() const;
  const plan::Layout& layout() const { return *layout_; }
  /// How many steps have run once this output of the layout has its elements; 0 where none writes it.
  size_t written_after(int32_t output) const;

  std::vector<Step> steps;
  std::vector<Buffer> buffers;        // of all steps
  std::vector<rosin_place> places;    // of each buffer
  std::vector<rosin_number> numbers;  // parameters of all steps

  static constexpr size_t alignment = 256;  // of what stands in an arena
  static size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

 private:
  struct Patch {
    size_t number;
    kernels::LaunchNumber what;
  };

  void place_scratch(const kernels::LaunchList& list);
  void place_counters(const kernels::LaunchList& list);
  void find_last_writers();
  void add(const kernels::Launch& launch, LoadedKernel kernel);
  Buffer buffer_of(const kernels::LaunchBuffer& buffer) const;

  std::shared_ptr<const plan::Layout> layout_;
  const std::vector<LibraryCall>& calls_;
  std::vector<Patch> patches_;
  std::vector<size_t> written_after_;  // by whose memory it is, see Buffer::owner
  std::vector<int64_t> scratch_bytes_;
  std::vector<uint64_t> scratch_offsets_;
  std::vector<uint64_t> counter_offsets_;  // where each block of counters begins, and the last ends
  size_t arena_bytes_ = 0;
  bool complete_ = true;
};

}  // namespace rosin
