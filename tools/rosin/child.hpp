// This program run again as a child, so that what crashes there does no harm here. Read next: survey.hpp, the user.
#pragma once

#include <string>
#include <vector>

namespace command {

struct ChildResult {
  std::string output;   // what it wrote to stdout
  std::string trouble;  // how it ended badly, with the last line of its stderr; empty: exit status 0
};

/// Runs this program with other arguments, for `seconds` at most, and ends it and its children then.
ChildResult run_self(std::vector<std::string> arguments, double seconds);

/// In such a child: makes stdout stderr for all code but the caller, who gets the descriptor of the real one. No core
/// dumps from here on.
int take_stdout();
/// Writes all of a line to a descriptor.
void write_line(int descriptor, const std::string& line);

}  // namespace command
