// See earlier_numbers.hpp.
#include "optim/earlier_numbers.hpp"

#include <algorithm>
#include <utility>

namespace rosin {

void EarlierNumbers::confirm(const Memory& changed) {
  const Ticket step = changed.written_by.load(std::memory_order_relaxed);
  if (fate_of(changed, step) == Fate::done) return drop();
  for (Number& number : numbers_) {
    if (number.step == Ticket()) number.step = step;
  }
}

void EarlierNumbers::drop() noexcept {
  while (!numbers_.empty() && numbers_.back().step == Ticket()) numbers_.pop_back();
}

void EarlierNumbers::settle(const Memory& memory) {
  const auto fate = [&](const Number& number) { return fate_of(memory, number.step); };
  const auto open =
      std::find_if(numbers_.begin(), numbers_.end(), [&](const Number& n) { return fate(n) != Fate::done; });
  numbers_.erase(numbers_.begin(), open);
  if (numbers_.empty() || fate(numbers_.front()) != Fate::given_up) return;
  for (; !numbers_.empty(); numbers_.pop_back()) *numbers_.back().place = std::move(numbers_.back().value);
}

}  // namespace rosin
