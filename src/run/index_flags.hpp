// IndexFlags: what checks of indices find on a device, and when it is said. Kernels that find a bad index write the
// flag of their step, and make the device's guard fall: no kernel overwrites a leaf any more (kernels/guard.cpp).
// Behind each run with checks the guard is copied to a ring in pinned memory. Nobody waits for that but who reads
// results: a step of training goes on, and at a later boundary (a step, an evaluation, a read, synchronize) whoever
// comes first gets the error. The model is what it was before the step that failed; so it is after those that came on
// top meanwhile. What else these steps made is lost: who reads it gets the error again. Read first: open_device.hpp.
// Read next: device_run.hpp, device_executor.cpp.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <rosin/error.hpp>

#include "plan/device.hpp"
#include "plan/layout.hpp"
#include "run/plan_zeros.hpp"

namespace rosin {

class OpenDevice;

/// The checks of a plan, and their flags on the device, which are 0 but from a failure to its report. Shared by the
/// plan and by runs that nobody has looked at.
class CheckedPlan {
 public:
  /// `checks`: nodes, see kernels::throw_index_error. Error (memory).
  CheckedPlan(OpenDevice& device, std::shared_ptr<const plan::Layout> layout, std::vector<int32_t> checks);
  CheckedPlan(const CheckedPlan&) = delete;
  CheckedPlan& operator=(const CheckedPlan&) = delete;
  ~CheckedPlan();

  DeviceBlock& flags() const { return flags_.block(); }
  size_t count() const { return checks_.size(); }
  /// The error that the flags tell of, of a run whose nodes were recorded at these sites.
  [[noreturn]] void throw_error(const std::vector<int64_t>& flags, std::span<const plan::NodeSite> sites) const;

 private:
  OpenDevice& device_;
  const std::shared_ptr<const plan::Layout> layout_;
  const std::vector<int32_t> checks_;
  const PlanZeros flags_;
};

/// The error of a run that came before what its catcher asked for, which has not begun: it is nobody else's.
struct EarlierCheckFailed : Error {
  explicit EarlierCheckFailed(const Error& found) noexcept : Error(found) {}
};

/// Where the nodes of a run were recorded. Mostly those of one run after the other are the same.
using RunSites = std::shared_ptr<const std::vector<plan::NodeSite>>;

class IndexFlags {
 public:
  explicit IndexFlags(OpenDevice& device) noexcept : device_(device) {}

  /// The guard of the device, one Int64. Error (memory).
  DeviceBlock& guard();

  /// Waits until there is a place in the ring. Called before a run is given, as an error is late behind it.
  void make_room();
  /// For who has the turn of the compute stream, for a run with checks: the place in the ring that the guard is to be
  /// copied out to behind its kernels, or none where a failure waits for its report.
  int reserve();
  static constexpr int none = -1;
  /// Where that copy goes, in pinned memory; nobody looks at that of none.
  int64_t* word(int place) const noexcept {
    return words_ + (place == none ? ring_length : static_cast<size_t>(place));
  }
  /// Gives the copy to the device, where no graph does.
  void send(int place);
  /// The same run has this ticket.
  void expect(int place, Ticket run, std::shared_ptr<const CheckedPlan> plan, RunSites sites);

  // For who has no turn.

  /// Throws what checks have found: waits for runs up to a ticket of the compute stream, looks at later ones where they
  /// have ended. EarlierCheckFailed, but for `own` Error.
  void look(Ticket until, Ticket own = {});
  /// What became of a run: given up where it failed, or came on top of one that did.
  Fate fate(Ticket run);
  /// Throws where a block was made by a run that failed, or on top of one.
  void refuse_lost(const DeviceBlock& block);

 private:
  struct Slot {
    Ticket run;
    std::shared_ptr<const CheckedPlan> plan;
    RunSites sites;
  };
  struct Failure {
    Ticket first, last;  // runs: the one that failed, and the last one given before that was known
    Error error;
  };
  static constexpr size_t ring_length = 128;
  static constexpr size_t most_failures = 16;

  const Failure* failure_of(Ticket run) const;
  Slot& front() { return slots_[first_]; }
  bool has_failed() { return waiting_ > 0 && is_over(front().run) && words_[first_] != 0; }
  void sweep();
  void report(Ticket own);
  void refuse(Ticket own);
  std::vector<int64_t> take_flags(const CheckedPlan& failed);
  void clear(DeviceBlock& block, size_t count);
  friend class CheckedPlan;

  OpenDevice& device_;
  std::mutex making_;  // both of these, before the first run that uses them is prepared
  DeviceBlock* guard_ = nullptr;
  int64_t* words_ = nullptr;  // pinned, one a slot and one more
  std::mutex lock_;
  std::array<Slot, ring_length> slots_;
  size_t first_ = 0;
  std::atomic<size_t> waiting_{0};
  std::vector<Failure> failures_;
  std::atomic<bool> has_failures_{false};
  std::mutex plans_lock_;                  // taken last: plans end wherever their last run is forgotten
  std::vector<const CheckedPlan*> plans_;  // all that live
};

}  // namespace rosin
