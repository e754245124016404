// Losses against PyTorch and Flux's published values (tests/oracles/loss.txt).
#include <rosin/loss.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/index.hpp>

#include "../tests/layer_testing.hpp"
#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::OracleCall;
using oracles::OracleCase;
using Inputs = std::vector<Array>;
using Values = std::vector<float>;

template <class Options> OracleCall plain(Array (*loss)(const Array&, const Array&, const Options&)) {
  return [loss](const OracleCase&, const Inputs& x) { return Inputs{loss(x[0], x[1], Options{})}; };
}

TEST(Loss, AgreesWithOracles) {
  oracles::run_oracles("loss.txt",
                       {{"mse", plain(mse)},
                        {"mae", plain(mae)},
                        {"msle", plain(msle)},
                        {"huber_loss", plain(huber_loss)},
                        {"crossentropy", plain(crossentropy)},
                        {"logitcrossentropy", plain(logitcrossentropy)},
                        {"binarycrossentropy", plain(binarycrossentropy)},
                        {"logitbinarycrossentropy",
                         [](const OracleCase& e, const Inputs& x) {
                           const Array weight = e.has("pos_weight") ? x[2] : Array();
                           return Inputs{logitbinarycrossentropy(x[0], x[1], {.pos_weight = weight})};
                         }},
                        {"kldivergence", plain(kldivergence)},
                        {"poisson_loss", plain(poisson_loss)},
                        {"hinge_loss", plain(hinge_loss)},
                        {"squared_hinge_loss", plain(squared_hinge_loss)},
                        {"dice_coeff_loss", plain(dice_coeff_loss)},
                        {"binary_focal_loss", plain(binary_focal_loss)},
                        {"focal_loss", plain(focal_loss)},
                        {"tversky_loss",
                         [](const OracleCase& e, const Inputs& x) {
                           return Inputs{tversky_loss(x[0], x[1], {.beta = e.number("beta", 0.7)})};
                         }},
                        {"siamese_contrastive_loss", [](const OracleCase& e, const Inputs& x) {
                           return Inputs{siamese_contrastive_loss(x[0], x[1], {.margin = e.number("margin", 1)})};
                         }}});
}

struct NamedLoss {
  const char* name;
  Array (*loss)(const Array& yhat, const Array& y);
};
template <auto loss> Array with_defaults(const Array& yhat, const Array& y) { return loss(yhat, y, {}); }

const NamedLoss all_losses[] = {{"mse", with_defaults<mse>},
                                {"mae", with_defaults<mae>},
                                {"msle", with_defaults<msle>},
                                {"huber_loss", with_defaults<huber_loss>},
                                {"crossentropy", with_defaults<crossentropy>},
                                {"logitcrossentropy", with_defaults<logitcrossentropy>},
                                {"binarycrossentropy", with_defaults<binarycrossentropy>},
                                {"logitbinarycrossentropy", with_defaults<logitbinarycrossentropy>},
                                {"kldivergence", with_defaults<kldivergence>},
                                {"poisson_loss", with_defaults<poisson_loss>},
                                {"hinge_loss", with_defaults<hinge_loss>},
                                {"squared_hinge_loss", with_defaults<squared_hinge_loss>},
                                {"dice_coeff_loss", with_defaults<dice_coeff_loss>},
                                {"tversky_loss", with_defaults<tversky_loss>},
                                {"binary_focal_loss", with_defaults<binary_focal_loss>},
                                {"focal_loss", with_defaults<focal_loss>},
                                {"siamese_contrastive_loss", with_defaults<siamese_contrastive_loss>}};

TEST(Loss, GradientsAgreeWithFiniteDifferences) {
  seed(3);
  const Array yhat = uniform({3, 4}, 0.2, 0.8, Float64), y = cast(onehot(Array({0, 2, 1, 1}, {4}), 3), Float64);
  for (const NamedLoss& entry : all_losses) {
    layer_testing::check_function_gradient([&](const Array& x) { return entry.loss(x, y); }, yhat, entry.name);
  }
}

TEST(Loss, KeepsTheTypeOfThePrediction) {
  const Array labels({0, 2, 1, 1}, {4});
  for (DType type : {Float32, Float64, Float16, BFloat16}) {
    const Array yhat = cast(uniform({3, 4}, 0.2, 0.8), type);
    for (const NamedLoss& entry : all_losses) {
      EXPECT_EQ(entry.loss(yhat, cast(onehot(labels, 3), type)).dtype(), type) << entry.name;
      EXPECT_EQ(entry.loss(yhat, onehot(labels, 3)).dtype(), type) << entry.name;
    }
  }
}

