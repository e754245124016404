// Composed functions against NumPy and PyTorch (tests/oracles/norm.txt, matmul.txt).
#include <rosin/compose.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <rosin/grad.hpp>

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

}  // namespace
}  // namespace rosin
