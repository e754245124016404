// Running a checked kernel, group by group.
#include "interpret.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

namespace rosin::reference {
namespace {

/// Memory that begins at a multiple of 64 bytes and is kept by the thread for its next launch.
char* scratch(size_t bytes) {
  thread_local std::vector<std::max_align_t> kept;
  kept.resize(std::max(kept.size(), (bytes + 64) / sizeof(std::max_align_t) + 1));
  void* at = kept.data();
  size_t room = kept.size() * sizeof(std::max_align_t);
  return static_cast<char*>(std::align(64, bytes, at, room));
}

std::string group_text(const Frame& frame) {
  std::string text = "group (";
  for (int dim = 0; dim < 3; ++dim) text += (dim ? ", " : "") + std::to_string(frame.group[dim]);
  return text + ")";
}

}  // namespace

void fault(const Frame& frame, const Step& step, int item, const std::string& what) {
  throw Fault("kernel " + frame.name + ": instruction " + std::to_string(step.place) + ": " + what + "; " +
              group_text(frame) + ", item " + std::to_string(item));
}

void Kernel::run(const uint32_t groups[3], const Block* buffers, const rosin_number* parameters) const {
  const auto items = static_cast<size_t>(items_);
  const size_t levels = static_cast<size_t>(depth_) + 1;
  const size_t shared_at = register_bytes_, masks_at = shared_at + (shared_size_ + 63) / 64 * 64;
  char* memory = scratch(masks_at + levels * items);
  std::vector<Touch> touches(shared_elements_);

  Frame frame;
  frame.name = name_;
  frame.items = items_;
  frame.registers = memory;
  std::vector<Block> blocks(buffers, buffers + buffer_count_);
  blocks.resize(buffer_count_ + chosen_.size());
  std::vector<uint32_t> arguments(blocks.size());
  std::iota(arguments.begin(), arguments.end(), 0);
  frame.buffers = blocks.data();
  frame.arguments = arguments.data();
  const bool asked = std::find(read_only_.begin(), read_only_.end(), 1) != read_only_.end();
  std::vector<Reach> reaches(asked ? buffer_count_ : 0);
  if (asked) frame.reaches = reaches.data();
  frame.parameters = parameters;
  frame.shared = shared_.data();
  frame.shared_memory = memory + shared_at;
  frame.touches = touches.data();
  frame.lanes.resize(levels);
  for (size_t level = 0; level < levels; ++level) {
    frame.lanes[level].on = reinterpret_cast<uint8_t*>(memory + masks_at + level * items);
  }
  frame.lanes[0].last = items_;
  frame.lanes[0].all = true;

  for (const Step& step : once_) step.run(frame, step);
  for (frame.group[2] = 0; frame.group[2] < groups[2]; ++frame.group[2]) {
    for (frame.group[1] = 0; frame.group[1] < groups[1]; ++frame.group[1]) {
      for (frame.group[0] = 0; frame.group[0] < groups[0]; ++frame.group[0]) {
        // What is read before it is written shows: NaN or -1.
        std::memset(frame.shared_memory, 0xff, shared_size_);
        ++frame.epoch;
        for (frame.next = 0; frame.next < steps_.size();) {
          const Step& step = steps_[frame.next++];
          step.run(frame, step);
        }
      }
    }
  }
  if (asked) check_read_only(frame);
}

void Kernel::check_read_only(const Frame& frame) const {
  for (size_t i = 0; i < buffer_count_; ++i) {
    for (size_t k = 0; k < buffer_count_ && read_only_[i]; ++k) {
      if (stored_[k] && frame.reaches[i].meets(frame.reaches[k])) {
        throw Fault("kernel " + name_ + ": buffer " + std::to_string(i) + " is read-only, and was written as buffer " +
                    std::to_string(k));
      }
    }
  }
}

}  // namespace rosin::reference
