// Calls that a device's library computes: the reference plug-in with vendor=1 has matmul with bias and relu, with
// vendor=2 all that backend.h says of matmul. What it refuses is computed by kernels, that step alone. Read first:
// library_call_testing.hpp.
#include <gtest/gtest.h>

#include <rosin/matmul.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>

#include "library_call_testing.hpp"
#include "run_itself.hpp"

namespace rosin {
namespace {

template <class F> Launched launches(F&& f, const std::vector<Array>& arrays, double tolerance = 1e-6) {
  return launches_on(get_device("reference", 0), f, arrays, tolerance);
}

TEST(DISABLED_Inside, ALibraryComputes) {
  const Array w = randn({6, 5}), x = randn({5, 4}), b = randn({6});
  EXPECT_EQ(launches(product, {w, x}), (Launched{1, 1, 0}));
  EXPECT_EQ(launches(layer, {w, x, b}), (Launched{1, 1, 0}));
  EXPECT_EQ(launches(smooth_layer, {w, x, b}), (Launched{2, 1, 0}));  // tanh is a kernel behind
  EXPECT_EQ(launches([](const Arrays& a) { return matmul(transpose(a[0]), transpose(a[1])); }, {x, w}),
            (Launched{1, 1, 0}));
  EXPECT_EQ(launches(product, {randn({3, 4, 2}), randn({4, 5, 1})}), (Launched{1, 1, 0}));
  EXPECT_EQ(launches(product, {cast(w, Float64), cast(x, Float64)}), (Launched{1, 1, 0}));
  EXPECT_EQ(launches(product, {zeros({6, 0}), zeros({0, 4})}).by_library, 0);
}

TEST(LibraryCalls, TakeTheirBiasAndRelu) {
  expect_success(run_itself("ALibraryComputes", "ROSIN_REFERENCE=devices=1,vendor=1"));
}

Array scaled(const Arrays& x) { return 0.25 * matmul(x[0], x[1]); }
Array scaled_and_added(const Arrays& x) { return relu(matmul(x[0], x[1]) * 0.25 + x[2]); }
Array scaled_layer(const Arrays& x) { return 0.25 * matmul(x[0], x[1]) + x[2]; }

TEST(DISABLED_Inside, ALibraryScales) {
  const Array w = randn({6, 5}), x = randn({5, 4}), b = randn({6}), r = randn({6, 4});
  EXPECT_EQ(launches(scaled, {w, x}), (Launched{1, 1, 0}));
  EXPECT_EQ(launches(scaled_and_added, {w, x, r}), (Launched{1, 1, 0}));
  EXPECT_EQ(launches(scaled_layer, {w, x, b}), (Launched{1, 1, 0}));
  EXPECT_EQ(launches(scaled, {cast(w, Float64), cast(x, Float64)}), (Launched{1, 1, 0}));
  // Once more, or behind something else, is a kernel's.
  EXPECT_EQ(launches([](const Arrays& a) { return 3 * (2 * matmul(a[0], a[1])); }, {w, x}), (Launched{2, 1, 0}));
  EXPECT_EQ(launches([](const Arrays& a) { return 2 * (matmul(a[0], a[1]) + a[2]); }, {w, x, b}), (Launched{2, 1, 0}));
  // One plan for all numbers, which runs as a graph in the end.
  const Array there_w = w | get_device("reference", 0), there_x = x | get_device("reference", 0);
  const Array sum = matmul(w, x);
  const int64_t graphs = stats().graph_launches;
  for (int i = 1; i < 7; ++i) {
    const Array got = matmul(there_w, there_x) * i;
    EXPECT_TRUE(allclose(got | Device(), sum * i, {.rtol = 1e-6, .atol = 1e-6})) << i;
  }
  EXPECT_GT(stats().graph_launches, graphs);
}

TEST(LibraryCalls, TakeANumberThatTheProductIsMultipliedBy) {
  expect_success(run_itself("ALibraryScales", "ROSIN_REFERENCE=devices=1,vendor=2"));
}

TEST(DISABLED_Inside, ALibraryRefuses) {
  const Array w = randn({6, 5}), x = randn({5, 4}), b = randn({6});
  EXPECT_EQ(launches(layer, {w, x, b}), (Launched{2, 0, 1}));  // for its sizes: the product, and a kernel behind it
  EXPECT_EQ(launches(layer, {slice(w, 0, 0, 3), x, slice(b, 0, 0, 3)}).by_library, 1);
  EXPECT_EQ(launches(product, {cast(w, Int64), cast(x, Int64)}), (Launched{1, 0, 0}));  // for its type: never asked
  const auto both = [](const Arrays& a) { return relu(matmul(a[0], relu(matmul(a[1], a[2]) + a[3]))); };
  EXPECT_EQ(launches(both, {randn({3, 6}), w, x, b}), (Launched{3, 1, 1}));  // the step that is refused, alone
  // A matrix that does not begin where the plug-in can read.
  const auto rest = [](const Arrays& a) { return matmul(slice(a[0], 1, 1, 5), a[1]); };
  EXPECT_EQ(launches(rest, {randn({3, 5}), randn({4, 2})}), (Launched{1, 0, 1}));
  EXPECT_EQ(launches(scaled_and_added, {w, x, randn({6, 4})}), (Launched{2, 0, 1}));
}

TEST(LibraryCalls, ThatAreRefusedFallBackAlone) {
  expect_success(run_itself("ALibraryRefuses", "ROSIN_REFERENCE=devices=1,vendor=2,vendor_rows=5"));
}

TEST(DISABLED_Inside, ALibraryTrains) {
  const std::vector<float> here = losses(Device());
  const Stats before = stats();
  const std::vector<float> there = losses(get_device("reference", 0));
  EXPECT_EQ(stats().library_calls - before.library_calls, 5 * 5);  // two forward, three backward
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-5) << i;
  trim();  // calls of plans go with them
  synchronize(get_device("reference", 0));
}

TEST(LibraryCalls, TrainAModel) { expect_success(run_itself("ALibraryTrains", "ROSIN_REFERENCE=devices=1,vendor=1")); }

/// Bits or the operand of the activation go from the first product to that of its gradient; the sums over the batch are
/// theirs too. What is left: the slope of the loss, and the gradients joined.
TEST(DISABLED_Inside, ALibraryDoesGradients) {
  for (const auto step : {step_of_two_layers<relu>, step_of_two_layers<gelu>}) {
    EXPECT_EQ(launches(step, two_layers(), 1e-4), (Launched{7, 5, 0}));
    EXPECT_EQ(launches(step, two_layers(Float64), 1e-12), (Launched{7, 5, 0}));
  }
}

TEST(LibraryCalls, DoWhatGradientsNeedBesideTheirProducts) {
  expect_success(run_itself("ALibraryDoesGradients", "ROSIN_REFERENCE=devices=1,vendor=2"));
}

/// The first layer has 9 rows: its product and that of its gradient are the library's, the rest is not.
TEST(DISABLED_Inside, ALibraryRefusesEpilogues) {
  for (const auto step : {step_of_two_layers<relu>, step_of_two_layers<gelu>}) {
    const Launched got = launches(step, two_layers(Float64), 1e-12);
    EXPECT_EQ(got.by_library, 5);
    EXPECT_EQ(got.refused, 2);
  }
  const Array w = randn({6, 5}), x = randn({5, 4}), b = randn({6});
  EXPECT_EQ(launches(layer, {w, x, b}), (Launched{2, 1, 1}));
  EXPECT_EQ(launches(product, {w, x}), (Launched{1, 1, 0}));
}

TEST(LibraryCalls, WhoseEpilogueIsRefusedKeepTheirProduct) {
  expect_success(run_itself("ALibraryRefusesEpilogues", "ROSIN_REFERENCE=devices=1,vendor=2,vendor_epilogues=5"));
}

}  // namespace
}  // namespace rosin
