// Notes of draws, and what generators tell them.
#include "ops/drawn.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include <rosin/random.hpp>

#include "base/of_thread.hpp"

namespace rosin {
namespace {

thread_local DrawnNotes* innermost = nullptr;

/// No number is used twice in the process, so a copy of a model that outlives its gradient call writes nowhere.
uint64_t first_of_thread() {
  static std::atomic<uint64_t> threads{0};
  return (threads.fetch_add(1) << 40) + 1;
}
thread_local uint64_t next_number = first_of_thread();

/// Emptied vectors of former calls: a steady training step takes no memory from the heap.
std::vector<std::vector<DrawnNotes::Note>>& spare() { return of_thread<std::vector<std::vector<DrawnNotes::Note>>>(); }

}  // namespace

DrawnNotes::DrawnNotes() : outer_(innermost), first_(next_number) {
  innermost = this;
  if (spare().empty()) return;
  notes_ = std::move(spare().back());
  spare().pop_back();
}

DrawnNotes::~DrawnNotes() {
  innermost = outer_;
  notes_.clear();
  if (notes_.capacity() > 0) spare().push_back(std::move(notes_));
}

uint64_t DrawnNotes::add() {
  notes_.emplace_back();
  next_number = first_ + notes_.size();
  return next_number - 1;
}

bool DrawnNotes::any() const noexcept {
  return std::any_of(notes_.begin(), notes_.end(), [](const Note& note) { return note.drawn; });
}

bool DrawnNotes::note(uint64_t number, uint64_t key, uint64_t counter) noexcept {
  for (DrawnNotes* notes = innermost; notes; notes = notes->outer_) {
    if (number < notes->first_ || number - notes->first_ >= notes->notes_.size()) continue;
    notes->notes_[static_cast<size_t>(number - notes->first_)] = {key, counter, true};
    return true;
  }
  return false;
}

void Rng::tell_call() const noexcept { DrawnNotes::note(note_, key_, counter_); }

void Rng::advance(uint64_t key, uint64_t counter, uint64_t step) noexcept {
  const bool noted = note_ != 0 && DrawnNotes::note(note_, key, counter);
  if (!noted && (!stepped_ || step != step_)) {
    earlier_key_ = key_;
    earlier_counter_ = counter_;
    step_ = step;
    stepped_ = true;
  }
  key_ = key;
  counter_ = counter;
}

void Rng::step_back() noexcept {
  if (!stepped_) return;
  key_ = earlier_key_;
  counter_ = earlier_counter_;
  stepped_ = false;
}

}  // namespace rosin
