// See index_flags.hpp.
#include "run/index_flags.hpp"

#include <algorithm>
#include <utility>

#include "graph/recording_site.hpp"
#include "kernels/launches.hpp"
#include "run/open_device.hpp"

namespace rosin {
namespace {

constexpr const char* what = "check of indices";

rosin_place place_of(const DeviceBlock& block) { return {static_cast<rosin_memory*>(block.data), 0}; }

}  // namespace

CheckedPlan::CheckedPlan(OpenDevice& device, std::shared_ptr<const plan::Layout> layout, std::vector<int32_t> checks)
    : device_(device), layout_(std::move(layout)), checks_(std::move(checks)),
      flags_(device, checks_.size() * sizeof(int64_t)) {
  const std::lock_guard guard(device.flags.plans_lock_);
  device.flags.plans_.push_back(this);
}

CheckedPlan::~CheckedPlan() {
  const std::lock_guard guard(device_.flags.plans_lock_);
  std::erase(device_.flags.plans_, this);
}

void CheckedPlan::throw_error(const std::vector<int64_t>& flags, std::span<const plan::NodeSite> sites) const {
  for (size_t i = 0; i < checks_.size(); ++i) {
    if (flags[i] == 0) continue;
    try {
      kernels::throw_index_error(*layout_, checks_[i], flags[i]);
    } catch (Error& error) {
      add_site(error, plan::site_of(sites, checks_[i]));
      throw;
    }
  }
  throw Error(ErrorKind::internal,
              std::string(what) + ": the guard of " + device_.name + " fell, and no check says why");
}

DeviceBlock& IndexFlags::guard() {
  const std::lock_guard making(making_);
  if (guard_) return *guard_;
  if (!words_) {
    void* words = nullptr;
    device_.check(device_.functions.alloc_pinned(device_.device, (ring_length + 1) * sizeof(int64_t), &words), what);
    words_ = static_cast<int64_t*>(words);
  }
  guard_ = zeros(device_, sizeof(int64_t));
  return *guard_;
}

/// Forgets runs that have ended well. Holds the lock.
void IndexFlags::sweep() {
  while (waiting_ > 0 && is_over(front().run) && words_[first_] == 0) {
    front().plan = nullptr;
    first_ = (first_ + 1) % ring_length;
    --waiting_;
  }
}

void IndexFlags::make_room() {
  Ticket oldest;
  {
    const std::lock_guard guard(lock_);
    sweep();
    if (waiting_ == ring_length && !has_failed()) oldest = front().run;
  }
  if (!is_over(oldest)) device_.compute().wait(oldest);
}

int IndexFlags::reserve() {
  make_room();  // mostly there is some, but where other threads had the turn meanwhile
  const std::lock_guard guard(lock_);
  sweep();
  return has_failed() ? none : static_cast<int>((first_ + waiting_) % ring_length);
}

void IndexFlags::send(int place) {
  if (place == none) return;
  const auto give = [&] {
    return device_.functions.copy_out(device_.compute().queue(), word(place), place_of(*guard_), sizeof(int64_t));
  };
  device_.insist(give, what);
}

void IndexFlags::expect(int place, Ticket run, std::shared_ptr<const CheckedPlan> plan, RunSites sites) {
  if (place == none) return;
  const std::lock_guard guard(lock_);
  slots_[static_cast<size_t>(place)] = {run, std::move(plan), std::move(sites)};
  ++waiting_;
}

void IndexFlags::look(Ticket until, Ticket own) {
  DeviceStream& stream = device_.compute();
  while (waiting_ > 0) {
    Ticket next;
    {
      const std::lock_guard guard(lock_);
      sweep();
      if (waiting_ == 0) break;
      next = front().run;
    }
    if (is_over(next)) report(own);
    else if (stream.has_ended(next)) continue;
    else if (next.word() <= until.word()) stream.wait(next);
    else break;
  }
  refuse(own);
}

/// Another thread may have reported what concerns this run too.
void IndexFlags::refuse(Ticket own) {
  if (!has_failures_ || own == Ticket()) return;
  const std::lock_guard guard(lock_);
  if (const Failure* failure = failure_of(own)) throw EarlierCheckFailed(failure->error);
}

/// The first run of the ring has ended, and its check has failed, unless another thread has reported that meanwhile.
void IndexFlags::report(Ticket own) {
  const DeviceStream::Turn turn(device_.compute());
  const std::lock_guard guard(lock_);
  sweep();
  if (!has_failed()) return;
  const Slot failed = std::exchange(front(), {});
  const std::vector<int64_t> flags = take_flags(*failed.plan);
  for (Slot& slot : slots_) slot.plan = nullptr;
  waiting_ = 0;
  if (failures_.size() == most_failures) failures_.erase(failures_.begin());
  try {
    failed.plan->throw_error(flags, *failed.sites);
  } catch (const Error& error) {
    failures_.push_back({failed.run, device_.compute().last(), error});
    has_failures_ = true;
    if (failed.run == own) throw;
    throw EarlierCheckFailed(error);
  }
}

/// The flags of the plan that has failed. All flags and the guard are 0 again, for what is given to the stream from now
/// on. For who has the turn, and the lock.
std::vector<int64_t> IndexFlags::take_flags(const CheckedPlan& failed) {
  std::vector<int64_t> flags(failed.count());
  rosin_stream* queue = device_.compute().queue();
  device_.check(
      device_.functions.copy_out(queue, flags.data(), place_of(failed.flags()), flags.size() * sizeof(int64_t)), what);
  const std::lock_guard guard(plans_lock_);
  for (const CheckedPlan* plan : plans_) clear(plan->flags(), plan->count());
  clear(*guard_, 1);
  device_.compute().record();  // whoever gets the memory of such a plan next is behind it: see ~CheckedPlan
  return flags;
}

void IndexFlags::clear(DeviceBlock& block, size_t count) {
  const std::vector<int64_t> values(count, 0);
  rosin_stream* queue = device_.compute().queue();
  device_.compute().order_to_read(block);
  device_.check(device_.functions.copy_in(queue, place_of(block), values.data(), count * sizeof(int64_t)), what);
}

/// Holds the lock.
const IndexFlags::Failure* IndexFlags::failure_of(Ticket run) const {
  const auto at = std::find_if(failures_.begin(), failures_.end(), [&](const Failure& failure) {
    return failure.first.word() <= run.word() && run.word() <= failure.last.word();
  });
  return at == failures_.end() ? nullptr : &*at;
}

Fate IndexFlags::fate(Ticket run) {
  const std::lock_guard guard(lock_);
  if (failure_of(run)) return Fate::given_up;
  sweep();
  return waiting_ > 0 && front().run.word() <= run.word() ? Fate::unknown : Fate::done;
}

void IndexFlags::refuse_lost(const DeviceBlock& block) {
  if (!has_failures_) return;
  const std::lock_guard guard(lock_);
  const Failure* failure = failure_of(block.made_by.load(std::memory_order_relaxed));
  if (failure) throw Error(failure->error);
}

}  // namespace rosin
