// Metrics against scikit-learn (values by its functions, as stated) and by hand.
#include <rosin/metrics.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/index.hpp>
#include <rosin/label_loss.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

namespace rosin::metrics {
namespace {

template <class F> std::string message(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// scores (classes, batch) of 8 observations of 3 classes
const std::vector<float> three_classes = {0.5f, 0.2f, 0.3f, 0.1f, 0.7f, 0.2f, 0.3f, 0.3f,  0.4f,  0.6f, 0.3f, 0.1f,
                                          0.2f, 0.5f, 0.3f, 0.1f, 0.2f, 0.7f, 0.4f, 0.35f, 0.25f, 0.2f, 0.4f, 0.4f};
Array scores_of_three() { return Array(three_classes, {3, 8}); }
Array labels_of_three() { return Array({0, 1, 2, 1, 0, 2, 0, 2}, {8}); }

TEST(Metrics, MeanAddsUpBatches) {
  Mean loss;
  EXPECT_TRUE(std::isnan(loss.value()));
  loss.add(Array({1.0, 2.0, 3.0}, {3}));
  loss.add(Array(7.0));
  EXPECT_EQ(loss.value(), 13.0 / 4);
  loss.reset();
  EXPECT_TRUE(std::isnan(loss.value()));
}

TEST(Metrics, AccuracyIsThatOfScikitLearn) {
  Accuracy first, second{.top = 2}, third{.top = 3};
  for (Accuracy* metric : {&first, &second, &third}) metric->add(scores_of_three(), labels_of_three());
  EXPECT_EQ(first.value(), 5.0 / 8);   // accuracy_score
  EXPECT_EQ(second.value(), 7.0 / 8);  // top_k_accuracy_score(k=2), whose one tie is the last column: classes 1 and 2
  EXPECT_EQ(third.value(), 1);
}

TEST(Metrics, AccuracyTakesOneHotLabelsAndSeveralBatches) {
  Accuracy whole, parts;
  whole.add(scores_of_three(), onehot(labels_of_three(), 3));
  for (int64_t i = 0; i < 8; i += 4) {
    parts.add(slice(scores_of_three(), 1, i, i + 4), slice(labels_of_three(), 0, i, i + 4));
  }
  EXPECT_EQ(whole.value(), parts.value());
  parts.reset();
  EXPECT_TRUE(std::isnan(parts.value()));
}

TEST(Metrics, EqualScoresAreNoHitsOfLaterClasses) {
  Accuracy accuracy;
  accuracy.add(zeros({4, 4}), arange(4));
  EXPECT_EQ(accuracy.value(), 0.25);
  Accuracy broken;
  broken.add(full({4, 4}, std::numeric_limits<double>::quiet_NaN()), arange(4));
  EXPECT_EQ(broken.value(), 0);
}

TEST(Metrics, ConfusionMatrixIsThatOfScikitLearn) {
  ConfusionMatrix matrix{.classes = 3};
  EXPECT_TRUE(std::isnan(matrix.accuracy()));
  EXPECT_TRUE(std::isnan(matrix.f1()));
  matrix.add(scores_of_three(), labels_of_three());
  // confusion_matrix: [[2 1 0] [1 1 0] [0 1 2]]
  EXPECT_EQ(transpose(matrix.counts).to_vector<int>(), (std::vector<int>{2, 1, 0, 1, 1, 0, 0, 1, 2}));
  EXPECT_EQ(matrix.accuracy(), 0.625);
  EXPECT_NEAR(matrix.precision(), 2.0 / 3, 1e-15);          // precision_score(average="macro")
  EXPECT_NEAR(matrix.recall(), 0.6111111111111112, 1e-15);  // recall_score
  EXPECT_NEAR(matrix.f1(), 0.6222222222222222, 1e-15);      // f1_score
  EXPECT_NEAR(matrix.precision(Average::weighted), 0.7083333333333333, 1e-15);
  EXPECT_NEAR(matrix.recall(Average::weighted), 0.625, 1e-15);
  EXPECT_NEAR(matrix.f1(Average::weighted), 0.65, 1e-15);
  EXPECT_EQ(matrix.f1(Average::micro), 0.625);
  const ClassScore second = matrix.by_class()[1];
  EXPECT_NEAR(second.precision, 1.0 / 3, 1e-15);
  EXPECT_EQ(second.recall, 0.5);
  EXPECT_NEAR(second.f1, 0.4, 1e-15);
  EXPECT_EQ(second.support, 2);
}

TEST(Metrics, AClassThatIsNeverTakenScoresNothing) {
  ConfusionMatrix matrix{.classes = 3};
  matrix.add_predicted(Array({0, 0, 1}, {3}), Array({0, 1, 1}, {3}));
  EXPECT_EQ(matrix.by_class()[2].precision, 0);
  EXPECT_EQ(matrix.by_class()[2].f1, 0);
}

TEST(Metrics, RocAucIsThatOfScikitLearn) {
  RocAuc area;
  EXPECT_TRUE(std::isnan(area.value()));
  area.add(Array({0.1, 0.4, 0.35, 0.8}, {4}), Array({0, 0, 1, 1}, {4}));
  EXPECT_EQ(area.value(), 0.75);  // the example of roc_auc_score
  area.add(Array({0.4, 0.35, 0.9}, {3}), Array({1, 0, 0}, {3}) > 0);
  EXPECT_NEAR(area.value(), 0.5833333333333333, 1e-15);
  RocAuc one_sided;
  one_sided.add(Array({0.5, 0.7}, {2}), Array({1, 1}, {2}));
  EXPECT_TRUE(std::isnan(one_sided.value()));
}

TEST(Metrics, PerplexityIsExpOfTheMeanLoss) {
  seed(5);
  const Array yhat = randn({6, 10}), labels = randint(0, 6, {10});
  Perplexity perplexity{.ignore = 2};
  perplexity.add(slice(yhat, 1, 0, 3), slice(labels, 0, 0, 3));
  perplexity.add(slice(yhat, 1, 3, 10), slice(labels, 0, 3, 10));
  EXPECT_NEAR(perplexity.value(), std::exp(labelcrossentropy(yhat, labels, {.ignore = 2}).item()), 1e-5);
  Perplexity even;
  even.add(zeros({7, 3}), zeros({3}, Int32));
  EXPECT_NEAR(even.value(), 7, 1e-5);
}

TEST(Metrics, R2IsThatOfScikitLearn) {
  R2 r2;
  r2.add(Array({2.5, 0.0}, {2}), Array({3.0, -0.5}, {2}));
  r2.add(Array({2.0, 8.0}, {2}), Array({2.0, 7.0}, {2}));
  EXPECT_NEAR(r2.value(), 0.9486081370449679, 1e-12);  // the example of r2_score
}

TEST(Metrics, ARefusedBatchLeavesThemAsTheyWere) {
  Accuracy accuracy;
  accuracy.add(scores_of_three(), labels_of_three());
  EXPECT_EQ(message([&] { accuracy.add(scores_of_three(), full({8}, 3, Int32)); }),
            "labels: a label must be in [0, 3); got 3; labels count from 0");
  EXPECT_EQ(message([&] { accuracy.add(scores_of_three(), zeros({7}, Int32)); }),
            "Accuracy: labels are (batch...) beside yhat (classes, batch...); got (7) and (3, 8); reshape them");
  EXPECT_EQ(message([&] { accuracy.add(scores_of_three(), zeros({8})); }),
            "Accuracy: labels must be integers, or one-hot in the shape of yhat; got Float32; they are numbers of "
            "classes");
  EXPECT_EQ(accuracy.value(), 5.0 / 8);
  ConfusionMatrix two;
  EXPECT_EQ(message([&] { two.add(scores_of_three(), labels_of_three()); }),
            "ConfusionMatrix: yhat must have 2 classes; got (3, 8); its field `classes` says how many");
  RocAuc area;
  EXPECT_EQ(message([&] {
              area.add(zeros({2}), Array({0, 2}, {2}));
            }),
            "labels: a label must be in [0, 2); got 2; labels count from 0");
  EXPECT_TRUE(area.scores.empty());
  R2 r2;
  EXPECT_EQ(message([&] { r2.add(zeros({2}), zeros({3})); }),
            "R2: both must have the same shape; got (2) and (3); reshape one");
}

}  // namespace
}  // namespace rosin::metrics
