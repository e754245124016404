// Tests of isapprox and allclose; the values are Julia 1.10's and NumPy's by their definitions.
#include <rosin/approx.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <rosin/error.hpp>

namespace rosin {
namespace {

const float infinite_float = std::numeric_limits<float>::infinity();

TEST(IsApprox, ComparesNormsToTheRootOfEpsilon) {
  EXPECT_TRUE(isapprox(Array({1.0f, 2.0f}, {2}), Array({1.0003f, 2.0f}, {2})));
  EXPECT_FALSE(isapprox(Array({1.0f, 2.0f}, {2}), Array({1.001f, 2.0f}, {2})));
  // In Float64 the same difference is far too large.
  EXPECT_FALSE(isapprox(Array({1.0, 2.0}, {2}), Array({1.0003, 2.0}, {2})));
  // The coarser type counts.
  EXPECT_TRUE(isapprox(Array({1.0, 2.0}, {2}), Array({1.0003f, 2.0f}, {2})));
}

TEST(IsApprox, OneNormForAllElements) {
  // Elementwise the first pair would fail.
  EXPECT_TRUE(isapprox(Array({1e-6, 1000.0}, {2}), Array({2e-6, 1000.0}, {2})));
  EXPECT_FALSE(allclose(Array({1e-6, 1000.0}, {2}), Array({2e-6, 1000.0}, {2})));
}

TEST(IsApprox, TakesToleranceAndInfinity) {
  EXPECT_FALSE(isapprox(Array({1.0f}, {1}), Array({1.1f}, {1})));
  EXPECT_TRUE(isapprox(Array({1.0f}, {1}), Array({1.1f}, {1}), {.atol = 0.2}));
  EXPECT_TRUE(isapprox(Array({1.0f}, {1}), Array({1.1f}, {1}), {.rtol = 0.2}));
  EXPECT_TRUE(isapprox(Array({infinite_float, 1.0f}, {2}), Array({infinite_float, 1.0f}, {2})));
  EXPECT_FALSE(isapprox(Array({infinite_float, 1.0f}, {2}), Array({-infinite_float, 1.0f}, {2})));
  EXPECT_FALSE(isapprox(Array({std::nanf("")}, {1}), Array({std::nanf("")}, {1})));
  EXPECT_TRUE(isapprox(Array({1, 2}, {2}), Array({1, 2}, {2})));
  EXPECT_FALSE(isapprox(Array({1, 2}, {2}), Array({1, 3}, {2})));
}

TEST(IsApprox, OfTwoShapesIsAnError) {
  try {
    isapprox(Array({1, 2}, {2}), Array({1, 2}, {1, 2}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::shape);
    EXPECT_STREQ(error.what(), "isapprox: the shapes must agree; got (2) and (1, 2); compare arrays of one shape");
  }
}

TEST(AllClose, IsElementwise) {
  EXPECT_TRUE(allclose(Array({1e10, 1e-7}, {2}), Array({1.00001e10, 1e-8}, {2}), {.atol = 1e-6}));
  EXPECT_FALSE(allclose(Array({1e10, 1e-7}, {2}), Array({1.00001e10, 1e-8}, {2})));
  EXPECT_TRUE(allclose(Array({1e10, 1e-8}, {2}), Array({1.00001e10, 1e-9}, {2})));
}

}  // namespace
}  // namespace rosin
