// Findings: each says what its texts say, however many texts there are.
#include "ops/finding.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include <rosin/create.hpp>
#include <rosin/error.hpp>
#include <rosin/move.hpp>

#include "graph/context.hpp"
#include "tests/test_device.hpp"

namespace rosin {
namespace {

std::string found(const Array& value, int64_t which, int64_t texts) {
  try {
    const DeviceScope scope(*value.node());
    Array holds = nothing_found(finding(value, which), texts);
    eval(holds);
    return holds.item<bool>() ? "" : "not true, and no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    return error.what();
  }
}

TEST(Finding, SaysWhatItsTextsSayHoweverManyThereAre) {
  const double infinite = std::numeric_limits<double>::infinity(), no_number = std::nan("");
  for (int i = 0; i < 12; ++i) {
    const std::string name = "model " + std::to_string(i);
    const int64_t texts = finding_texts({name + " is {} at x", name + " is {} at y", name + ": {} on item {}"});
    const auto there = [](double value) { return full({}, value, Float32) | some_device(); };
    EXPECT_EQ(found(there(3), 0, texts), "");
    EXPECT_EQ(found(there(no_number), 0, texts), name + " is NaN at x");
    EXPECT_EQ(found(there(infinite), 0, texts), name + " is Inf at x");
    EXPECT_EQ(found(there(-infinite), 1, texts), name + " is -Inf at y");
    EXPECT_EQ(found(there(no_number), 2 + 41, texts), name + ": NaN on item 41");
    EXPECT_EQ(found(there(0), 1, texts), "");
  }
}

}  // namespace
}  // namespace rosin
