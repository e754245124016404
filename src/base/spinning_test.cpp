#include "base/spinning.hpp"

#include <gtest/gtest.h>

namespace rosin {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

int waits_that_sleep(Spinning& spinning) {
  int count = 0;
  while (!spinning.may_begin(2, 2)) ++count;
  return count;
}

TEST(Spinning, NobodySpinsWhereMoreThreadsRunThanThereAreProcessors) {
  Spinning spinning;
  EXPECT_TRUE(spinning.may_begin(2, 2));
  EXPECT_FALSE(spinning.may_begin(3, 2));
  EXPECT_TRUE(spinning.may_begin(1, 2));
}

TEST(Spinning, WhoLostTheProcessorMeanwhileSleepsAtOnceForAWhile) {
  Spinning spinning;
  spinning.took(microseconds(30));
  EXPECT_EQ(waits_that_sleep(spinning), 0);
  spinning.took(milliseconds(4));
  const int first = waits_that_sleep(spinning);
  EXPECT_GT(first, 0);
  spinning.took(milliseconds(4));
  EXPECT_GT(waits_that_sleep(spinning), first);
  spinning.took(microseconds(30));
  EXPECT_EQ(waits_that_sleep(spinning), 0);
  spinning.took(milliseconds(4));
  EXPECT_EQ(waits_that_sleep(spinning), first);
}

TEST(Spinning, WaitsThatSleepAreBounded) {
  Spinning spinning;
  for (int i = 0; i < 40; ++i) spinning.took(milliseconds(4));
  EXPECT_LE(waits_that_sleep(spinning), 1024);
}

}  // namespace
}  // namespace rosin
