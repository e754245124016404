// How the progress line is put together, apart from clocks and terminals so that it can be tested.
// Read next: progress.cpp, then include/rosin/progress.hpp.
#pragma once

#include <cstddef>
#include <string>

namespace rosin {

/// What a progress line shows. A number that is unknown (NaN; rate 0; negative time) is left out.
struct ProgressFields {
  std::string epoch;  // "epoch  3/10"
  double loss = 0;
  double accuracy = 0;
  double rate = 0;   // samples per second
  std::string time;  // "0:12 left"; empty: unknown
};

/// One line of at most `columns` characters. Where not all fits, the rate goes first, then the accuracy, the time, and
/// the loss. A `share` from 0 to 1 fills what is left of the line with a bar; a negative one asks for no bar.
std::string progress_line(const ProgressFields& fields, double share, std::size_t columns);

}  // namespace rosin
