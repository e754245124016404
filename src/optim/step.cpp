// Keeping, guarding and undoing of one step; numbers that all parameters share.
#include "optim/step.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include <rosin/elementwise.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "base/of_thread.hpp"
#include "graph/context.hpp"
#include "graph/leaf.hpp"
#include "graph/record.hpp"
#include "graph/transfer.hpp"
#include "ops/finding.hpp"

namespace rosin {

Step& Step::of_thread() { return rosin::of_thread<Step>(); }

void Step::keep(Array* place, const Array& old) {
  kept_.push_back({place, old.node()});
  if (old.node()) add_count(old.node(), one_user);
}

void Step::keep_unsettled() {
  for (Buffer* buffer : unsettled.buffers) {
    if (!buffer->earlier().node()->ready()) eval(buffer->earlier());
    keep(&buffer->stored(), buffer->earlier());
    buffer->settle();
  }
}

void Step::guard() {
  for (Kept& kept : kept_) {
    if (!kept.old || is_scalar(*kept.old)) continue;  // numbers have no memory of their own
    change_count(kept.old, one_user, one_reference);
    add_to<uint8_t>(kept.old->guards, 1, std::memory_order_relaxed);
    kept.guarded = true;
    const Node* now = kept.place->node();
    if (now && now != kept.old) Context::current().heirs.push_back({now, kept.old});
  }
}

Array Step::all_finite() const {
  Array ok;
  for (const Check& check : checks) {
    const Array finite = is_finite(check.value);
    const Array holds = finite.rank() == 0 ? finite : all(finite);
    ok = ok.is_nothing() ? holds : logical_and(ok, transferred(holds, ok.node()->device));
  }
  return ok;
}

Array Step::nothing_found(int64_t texts) const {
  Array found;
  const auto add = [&](const Check& check, int64_t which) {
    const DeviceScope scope(*checks.front().value.node());
    const Array one = finding(transferred(check.value, checks.front().value.node()->device), which);
    found = found.is_nothing() ? one : first_finding(found, one);
  };
  const auto others = std::count_if(checks.begin(), checks.end(), [](const Check& check) { return check.leaf >= 0; });
  int64_t which = 0;
  for (const Check& check : checks) add(check, check.leaf < 0 ? others + check.item : which++);
  return rosin::nothing_found(found, texts);
}

void Step::skip_unless(const Array& ok) {
  proceeds_ = ok;
  for (Check& check : checks) {
    if (check.leaf >= 0) check.value = where(transferred(ok, check.value.node()->device), check.value, 0);
  }
}

void Step::put_back_numbers() noexcept {
  for (const Kept& kept : kept_) {
    if (!kept.old || !is_scalar(*kept.old)) continue;
    add_count(kept.old, one_user);
    *kept.place = Array::adopt(kept.old);
  }
}

void Step::select_by(const Array& holds) {
  const bool both = !proceeds_.is_nothing() && !same(holds, proceeds_);
  const Array ok = both ? logical_and(holds, transferred(proceeds_, holds.node()->device)) : holds;
  for (size_t i = 0; i < kept_.size(); ++i) {
    Kept& kept = kept_[i];
    const Array now = *kept.place;
    if (!kept.old || now.is_nothing() || now.node() == kept.old || is_scalar(*now.node())) continue;
    kept.recorded = now.node();
    *kept.place = selected(ok, i, now);
  }
}

/// Tied places get one array again.
Array Step::selected(const Array& ok, size_t index, const Array& now) const {
  for (size_t i = 0; i < index && now.node()->tied; ++i) {
    if (kept_[i].recorded == now.node()) return *kept_[i].place;
  }
  Node* old = kept_[index].old;
  add_count(old, one_user);
  const Array made = where(transferred(ok, now.node()->device), now, Array::adopt(old));
  made.node()->tied = now.node()->tied;
  return made;
}

const Step::Check* Step::failed() const {
  for (const Check& check : checks) {
    if (!std::isfinite(check.value.item())) return &check;
  }
  return nullptr;
}

void Step::undo(bool evaluated) noexcept {
  for (Kept& kept : kept_) {
    if (evaluated && kept.recorded) {
      release(kept);
      continue;
    }
    if (kept.guarded) add_count(kept.old, one_user);
    Array old = Array::adopt(kept.old);
    if (kept.guarded) release(kept);
    *kept.place = std::move(old);
  }
  kept_.clear();
  for (Rng* rng : unsettled.rngs) rng->step_back();
}

void Step::release(const Kept& kept) noexcept {
  if (!kept.old) return;
  if (kept.guarded) add_to<uint8_t>(kept.old->guards, UINT8_MAX, std::memory_order_relaxed);
  drop_count(kept.old, kept.guarded ? one_reference : one_user);
}

void Step::finish() noexcept {
  for (const Kept& kept : kept_) release(kept);
  kept_.clear();
  Context::current().heirs.clear();
  for (Rng* rng : unsettled.rngs) rng->settle();
  unsettled.buffers.clear();
  unsettled.rngs.clear();
  checks.clear();
  proceeds_ = Array();
  exchanged.clear();
  is_exchanged = false;
  exchanged_leaves.clear();
  divided_leaves.clear();
  needs_no_memory = false;
  companions = nullptr;
  is_agreed_on = false;
  numbers_.clear();
  next_number_ = 0;
  active = false;
}

Array Step::shared(Number wanted) {
  if (next_number_ == numbers_.size()) numbers_.emplace_back();
  Number& known = numbers_[next_number_++];
  const bool equal = !known.node.is_nothing() && known.counts == wanted.counts && known.count == wanted.count &&
                     std::bit_cast<uint64_t>(known.value) == std::bit_cast<uint64_t>(wanted.value);
  if (equal) return known.node;
  wanted.node = wanted.counts ? scalar_argument(wanted.count) : Array(wanted.value);
  known = wanted;
  return wanted.node;
}

Array Step::number(double value) { return active ? shared({false, value, 0, {}}) : Array(value); }
double Step::power(double base, int64_t exponent) {
  for (const Power& known : powers_) {
    if (known.base == base && known.exponent == exponent) return known.value;
  }
  Power& made = powers_[next_power_++ % powers_.size()];
  made = {base, exponent, std::pow(base, static_cast<double>(exponent))};
  return made.value;
}

Array Step::counter(int64_t value) { return active ? shared({true, 0, value, {}}) : scalar_argument(value); }

}  // namespace rosin
