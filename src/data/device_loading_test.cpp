// Tests of loaders whose batches stand on a device, on the reference back end, which is part of every build.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/loader.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

namespace rosin {
namespace {

using Values = std::vector<float>;

class DeviceLoading : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!functional("reference")) GTEST_SKIP() << why_not("reference");
    device_ = get_device("reference", 0);
  }
  Device device_;
};

/// (2, n): column i is (i, 1000 + i).
Array columns(int64_t n) {
  Values values;
  for (int64_t i = 0; i < n; ++i) {
    values.push_back(static_cast<float>(i));
    values.push_back(static_cast<float>(1000 + i));
  }
  return Array(values, {2, n});
}

TEST_F(DeviceLoading, BatchesStandOnTheDeviceWithTheValuesOfTheData) {
  DataLoader loader(std::tuple{columns(7), columns(7)}, {.batchsize = 3});
  auto moved = loader | device_;
  std::vector<Values> seen;
  for (auto [x, y] : moved) {
    EXPECT_EQ(x.device(), device_);
    EXPECT_EQ(y.device(), device_);
    seen.push_back(x.to_vector<float>());
  }
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[1], (Values{3, 1003, 4, 1004, 5, 1005}));
  EXPECT_EQ(seen[2], (Values{6, 1006}));
}

TEST_F(DeviceLoading, TheOrderIsTheSameForAnyNumberOfWorkers) {
  std::vector<Values> orders;
  for (int64_t workers : {0, 1, 3}) {
    DataLoader loader(columns(40), {.batchsize = 7, .shuffle = true, .num_workers = workers, .rng = Rng(5)});
    auto moved = loader | device_;
    Values& order = orders.emplace_back();
    for (const Array& x : moved) {
      for (float value : x.to_vector<float>()) order.push_back(value);
    }
  }
  EXPECT_EQ(orders[0].size(), 80u);
  EXPECT_EQ(orders[1], orders[0]);
  EXPECT_EQ(orders[2], orders[0]);
}

TEST_F(DeviceLoading, WhoKeepsTenBatchesKeepsTenDistinctBatches) {
  for (int64_t workers : {0, 2}) {
    DataLoader loader(columns(50), {.batchsize = 5, .num_workers = workers});
    auto moved = loader | device_;
    std::vector<Array> kept;
    for (const Array& x : moved) kept.push_back(x);
    ASSERT_EQ(kept.size(), 10u);
    for (size_t i = 0; i < kept.size(); ++i) {
      EXPECT_EQ(kept[i].to_vector<float>()[0], static_cast<float>(5 * i)) << workers << " workers";
      EXPECT_EQ(kept[i].to_vector<float>()[9], static_cast<float>(1000 + 5 * i + 4));
    }
  }
}

/// Fails at one observation.
struct Broken {
  int64_t numobs() const { return 20; }
  Array getobs(int64_t i) const {
    if (i == 13) throw std::runtime_error("the file is gone");
    return Array({static_cast<float>(i)}, {1});
  }
};

TEST_F(DeviceLoading, AWorkersExceptionArrivesInTheLoopWithTheObservation) {
  DataLoader loader(Broken{}, {.batchsize = 4, .num_workers = 2});
  auto moved = loader | device_;
  int64_t batches = 0;
  try {
    for (const Array& x : moved) batches += x.size(1) > 0;
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("observation 13"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("the file is gone"), std::string::npos) << error.what();
  }
  EXPECT_EQ(batches, 3);
}

TEST_F(DeviceLoading, ThePoolDoesNotGrowOverAThousandBatches) {
  DataLoader loader(columns(1000), {.batchsize = 10});
  auto moved = loader | device_;
  const auto epoch = [&] {
    for (const Array& x : moved) eval(x + 1);
    const MemoryStats now = memory_stats(device_);
    return now.live + now.cached;
  };
  epoch();
  const int64_t before = epoch();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(epoch(), before);
}

