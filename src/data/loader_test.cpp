// Tests of observations and loaders: what a batch holds, orders, errors, workers, printing.
// The cases of MLUtils' own test/dataloader.jl are L1 in the comments.
#include <rosin/loader.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/index.hpp>
#include <rosin/log.hpp>
#include <rosin/movement.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

/// X (2, 5) as in L1: columns (0, 1), (2, 3), ...
Array columns() { return reshape(arange(10), {2, 5}); }

template <class Loader> std::vector<int> read(Loader& loader) {
  std::vector<int> seen;
  for (const Array& x : loader) {
    for (int value : x.template to_vector<int>()) seen.push_back(value);
  }
  return seen;
}

TEST(DataLoader, BatchesAreColumnsInOrder) {
  DataLoader loader(columns(), {.batchsize = 2});
  EXPECT_EQ(loader.size(), 3);
  std::vector<std::vector<int>> seen;
  std::vector<Shape> shapes;
  for (const Array& x : loader) {
    seen.push_back(x.to_vector<int>());
    shapes.push_back(x.shape());
  }
  EXPECT_EQ(seen, (std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}}));
  EXPECT_EQ(shapes, (std::vector<Shape>{{2, 2}, {2, 2}, {2, 1}}));
}

TEST(DataLoader, APartialBatchCanBeLeftOut) {
  DataLoader loader(columns(), {.batchsize = 2, .partial = false});
  EXPECT_EQ(loader.size(), 2);
  EXPECT_EQ(read(loader), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

/// Each part of a batch of 4 is half of it, and so are the parts of the last one of 1.
TEST(DataLoader, APartOfEveryBatchCanBeGiven) {
  const LoaderOptions options{.batchsize = 4, .shuffle = true, .rng = Rng{3}};
  LoaderOptions first = options, second = options;
  first.part = {0, 2};
  second.part = {1, 2};
  DataLoader whole(columns(), options), one(columns(), first), other(columns(), second);
  auto of_one = one.begin(), of_other = other.begin();
  for (const Array& batch : whole) {
    std::vector<double> joined = (*of_one).to_vector<double>();
    for (const double value : (*of_other).to_vector<double>()) joined.push_back(value);
    EXPECT_EQ(joined, batch.to_vector<double>());
    EXPECT_LE((*of_other).size(-1) - (*of_one).size(-1), 1);
    ++of_one;
    ++of_other;
  }
}

TEST(DataLoader, TheBatchSizeIsOneUnlessStated) {
  DataLoader loader(columns());
  EXPECT_EQ(loader.size(), 5);
  for (const Array& x : loader) EXPECT_EQ(x.shape(), (Shape{2, 1}));
}

TEST(DataLoader, TuplesGiveTuples) {
  DataLoader loader(std::tuple{columns(), arange(5)}, {.batchsize = 2});
  int batches = 0;
  for (auto [x, y] : loader) {
    EXPECT_EQ(x.item(0, 0), 2 * y.item(0));
    EXPECT_EQ(x.size(-1), y.size(-1));
    ++batches;
  }
  EXPECT_EQ(batches, 3);
}

struct Sample {
  Array image;
  Array label;
  double weight = 1;
};

TEST(DataLoader, StructsAndMapsGiveTheirLike) {
  DataLoader structs(Sample{columns(), arange(5), 0.5}, {.batchsize = 4});
  for (const Sample& s : structs) {
    EXPECT_EQ(s.image.size(-1), s.label.count());
    EXPECT_EQ(s.weight, 0.5);
  }
  DataLoader maps(std::map<std::string, Array>{{"x", columns()}, {"y", arange(5)}}, {.batchsize = 5});
  for (const auto& m : maps) EXPECT_EQ(m.at("y").to_vector<int>(), (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(DataLoader, ImagesKeepTheirSizesAndTypes) {
  DataLoader loader(std::tuple{zeros({4, 3, 1, 6}, UInt8), zeros({10, 6}, Bool)}, {.batchsize = 4});
  for (auto [x, y] : loader) {
    EXPECT_EQ(x.rank(), 4);
    EXPECT_EQ(x.dtype(), UInt8);
    EXPECT_EQ(y.dtype(), Bool);
  }
}

TEST(DataLoader, EqualSeedsGiveEqualOrdersAndEpochsDiffer) {
  const Array x = arange(100);
  DataLoader one(x, {.batchsize = 7, .shuffle = true, .rng = Rng(3)});
  DataLoader two(x, {.batchsize = 7, .shuffle = true, .rng = Rng(3)});
  DataLoader other(x, {.batchsize = 7, .shuffle = true, .rng = Rng(4)});
  const std::vector<int> first = read(one);
  EXPECT_EQ(read(two), first);
  EXPECT_NE(read(other), first);
  const std::vector<int> second = read(one);
  EXPECT_NE(second, first);
  EXPECT_EQ(read(two), second);
  std::vector<int> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, x.to_vector<int>());
}

TEST(DataLoader, TheOrderComesFromTheSeedOfTheThread) {
  const auto order = [] {
    seed(11);
    DataLoader loader(arange(50), {.batchsize = 50, .shuffle = true});
    return read(loader);
  };
  EXPECT_EQ(order(), order());
}

TEST(DataLoader, PairsStayTogetherWhenShuffled) {
  DataLoader loader(std::tuple{columns(), arange(5)}, {.batchsize = 3, .shuffle = true, .rng = Rng(1)});
  for (auto [x, y] : loader) {
    for (int64_t i = 0; i < y.count(); ++i) EXPECT_EQ(x.item(0, i), 2 * y.item(i));
  }
}

TEST(DataLoader, ABatchThatIsKeptKeepsItsValues) {
  DataLoader loader(arange(1000), {.batchsize = 10});
  std::vector<Array> kept;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Array& x : loader) {
      if (kept.empty()) kept.push_back(x);
    }
  }
  EXPECT_EQ(kept[0].to_vector<int>(), arange(10).to_vector<int>());
}

TEST(DataLoader, ABatchSizeAboveTheNumberOfObservationsIsDecreasedWithAWarning) {
  std::string said;
  forget_said();
  set_log_sink([](const LogMessage& m, void* to) { *static_cast<std::string*>(to) = m.text; }, &said);
  DataLoader loader(columns(), {.batchsize = 8});
  set_log_sink(nullptr);
  EXPECT_EQ(said, "DataLoader: Number of observations less than batch-size, decreasing the batch-size to 5");
  EXPECT_EQ(loader.size(), 1);
}

TEST(DataLoader, NoObservationsAreNoBatches) {
  DataLoader loader(zeros({3, 0}), {.batchsize = 4});
  EXPECT_EQ(loader.size(), 0);
  for (const Array& x : loader) FAIL() << to_string(x);
}

TEST(DataLoader, WrongDataAndOptionsAreErrors) {
  EXPECT_EQ(
      error_of(
          [] {
            DataLoader(std::tuple{columns(), arange(4)});
          },
          ErrorKind::shape),
      "DataLoader: all data containers must have the same number of observations; [0] has 5, [1] has 4; the last dim "
      "counts them");
  EXPECT_EQ(error_of([] { DataLoader(columns(), {.batchsize = 0}); }, ErrorKind::argument),
            "DataLoader: the batch size must be at least 1; got 0; for single observations use .batchsize = 1");
  EXPECT_EQ(
      error_of([] { DataLoader(Array(3)); }, ErrorKind::shape),
      "DataLoader: the last dim of every array counts the observations; the array is a single number; leave it out");
  EXPECT_EQ(error_of(
                [] {
                  DataLoader(std::tuple{columns(), std::vector<int>(5)});
                },
                ErrorKind::argument),
            "DataLoader: data are arrays; [1] is a vector; make an Array of it: Array(values, {n})");
  EXPECT_EQ(error_of([] { DataLoader(columns(), {.num_workers = -1}); }, ErrorKind::argument),
            "DataLoader: the number of workers cannot be negative; got -1; 0 prepares batches in the loop");
  EXPECT_EQ(
      error_of(
          [] {
            DataLoader(columns(), {.part = {2, 2}});
          },
          ErrorKind::argument),
      "DataLoader: a part must be one of 0 to 1, of at least 1; got number 2 of 2; distributed::batch_part gives it");
}

TEST(DataLoader, PrintsItsOptionsAndItsFirstBatch) {
  EXPECT_EQ(to_string(DataLoader(columns(), {.batchsize = 3})),
            "2-element DataLoader(batchsize=3)\n  with first element:\n  2×3 Array{Int32}");
  EXPECT_EQ(
      to_string(DataLoader(std::tuple{columns(), arange(5)}, {.batchsize = 2, .shuffle = true, .partial = false})),
      "2-element DataLoader(batchsize=2, shuffle=true, partial=false)\n  with first element:\n  (2×2 Array{Int32}, "
      "2-element Array{Int32})");
}

TEST(DataLoader, MovedToADeviceItGivesTheSameBatches) {
  DataLoader plain(std::tuple{columns(), arange(5)}, {.batchsize = 2, .shuffle = true, .rng = Rng(5)});
  auto on_device = plain | cpu_device();
  auto on_gpu = plain | gpu;
  EXPECT_EQ(on_device.size(), 3);
  const auto labels = [](auto& loader) {
    std::vector<int> seen;
    for (auto [x, y] : loader) {
      for (int label : y.template to_vector<int>()) seen.push_back(label);
    }
    return seen;
  };
  const std::vector<int> expected = labels(plain);
  EXPECT_EQ(labels(on_device), expected);
  EXPECT_EQ(labels(on_gpu), expected);
}

// --- Data of one's own, and workers.

struct Squares {
  int64_t n = 20;
  int64_t bad = -1;
  int64_t numobs() const { return n; }
  std::tuple<Array, Array> getobs(int64_t i) const {
    if (i == bad) throw std::runtime_error("file 13 is damaged");
    return {Array({static_cast<float>(i), static_cast<float>(i * i)}, {2}), Array(i)};
  }
};

TEST(DataLoader, SingleObservationsOfAClassAreStacked) {
  DataLoader loader(Squares{}, {.batchsize = 8});
  int64_t seen = 0;
  for (auto [x, y] : loader) {
    EXPECT_EQ(x.shape(), (Shape{2, y.count()}));
    for (int64_t i = 0; i < y.count(); ++i, ++seen) {
      EXPECT_EQ(y.item(i), static_cast<double>(seen));
      EXPECT_EQ(x.item(1, i), static_cast<double>(seen * seen));
    }
  }
  EXPECT_EQ(seen, 20);
}

TEST(DataLoader, WorkersChangeNothingButTheTime) {
  const Array x = uniform({3, 101});
  for (int64_t workers : {1, 2, 5}) {
    DataLoader alone(x, {.batchsize = 7, .shuffle = true, .rng = Rng(9)});
    DataLoader helped(x, {.batchsize = 7, .shuffle = true, .num_workers = workers, .rng = Rng(9)});
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::vector<float> expected, seen;
      for (const Array& batch_of_x : alone) {
        for (float v : batch_of_x.to_vector()) expected.push_back(v);
      }
      for (const Array& batch_of_x : helped) {
        for (float v : batch_of_x.to_vector()) seen.push_back(v);
      }
      EXPECT_EQ(seen, expected);
    }
  }
}

TEST(DataLoader, RandomNumbersInMappedDataDoNotDependOnWorkers) {
  const auto noisy = [](const Array& x) { return x + uniform(x.shape()); };
  std::vector<std::vector<float>> runs;
  for (int64_t workers : {0, 1, 3}) {
    DataLoader loader(mapobs(noisy, zeros({2, 30})), {.batchsize = 4, .num_workers = workers, .rng = Rng(2)});
    std::vector<float> values;
    for (const Array& x : loader) {
      for (float v : x.to_vector()) values.push_back(v);
    }
    runs.push_back(values);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(runs[0], runs[2]);
  EXPECT_NE(runs[0][0], runs[0][8]);
}

TEST(DataLoader, AnErrorArrivesInTheLoopWithItsObservation) {
  for (int64_t workers : {0, 2}) {
    DataLoader loader(Squares{.bad = 13}, {.batchsize = 4, .num_workers = workers});
    int64_t batches = 0;
    EXPECT_EQ(error_of(
                  [&] {
                    for (auto [x, y] : loader) batches += y.count() > 0;
                  },
                  ErrorKind::argument),
              "getobs: observation 13 could not be read; file 13 is damaged");
    EXPECT_EQ(batches, 3);
  }
}

TEST(DataLoader, ALoopMayBeLeftEarly) {
  DataLoader loader(Squares{.n = 1000}, {.batchsize = 1, .num_workers = 3});
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto [x, y] : loader) {
      if (y.item(0) == 2) break;
    }
  }
  SUCCEED();
}