TEST(Loss, LogitcrossentropyTakesOneHotLabelsOfEveryType) {
  const Array yhat = randn({5, 6}), y = onehot(randint(0, 5, {6}), 5);
  const double want = logitcrossentropy(yhat, cast(y, Float32)).item();
  EXPECT_NEAR(logitcrossentropy(yhat, y).item(), want, 1e-6);
  EXPECT_NEAR(logitcrossentropy(yhat, cast(y, UInt8)).item(), want, 1e-6);
  EXPECT_NEAR(logitcrossentropy(yhat, y, {.agg = mean}).item(), want, 1e-6);
  EXPECT_NEAR(logitcrossentropy(yhat, y, {.agg = sum}).item(), want * 6, 1e-5);
  EXPECT_EQ(logitcrossentropy(yhat, y, {.agg = identity}).shape(), (Shape{1, 6}));
  const Array weights({1.0f, 0.0f, 0.0f, 0.0f, 0.0f, 2.0f}, {1, 6});
  const Array each = logitcrossentropy(yhat, y, {.agg = identity});
  const Array weighted = logitcrossentropy(yhat, y, {.agg = [&](const Array& l) { return sum(l * weights); }});
  EXPECT_NEAR(weighted.item(), each.item(0, 0) + 2 * each.item(0, 5), 1e-5);
  EXPECT_NEAR(crossentropy(softmax(yhat), y).item(), want, 1e-5);
}

TEST(Loss, LogitcrossentropyStaysFiniteForLargeLogits) {
  const Array yhat({1e4f, -1e4f, 0.0f, 0.0f}, {2, 2}), y({0.0f, 1.0f, 1.0f, 0.0f}, {2, 2});
  auto [loss, by_yhat] = withgradient([&](const Array& x) { return logitcrossentropy(x, y); }, yhat);
  EXPECT_NEAR(loss.item(), (2e4 + std::log(2.0)) / 2, 1e-2);
  layer_testing::expect_near(by_yhat, {0.5, -0.5, -0.25, 0.25}, 1e-6);
}

constexpr float infinity = std::numeric_limits<float>::infinity();

/// PyTorch's cross_entropy of class indices: masked classes take no part, their gradient is 0. Of two classes with
/// logits 0 and 1: log(1 + e) of the first, whose gradient is softmax less one-hot.
TEST(Loss, LogitcrossentropyTakesLogitsMaskedWithMinusInfinity) {
  const Array yhat({0.0f, -infinity, 1.0f}, {3, 1});
  const Array y({1.0f, 0.0f, 0.0f}, {3, 1});
  auto [loss, by] = withgradient([](const Array& x, const Array& l) { return logitcrossentropy(x, l); }, yhat, y);
  EXPECT_NEAR(loss.item(), std::log1p(std::exp(1.0)), 1e-6);
  layer_testing::expect_near(std::get<0>(by), {-0.7310586, 0, 0.7310586}, 1e-6);
  layer_testing::expect_near(std::get<1>(by), {1.3132617, 0, 0.3132617}, 1e-6);
  EXPECT_NEAR(logitcrossentropy(yhat, y > 0, {.agg = sum}).item(), std::log1p(std::exp(1.0)), 1e-6);
  EXPECT_EQ(logitcrossentropy(yhat, Array({0.0f, 1.0f, 0.0f}, {3, 1})).item(), infinity);
}

/// Limits by hand: a prediction that is surely right costs nothing, one that is surely wrong costs Inf, and slopes are
/// sigmoid(x) - y.
TEST(Loss, LogitbinarycrossentropyTakesInfiniteLogits) {
  const Array yhat({-infinity, infinity, -infinity, infinity, 0.0f}, {5}), y({0.0f, 1.0f, 1.0f, 0.0f, 1.0f}, {5});
  const auto loss = [](const Array& x, const Array& l) { return logitbinarycrossentropy(x, l, {.agg = identity}); };
  const Values got = loss(yhat, y).to_vector();
  EXPECT_EQ(Values(got.begin(), got.begin() + 4), (Values{0, 0, infinity, infinity}));
  EXPECT_NEAR(got[4], std::log(2.0), 1e-6);
  const auto total = [&](const Array& x, const Array& l) { return sum(loss(x, l)); };
  auto [by_yhat, by_y] = gradient(total, yhat, y);
  layer_testing::expect_near(by_yhat, {0, 0, -1, 1, -0.5}, 1e-7);
  layer_testing::expect_near(by_y, {0, 0, 0, 0, 0}, 0);
}