TEST_F(DeviceLoading, StatsCountTheBatchesAndTheTimeOfWaiting) {
  DataLoader loader(columns(20), {.batchsize = 5});
  auto moved = loader | device_;
  EXPECT_EQ(moved.stats().batches, 0);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Array& x : moved) eval(x);
  }
  EXPECT_EQ(moved.stats().batches, 8);
  EXPECT_GT(moved.stats().waited_seconds, 0);
}

TEST_F(DeviceLoading, ADeviceIteratorMovesTheBatchesOfAnyRange) {
  DataLoader loader(std::tuple{columns(6), columns(6)}, {.batchsize = 4});
  DeviceIterator from_loader(device_, loader);
  EXPECT_EQ(from_loader.size(), 2);
  Values sums;
  for (auto [x, y] : from_loader) {
    EXPECT_EQ(x.device(), device_);
    sums.push_back(sum(x - y).item<float>());
    sums.push_back(sum(x).item<float>());
  }
  EXPECT_EQ(sums, (Values{0, 6 + 4006, 0, 9 + 2009}));
  std::vector<Array> list{columns(1), columns(2)};
  int64_t n = 0;
  for (const Array& x : DeviceIterator(device_, list)) n += x.size(1);
  EXPECT_EQ(n, 3);
}

TEST_F(DeviceLoading, MappedObservationsAreMovedOneBatchAtATime) {
  const auto data = mapobs(device_, std::tuple{columns(6), columns(6)});
  const std::vector<int64_t> at{4, 1};
  const auto [x, y] = getobs(data, at);
  EXPECT_EQ(x.device(), device_);
  EXPECT_EQ(y.to_vector<float>(), (Values{4, 1004, 1, 1001}));
}

TEST_F(DeviceLoading, DataOnADeviceIsLoadedThere) {
  DataLoader loader(columns(5) | device_, {.batchsize = 2});
  Values seen;
  for (const Array& x : loader) {
    EXPECT_EQ(x.device(), device_);
    seen.push_back(x.to_vector<float>()[0]);
  }
  EXPECT_EQ(seen, (Values{0, 2, 4}));
}

/// The devices of this machine on which a gather can be tried: the reference one, and OpenCL's (PoCL) where it is.
std::vector<Device> gather_devices() {
  std::vector<Device> found{get_device("reference", 0)};
  if (functional("OpenCL")) found.push_back(get_device("OpenCL", 0));
  return found;
}

TEST_F(DeviceLoading, BatchesOfDataOnADeviceAreCutThere) {
  for (const Device& device : gather_devices()) {
    const auto data = std::tuple{columns(60), cast(columns(60), UInt8), reshape(columns(30), {60})};
    const auto there = data | device;
    const LoaderOptions options{.batchsize = 16, .shuffle = true, .rng = Rng(4)};
    DataLoader loader(there, options), expected(data, options);
    const Stats before = stats();
    std::vector<std::tuple<Array, Array, Array>> batches;
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (const auto& batch : loader) batches.push_back(batch);
    }
    // The indices of the batches go there, and nothing comes back.
    EXPECT_EQ(stats().from_devices - before.from_devices, 0) << to_string(device);
    EXPECT_EQ(stats().to_devices - before.to_devices, 3 * 60 * 8) << to_string(device);
    size_t i = 0;
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (const auto& [x, y, z] : expected) {
        ASSERT_EQ(device_of(batches[i]), device);
        EXPECT_EQ(std::get<0>(batches[i]).to_vector(), x.to_vector());
        EXPECT_EQ(std::get<1>(batches[i]).to_vector<int>(), y.to_vector<int>());
        EXPECT_EQ(std::get<1>(batches[i]).dtype(), UInt8);
        EXPECT_EQ(std::get<2>(batches[i++]).to_vector(), z.to_vector());
      }
    }
    EXPECT_EQ(i, batches.size());
    EXPECT_GT(stats().from_devices, before.from_devices);  // the test's own reading is counted
  }
}

