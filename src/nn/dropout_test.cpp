// Dropout: when it acts, what it drops.
#include <rosin/dropout.hpp>

#include <gtest/gtest.h>

#include <rosin/chain.hpp>

#include "../tests/layer_testing.hpp"

namespace rosin {
namespace {

/// What a layer gives inside a gradient call.
template <class L> Array inside(const L& layer, const Array& x) {
  Array y;
  gradient([&](const Array& a) { return sum(y = layer(a)); }, x);
  return y;
}

double zeros_in(const Array& x) { return sum(cast(x == 0, Float64)).item(); }

TEST(Dropout, IsTheIdentityOutsideGradientCalls) {
  const Array x = rand({10, 10});
  EXPECT_TRUE(same(Dropout(0.5)(x), x));
  EXPECT_GT(zeros_in(inside(Dropout(0.5), x)), 0);
}

TEST(Dropout, ProbabilitiesZeroAndOneAreExact) {
  const Array x = rand({100}) + 1;
  EXPECT_EQ(zeros_in(inside(Dropout(0), x)), 0);
  EXPECT_EQ(zeros_in(inside(Dropout(1), x)), 100);
  const Array g = gradient([](const Array& a) { return sum(Dropout(1)(a)); }, x);
  layer_testing::expect_near(g, std::vector<double>(100, 0), 0);
}

TEST(Dropout, DropsAndScales) {
  seed(5);
  const Array y = inside(Dropout(0.9), ones({100}));
  EXPECT_GT(zeros_in(y), 50);
  const double largest = maximum(y).item();
  EXPECT_NEAR(largest, 10, 1e-4);
  EXPECT_NEAR(mean(inside(Dropout(0.3), ones({20000}))).item(), 1, 0.05);
}

TEST(Dropout, ModesWinOverGradientCalls) {
  const Array x = rand({100}) + 1;
  Chain model(Dropout(0.5));
  testmode(model);
  EXPECT_EQ(zeros_in(inside(model, x)), 0);
  trainmode(model);
  EXPECT_GT(zeros_in(model(x)), 0);
  automode(model);
  EXPECT_EQ(zeros_in(model(x)), 0);
  EXPECT_EQ(to_string(Dropout(0.5, {.active = LayerMode::test})), "Dropout(0.5, active=false)");
}

TEST(Dropout, DropsWholeRowsAndColumns) {
  seed(2);
  const Array x = rand({20, 30}) + 1;
  const Array rows = any(inside(Dropout(0.5, {.dims = 0}), x), 1), row_all = all(inside(Dropout(0, {.dims = 0}), x), 1);
  EXPECT_TRUE(all(row_all).item<bool>());
  const Array kept = inside(Dropout(0.5, {.dims = 0}), x) == 0;
  EXPECT_TRUE(all(any(kept, 1) == all(kept, 1)).item<bool>());
  const Array by_column = inside(Dropout(0.5, {.dims = 1}), x) == 0;
  EXPECT_TRUE(all(any(by_column, 0) == all(by_column, 0)).item<bool>());
  EXPECT_TRUE(any(any(by_column, 0) != any(by_column)).item<bool>());
  EXPECT_EQ(rows.shape(), (Shape{20, 1}));
}

TEST(Dropout, DrawsFromTheGeneratorItIsGiven) {
  Rng one(11), other(11);
  const Array x = ones({64});
  const Array a = inside(Dropout(0.5, {.rng = &one}), x), b = inside(Dropout(0.5, {.rng = &other}), x);
  EXPECT_TRUE(all(a == b).item<bool>());
  EXPECT_FALSE(all(a == inside(Dropout(0.5, {.rng = &one}), x)).item<bool>());
}

TEST(Dropout, RefusesWhatIsNoProbability) {
  EXPECT_EQ(error_of([] { Dropout(1.5); }),
            "Dropout: the probability must be between 0 and 1; got 1.5; 0.5 drops half of the elements");
}

TEST(AlphaDropout, KeepsMeanAndVariance) {
  seed(4);
  const Array y = inside(AlphaDropout(0.5), randn({100, 100}));
  EXPECT_NEAR(mean(y).item(), 0, 0.2);
  EXPECT_NEAR(var(y).item(), 1, 0.2);
  const Array x = randn({10});
  EXPECT_TRUE(same(AlphaDropout(0.5)(x), x));
}

}  // namespace
}  // namespace rosin
