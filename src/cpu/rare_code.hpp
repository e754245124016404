// Code of a loop that few elements need: what one side of a choice alone reads. It is brought together before the
// choice, so that a loop can leap over it where no element of a turn takes that side. Read first: machine_loop.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/machine_loop.hpp"

namespace rosin::cpu {

/// Instructions [first, end), the last of which makes what `chosen` elements get: those where the condition is so.
struct RareCode {
  size_t first = 0, end = 0;
  uint16_t condition = 0;
  bool chosen = false;
};

/// The text with such code together, as far as a leap is worth its while: the same values, in another order.
struct OrderedText {
  LoopText text;
  std::vector<RareCode> rare;  // by place
};
OrderedText with_rare_code_together(const LoopText& text);

}  // namespace rosin::cpu
