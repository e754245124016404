// What a device offers to those who run plans, as three objects:
//   Compiled   of a structure: machine code or loaded modules. Shared by all threads and sizes; the plan cache owns it.
//   Prepared   of a layout: offsets, launches, prepared calls. Shared by all threads; its plan owns it.
//   RunMemory  of one run: where its values stand, and an arena borrowed from the device, which goes back when the run
//   is
//              over. Whoever runs owns it.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "graph/leaf.hpp"
#include "plan/layout.hpp"

namespace rosin::plan {

/// What is made once of a structure, whatever sizes come. Devices keep here what has been compiled for it; the CPU runs
/// loops that are compiled already, and would keep machine code here.
class Compiled {
 public:
  explicit Compiled(std::shared_ptr<const Structure> of) : structure(std::move(of)) {}
  virtual ~Compiled() = default;

  const std::shared_ptr<const Structure> structure;
};

/// Where a node that checks values was recorded for a run; see graph/recording_site.hpp.
struct NodeSite {
  int32_t node = 0;
  uint32_t site = 0;
  bool operator==(const NodeSite&) const = default;
};
/// 0 where the node is not among them.
inline uint32_t site_of(std::span<const NodeSite> sites, int32_t node) {
  const auto at = std::find_if(sites.begin(), sites.end(), [&](const NodeSite& s) { return s.node == node; });
  return at == sites.end() ? 0 : at->site;
}

/// A result that is wanted before its run is over, with those of the same group.
struct EarlyOutput {
  int32_t output = -1;  // of the layout; in memory that the run makes
  int32_t group = 0;
};

/// Who wants results of a run before it is over.
class StepListener {
 public:
  virtual ~StepListener() = default;
  /// The CPU: the step of the structure is over.
  virtual void over(size_t step) noexcept = 0;
  /// Devices: the memory of these results is to say, by its tickets, when those of a group are written. By group.
  virtual std::span<const EarlyOutput> outputs() const noexcept = 0;
  /// Devices: whether each launch is to be timed; then they are given one by one, and the run waits for them.
  virtual bool wants_times() const noexcept { return false; }
  /// A launch of these ops, for this step (-1: for several), took so long; told in their order, behind the last.
  virtual void took(int32_t /*step*/, const std::string& /*ops*/, double /*seconds*/) {}
};

/// The memory of one run, which nothing else uses as long as it goes on.
struct RunMemory {
  void** values = nullptr;  // by value of the structure: given for leaves and outputs, the run may fill in the others
  const ScalarValue* scalars = nullptr;  // numbers, at scalar_index
  Memory* arena = nullptr;               // arena_bytes() of the prepared layout; null where that is 0
  // Devices, whose work goes on when a run returns: the memory that it reads, that it makes, and that it overwrites
  // (but for the arena).
  std::span<Memory* const> reads = {}, makes = {}, overwrites = {};
  std::span<const NodeSite> sites = {};  // of nodes that were recorded in a layer, for errors
  bool defers = false;  // who asks for the run does not wait for its checks: what they find is thrown later
  StepListener* listener = nullptr;
  Memory* const* packed = nullptr;  // of Prepared::packed(): of what other forms may be kept, else null
};

/// A layout that is ready to run, any number of times and by any number of threads at once.
class Prepared {
 public:
  virtual ~Prepared() = default;
  /// Throws what a kernel throws; donated memory is written last.
  virtual void run(const RunMemory& memory) const = 0;
  /// Of the arena that each run borrows.
  virtual size_t arena_bytes() const { return 0; }
  /// Of the object itself, for the budget of plans.
  virtual size_t bytes() const = 0;
  /// Whether a run takes one thread of the CPU only, and cannot fail: it may go on behind the thread that asks for it.
  virtual bool may_run_behind() const { return false; }
  /// Leaves that calls may read in other forms, by value; a run is told their memory.
  virtual std::span<const int32_t> packed() const { return {}; }
};

/// Which block a plan was given for one of its outputs, or for its arena, when it ran last. A plan that finds all of
/// them again gives its device the same addresses in each run.
struct MemorySlot {
  std::atomic<const Memory*> last = nullptr;  // only compared: it may be gone
};

class DeviceExecutor {
 public:
  virtual ~DeviceExecutor() = default;
  /// Of the device; asked from any thread.
  virtual const Target& target() const = 0;
  /// What the layouts of a structure share.
  virtual std::shared_ptr<Compiled> compile(std::shared_ptr<const Structure> structure) {
    return std::make_shared<Compiled>(std::move(structure));
  }
  /// Does all that can fail before a launch, but for memory: compiles what the structure lacks for these sizes,
  /// prepares vendor calls. Several threads may prepare layouts of one structure.
  virtual std::unique_ptr<const Prepared> prepare(Compiled& compiled, std::shared_ptr<const Layout> layout) = 0;
  /// Memory for an array; Error (memory) when the device has none left.
  virtual Memory* allocate(size_t bytes) = 0;
  /// The same, where it is free the block that the slot names; the slot names what is given.
  virtual Memory* allocate(size_t bytes, MemorySlot&) { return allocate(bytes); }
};

}  // namespace rosin::plan
