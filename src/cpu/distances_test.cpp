// Distances between points, beside the definition in Float64.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/measures.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>
#include <rosin/vmap.hpp>

namespace rosin {
namespace {

Array points(int seed, const Shape& shape) {
  Rng rng(static_cast<uint64_t>(seed));
  return randn(rng, shape);
}

double defined(const Array& a, int64_t i, const Array& b, int64_t j) {
  double sum = 0;
  for (int64_t k = 0; k < a.size(0); ++k) sum += std::pow(a.item(k, i) - b.item(k, j), 2);
  return std::sqrt(sum);
}

void expect_defined(const Array& a, const Array& b, const std::string& what) {
  const Array found = cdist(a, b);
  ASSERT_EQ(found.shape(), Shape({a.size(1), b.size(1)})) << what;
  const std::vector<float> values = found.to_vector<float>();
  for (int64_t j = 0; j < b.size(1); ++j) {
    for (int64_t i = 0; i < a.size(1); ++i) {
      const double wanted = defined(a, i, b, j);
      ASSERT_NEAR(values[static_cast<size_t>(i + j * a.size(1))], wanted, 5e-7 * wanted) << what << i << ", " << j;
    }
  }
}

TEST(Distances, AreTheDefinitionsForAnyNumberOfFeaturesAndPoints) {
  for (const int64_t features : {1, 2, 3, 16, 17, 70}) {
    for (const int64_t n : {1, 5, 33, 64}) {
      for (const int64_t m : {1, 7, 12, 25}) {
        const std::string what =
            std::to_string(features) + " features of " + std::to_string(n) + " and " + std::to_string(m) + " points: ";
        expect_defined(points(1, {features, n}), points(2, {features, m}), what);
      }
    }
  }
  expect_defined(points(1, {5, 9}), points(2, {5, 3000}), "few points beside many: ");
  expect_defined(points(1, {40, 300}), points(2, {40, 1500}), "several chunks: ");
}

/// One running sum of so many squares would be ten times as far off.
TEST(Distances, OfManyFeaturesLoseNoDigits) {
  const Array a = points(1, {4000, 40}), b = points(2, {4000, 50});
  const std::vector<float> found = cdist(a, b).to_vector<float>();
  const Array wide = cast(a, Float64);
  double squares = 0;
  for (int64_t j = 0; j < 50; ++j) {
    const Array apart = square(wide - cast(slice(b, 1, j, j + 1), Float64));
    const std::vector<double> wanted = sqrt(sum(apart, 0)).to_vector<double>();
    for (size_t i = 0; i < 40; ++i) squares += std::pow(found[i + 40 * static_cast<size_t>(j)] / wanted[i] - 1, 2);
  }
  EXPECT_LT(std::sqrt(squares / 2000), 5e-8);
}

TEST(Distances, OfNearPointsFarFromTheOriginKeepTheirDigits) {
  const Array far = points(1, {30, 40}) * 1e-3f + 1000.f;
  expect_defined(far, far + 0x1p-10f, "");
}

TEST(Distances, NeitherOverflowNorVanish) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Array a({3e25f, 4e25f, 3e-25f, 4e-25f, 1.f, 2.f, infinity, 0.f, nan, 0.f, 3e38f, 0.f}, {2, 6});
  const std::vector<float> found = cdist(a, Array({0.f, 0.f, infinity, 0.f}, {2, 2})).to_vector<float>();
  EXPECT_FLOAT_EQ(found[0], 5e25f);
  EXPECT_FLOAT_EQ(found[1], 5e-25f);
  EXPECT_FLOAT_EQ(found[2], std::sqrt(5.f));
  EXPECT_EQ(found[3], infinity);
  EXPECT_TRUE(std::isnan(found[4]));
  EXPECT_FLOAT_EQ(found[5], 3e38f);
  EXPECT_EQ(found[6], infinity);
  EXPECT_TRUE(std::isnan(found[9]));  // infinity - infinity
  const Array same = points(3, {20, 50});
  for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(cdist(same, same).item(i, i), 0);
}

TEST(Distances, AreThoseOfEachItemWhereBatchesBroadcast) {
  const Array a = points(1, {3, 4, 2}), b = points(2, {3, 5}), found = cdist(a, b);
  ASSERT_EQ(found.shape(), Shape({4, 5, 2}));
  const Array mapped = vmap([&](const Array& x) { return cdist(x, b); }, a);
  EXPECT_EQ(mapped.to_vector(), found.to_vector());
  for (int64_t item = 0; item < 2; ++item) {
    const Array one = squeeze(slice(a, 2, item, item + 1), 2);
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 5; ++j) EXPECT_NEAR(found.item(i, j, item), defined(one, i, b, j), 1e-6);
    }
  }
}