TEST_F(DeviceLoading, EveryTypeOfElementIsCutOnADevice) {
  const Array numbers = cast(slice(columns(6), 0, 0, 1), Int32);
  for (DType type :
       {Bool, UInt8, Int8, Int16, UInt16, Int32, UInt32, Int64, UInt64, Float16, BFloat16, Float32, Float64}) {
    const Array x = cast(numbers, type), taken = getobs(x | device_.with(keep), {5, 0, 3});
    EXPECT_EQ(taken.dtype(), type);
    EXPECT_EQ(taken.to_vector<double>(), getobs(x, {5, 0, 3}).to_vector<double>()) << to_string(type);
  }
  const Array z = complex(columns(3), columns(3) + 0.5f);
  const Array taken = getobs(z | device_, {2, 1}) | cpu_device();
  EXPECT_EQ(taken.dtype(), ComplexF32);
  EXPECT_EQ(real(taken).to_vector(), (Values{2, 1002, 1, 1001}));
  EXPECT_EQ(imag(taken).to_vector(), (Values{2.5, 1002.5, 1.5, 1001.5}));
}

TEST_F(DeviceLoading, ViewsAndPartsOfDataOnADeviceStayThere) {
  const Array there = columns(10) | device_;
  const auto [train, test] = splitobs(shuffleobs(std::tuple{there, there}), {.at = 0.8});
  const int64_t before = stats().from_devices;
  DataLoader loader(train, {.batchsize = 3, .num_workers = 2});
  int64_t seen = 0;
  for (const auto& [x, y] : loader) {
    EXPECT_EQ(x.device(), device_);
    seen += y.size(1);
  }
  const auto [x, y] = test;
  EXPECT_EQ(x.device(), device_);
  EXPECT_EQ(seen + x.size(1), 10);
  EXPECT_EQ(stats().from_devices, before);
}

TEST_F(DeviceLoading, NoObservationsOfADeviceAreAnEmptyArrayThere) {
  const Array none = getobs(columns(3) | device_, std::vector<int64_t>{});
  EXPECT_EQ(none.shape(), (Shape{2, 0}));
  EXPECT_EQ(none.device(), device_);
  EXPECT_THROW(getobs(columns(3) | device_, {3}), Error);
}

/// Observations that stand on a device, with a number beside each.
struct MadeThere {
  Device device;
  int64_t numobs() const { return 5; }
  std::tuple<Array, Array> getobs(int64_t i) const {
    return {Array({static_cast<float>(i), static_cast<float>(-i)}, {2}) | device, Array(i)};
  }
};

TEST_F(DeviceLoading, ObservationsOfADeviceAreStackedThere) {
  const DataLoader loader(MadeThere{device_}, {.batchsize = 5});
  const int64_t before = stats().from_devices;
  for (const auto& [x, y] : loader) {
    EXPECT_EQ(x.device(), device_);
    EXPECT_EQ(y.device(), device_);
    EXPECT_EQ(stats().from_devices, before);
    EXPECT_EQ(x.to_vector(), (Values{0, 0, 1, -1, 2, -2, 3, -3, 4, -4}));
    EXPECT_EQ(y.to_vector<int>(), (std::vector<int>{0, 1, 2, 3, 4}));
  }
}

TEST_F(DeviceLoading, LargeArraysArriveWhole) {
  const Array large = arange(0.0, 3e6, 1.0, Float32);  // more than one piece of the way to the device
  const Array there = large | device_;
  EXPECT_EQ(there.to_vector<float>(), large.to_vector<float>());
  EXPECT_EQ(sum(there - 1).count(), 1);
}

TEST_F(DeviceLoading, CuIteratorNeedsCuda) {
  if (functional("CUDA")) GTEST_SKIP() << "CUDA is functional here";
  DataLoader loader(columns(5), {.batchsize = 2});
  EXPECT_THROW(CuIterator{loader}, Error);
}

}  // namespace
}  // namespace rosin
