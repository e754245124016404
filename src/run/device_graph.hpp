// DeviceGraph: the steps of a layout as a graph of the device, so that a run is one launch. It is made when the layout
// runs for the third time, with edges from what the steps read and write. Where some of its results are wanted before
// it is over, it is cut there: several launches, with a ticket between them. Before each run the nodes are updated
// whose places or numbers are others than last time. A leaf that comes from elsewhere each time and has several readers
// is copied into a place of its own in the arena, by a node that alone is updated. The last node of a run with checks
// copies the guard out (index_flags.hpp).
// Read first: device_steps.hpp, include/rosin/backend.h (Graphs).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "run/device_steps.hpp"
#include "run/open_device.hpp"

namespace rosin {

/// For who has the device's turn, but for arena_bytes. The steps live longer.
class DeviceGraph {
 public:
  /// `guard`: of the device, where the steps check values; null where they do not.
  DeviceGraph(OpenDevice& device, DeviceSteps& steps, const DeviceBlock* guard);
  ~DeviceGraph() { drop(); }
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  /// Launches the run, for which the steps have been filled, up to the first of `cuts` (numbers of steps) or of those
  /// that were asked for before; launch_part goes on from there. Where there is a guard, the run ends with a copy of
  /// that to `word`, in pinned memory. False, and nothing is done, where that is not to be done with a graph: not yet,
  /// or never. Error (backend): the device does not launch it; nothing has run.
  bool launch(const plan::RunMemory& memory, int64_t* word, std::span<const size_t> cuts);
  size_t parts() const { return parts_.size(); }
  /// How many steps the parts before have.
  size_t first_step(size_t part) const { return parts_[part].begin; }
  /// All but the first, in order. False where the device does not launch it: the steps from there on are given one by
  /// one. Error (backend).
  bool launch_part(size_t part);
  /// Of the arena that a run borrows; grows when places for leaves are added.
  size_t arena_bytes() const { return arena_bytes_.load(std::memory_order_relaxed); }

 private:
  /// A leaf that may get a place in the arena, or has one.
  struct Leaf {
    int32_t value = -1;
    uint64_t bytes = 0;
    rosin_memory* last = nullptr;  // where it stood
    int restless = 0;              // how often that changed lately
    bool moved = false;            // has a place, into which a node copies it
    uint64_t offset = 0;
    size_t node = 0;
    rosin_memory* copied_to = nullptr;
  };
  struct Node {
    std::vector<DeviceSteps::Buffer> touches;
    std::vector<uint64_t> before;  // a bit for each node that runs before it
  };

  /// The graph of the steps from one cut to the next.
  struct Part {
    size_t begin = 0, end = 0;
    rosin_graph* graph = nullptr;
    size_t first_node = 0;  // of a step; behind the steps of the last part comes the copy of the guard
  };

  void find_leaves();
  void cut(std::span<const size_t> cuts);
  void place_leaves(const plan::RunMemory& memory);
  void watch_leaves(const plan::RunMemory& memory);
  bool launch_placed(const plan::RunMemory& memory, int64_t* word);
  bool build(const plan::RunMemory& memory, int64_t* word);
  bool build(Part& part, const plan::RunMemory& memory, int64_t* word);
  bool add_copies(Part& part, const plan::RunMemory& memory);
  bool add_steps(const Part& part);
  bool add_guard(const Part& part, int64_t* word);
  bool add(const Part& part, rosin_graph_node node, std::vector<DeviceSteps::Buffer> touches);
  bool passes(rosin_status status);
  void leave_out(rosin_status status);
  bool update_changed(const plan::RunMemory& memory, int64_t* word);
  bool update_copies(const plan::RunMemory& memory);
  bool update_steps(const Part& part);
  bool update(const Part& part, size_t number, const rosin_graph_node& node);
  bool taken(rosin_status status);
  rosin_graph_node guard_node(int64_t* word) const;
  rosin_graph_node copy_node(const Leaf& leaf, const plan::RunMemory& memory) const;
  rosin_graph_node step_node(const DeviceSteps::Step& step, const DeviceSteps::Arguments& arguments) const;
  void drop() noexcept;

  OpenDevice& device_;
  DeviceSteps& steps_;
  const DeviceBlock* guard_;
  bool usable_;
  int runs_ = 0;
  bool outdated_ = false;    // the next run makes it anew
  std::vector<Part> parts_;  // at least one; all have a graph, or none
  int64_t* word_ = nullptr;  // where the copy of the guard goes
  std::vector<Leaf> leaves_;
  std::vector<int32_t> leaf_of_;  // of each buffer, the entry in leaves_ or -1
  std::atomic<size_t> arena_bytes_;
  std::vector<Node> nodes_;          // while a part is made
  std::vector<rosin_place> places_;  // as the nodes of all parts have them
  std::vector<rosin_number> numbers_;
};

/// Since the start of the process.
struct GraphCounts {
  int64_t launches = 0, updates = 0;
  int64_t loose_calls = 0;  // of libraries, which a graph did not take
};
GraphCounts graph_counts();

}  // namespace rosin
