// How long strips are, once it is known which instructions run together. Read after fused_passes.cpp.
#include <algorithm>

#include "cpu/fused.hpp"

namespace rosin::cpu {
namespace {

using Do = plan::Instr::Do;

constexpr int64_t cached_together = 3 * cached_elements;  // of all that a strip's passes share, in the first cache

}  // namespace

/// Whether no strip is made of a load's elements.
bool FusedKernel::is_read_in_place(const Ready& load) const {
  const Load& from = loads_[load.port];
  return load.per_run || load.paired || load.lines ||
         (from.access == Access::direct && (load.packed || !from.converts));
}

/// One loop over arrays as they stand needs no strips: a chunk is one, unless too many elements of runs would wait.
void FusedKernel::lengthen_strips() {
  constexpr int64_t most_runs = 1024;
  const bool alone =
      passes_.size() == 1 && !passes_[0].row && instrs_.back().pass == 0 && roots_.empty() && !kernel_->whole_rows;
  if (!alone) return;
  const bool stands = std::all_of(instrs_.begin(), instrs_.end() - 1, [&](const Ready& instr) {
    return instr.one_will_do || (instr.what == Do::load && is_read_in_place(instr));
  });
  if (!stands) return;
  strip_ = std::max(strip_, run_ > 0 ? std::min(cut_.part, most_runs * run_) : cut_.part);
  slot_elements_ = run_ > 0 ? strip_ / run_ + 2 : 1;
}

/// Registers that hold elements of a strip.
int64_t FusedKernel::held_strips() const {
  int64_t held = 0;
  for (const Ready& instr : instrs_) {
    if (instr.pass >= 0) {
      const Pass& pass = passes_[static_cast<size_t>(instr.pass)];
      held += std::count_if(pass.outputs.begin(), pass.outputs.end(), [](const Pass::Output& output) {
        return output.store < 0 && !output.row && !output.unit && output.root < 0;
      });
    } else if (instr.row || instr.one_will_do) {
      continue;
    } else if (instr.what == Do::load) {
      held += is_read_in_place(instr) ? 0 : 1;
    } else {
      held += instr.what == Do::root || instr.what == Do::store ? 0 : 1;
    }
  }
  return held;
}

/// Arrays that passes read and write as they stand.
int64_t FusedKernel::standing_arrays() const {
  int64_t arrays = 0;
  for (const Ready& instr : instrs_) {
    if (instr.pass >= 0) {
      const Pass& pass = passes_[static_cast<size_t>(instr.pass)];
      arrays += std::count_if(pass.outputs.begin(), pass.outputs.end(),
                              [](const Pass::Output& output) { return output.store >= 0 && !output.row; });
    } else if (instr.what == Do::load) {
      arrays += !instr.row && !instr.one_will_do && is_read_in_place(instr) ? 1 : 0;
    }
  }
  return arrays;
}

/// Rows are taken several at a time, as many as leave what passes share in the first cache. One pass over elements that
/// keeps none shares nothing but numbers of rows.
void FusedKernel::lengthen_rows() {
  if (!kernel_->whole_rows || !roots_.empty() || total_ == 0) return;
  const int64_t held = held_strips(), row = std::max<int64_t>(layout_->row, 1);
  const auto over_elements = std::count_if(passes_.begin(), passes_.end(), [](const Pass& pass) { return !pass.row; });
  const bool alone = over_elements == 1 && held == 0;
  const int64_t shared =
      alone ? cached_elements * row : cached_together / std::max<int64_t>(held + standing_arrays(), 1);
  const int64_t most = std::min(cut_.part, shared);
  strip_ *= std::max<int64_t>(most / strip_, 1);
  slot_elements_ = std::min(held == 0 ? strip_ / row : strip_, total_);
}

/// Sums take several blocks at a time, as many as leave the registers in the first cache.
void FusedKernel::lengthen_sums() {
  constexpr int64_t most_blocks = 16;
  const bool sums =
      !roots_.empty() && !kernel_->whole_rows && column_ == 0 &&
      std::none_of(roots_.begin(), roots_.end(), [](const Root& root) { return root.row || root.planes; });
  if (!sums) return;
  const int64_t held = held_strips();
  strip_ *= held == 0 ? most_blocks : std::max<int64_t>(cached_together / (strip_ * held), 1);
  if (held > 0) slot_elements_ = std::min(strip_, total_);
}

}  // namespace rosin::cpu