TEST(Distances, OfHalvesAreComputedInFloat32) {
  for (const DType type : {Float16, BFloat16}) {
    const Array a = cast(points(1, {8, 10}), type), b = cast(points(2, {8, 6}), type), found = cdist(a, b);
    ASSERT_EQ(found.dtype(), type);
    const double unit = type == Float16 ? 0x1p-11 : 0x1p-8;
    for (int64_t i = 0; i < 10; ++i) {
      const double wanted = defined(a, i, b, 3);
      EXPECT_NEAR(found.item(i, 3), wanted, 1.001 * unit * wanted);
    }
  }
}

TEST(Distances, OfNoPointsAndOfNoFeaturesAreNoneAndZero) {
  EXPECT_EQ(cdist(zeros({3, 0}), zeros({3, 2})).shape(), Shape({0, 2}));
  EXPECT_EQ(cdist(zeros({0, 2}), zeros({0, 1})).to_vector(), (std::vector<float>{0, 0}));
}

TEST(Distances, HaveTheGradientOfTheDefinition) {
  const Array a = points(1, {3, 4}), b = points(2, {3, 5}), weights = points(3, {4, 5});
  const auto [by_a, by_b] = gradient([&](const Array& x, const Array& y) { return sum(cdist(x, y) * weights); }, a, b);
  for (int64_t k = 0; k < 3; ++k) {
    for (int64_t i = 0; i < 4; ++i) {
      double slope = 0;
      for (int64_t j = 0; j < 5; ++j) slope += weights.item(i, j) * (a.item(k, i) - b.item(k, j)) / defined(a, i, b, j);
      EXPECT_NEAR(by_a.item(k, i), slope, 1e-5);
    }
    for (int64_t j = 0; j < 5; ++j) {
      double slope = 0;
      for (int64_t i = 0; i < 4; ++i) slope -= weights.item(i, j) * (a.item(k, i) - b.item(k, j)) / defined(a, i, b, j);
      EXPECT_NEAR(by_b.item(k, j), slope, 1e-5);
    }
  }
  const Array itself = gradient([&](const Array& x) { return sum(cdist(x, a)); }, a);
  EXPECT_TRUE(std::isfinite(sum(itself).item()));  // where points are equal the gradient is 0
}

TEST(Distances, HaveSecondGradients) {
  const Array a = points(1, {3, 4}), b = points(2, {3, 5}), direction = points(3, {3, 4});
  const Array second = gradient(  // of the sum of squares, by a: 2 for each of five points
      [&](const Array& x) {
        return sum(gradient([&](const Array& y) { return sum(square(cdist(y, b))); }, x) * direction);
      },
      a);
  for (int64_t k = 0; k < 3; ++k) {
    for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(second.item(k, i), 10 * direction.item(k, i), 1e-4);
  }
}

TEST(Distances, HaveTheSameBitsForAnyNumberOfThreads) {
  const Array a = points(1, {24, 500}), b = points(2, {24, 700});
  set_num_threads(1);
  const std::vector<float> one = cdist(a, b).to_vector<float>();
  for (const int threads : {2, 3, 7}) {
    set_num_threads(threads);
    EXPECT_EQ(cdist(a, b).to_vector<float>(), one) << threads;
  }
  set_num_threads(0);
}

}  // namespace
}  // namespace rosin
