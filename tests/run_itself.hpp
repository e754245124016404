// Tests in a process of their own, whose environment makes the difference: the test program runs itself with one of the
// tests DISABLED_Inside.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

namespace rosin {

/// What another process of this program says, and its exit status.
struct Outcome {
  int status;
  std::string text;
};

/// Whether this system names the program.
inline bool can_run_itself() {
  std::error_code error;
  static_cast<void>(std::filesystem::read_symlink("/proc/self/exe", error));
  return !error;
}

inline Outcome run_itself(const std::string& test, const std::string& environment) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  // (Devices are at work until the process ends, which a leak checker cannot look at. The one test is in any shard.)
  const std::string command = "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX ASAN_OPTIONS=detect_leaks=0 " +
                              environment + " $ROSIN_TEST_EMULATOR '" + self +
                              "' --gtest_also_run_disabled_tests --gtest_filter=" + "'DISABLED_Inside." + test +
                              "' 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  Outcome outcome{0, {}};
  char buffer[4096];
  while (const size_t count = fread(buffer, 1, sizeof buffer, pipe)) outcome.text.append(buffer, count);
  outcome.status = pclose(pipe);
  EXPECT_NE(outcome.text.find("Running 1 test from"), std::string::npos) << "there is no test called " << test;
  return outcome;
}

inline void expect_success(const Outcome& outcome) { EXPECT_EQ(outcome.status, 0) << outcome.text; }

}  // namespace rosin
