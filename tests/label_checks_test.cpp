// Labels beside the scores of their classes on a device: the rows that read which labels are classes find that out, no
// kernel looks at the labels alone, and a label that is none leaves the model as it was.
// Read first: test_device.hpp, device_checks_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/label_loss.hpp>
#include <rosin/matmul.hpp>
#include <rosin/model.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/random.hpp>
#include <rosin/stats.hpp>
#include <rosin/train.hpp>

#include "error_testing.hpp"
#include "test_device.hpp"

namespace rosin {
namespace {

using Values = std::vector<double>;

constexpr int64_t classes = 5, batch = 7;
const std::vector<int64_t> right = {0, 4, 2, 2, 1, 3, 0};

/// Scores that are parameters: one step takes the loss, its gradient and the new scores from the same rows.
struct Scores {
  Array w;
};

Array given_scores() { return sin(reshape(cast(arange(classes * batch), Float32), {classes, batch})); }

Array labels_of(const std::vector<int64_t>& labels, DType type = Int64) { return cast(Array(labels, {batch}), type); }

/// By definition: -log(exp(x(label)) / sum of exp(x)), the mean of those that count.
double loss_by_definition(const Values& x, const std::vector<int64_t>& labels, std::optional<int64_t> ignore = {}) {
  double all = 0, counted = 0;
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t label = labels[static_cast<size_t>(i)];
    if (label == ignore) continue;
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) sum += std::exp(x[static_cast<size_t>(i * classes + k)]);
    all += std::log(sum) - x[static_cast<size_t>(i * classes + label)];
    ++counted;
  }
  return all / counted;
}

TEST(LabelChecks, LossesAreThoseOfTheDefinition) {
  const Device where = some_device();
  const Values x = given_scores().to_vector<double>();
  const Array scores = given_scores() | where;
  for (const DType type : {UInt8, Int32, Int64}) {
    const Array labels = labels_of(right, type) | where;
    EXPECT_NEAR(labelcrossentropy(scores, labels).item<double>(), loss_by_definition(x, right), 1e-5);
    const Array ignoring = labelcrossentropy(scores, labels, {.ignore = 2});
    EXPECT_NEAR(ignoring.item<double>(), loss_by_definition(x, right, 2), 1e-5);
  }
}

TEST(LabelChecks, NoKernelLooksAtLabelsAlone) {
  const Device where = some_device();
  const Array features = given_scores() | where, weight = eye(classes) | where, labels = labels_of(right) | where;
  eval();
  const Stats before = stats();
  const auto loss_of = [&](const Array& w) { return labelcrossentropy(matmul(w, features), labels); };
  const auto [loss, slope] = withgradient(loss_of, weight);
  eval();
  EXPECT_EQ(stats().calls - before.calls, 2);  // the products
  EXPECT_EQ(stats().kernels - before.kernels, 1);
  EXPECT_NEAR(loss.item<double>(), loss_by_definition(given_scores().to_vector<double>(), right), 1e-5);
}

TEST(LabelChecks, ALabelThatIsNoneIsNamed) {
  const Device where = some_device();
  const Array scores = given_scores() | where;
  for (const int64_t wrong : {int64_t{-1}, classes, int64_t{1} << 40}) {
    std::vector<int64_t> labels = right;
    labels[4] = wrong;
    const Array there = labels_of(labels) | where;
    const std::string wanted =
        "labels: a label must be in [0, 5); got " + std::to_string(wrong) + "; labels count from 0";
    for (const double smoothing : {0.0, 0.1}) {
      const auto loss = [&](const Array& x) { return labelcrossentropy(x, there, {.smoothing = smoothing}); };
      EXPECT_EQ(error_of([&] { eval(loss(scores)); }, ErrorKind::argument), wanted);
      EXPECT_EQ(error_of([&] { eval(loss(matmul(eye(classes) | where, scores))); }, ErrorKind::argument), wanted);
    }
  }
}

TEST(LabelChecks, AStepWithSuchALabelChangesNothing) {
  const Device where = some_device();
  Scores model = Scores{given_scores()} | where;
  State state = setup(Descent{.eta = 0.5}, model);
  std::vector<int64_t> labels = right;
  labels[0] = classes;
  const Array good = labels_of(right) | where, bad = labels_of(labels) | where;
  const auto step = [&](const Array& at) {
    const auto [loss, g] = withgradient([&](const Scores& m) { return labelcrossentropy(m.w, at); }, model);
    update(state, model, g);
    return loss;
  };
  step(good);
  const Values before = model.w.to_vector<double>();
  const std::string said = error_of(
      [&] {
        step(bad);
        synchronize(where);
      },
      ErrorKind::argument);
  EXPECT_EQ(said, "labels: a label must be in [0, 5); got 5; labels count from 0");
  EXPECT_EQ(model.w.to_vector<double>(), before);
  EXPECT_NEAR(step(good).item<double>(), loss_by_definition(before, right), 1e-5);
  EXPECT_LT(labelcrossentropy(model.w, good).item<double>(), loss_by_definition(before, right));
}

}  // namespace
}  // namespace rosin
