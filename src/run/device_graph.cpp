// See device_graph.hpp.
#include "run/device_graph.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <rosin/log.hpp>

#include "base/environment.hpp"

namespace rosin {
namespace {

using Buffer = DeviceSteps::Buffer;

constexpr int runs_before = 2;                           // step by step, before a graph is made
constexpr uint64_t largest_copied = uint64_t{64} << 20;  // bytes of a leaf that is copied each time
constexpr int most_restless = 6;

std::atomic<int64_t> launches{0}, updates{0}, loose_calls{0};

/// ROSIN_GRAPHS=0: everything step by step; ROSIN_SYNC=1 asks for that as well.
bool are_wanted() {
  static const bool wanted =
      environment_switch(Setting::graphs).value_or(true) && !environment_switch(Setting::sync).value_or(false);
  return wanted;
}

template <class T> bool same(const T* a, const T* b, size_t count) {
  return count == 0 || std::memcmp(a, b, count * sizeof(T)) == 0;
}

/// Whether one must wait for the other.
bool conflict(const Buffer& a, const Buffer& b) {
  return (a.written || b.written) && a.owner == b.owner && a.begin < b.end && b.begin < a.end;
}
bool conflict(const std::vector<Buffer>& a, const std::vector<Buffer>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Buffer& x) {
    return std::any_of(b.begin(), b.end(), [&](const Buffer& y) { return conflict(x, y); });
  });
}

rosin_graph_node node_of(rosin_graph_node_kind kind) {
  rosin_graph_node node{};
  node.size = sizeof node;
  node.kind = kind;
  return node;
}

/// Once in the process. The reason is what the plug-in said last.
void say_left_out(const OpenDevice& device, rosin_status status) {
  const char* said = device.functions.error_text();
  const std::string text = "a graph of " + device.name + " is left out, its steps are launched one by one; " +
                           (said && *said ? said : "the back end gives no reason");
  if (status == ROSIN_UNSUPPORTED) inform_once("device-graph", text);
  else warn_once("device-graph", text);
}

}  // namespace

DeviceGraph::DeviceGraph(OpenDevice& device, DeviceSteps& steps, const DeviceBlock* guard)
    : device_(device), steps_(steps), guard_(guard),
      usable_(device.functions.graph_create && are_wanted() && !steps.steps.empty()),
      parts_(1, {.end = steps.steps.size()}), arena_bytes_(steps.arena_bytes()) {
  if (usable_) find_leaves();
}

/// Leaves that are only read, by several steps or by a call, and are not too large.
void DeviceGraph::find_leaves() {
  const auto& places = steps_.layout().places;
  std::vector<int> readers(places.size(), 0);  // a call counts as several
  std::vector<uint64_t> bytes(places.size(), 0);
  for (const DeviceSteps::Step& step : steps_.steps) {
    for (const Buffer& buffer : steps_.buffers_of(step)) {
      if (buffer.owner < 0) continue;
      const auto owner = static_cast<size_t>(buffer.owner);
      if (buffer.written || places[owner].where != plan::Place::Where::leaf) bytes[owner] = UINT64_MAX;
      else bytes[owner] = std::max(bytes[owner], buffer.end);
      readers[owner] += step.call ? 2 : 1;
    }
  }
  std::vector<int32_t> entry(places.size(), -1);
  for (size_t value = 0; value < places.size(); ++value) {
    if (readers[value] < 2 || bytes[value] == 0 || bytes[value] > largest_copied) continue;
    entry[value] = static_cast<int32_t>(leaves_.size());
    leaves_.push_back({static_cast<int32_t>(value), bytes[value]});
  }
  for (const Buffer& buffer : steps_.buffers) {
    leaf_of_.push_back(buffer.value < 0 ? -1 : entry[static_cast<size_t>(buffer.value)]);
  }
}

/// What is cut once stays so: more parts than a run asks for do as well.
void DeviceGraph::cut(std::span<const size_t> cuts) {
  for (const size_t at : cuts) {
    const auto behind = std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) { return part.end >= at; });
    if (at == 0 || behind == parts_.end() || behind->end == at) continue;
    drop();
    const size_t begin = std::exchange(behind->begin, at);
    parts_.insert(behind, {.begin = begin, .end = at});
  }
}