// --- Observations.

TEST(Observations, AreTakenInAnyOrderAndCopied) {
  EXPECT_EQ(getobs(columns(), {3, 4, 0, 0}).to_vector<int>(), (std::vector<int>{6, 7, 8, 9, 0, 1, 0, 1}));
  EXPECT_EQ(numobs(std::tuple{columns(), arange(5)}), 5);
  EXPECT_EQ(error_of([] { getobs(columns(), {5}); }, ErrorKind::argument),
            "getobs: observation 5 is out of range; there are 5, counted from 0");
}

TEST(Observations, BatchAndUnbatchAreOpposites) {
  const std::vector<Array> parts = unbatch(columns());
  ASSERT_EQ(parts.size(), 5u);
  EXPECT_EQ(parts[2].to_vector<int>(), (std::vector<int>{4, 5}));
  EXPECT_EQ(parts[2].shape(), (Shape{2}));
  EXPECT_EQ(batch(parts).to_vector<int>(), columns().to_vector<int>());
  EXPECT_EQ(
      error_of(
          [] {
            batch(std::vector<Array>{ones({2}), ones({3})});
          },
          ErrorKind::shape),
      "batch: all observations must have the same sizes and types; the array of observation 1 differs from the first "
      "one's");
}

TEST(Observations, AreMappedWhenTheyAreRead) {
  const auto doubled = mapobs([](const Array& x) { return x * 2; }, columns());
  EXPECT_EQ(numobs(doubled), 5);
  EXPECT_EQ(getobs(doubled, {1}).to_vector<int>(), (std::vector<int>{4, 6}));
}

TEST(Observations, AreSplitByTheirShare) {
  const auto [train, test] = splitobs(std::tuple{columns(), arange(5)}, {.at = 0.6});
  EXPECT_EQ(get<1>(train).to_vector<int>(), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(get<0>(test).to_vector<int>(), (std::vector<int>{6, 7, 8, 9}));
  const auto [none, all] = splitobs(columns(), {.at = 0});
  EXPECT_EQ(getobs(none).shape(), (Shape{2, 0}));
  EXPECT_EQ(getobs(all).shape(), (Shape{2, 5}));
  EXPECT_EQ(error_of([] { splitobs(columns(), {.at = 1.5}); }, ErrorKind::argument),
            "splitobs: the shares of the parts must lie between 0 and 1 and their sum must not be above 1; got 1.5; "
            "write {.at = 0.8} for four fifths in the first part");
}

TEST(Observations, AreShuffledTogether) {
  Rng rng(1);
  const auto [x, y] = shuffleobs(std::tuple{columns(), arange(5)}, rng);
  std::vector<int> labels = y.to_vector<int>();
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(x.item(0, i), 2 * y.item(i));
  std::sort(labels.begin(), labels.end());
  EXPECT_EQ(labels, (std::vector<int>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace rosin
