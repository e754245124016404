// Free lists: blocks come back, on whichever thread they are given.
#include <rosin/free_list.hpp>

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include <rosin/chain.hpp>
#include <rosin/dense.hpp>

namespace rosin {
namespace {

TEST(FreeList, GivesABlockOfTheSameClassAgain) {
  void* block = detail::take_block(100);
  detail::give_block(block, 100);
  EXPECT_EQ(detail::take_block(128), block);
  void* larger = detail::take_block(129);
  EXPECT_NE(larger, block);
  detail::give_block(block, 128);
  detail::give_block(larger, 129);
}

TEST(FreeList, BlocksOfEverySizeCanBeWritten) {
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (size_t bytes :
       {size_t{1}, size_t{31}, size_t{32}, size_t{33}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{100000}}) {
    auto* block = static_cast<unsigned char*>(detail::take_block(bytes));
    for (size_t i = 0; i < bytes; ++i) block[i] = 0xa5;
    blocks.emplace_back(block, bytes);
  }
  for (auto [block, bytes] : blocks) detail::give_block(block, bytes);
}

TEST(FreeList, BlocksOfAnEndedThreadAreUsedAgain) {
  std::set<void*> given;
  std::thread([&] {
    std::vector<void*> blocks;
    for (int i = 0; i < 50; ++i) blocks.push_back(detail::take_block(2048));
    for (void* block : blocks) detail::give_block(block, 2048);
    given.insert(blocks.begin(), blocks.end());
  }).join();
  bool again = false;
  std::thread([&] {
    void* block = detail::take_block(2048);
    again = given.count(block) > 0;
    detail::give_block(block, 2048);
  }).join();
  EXPECT_TRUE(again);
}

TEST(FreeList, CopiesOfAChainTakeTheBlocksOfFormerCopies) {
  const Chain chain(Dense(2, 3), Dense(3, 4));
  const Dense* first = nullptr;
  {
    const Chain copy = chain;
    first = copy[0].get_if<Dense>();
  }
  const Chain copy = chain;
  std::set<const void*> places = {copy[0].get_if<Dense>(), copy[1].get_if<Dense>()};
  EXPECT_EQ(places.count(first), 1u);
}

}  // namespace
}  // namespace rosin
