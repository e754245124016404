// Initialisers: ranges and deviations of Flux's definitions.
#include <rosin/init.hpp>

#include <gtest/gtest.h>

#include <algorithm>

#include <rosin/dense.hpp>
#include <rosin/embedding.hpp>
#include <rosin/matmul.hpp>

#include "../tests/layer_testing.hpp"

namespace rosin {
namespace {

double deviation(const Array& x) { return stddev(x).item(); }

TEST(Init, FansFollowFlux) {
  const auto fans = [](const Shape& shape) { return std::pair{nfan(shape).in, nfan(shape).out}; };
  EXPECT_EQ(fans({}), (std::pair<int64_t, int64_t>{1, 1}));
  EXPECT_EQ(fans({4}), (std::pair<int64_t, int64_t>{1, 4}));
  EXPECT_EQ(fans({5, 4}), (std::pair<int64_t, int64_t>{4, 5}));
  EXPECT_EQ(fans({2, 3, 5, 4}), (std::pair<int64_t, int64_t>{30, 24}));
}

TEST(Init, GlorotHasTheVarianceOfItsFans) {
  seed(1);
  for (const Shape& shape : {Shape{100, 400}, Shape{3, 4, 40, 30}}) {
    const double want = 2.0 / static_cast<double>(nfan(shape).in + nfan(shape).out);
    EXPECT_NEAR(var(glorot_uniform(shape)).item(), want, 0.1 * want);
    EXPECT_NEAR(var(glorot_normal(shape)).item(), want, 0.1 * want);
    EXPECT_LE(maximum(abs(glorot_uniform(shape))).item(), std::sqrt(3 * want) * (1 + 1e-6));
  }
  EXPECT_NEAR(deviation(glorot_normal({300, 300}, {.gain = 3})), 3 * std::sqrt(2.0 / 600), 0.01);
}

TEST(Init, KaimingHasTheDeviationOfItsInputs) {
  seed(2);
  const double bound = std::sqrt(2.0) * std::sqrt(3.0 / 400);
  EXPECT_LE(maximum(abs(kaiming_uniform({100, 400}))).item(), bound * (1 + 1e-6));
  EXPECT_GT(maximum(abs(kaiming_uniform({100, 400}))).item(), 0.95 * bound);
  EXPECT_NEAR(deviation(kaiming_normal({100, 400})), std::sqrt(2.0 / 400), 0.005);
}

TEST(Init, TruncatedNormalStaysBetweenItsLimits) {
  seed(3);
  const Array x = truncated_normal({100, 100});
  EXPECT_LE(maximum(abs(x)).item(), 2);
  EXPECT_NEAR(deviation(x), 0.8796, 0.02);  // of the normal distribution cut at 2
  const Array y = truncated_normal({10000}, {.mean = 1, .std = 10, .lo = -1, .hi = 2});
  EXPECT_GE(minimum(y).item(), -1);
  EXPECT_LE(maximum(y).item(), 2);
  EXPECT_NEAR(mean(y).item(), 0.5, 0.05);
  EXPECT_NEAR(deviation(lecun_normal({100, 400})), 0.05, 0.005);
  EXPECT_EQ(error_of([] { truncated_normal({2}, {.std = 0}); }).substr(0, 69),
            "truncated_normal: std must be positive and lo below hi; got std 0.000");
}

TEST(Init, OrthogonalColumnsOrRowsAreOrthonormal) {
  seed(4);
  const auto distance = [](const Array& x) { return maximum(abs(x - eye(x.size(0)))).item(); };
  const Array tall = orthogonal({6, 4}), wide = orthogonal({4, 6}), kernel = orthogonal({3, 2, 4, 5});
  EXPECT_LT(distance(matmul(transpose(tall), tall)), 1e-5);
  EXPECT_LT(distance(matmul(wide, transpose(wide))), 1e-5);
  const Array flat = reshape(kernel, {24, 5});
  EXPECT_LT(distance(matmul(transpose(flat), flat)), 1e-5);
  EXPECT_NEAR(norm(orthogonal({3, 1}, {.gain = 2})).item(), 2, 1e-5);
}

TEST(Init, SparseHasTheStatedNumberOfZerosInEachColumn) {
  seed(5);
  const Array x = sparse_init({100, 50}, {.sparsity = 0.255});
  const std::vector<int64_t> counts = sum(cast(x == 0, Int32), 0).to_vector<int64_t>();
  EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](int64_t count) { return count == 26; }));
  EXPECT_NEAR(deviation(x), 0.01 * std::sqrt(0.74), 0.001);
  EXPECT_EQ(error_of([] {
              sparse_init({2, 2, 2}, {});
            }),
            "sparse_init: only matrices can be sparse; got (2, 2, 2); use two sizes");
}

TEST(Init, IdentityPassesInputOn) {
  layer_testing::expect_near(identity_init({2, 3}), {1, 0, 0, 1, 0, 0}, 0);
  layer_testing::expect_near(identity_init({3, 2}, {.gain = 5, .shift = 1}), {0, 5, 0, 0, 0, 5}, 0);
  layer_testing::expect_near(identity_init({3}), {0, 0, 0}, 0);
  layer_testing::expect_near(identity_init({3, 1, 1}), {0, 1, 0}, 0);
  const EmbeddingBag bag(3, 3, mean, {.init = [](const Shape& shape) { return identity_init(shape, {.gain = 100}); }});
  layer_testing::expect_near(bag(Array({2, 2, 0}, {3})), {33.333332, 0, 66.666664}, 1e-4);
}

TEST(Init, DrawsFromTheGeneratorItIsGiven) {
  Rng one(3), other(3);
  const Dense a(4, 5, {.init = [&](const Shape& shape) { return glorot_uniform(shape, {.rng = &one}); }});
  const Dense b(4, 5, {.init = [&](const Shape& shape) { return glorot_uniform(shape, {.rng = &other}); }});
  EXPECT_TRUE(all(a.weight == b.weight).item<bool>());
  EXPECT_EQ(glorot_uniform({2, 2}, {.type = Float64}).dtype(), Float64);
  EXPECT_EQ(error_of([] { Dense(2, 3, {.init = [](const Shape&) { return zeros({1}); }}); }),
            "init: the initialiser must give an array of size (3, 2); got (1); use the shape it is given");
}

TEST(Init, SimpleOnesAreFloat32) {
  for (const Array& x : {zeros32({3}), ones32({3}), rand32({3}), randn32({3})}) EXPECT_EQ(x.dtype(), Float32);
  EXPECT_EQ(Dense(2, 2, {.init = ones}).weight.item(1, 1), 1);
}

}  // namespace
}  // namespace rosin
