// Composed functions against NumPy and PyTorch (tests/oracles/norm.txt, matmul.txt).
#include <rosin/compose.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <rosin/create.hpp>
#include <rosin/grad.hpp>
#include <rosin/movement.hpp>
#include <rosin/sort.hpp>

#include "../tests/error_testing.hpp"
#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::dim_of;
using oracles::dims_of;
using oracles::OracleCase;
using Arrays = std::vector<Array>;

TEST(Compose, RowFunctionsAgreeWithPyTorch) {
  oracles::run_oracles(
      "norm.txt",
      {{"softmax", [](const OracleCase& e, const Arrays& x) { return Arrays{softmax(x[0], dim_of(e))}; }},
       {"logsoftmax", [](const OracleCase& e, const Arrays& x) { return Arrays{logsoftmax(x[0], dim_of(e))}; }},
       {"normalise", [](const OracleCase& e, const Arrays& x) {
          return Arrays{normalise(x[0], dims_of(e), e.number("eps", 1e-5))};
        }}});
}

TEST(Compose, ProductsOfVectorsAndTrianglesAgreeWithNumPy) {
  oracles::run_oracles(
      "matmul.txt",
      {{"dot", [](const OracleCase&, const Arrays& x) { return Arrays{dot(x[0], x[1])}; }},
       {"outer", [](const OracleCase&, const Arrays& x) { return Arrays{outer(x[0], x[1])}; }},
       {"cosine_similarity",
        [](const OracleCase& e, const Arrays& x) { return Arrays{cosine_similarity(x[0], x[1], dim_of(e))}; }},
       {"tril", [](const OracleCase& e, const Arrays& x) { return Arrays{tril(x[0], e.integers("k")[0])}; }},
       {"triu", [](const OracleCase& e, const Arrays& x) { return Arrays{triu(x[0], e.integers("k")[0])}; }}});
}

/// As in NumPy's and SciPy's definitions: what is -Inf takes no part; a row with nothing else has no distribution, and
/// the sum of its exponentials is 0.
TEST(Compose, SoftmaxAndItsKinTakeMinusInfinity) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Array x({0.0f, -infinity, 1.0f, -infinity, -infinity, -infinity}, {3, 2});
  const std::vector<float> soft = softmax(x).to_vector(), logs = logsoftmax(x).to_vector();
  EXPECT_NEAR(soft[0], 0.26894143, 1e-6);
  EXPECT_EQ(soft[1], 0);
  EXPECT_EQ(logs[1], -infinity);
  EXPECT_NEAR(logs[2], -0.31326169, 1e-6);
  for (size_t i = 3; i < 6; ++i) EXPECT_TRUE(std::isnan(soft[i]) && std::isnan(logs[i]));
  const std::vector<float> sums = logsumexp(x, 0).to_vector();
  EXPECT_NEAR(sums[0], 1.3132617, 1e-6);
  EXPECT_EQ(sums[1], -infinity);
  const std::vector<float> slopes = gradient([](const Array& a) { return sum(logsumexp(a, 0)); }, x).to_vector();
  EXPECT_NEAR(slopes[0], 0.26894143, 1e-6);
  EXPECT_NEAR(slopes[2], 0.73105857, 1e-6);
  for (size_t i : {1u, 3u, 4u, 5u}) EXPECT_EQ(slopes[i], 0);
}

// PyTorch takes 0-d tensors as vectors of one element along dims 0 and -1.
TEST(Compose, ArraysWithoutDimsCountAsVectorsOfOneElement) {
  const Array x = ones({1});
  const Array one = reshape(x * 3, Shape{});
  const Array results[] = {softmax(one),    logsoftmax(one, -1), normalise(one),       cumsum(one),
                           cumprod(one),    sort(one),           argsort(one, -1),     topk(one, 1).values,
                           argmax(one, 0),  argmin(one, -1),     sum(one, 0),          mean(one, -1),
                           maximum(one, 0), logsumexp(one, 0),   norm(one, 0),         cosine_similarity(one, one),
                           prod(one, 0),    var(one, 0, false),  stddev(one, 0, false)};
  const double expected[] = {1, 0, 0, 3, 3, 3, 0, 3, 0, 0, 3, 3, 3, 3, 3, 1, 3, 0, 0};
  for (size_t i = 0; i < std::size(results); ++i) {
    EXPECT_EQ(results[i].rank(), 0) << i;
    EXPECT_NEAR(results[i].item(), expected[i], 1e-6) << i;
  }
  const auto slope = [&](auto f) { return gradient(f, one).item(); };
  EXPECT_EQ(slope([](const Array& v) { return softmax(v); }), 0);
  EXPECT_EQ(slope([](const Array& v) { return cumsum(v) * sort(v); }), 6);
  EXPECT_EQ(slope([](const Array& v) { return square(sum(v, 0)); }), 6);
  EXPECT_THROW(softmax(one, 1), Error);
  EXPECT_THROW(cumsum(one, 1), Error);
  EXPECT_THROW(sum(one, -2), Error);
}

// NumPy: np.clip with arrays.
TEST(Compose, BoundsOfClampMayBeArrays) {
  const Array x({-3.f, -1.f, 0.f, 2.f, 5.f, NAN}, {6}), low({-2.f, -2.f, 1.f, 1.f, 1.f, 0.f}, {6});
  const std::vector<float> found = clamp(x, low, 3).to_vector();
  EXPECT_EQ(std::vector<float>(found.begin(), found.begin() + 5), (std::vector<float>{-2, -1, 1, 2, 3}));
  EXPECT_TRUE(std::isnan(found[5]));
  EXPECT_TRUE(std::isnan(clamp(Array({1.f}, {1}), Array({NAN}, {1}), 2).item()));
  EXPECT_EQ(clamp(Array({5}, {1}), Array({7}, {1}), Array({6}, {1})).item(), 6) << "high wins";
  EXPECT_EQ(clamp(ones({2, 3}), zeros({2, 1}), zeros({1, 3})).shape(), (Shape{2, 3}));
  const auto [gx, gl, gh] = gradient([](const Array& v, const Array& l, const Array& h) { return sum(clamp(v, l, h)); },
                                     Array({0.f, 1.f, 2.f, 3.f, 4.f}, {5}), Array({1.f}, {1}), Array({3.f}, {1}));
  EXPECT_EQ(gx.to_vector(), (std::vector<float>{0, 1, 1, 1, 0}));
  EXPECT_EQ(gl.item(), 1);
  EXPECT_EQ(gh.item(), 1);
}

TEST(Compose, MixedFloatsSayWhereFloat64ComesFrom) {
  EXPECT_EQ(error_of([] {
              Array({1.0, 2.0}, {2}) + ones({2});
            }),
            "add: two different float types in one op; got Float64 and Float32; convert one with cast(x, Float32); "
            "arrays of numbers such as 1.0 are Float64: write 1.0f for Float32");
}

}  // namespace
}  // namespace rosin
