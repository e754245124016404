// Weights that stay are packed once: when, for how long, within which bounds, and that results are the same.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/array.hpp>
#include <rosin/conv.hpp>
#include <rosin/create.hpp>
#include <rosin/device.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "graph/leaf.hpp"
#include "platform/processor.hpp"

namespace rosin {
namespace {

/// Several convolutions, of which each processor packs some.
struct Images {
  Array x = randn({14, 14, 64, 2}), w = randn({3, 3, 64, 128}), v = randn({3, 3, 128, 32});

  Images() { eval(x, w, v); }
  std::vector<float> operator()() const { return convolved(x, w, v).to_vector(); }
  static Array convolved(const Array& x, const Array& w, const Array& v) {
    return crosscor(relu(crosscor(x, w, {.pad = 1})), v, {.pad = 1});
  }
};

int64_t packed() { return stats().packed_bytes; }

class PackedWeights : public testing::Test {
 protected:
  void SetUp() override { trim(); }
  void TearDown() override {
    set_packed_limit(platform::memory_bytes() / 4);
    set_memory_limit(Device(), 0);
    trim();
  }
};

TEST_F(PackedWeights, ArePackedWhenASecondRunReadsThem) {
  const Images images;
  const int64_t before = packed();
  const std::vector<float> first = images();
  EXPECT_EQ(packed(), before);
  const std::vector<float> second = images();
  const int64_t after = packed();
  EXPECT_GT(after, before);
  EXPECT_EQ(images(), first);
  EXPECT_EQ(second, first);
  EXPECT_EQ(packed(), after);
  const std::vector<float> other = Images::convolved(images.x * 2, images.w, images.v).to_vector();
  EXPECT_EQ(other.size(), first.size());
  EXPECT_EQ(packed(), after);  // another plan with the same weights
}

TEST_F(PackedWeights, GoWithTheirArrays) {
  const int64_t before = packed();
  {
    const Images images;
    for (int i = 0; i < 3; ++i) images();
    EXPECT_GT(packed(), before);
  }
  EXPECT_EQ(packed(), before);
}

TEST_F(PackedWeights, ThatChangeInPlaceArePackedAnew) {
  Images images;
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 3; ++i) images();
    images.w = images.w * 0.5f;  // takes the memory over that nobody else holds
    eval(images.w);
    set_packed_limit(0);
    const std::vector<float> wanted = images();
    set_packed_limit(int64_t{1} << 40);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(images(), wanted) << "step " << step << " run " << i;
  }
}

TEST_F(PackedWeights, AreNotPackedWhileTheyAreTrained) {
  Images images;
  const int64_t before = packed();
  for (int step = 0; step < 4; ++step) {
    const auto loss = [&](const Array& w, const Array& v) { return mean(square(Images::convolved(images.x, w, v))); };
    auto [dw, dv] = gradient(loss, images.w, images.v);
    images.w = images.w - 0.1f * dw;
    images.v = images.v - 0.1f * dv;
    dw = dv = Array();
    eval();
  }
  EXPECT_EQ(packed(), before);
}

TEST_F(PackedWeights, StayWithinTheLimit) {
  const Images images;
  const int64_t before = packed();
  set_packed_limit(before);
  const std::vector<float> first = images();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(images(), first);
  EXPECT_EQ(packed(), before);
  set_packed_limit(int64_t{1} << 40);
  EXPECT_EQ(images(), first);
  EXPECT_GT(packed(), before);
  set_packed_limit(0);
  EXPECT_EQ(packed(), 0);
  EXPECT_THROW(set_packed_limit(-1), Error);
}

TEST_F(PackedWeights, GiveWayToArrays) {
  const Images images;
  for (int i = 0; i < 3; ++i) images();
  ASSERT_GT(packed(), 0);
  trim();
  EXPECT_EQ(packed(), 0);
  images();
  ASSERT_GT(packed(), 0);
  const MemoryStats now = memory_stats(Device());
  set_memory_limit(Device(), now.live + now.cached + 1024);
  const Array large = fresh_leaf(Float32, {packed() / 8});
  EXPECT_EQ(packed(), 0);
}

TEST_F(PackedWeights, OfMemoryThatAUserHoldsAreReadWhereTheyStand) {
  std::vector<float> memory(3 * 3 * 64 * 64, 0.01f);
  const Array x = ones({14, 14, 64, 1}), w = Array::borrow(memory.data(), {3, 3, 64, 64}, 0);
  const int64_t before = packed();
  for (int i = 0; i < 3; ++i) eval(crosscor(x, w, {.pad = 1}));
  EXPECT_EQ(packed(), before);
}

TEST_F(PackedWeights, OfMappedFilesArePackedUntilTheseGo) {
  const std::vector<float> memory(3 * 3 * 64 * 64, 0.01f);
  const Array x = ones({14, 14, 64, 1});
  const int64_t before = packed();
  {
    const Array w = mapped_leaf(memory.data(), Float32, {3, 3, 64, 64}, MemoryOwner(nullptr, nullptr));
    for (int i = 0; i < 3; ++i) eval(crosscor(x, w, {.pad = 1}));
    EXPECT_GT(packed(), before);
  }
  EXPECT_EQ(packed(), before);
}

TEST_F(PackedWeights, ServeManyThreads) {
  const Images images;
  const std::vector<float> first = images();
  std::vector<std::thread> threads;
  std::vector<int> same(4);
  for (size_t t = 0; t < same.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 8; ++i) same[t] += images() == first;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, std::vector<int>(4, 8));
  EXPECT_GT(packed(), 0);
}

}  // namespace
}  // namespace rosin