bool DeviceGraph::launch(const plan::RunMemory& memory, int64_t* word, std::span<const size_t> cuts) {
  if (!usable_ || ++runs_ <= runs_before) return false;
  cut(cuts);
  if (std::exchange(outdated_, false)) drop();
  // A run that borrowed its arena before this one grew has no room for the leaves.
  if (memory.arena ? memory.arena->bytes < arena_bytes() : arena_bytes() > 0) return false;
  place_leaves(memory);
  if (launch_placed(memory, word)) return true;
  steps_.fill(memory);
  return false;
}

bool DeviceGraph::launch_placed(const plan::RunMemory& memory, int64_t* word) {
  const Part& first = parts_.front();
  if (!(first.graph ? update_changed(memory, word) : build(memory, word))) return false;
  const rosin_status status = device_.functions.graph_launch(device_.compute().queue(), first.graph);
  if (!taken(status)) return false;
  device_.check(status, "launch of a graph");
  launches.fetch_add(1, std::memory_order_relaxed);
  for (const DeviceSteps::Step& step : steps_.steps) {
    if (step.call) LibraryCall::count_given();
  }
  watch_leaves(memory);
  return true;
}

/// (What has been launched of this run may be under way and has no ticket yet: the graph goes with the plan.)
bool DeviceGraph::launch_part(size_t part) {
  const rosin_status status = device_.functions.graph_launch(device_.compute().queue(), parts_[part].graph);
  if (status == ROSIN_DEVICE_FAULT) device_.check(status, "launch of a graph");
  launches.fetch_add(status == ROSIN_OK, std::memory_order_relaxed);
  if (status == ROSIN_OK) return true;
  say_left_out(device_, status);
  return usable_ = false;
}

/// The device has no graphs like this one, or fails with it: it is not asked again.
void DeviceGraph::leave_out(rosin_status status) {
  say_left_out(device_, status);
  usable_ = false;
  drop();
}

/// False where the graph is left out, but not on a device that is lost.
bool DeviceGraph::taken(rosin_status status) {
  if (status == ROSIN_OK || status == ROSIN_DEVICE_FAULT) return true;
  leave_out(status);
  return false;
}

/// What reads a leaf with a place of its own reads it there.
void DeviceGraph::place_leaves(const plan::RunMemory& memory) {
  for (size_t i = 0; i < leaf_of_.size(); ++i) {
    if (leaf_of_[i] < 0 || !leaves_[static_cast<size_t>(leaf_of_[i])].moved) continue;
    const uint64_t offset = leaves_[static_cast<size_t>(leaf_of_[i])].offset + steps_.buffers[i].offset;
    steps_.places[i] = {static_cast<rosin_memory*>(memory.arena->data), offset};
  }
}

/// A leaf that is found elsewhere most of the time gets a place, and the graph is made anew by the next run.
void DeviceGraph::watch_leaves(const plan::RunMemory& memory) {
  for (Leaf& leaf : leaves_) {
    if (leaf.moved) continue;
    auto* now = static_cast<rosin_memory*>(memory.values[leaf.value]);
    const bool elsewhere = std::exchange(leaf.last, now) != now;
    leaf.restless = elsewhere ? leaf.restless + 2 : std::max(leaf.restless - 1, 0);
    if (leaf.restless < most_restless) continue;
    leaf.moved = true;
    leaf.offset = DeviceSteps::aligned(arena_bytes());
    arena_bytes_.store(leaf.offset + DeviceSteps::aligned(leaf.bytes), std::memory_order_relaxed);
    outdated_ = true;  // (not yet given back: the run under way has no ticket yet)
  }
}