/// Probabilities of exactly 0 and 1, right and wrong, with and without eps: no loss is NaN, and where it is finite the
/// gradient is too.
TEST(Loss, ProbabilitiesAtTheirEndsGiveNoNaN) {
  const Array yhat({1.0f, 0.0f, 0.0f, 1.0f}, {2, 2}), right = yhat, wrong = 1 - yhat;
  const auto check = [&](const char* name, auto loss) {
    for (const Array& y : {right, wrong}) {
      auto [value, by_yhat] = withgradient([&](const Array& x) { return loss(x, y); }, yhat);
      EXPECT_FALSE(std::isnan(value.item())) << name;
      if (!std::isfinite(value.item())) continue;
      for (float slope : by_yhat.to_vector()) EXPECT_TRUE(std::isfinite(slope)) << name;
    }
  };
  for (const NamedLoss& entry : all_losses) check(entry.name, entry.loss);
  for (double gamma : {0.0, 0.5, 1.0, 1.5, 2.0}) {
    check("focal_loss", [&](const Array& x, const Array& y) { return focal_loss(x, y, {.gamma = gamma}); });
    check("binary_focal_loss",
          [&](const Array& x, const Array& y) { return binary_focal_loss(x, y, {.gamma = gamma}); });
  }
  const Array none({1.0f, 0.0f}, {2, 1});
  EXPECT_EQ(crossentropy(none, none, {.eps = 0}).item(), 0);
  EXPECT_EQ(kldivergence(none, none, {.eps = 0}).item(), 0);
  EXPECT_EQ(focal_loss(none, none, {.eps = 0}).item(), 0);
  EXPECT_EQ(poisson_loss(none, none).item(), 0.5);
}

TEST(Loss, HuberOfAnInfiniteDistanceHasTheSlopeDelta) {
  const Array yhat({infinity, -infinity, 0.5f}, {3});
  auto [value, slope] = withgradient([](const Array& x) { return sum(huber_loss(x, 0, {.agg = identity})); }, yhat);
  EXPECT_EQ(value.item(), infinity);
  EXPECT_EQ(slope.to_vector(), (Values{1, -1, 0.5}));
}

TEST(Loss, ANumberStandsForEveryLabel) { EXPECT_NEAR(mse(Array({1.0f, 3.0f}, {2}), 1).item(), 2, 1e-6); }

TEST(Loss, DistancesOfUnsignedIntegersDoNotWrapAround) {
  const Array small = cast(Array({1.0f, 250.0f}, {2}), UInt8), large = cast(Array({4.0f, 249.0f}, {2}), UInt8);
  EXPECT_EQ(mae(small, large).item(), 2);
  EXPECT_EQ(mse(small, large).item(), 5);
  EXPECT_EQ(huber_loss(small, large).item(), (2.5 + 0.5) / 2);
  EXPECT_EQ(mae(cast(small, UInt64), large).item(), 2);
}

TEST(Loss, ChecksSizesAndOptions) {
  EXPECT_EQ(
      error_of([] {
        mse(ones({2, 3}), ones({3, 2}));
      }),
      "mse: loss function expects size(yhat) = (2, 3) to match size(y) = (3, 2); sizes do not broadcast here: reshape "
      "one, or onehot(y, classes) for labels");
  for (const NamedLoss& entry : all_losses) {
    const std::string text = error_of([&] { entry.loss(ones({10, 4}), ones({4})); });
    EXPECT_EQ(text.substr(0, text.find(';')), std::string(entry.name) +
                                                  ": loss function expects size(yhat) = (10, 4) to "
                                                  "match size(y) = (4)");
  }
  EXPECT_EQ(error_of([] { siamese_contrastive_loss(ones({2}), ones({2}), {.margin = -1}); }),
            "siamese_contrastive_loss: margin must be non-negative; got -1.000000; use the default 1");
}

TEST(Loss, LabelSmoothingFollowsFlux) {
  // label_smoothing([0 1; 1 0; 0 0], 0.3) and label_smoothing of labels 0 and 1 with dims = 0 in Flux's words.
  layer_testing::expect_near(label_smoothing(Array({0.0, 1.0, 0.0}, {3}), 0.3), {0.1, 0.8, 0.1}, 1e-12);
  layer_testing::expect_near(binary_label_smoothing(Array({0.0, 1.0}, {2}), 0.2), {0.1, 0.9}, 1e-12);
  EXPECT_EQ(error_of([] { label_smoothing(ones({2}), 1); }),
            "label_smoothing: alpha must be between 0 and 1; got 1.000000; use a small number such as 0.1");
}

}  // namespace
}  // namespace rosin
