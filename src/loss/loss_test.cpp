// Losses against PyTorch and Flux's published values (tests/oracles/loss.txt).
#include <rosin/loss.hpp>

#include <gtest/gtest.h>

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
                        {"logitbinarycrossentropy", plain(logitbinarycrossentropy)},
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
  EXPECT_NEAR(crossentropy(softmax(yhat), y).item(), want, 1e-5);
}

TEST(Loss, LogitcrossentropyStaysFiniteForLargeLogits) {
  const Array yhat({1e4f, -1e4f, 0.0f, 0.0f}, {2, 2}), y({0.0f, 1.0f, 1.0f, 0.0f}, {2, 2});
  auto [loss, by_yhat] = withgradient([&](const Array& x) { return logitcrossentropy(x, y); }, yhat);
  EXPECT_NEAR(loss.item(), (2e4 + std::log(2.0)) / 2, 1e-2);
  layer_testing::expect_near(by_yhat, {0.5, -0.5, -0.25, 0.25}, 1e-6);
}

TEST(Loss, ANumberStandsForEveryLabel) { EXPECT_NEAR(mse(Array({1.0f, 3.0f}, {2}), 1).item(), 2, 1e-6); }

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
