// Losses of labels and CTC: PyTorch's values (tests/oracles/loss.txt) run in the op suite; here their rules and errors.
#include <rosin/label_loss.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <rosin/activation.hpp>
#include <rosin/approx.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "../tests/layer_testing.hpp"

namespace rosin {
namespace {

const double infinite = std::numeric_limits<double>::infinity();

template <class F> std::string message(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(LabelLoss, IsThatOfOneHotLabels) {
  seed(2);
  const Array yhat = randn({5, 3, 4}), labels = randint(0, 5, {3, 4});
  const Array each = labelcrossentropy(yhat, labels, {.agg = identity});
  EXPECT_EQ(each.shape(), (Shape{3, 4}));
  const Array want = logitcrossentropy(yhat, onehot(labels, 5), {.agg = identity});
  EXPECT_LT(maximum(abs(each - squeeze(want, 0))).item(), 1e-6);
  EXPECT_NEAR(labelcrossentropy(yhat, labels).item(), mean(want).item(), 1e-6);
  const Array moved = permute(yhat, {1, 2, 0});
  EXPECT_LT(maximum(abs(labelcrossentropy(moved, labels, {.dims = -1, .agg = identity}) - each)).item(), 1e-6);
}

TEST(LabelLoss, TakesLabelsOfEveryIntegerTypeAndKeepsTheTypeOfTheLogits) {
  const Array yhat = randn({3, 4}), labels({0, 2, 1, 1}, {4});
  const double want = labelcrossentropy(yhat, labels).item();
  for (DType type : {UInt8, Int8, Int64, UInt32, UInt64}) {
    EXPECT_NEAR(labelcrossentropy(yhat, cast(labels, type)).item(), want, 1e-6) << to_string(type);
  }
  for (DType type : {Float64, Float16, BFloat16}) {
    const Array loss = labelcrossentropy(cast(yhat, type), labels, {.weights = Array({1, 2, 3}, {3})});
    EXPECT_EQ(loss.dtype(), type);
    EXPECT_EQ(ctc_loss(cast(randn({3, 6}), type), Array({0, 1}, {2})).dtype(), type);
  }
}

/// Of many classes the label's score is read by itself: the same losses and slopes as those of probabilities, which are
/// walked.
TEST(LabelLoss, OfManyClassesIsTheSame) {
  const int64_t classes = 20000, batch = 3;
  Rng rng(3);
  const Array scores = cast(randn(rng, {classes, batch}), Float64), labels({7, 19999, 0}, {batch}),
              weights = abs(randn(rng, {classes}));
  const auto of_labels = [&](const LabelOptions& options) {
    return [&, options](const Array& x) { return labelcrossentropy(x, labels, options); };
  };
  const auto walked = [&](const Array& x) { return labelcrossentropy(x, cast(onehot(labels, classes), Float64)); };
  const auto same = [](const Array& a, const Array& b, double bound) {
    ASSERT_EQ(a.shape(), b.shape());
    EXPECT_LE(maximum(abs(cast(a, Float64) - cast(b, Float64))).item(), bound);
  };
  same(of_labels({})(scores), walked(scores), 1e-13);
  same(gradient(of_labels({}), scores), gradient(walked, scores), 1e-15);
  const Array turned = permute(scores, {1, 0});
  same(gradient(of_labels({.dims = 1}), turned), permute(gradient(walked, scores), {1, 0}), 1e-15);
  // One that is ignored, weights of classes: means over those that count.
  const Array both = labelcrossentropy(scores, labels, {.agg = identity, .weights = weights});
  const Array each = labelcrossentropy(scores, labels, {.agg = identity}), w = gather(weights, labels);
  same(both, each * cast(w, Float64), 1e-7);
  const auto ignoring = of_labels({.ignore = 19999});
  same(ignoring(scores), (select(each, 0, 0) + select(each, 0, 2)) / 2, 1e-13);
  EXPECT_EQ(sum(abs(slice(gradient(ignoring, scores), 1, 1, 2))).item(), 0);
  const std::string said = message([&] { labelcrossentropy(scores, Array({1, 20000, 2}, {3})).item(); });
  EXPECT_NE(said.find("labels: a label must be in [0, 20000); got 20000"), said.npos) << said;
}

TEST(LabelLoss, IgnoredObservationsAreZeroAndHaveNoGradient) {
  const Array yhat({1.0, 2.0, 3.0, 4.0, 5.0, 7.0}, {3, 2}), labels({2, -100}, {2});
  const LabelOptions options{.agg = identity, .ignore = -100};
  const std::vector<double> each = labelcrossentropy(yhat, labels, options).to_vector<double>();
  EXPECT_NEAR(each[0], std::log(1 + std::exp(-1.0) + std::exp(-2.0)), 1e-6);
  EXPECT_EQ(each[1], 0);
  const auto loss = [&](const Array& x) { return labelcrossentropy(x, labels, {.ignore = -100}); };
  const Array slope = gradient(loss, yhat);
  EXPECT_EQ(column(slope, 1).to_vector<double>(), std::vector<double>(3, 0));
  EXPECT_TRUE(std::isnan(labelcrossentropy(yhat, full({2}, -100, Int32), {.ignore = -100}).item()));
}

TEST(LabelLoss, ForbiddenClassesHaveNoPart) {
  const Array yhat({0.0, -infinite, 1.0}, {3, 1}), labels(std::vector<int64_t>{2}, {1});
  const auto loss = [&](const Array& x) { return labelcrossentropy(x, labels); };
  EXPECT_NEAR(loss(yhat).item(), std::log1p(std::exp(-1.0)), 1e-6);
  EXPECT_EQ(gradient(loss, yhat).item(1, 0), 0);
}

TEST(LabelLoss, MakesNoOneHotArray) {
  const int64_t classes = 2000, batch = 500;
  const Array yhat = randn({classes, batch}), labels = randint(0, classes, {batch});
  const auto loss = [&](const Array& x) { return labelcrossentropy(x, labels); };
  const Array slope = gradient(loss, yhat);
  eval(slope);
  const int64_t before = stats().live_bytes;
  const Array again = gradient(loss, yhat);
  eval(again);
  EXPECT_LT(stats().live_bytes - before, classes * batch * 9 / 2);
}

TEST(LabelLoss, SecondGradientsAgreeWithFiniteDifferences) {
  seed(4);
  const Array yhat = uniform({3, 4}, -1, 1, Float64), labels({0, 2, 1, 1}, {4});
  const LabelOptions options{.ignore = 1, .weights = Array({0.5, 1.0, 2.0}, {3}), .smoothing = 0.1};
  const auto slope = [&](const auto& loss) {
    return [&loss](const Array& x) { return sum(square(gradient(loss, x))); };
  };
  const auto crossentropy_of = [&](const Array& x) { return labelcrossentropy(x, labels, options); };
  layer_testing::check_function_gradient(slope(crossentropy_of), yhat, "labelcrossentropy");
  const auto margin_of = [&](const Array& x) { return multi_margin_loss(x, labels, {.p = 2}); };
  layer_testing::check_function_gradient(margin_of, yhat, "multi_margin_loss");
  const auto ctc_of = [](const Array& x) { return ctc_loss(x, Array({1, 1}, {2})); };
  layer_testing::check_function_gradient(slope(ctc_of), uniform({3, 5}, -1, 1, Float64), "ctc_loss");
}

TEST(LabelLoss, NamesALabelThatIsNoClass) {
  const Array yhat = randn({3, 2});
  const auto of = [&](int64_t label) {
    return message([&] { eval(labelcrossentropy(yhat, Array({int64_t{0}, label}, {2}))); });
  };
  EXPECT_EQ(of(3), "labels: a label must be in [0, 3); got 3; labels count from 0");
  EXPECT_EQ(of(-1), "labels: a label must be in [0, 3); got -1; labels count from 0");
  EXPECT_EQ(message([&] {
              eval(ctc_loss(randn({3, 4}), Array({0, 5}, {2})));
            }),
            "labels: a label must be in [0, 3); got 5; labels count from 0");
  EXPECT_EQ(message([&] {
              eval(multi_margin_loss(yhat, Array({0, 4}, {2})));
            }),
            "labels: a label must be in [0, 3); got 4; labels count from 0");
}

TEST(LabelLoss, RefusesWhatDoesNotFit) {
  const Array yhat = randn({3, 2}), labels({0, 1}, {2});
  EXPECT_EQ(
      message([&] { labelcrossentropy(yhat, onehot(labels, 3)); }),
      "labelcrossentropy: labels must be integers; got Bool; they are numbers of classes; logitcrossentropy takes "
      "one-hot arrays and probabilities");
  EXPECT_EQ(message([&] {
              labelcrossentropy(yhat, Array({0, 1, 1}, {3}));
            }),
            "labelcrossentropy: labels must have the shape (2), that of yhat without classes; got (3); reshape them");
  EXPECT_EQ(message([&] { labelcrossentropy(yhat, labels, {.weights = ones({2})}); }),
            "labelcrossentropy: weights must be one number for each of 3 classes; got (2); reshape them");
  EXPECT_EQ(message([&] { labelcrossentropy(yhat, labels, {.smoothing = 2}); }),
            "labelcrossentropy: smoothing must be in [0, 1]; got 2.000000; use 0.1");
  EXPECT_EQ(
      message([&] { labelcrossentropy(yhat, labels, {.dims = 2}); }),
      "labelcrossentropy: yhat must have the dim of the classes, 2; got (3, 2); yhat is (classes, batch...) unless "
      "`dims` says something else");
  EXPECT_EQ(message([&] { multi_margin_loss(yhat, labels, {.p = 3}); }),
            "multi_margin_loss: the order p must be 1 or 2; got 3.000000; the default is 1");
  EXPECT_EQ(
      message([&] {
        ctc_loss(randn({3, 4, 2}), labels);
      }),
      "ctc_loss: yhat is (classes, time, batch) and labels (labels, batch), both without batch for one; got (3, 4, "
      "2) and (2); permute them");
  EXPECT_EQ(message([&] {
              ctc_loss(randn({3, 4}), labels, {.blank = 3});
            }),
            "ctc_loss: blank must be one of 3 classes; got 3; -1 is the last one");
  EXPECT_EQ(
      message([&] {
        ctc_loss(randn({3, 4}), labels, {.lengths = labels});
      }),
      "ctc_loss: lengths must be one number for each of 1 sequences; got (2); leave them out where all are whole");
}

TEST(CtcLoss, IsTheSumOverAllWays) {
  // Two classes and the blank, three times, labels 0 and 1: 001 011 0_1 _01 01_ (and 0 1 1, 0 0 1 among them).
  const Array p = softmax(uniform({3, 3}, -1, 1, Float64));
  const auto at = [&](int64_t c, int64_t t) { return p.item(c, t); };
  const double ways = at(0, 0) * at(0, 1) * at(1, 2) + at(0, 0) * at(1, 1) * at(1, 2) + at(0, 0) * at(2, 1) * at(1, 2) +
                      at(2, 0) * at(0, 1) * at(1, 2) + at(0, 0) * at(1, 1) * at(2, 2);
  EXPECT_NEAR(ctc_loss(log(p), Array({0, 1}, {2})).item(), -std::log(ways), 1e-12);
}

TEST(CtcLoss, ASequenceTooShortForItsLabelsIsInfiniteOrZero) {
  const Array yhat = randn({4, 2, 2}), labels({0, 1, 1, 1}, {2, 2});  // the second one needs a blank between
  const Array each = ctc_loss(yhat, labels, {.agg = identity});
  EXPECT_TRUE(std::isfinite(each.item(0)));
  EXPECT_EQ(each.item(1), infinite);
  EXPECT_EQ(ctc_loss(yhat, labels, {.agg = identity, .zero_infinity = true}).item(1), 0);
  const auto loss = [&](const Array& x) { return ctc_loss(x, labels, {.zero_infinity = true}); };
  const Array slope = gradient(loss, yhat);
  EXPECT_EQ(select(slope, 2, 1).to_vector<double>(), std::vector<double>(8, 0));
  EXPECT_NE(slope.item(0, 0, 0), 0);
}

TEST(CtcLoss, NoLabelsAreAllBlanks) {
  const Array scores = logsoftmax(uniform({3, 4}, -1, 1, Float64), 0);
  EXPECT_NEAR(ctc_loss(scores, zeros({0}, Int32)).item(), -sum(row(scores, 2)).item(), 1e-12);
  const Array none = ctc_loss(scores, Array({1, 1}, {2}), {.label_lengths = zeros({1}, Int32)});
  EXPECT_NEAR(none.item(), -sum(row(scores, 2)).item(), 1e-12);
}

TEST(CtcLoss, OneTimeAndForbiddenClasses) {
  const Array yhat({0.0, 1.0, -infinite}, {3, 1}), one(std::vector<int64_t>{1}, {1});
  EXPECT_NEAR(ctc_loss(yhat, one).item(), std::log1p(std::exp(-1.0)), 1e-6);
  const Array slope = gradient([&](const Array& x) { return ctc_loss(x, one); }, yhat);
  EXPECT_TRUE(std::isfinite(sum(slope).item()));
}

// Values of probabilities are PyTorch's, in tests/opinfo.
TEST(LabelLoss, ProbabilitiesStandInThePlaceOfLabels) {
  const Array yhat = uniform({3, 4}, -1, 1, Float64), labels({2, 0, 1, 1}, {4}), weights({1.0, 2.0, 0.5}, {3});
  const Array sure = cast(onehot(labels, 3), Float64);
  const Array each = labelcrossentropy(yhat, labels, {.agg = identity, .weights = weights, .smoothing = 0.1});
  EXPECT_TRUE(allclose(labelcrossentropy(yhat, sure, {.agg = identity, .weights = weights, .smoothing = 0.1}), each));
  EXPECT_NEAR(labelcrossentropy(yhat, sure, {.weights = weights, .smoothing = 0.1}).item(), mean(each).item(), 1e-14);
  EXPECT_TRUE(
      allclose(labelcrossentropy(transpose(yhat), transpose(sure), {.dims = 1}), labelcrossentropy(yhat, labels)));
  EXPECT_THROW(labelcrossentropy(yhat, sure, {.ignore = 1}), Error);
  EXPECT_THROW(labelcrossentropy(yhat, select(sure, 0, 0)), Error);
}

}  // namespace
}  // namespace rosin