rosin_graph_node DeviceGraph::copy_node(const Leaf& leaf, const plan::RunMemory& memory) const {
  rosin_graph_node node = node_of(ROSIN_GRAPH_COPY);
  node.to = {static_cast<rosin_memory*>(memory.arena->data), leaf.offset};
  node.from = {static_cast<rosin_memory*>(memory.values[leaf.value]), 0};
  node.bytes = leaf.bytes;
  return node;
}

/// `arguments` live as long as the node.
rosin_graph_node DeviceGraph::step_node(const DeviceSteps::Step& step, const DeviceSteps::Arguments& arguments) const {
  rosin_graph_node node = node_of(step.call ? ROSIN_GRAPH_CALL : ROSIN_GRAPH_LAUNCH);
  if (step.call) {
    node.call = step.call->call();
    node.buffers = steps_.places_of(step);
    node.workspace = steps_.workspace_of(step);
    node.numbers = arguments.call_numbers();
  } else {
    node.kernel = step.kernel.kernel;
    node.launch = &arguments.launch;
  }
  return node;
}

/// The guard as the device has it when all steps before have run.
rosin_graph_node DeviceGraph::guard_node(int64_t* word) const {
  rosin_graph_node node = node_of(ROSIN_GRAPH_COPY_OUT);
  node.host = word;
  node.from = {static_cast<rosin_memory*>(guard_->data), 0};
  node.bytes = sizeof *word;
  return node;
}

bool DeviceGraph::build(const plan::RunMemory& memory, int64_t* word) {
  const bool complete =
      std::all_of(parts_.begin(), parts_.end(), [&](Part& part) { return build(part, memory, word); });
  nodes_.clear();
  if (!complete) return false;
  places_ = steps_.places;
  numbers_ = steps_.numbers;
  return true;
}

/// A part runs behind the one before: edges are between its own nodes.
bool DeviceGraph::build(Part& part, const plan::RunMemory& memory, int64_t* word) {
  const rosin_backend& functions = device_.functions;
  nodes_.clear();
  const rosin_status status = functions.graph_create(device_.device, &part.graph);
  if (status == ROSIN_UNSUPPORTED) usable_ = false;  // it has none: nothing to say
  if (!usable_ || !passes(status)) return false;
  return add_copies(part, memory) && add_steps(part) && add_guard(part, word) &&
         passes(functions.graph_finish(part.graph));
}

/// Copies come first in the first part: those that read what they write are added later, and so wait for them.
bool DeviceGraph::add_copies(Part& part, const plan::RunMemory& memory) {
  for (Leaf& leaf : leaves_) {
    if (!leaf.moved || part.begin > 0) continue;
    const rosin_graph_node node = copy_node(leaf, memory);
    if (!add(part, node, {{Buffer::arena, Buffer::arena, leaf.offset, leaf.offset, leaf.offset + leaf.bytes, true}})) {
      return false;
    }
    leaf.node = nodes_.size() - 1;
    leaf.last = node.from.memory;
    leaf.copied_to = node.to.memory;
  }
  part.first_node = nodes_.size();
  return true;
}

bool DeviceGraph::add_steps(const Part& part) {
  for (size_t number = part.begin; number < part.end; ++number) {
    const DeviceSteps::Step& step = steps_.steps[number];
    std::vector<Buffer> touches(steps_.buffers_of(step).begin(), steps_.buffers_of(step).end());
    for (size_t i = 0; i < touches.size(); ++i) {
      const int32_t entry = leaf_of_[step.first_buffer + i];
      if (entry < 0 || !leaves_[static_cast<size_t>(entry)].moved) continue;
      const Leaf& leaf = leaves_[static_cast<size_t>(entry)];
      touches[i] = {Buffer::arena, Buffer::arena, leaf.offset, leaf.offset, leaf.offset + leaf.bytes, false};
    }
    const DeviceSteps::Arguments arguments = steps_.arguments_of(step);
    if (add(part, step_node(step, arguments), std::move(touches))) continue;
    if (step.call) loose_calls.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  return true;
}

bool DeviceGraph::add_guard(const Part& part, int64_t* word) {
  word_ = word;
  if (!guard_ || part.end < steps_.steps.size()) return true;
  constexpr int32_t guard = kernels::LaunchBuffer::guard;
  return add(part, guard_node(word), {{guard, guard, 0, 0, sizeof *word, false}});
}

/// Waits for what it has a conflict with, unless something else waits for that already.
bool DeviceGraph::add(const Part& part, rosin_graph_node node, std::vector<Buffer> touches) {
  std::vector<uint64_t> before(nodes_.size() / 64 + 1, 0);
  std::vector<uint32_t> dependencies;
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (before[i / 64] >> (i % 64) & 1 || !conflict(nodes_[i].touches, touches)) continue;
    dependencies.push_back(static_cast<uint32_t>(i));
    before[i / 64] |= uint64_t{1} << (i % 64);
    for (size_t word = 0; word < nodes_[i].before.size(); ++word) before[word] |= nodes_[i].before[word];
  }
  node.dependencies = dependencies.data();
  node.dependency_count = static_cast<uint32_t>(dependencies.size());
  if (!passes(device_.functions.graph_add(part.graph, &node))) return false;
  nodes_.push_back({std::move(touches), std::move(before)});
  return true;
}

