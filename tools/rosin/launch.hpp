// `rosin run`: a program started as several processes that share memory. Read next: launch.cpp,
// comm/local/page.hpp (that memory), docs/distributed.md.
#pragma once

#include <string>
#include <vector>

namespace command {

inline constexpr int most_ranks = 256;

struct Launch {
  int ranks = 1;
  int restarts = 0;                // how often all are started anew after a failure
  double grace = 5;                // seconds that the others have after a failure, before they are ended
  std::vector<std::string> words;  // the program and its arguments
};

/// Runs it and gives the exit status of the first process that failed, 128 + the signal where one ended it; 0 when all
/// ended well. No process that it started is left, however it ends.
int launch(const Launch& launch);

}  // namespace command
