// Which observations ranks are given, for any number of ranks: as one process sees the parts of all.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include <rosin/rosin.hpp>

namespace rosin::distributed {
namespace {

constexpr int64_t observations = 53, batchsize = 9;

Array numbers() {
  std::vector<double> all(observations);
  std::iota(all.begin(), all.end(), 0.0);
  return Array(std::span<const double>(all), {1, observations});
}

using Loader = decltype(DataLoader(numbers(), {}));

Loader part_of(int64_t number, int64_t of) {
  return DataLoader(numbers(), {.batchsize = batchsize, .shuffle = true, .rng = Rng{7}, .part = {number, of}});
}

/// What a loop gives, at most so many batches of it.
std::vector<std::vector<double>> batches(Loader& loader, int64_t most = observations) {
  std::vector<std::vector<double>> given;
  for (const Array& batch : loader) {
    given.push_back(batch.to_vector<double>());
    if (static_cast<int64_t>(given.size()) == most) break;
  }
  return given;
}

/// The batches of all ranks, each with the parts of all one after the other.
std::vector<double> together(std::vector<Loader>& ranks, int64_t most = observations) {
  std::vector<std::vector<std::vector<double>>> of_ranks;
  for (Loader& loader : ranks) of_ranks.push_back(batches(loader, most));
  std::vector<double> all;
  for (size_t i = 0; i < of_ranks.front().size(); ++i) {
    for (const auto& of_rank : of_ranks) all.insert(all.end(), of_rank[i].begin(), of_rank[i].end());
  }
  return all;
}

std::vector<Loader> ranks_of(int64_t n) {
  std::vector<Loader> ranks;
  for (int64_t i = 0; i < n; ++i) ranks.push_back(part_of(i, n));
  return ranks;
}

TEST(Sampling, GivesEachObservationOnceAnEpochToAnyNumberOfRanks) {
  std::vector<Loader> one = ranks_of(1);
  std::vector<std::vector<double>> epochs = {together(one), together(one)};
  EXPECT_NE(epochs[0], epochs[1]);
  for (const int64_t n : {2, 3, 4, 5, 7, 9, 16}) {
    std::vector<Loader> ranks = ranks_of(n), again = ranks_of(n);
    for (const std::vector<double>& wanted : epochs) {
      const std::vector<double> given = together(ranks);
      EXPECT_EQ(given, wanted) << n;
      EXPECT_EQ(together(again), given) << n;
    }
  }
  for (std::vector<double>& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    EXPECT_EQ(epoch, numbers().to_vector<double>());
  }
}

/// In the middle of an epoch, with the file of one rank, by as many ranks or by others.
TEST(Sampling, GoesOnFromACheckpointWithAnyNumberOfRanks) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("rosin-sampling-" + std::to_string(getpid()) + ".safetensors"))
          .string();
  std::vector<Loader> one = ranks_of(1);
  const std::vector<double> first = together(one), second = together(one);
  std::vector<Loader> before = ranks_of(3);
  std::vector<double> given = together(before, 2);
  Loader saved = part_of(0, 3);
  for (int64_t batch = 0; const Array& x : saved) {
    EXPECT_EQ(x.size(0), 1);
    if (++batch < 2) continue;
    Checkpoint(file, {{"loader", saved}}).save();
    break;
  }
  for (const int64_t n : {1, 2, 3, 5}) {
    std::vector<Loader> after = ranks_of(n);
    for (Loader& loader : after) EXPECT_TRUE(Checkpoint(file, {{"loader", loader}}).resume());
    std::vector<double> all = given;
    const std::vector<double> rest = together(after);
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_EQ(all, first) << n;
    EXPECT_EQ(together(after), second) << n;
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace rosin::distributed