/// While a graph is made: whatever goes wrong, the steps can be launched one by one, but on a device that is lost.
bool DeviceGraph::passes(rosin_status status) {
  if (status == ROSIN_OK) return true;
  leave_out(status);
  if (status == ROSIN_DEVICE_FAULT) device_.check(status, "making of a graph");
  return false;
}

bool DeviceGraph::update(const Part& part, size_t number, const rosin_graph_node& node) {
  const rosin_status status = device_.functions.graph_update(part.graph, static_cast<uint32_t>(number), &node);
  if (!taken(status)) return false;
  device_.check(status, "update of a graph");
  updates.fetch_add(1, std::memory_order_relaxed);
  return true;
}

/// The nodes whose arguments are others than those they have.
bool DeviceGraph::update_changed(const plan::RunMemory& memory, int64_t* word) {
  const auto update_part = [&](const Part& part) { return update_steps(part); };
  if (!update_copies(memory) || !std::all_of(parts_.begin(), parts_.end(), update_part)) return false;
  if (!guard_ || word == word_) return true;
  const Part& last = parts_.back();
  if (!update(last, last.first_node + last.end - last.begin, guard_node(word))) return false;
  word_ = word;
  return true;
}

bool DeviceGraph::update_copies(const plan::RunMemory& memory) {
  for (Leaf& leaf : leaves_) {
    if (!leaf.moved) continue;
    const rosin_graph_node node = copy_node(leaf, memory);
    if (node.from.memory == leaf.last && node.to.memory == leaf.copied_to) continue;
    if (!update(parts_.front(), leaf.node, node)) return false;
    leaf.last = node.from.memory;
    leaf.copied_to = node.to.memory;
  }
  return true;
}

bool DeviceGraph::update_steps(const Part& part) {
  for (size_t i = part.begin; i < part.end; ++i) {
    const DeviceSteps::Step& step = steps_.steps[i];
    const rosin_place* places = steps_.places_of(step);
    const rosin_number* numbers = steps_.numbers.data() + step.first_number;
    if (same(places, places_.data() + step.first_buffer, step.buffer_count) &&
        same(numbers, numbers_.data() + step.first_number, step.number_count)) {
      continue;
    }
    const DeviceSteps::Arguments arguments = steps_.arguments_of(step);
    if (!update(part, part.first_node + i - part.begin, step_node(step, arguments))) {
      if (step.call) loose_calls.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    std::copy_n(places, step.buffer_count, places_.data() + step.first_buffer);
    std::copy_n(numbers, step.number_count, numbers_.data() + step.first_number);
  }
  return true;
}

void DeviceGraph::drop() noexcept {
  for (Part& part : parts_) {
    if (part.graph) device_.retire(std::exchange(part.graph, nullptr));
  }
}

GraphCounts graph_counts() {
  return {launches.load(std::memory_order_relaxed), updates.load(std::memory_order_relaxed),
          loose_calls.load(std::memory_order_relaxed)};
}

}  // namespace rosin
