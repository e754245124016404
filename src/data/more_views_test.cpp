// Folds, windows, groups and samples, judged by the examples of MLUtils.jl's manual and by what they must keep.
#include <gtest/gtest.h>

#include <set>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/loader.hpp>
#include <rosin/movement.hpp>
#include <rosin/views.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

using Places = std::vector<int64_t>;

TEST(MoreViews, FoldsAreThoseOfMLUtils) {
  // kfolds(10, 3) of the manual: sizes 4, 3 and 3 in order.
  const auto folds = kfolds(arange(10), 3);
  ASSERT_EQ(folds.size(), 3u);
  EXPECT_EQ(folds[0].second.indices(), (Places{0, 1, 2, 3}));
  EXPECT_EQ(folds[0].first.indices(), (Places{4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(folds[1].second.indices(), (Places{4, 5, 6}));
  EXPECT_EQ(folds[2].second.indices(), (Places{7, 8, 9}));
  EXPECT_EQ(folds[2].first.indices(), (Places{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(leavepout(arange(10)).size(), 10u);
  const auto pairs = leavepout(arange(7), 2);
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[0].second.indices(), (Places{0, 1, 2}));
  EXPECT_EQ(pairs[2].second.indices(), (Places{5, 6}));
  EXPECT_EQ(error_of([] { kfolds(arange(3), 4); }, ErrorKind::argument),
            "kfolds: there are 2 folds or more, and an observation for each; got 4 folds of 3 observations");
}

TEST(MoreViews, WindowsSlideAndBatchesFollow) {
  // slidingwindow(11:30, size=6, stride=3) of the manual has 5 windows; the second is 14:19.
  const Array numbers = arange(11, 31);
  const auto windows = slidingwindow(numbers, 6, 3);
  EXPECT_EQ(numobs(windows), 5);
  EXPECT_EQ(windows.getobs(1).to_vector<int64_t>(), (Places{14, 15, 16, 17, 18, 19}));
  EXPECT_EQ(getobs(windows, {0, 4}).shape(), (Shape{6, 2}));
  EXPECT_EQ(numobs(slidingwindow(numbers, 30)), 0);
  // BatchView of 1:10 with batchsize 3: 4 batches, or 3 without the short one.
  const auto batches = batchview(arange(1, 11), 3);
  EXPECT_EQ(numobs(batches), 4);
  EXPECT_EQ(batches.getobs(1).to_vector<int64_t>(), (Places{4, 5, 6}));
  EXPECT_EQ(batches.getobs(3).to_vector<int64_t>(), (Places{10}));
  EXPECT_EQ(numobs(batchview(arange(10), 3, false)), 3);
  EXPECT_EQ(error_of([] { slidingwindow(arange(3), 0); }, ErrorKind::argument),
            "slidingwindow: size and stride are 1 or more; got 0 and 1");
  EXPECT_EQ(error_of([] { batchview(arange(3), 0); }, ErrorKind::argument),
            "batchview: the size of batches is 1 or more; got 0");
}

TEST(MoreViews, JoinFilterAndGroup) {
  const std::tuple data{reshape(arange(6), {2, 3}), arange(3)};
  const auto joined = joinobs(data, data);
  EXPECT_EQ(numobs(joined), 6);
  auto [x, y] = getobs(joined, {2, 3});
  EXPECT_EQ(x.to_vector<int64_t>(), (Places{4, 5, 0, 1}));
  EXPECT_EQ(y.to_vector<int64_t>(), (Places{2, 0}));
  const auto odd = filterobs([](const Array& v) { return v.item<int64_t>() % 2 == 1; }, arange(7));
  EXPECT_EQ(odd.indices(), (Places{1, 3, 5}));
  const auto groups = groupobs([](const Array& v) { return v.item<int64_t>() % 3; }, arange(7));
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups.at(0).indices(), (Places{0, 3, 6}));
  int64_t sum = 0;
  for (const auto& [a, b] : eachobs(data)) {
    EXPECT_EQ(a.shape(), (Shape{2}));
    EXPECT_EQ(b.rank(), 0);
    sum += b.item<int64_t>();
  }
  EXPECT_EQ(sum, 3);
  EXPECT_EQ(eachobs(data).size(), 3);
  EXPECT_EQ(group_counts(Array({1, 0, 1, 1}, {4})), (std::map<int64_t, int64_t>{{0, 1}, {1, 3}}));
  EXPECT_EQ(group_indices(Array({1, 0, 1, 1}, {4})).at(1), (Places{0, 2, 3}));
}

TEST(MoreViews, SamplesAreBalanced) {
  const Array labels({0, 0, 0, 0, 1, 1, 2}, {7}), data = arange(7);
  Rng rng(6);
  const auto counts = [&](const auto& view) {
    std::map<int64_t, int64_t> found;
    for (const int64_t at : view.indices()) ++found[static_cast<int64_t>(labels.item(at))];
    return found;
  };
  using Counts = std::map<int64_t, int64_t>;
  EXPECT_EQ(counts(oversample(data, labels, 1, &rng)), (Counts{{0, 4}, {1, 4}, {2, 4}}));
  EXPECT_EQ(counts(oversample(data, labels, 0.5, &rng)), (Counts{{0, 4}, {1, 2}, {2, 2}}));
  EXPECT_EQ(oversample(data, labels, 1, nullptr).indices(), (Places{0, 1, 2, 3, 4, 5, 6, 4, 5, 6, 6, 6}));
  EXPECT_EQ(counts(undersample(data, labels, &rng)), (Counts{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(undersample(data, labels, nullptr).indices(), (Places{0, 4, 6}));
  EXPECT_EQ(error_of([&] { oversample(data, labels, 0); }, ErrorKind::argument),
            "oversample: the fraction of the most frequent class is in (0, 1]; got 0.000000");
  EXPECT_EQ(error_of([&] { undersample(arange(3), labels); }, ErrorKind::shape),
            "undersample: labels are (n), one for each observation; got (7) for 3; write onecold(y) for one-hot ones");
  EXPECT_EQ(error_of([&] { group_counts(ones({2})); }, ErrorKind::dtype),
            "group_counts: labels are integers; got Float32; write cast(labels, Int32)");
}

TEST(MoreViews, StratifiedPartsHaveEachClassInTheirShares) {
  const Array labels({0, 1, 0, 0, 1, 0, 1, 0, 0, 1}, {10});
  const auto [a, b, c] = splitobs(arange(10), std::array{0.5, 0.25}, labels);
  EXPECT_EQ(a.indices(), (Places{0, 1, 2, 3, 4}));
  EXPECT_EQ(b.indices(), (Places{5, 6, 7}));
  EXPECT_EQ(c.indices(), (Places{8, 9}));
}

TEST(MoreViews, RandomObservationsFollowTheirWeights) {
  Rng rng(11);
  const Array data = arange(4);
  const auto even = randobs(data, 4000, rng).indices();
  const std::vector<double> weights{1, 0, 3, 0};
  const auto weighted = randobs(data, 4000, weights, rng).indices();
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(static_cast<double>(std::count(even.begin(), even.end(), i)), 1000, 120);
    EXPECT_NEAR(static_cast<double>(std::count(weighted.begin(), weighted.end(), i)),
                1000 * weights[static_cast<size_t>(i)], 120);
  }
  EXPECT_LT(randobs(data).item(), 4);
  EXPECT_EQ(error_of(
                [&] {
                  randobs(data, 1, std::vector<double>{1, -1, 0, 0});
                },
                ErrorKind::argument),
            "randobs: weights are not negative; got -1.000000");
  EXPECT_EQ(error_of([&] { randobs(data, -1); }, ErrorKind::argument),
            "randobs: there is a number of observations to draw, 0 or more, and some to draw from; got -1 of 4");
}

TEST(MoreViews, SequencesArePaddedAndNumbersRescaled) {
  // batch_sequence of sequences of 3 and 5 steps of the manual: (features, 5, 2), zeros at the end of the first.
  const Array a = ones({2, 3}), b = 2 * ones({2, 5});
  const Array both = batch_sequence({a, b}, -1);
  ASSERT_EQ(both.shape(), (Shape{2, 5, 2}));
  EXPECT_EQ(both.to_vector<int64_t>(), (Places{1, 1, 1, 1, 1, 1, -1, -1, -1, -1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(rpad_constant(arange(2), 4, 9).to_vector<int64_t>(), (Places{0, 1, 9, 9}));
  EXPECT_EQ(rpad_constant(arange(2), 1).count(), 2);
  EXPECT_EQ(rescale(Array({2.0f, 4.0f, 6.0f}, {3})).to_vector(), (std::vector<float>{0, 0.5f, 1}));
  EXPECT_EQ(rescale(Array({1.0f, 3.0f, 5.0f, 5.0f}, {2, 2}), {0}).to_vector(), (std::vector<float>{0, 1, 0, 0}));
  EXPECT_EQ(error_of([] { batch_sequence({}); }, ErrorKind::argument),
            "batch_sequence: there is a sequence or more; got none");
}

// sklearn.model_selection.TimeSeriesSplit(n_splits=3).split(range(8)).
TEST(MoreViews, FoldsOfATimeSeriesAreTestedOnWhatComesNext) {
  const auto folds = timeseries_kfolds(arange(8), 3);
  ASSERT_EQ(folds.size(), 3u);
  const Places last_of_training = {1, 3, 5};
  for (size_t i = 0; i < 3; ++i) {
    const Places train = getobs(folds[i].first).to_vector<int64_t>(),
                 test = getobs(folds[i].second).to_vector<int64_t>();
    EXPECT_EQ(train.front(), 0);
    EXPECT_EQ(train.back(), last_of_training[i]);
    EXPECT_EQ(test, (Places{last_of_training[i] + 1, last_of_training[i] + 2}));
  }
}

TEST(MoreViews, BatchesArePutTogetherByAFunction) {
  const std::vector<int64_t> lengths = {1, 3, 2};
  struct Lines {
    std::vector<int64_t> lengths;
    int64_t numobs() const { return 3; }
    Array getobs(int64_t i) const { return full({lengths[static_cast<size_t>(i)]}, i + 1); }
  };
  DataLoader loader(collateobs(Lines{lengths}, [](const std::vector<Array>& all) { return batch_sequence(all); }),
                    {.batchsize = 2});
  std::vector<Places> batches;
  for (const Array& x : loader) batches.push_back(x.to_vector<int64_t>());
  EXPECT_EQ(batches, (std::vector<Places>{{1, 0, 0, 2, 2, 2}, {3, 3}}));
  const auto pairs = collateobs(std::tuple{arange(4), arange(4)}, [](const auto& all) { return all.size(); });
  EXPECT_EQ(getobs(pairs, {0, 2, 3}), 3u);
}

TEST(MoreViews, SequencesArePackedWithoutPaddingBetweenThem) {
  const auto [values, segments] = pack_sequences({arange(3), arange(1), arange(3) + 5}, 4, -1);
  EXPECT_EQ(values.shape(), (Shape{4, 2}));
  EXPECT_EQ(values.to_vector<int64_t>(), (Places{0, 1, 2, 0, 5, 6, 7, -1}));
  EXPECT_EQ(segments.to_vector<int64_t>(), (Places{0, 0, 0, 1, 2, 2, 2, -1}));
  EXPECT_EQ(pack_sequences({ones({2, 3}), ones({2, 2})}, 5).values.shape(), (Shape{2, 5, 1}));
  EXPECT_EQ(error_of([] { pack_sequences({}, 4); }, ErrorKind::argument),
            "pack_sequences: there is a sequence or more, and columns have an element or more; got 0 for columns of 4");
}

TEST(MoreViews, ALoaderDrawsByWeightsAnewInEachEpoch) {
  DataLoader loader(arange(4), {.batchsize = 4, .rng = Rng(3), .weights = {0, 1, 1, 2}});
  std::vector<Places> epochs;
  std::vector<int64_t> counts(4);
  for (int epoch = 0; epoch < 500; ++epoch) {
    for (const Array& x : loader) {
      epochs.push_back(x.to_vector<int64_t>());
      for (const int64_t i : epochs.back()) ++counts[static_cast<size_t>(i)];
    }
  }
  EXPECT_EQ(epochs.size(), 500u);
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_EQ(counts[0], 0);
  EXPECT_NEAR(static_cast<double>(counts[3]), 1000, 120);
  DataLoader again(arange(4), {.batchsize = 4, .rng = Rng(3), .weights = {0, 1, 1, 2}});
  EXPECT_EQ((*again.begin()).to_vector<int64_t>(), epochs[0]);
}

}  // namespace
}  // namespace rosin
