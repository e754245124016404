// Gradients of gradients of movements, reductions, scans, gathers, sorts and pooling, against central differences of
// the first gradients in Float64.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/pool.hpp>
#include <rosin/reduce.hpp>
#include <rosin/sort.hpp>

namespace rosin {
namespace {

using Function = std::function<Array(const Array&)>;

// Numbers without pattern, distinct, in (-1, 1).
Array numbers(const Shape& shape, double seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.count(); ++i) {
    values.push_back(std::fmod(seed + 0.61803398875 * static_cast<double>(i), 1.0) * 1.9 - 0.95);
  }
  return Array(values, shape);
}

// Squares make the first gradient depend on x where f itself is linear.
Array first_gradient(const Function& f, const Array& x) {
  return gradient(
      [&](const Array& at) {
        const Array y = f(at);
        return sum(y * y * numbers(y.shape(), 0.3));
      },
      x);
}

void check_second_gradient(const char* name, const Function& f, const Array& x) {
  SCOPED_TRACE(name);
  const Array direction = numbers(x.shape(), 0.7);
  const std::vector<double> got =
      gradient([&](const Array& at) { return sum(first_gradient(f, at) * direction); }, x).to_vector<double>();
  const std::vector<double> middle = x.to_vector<double>();
  constexpr double step = 1e-5;
  for (size_t i = 0; i < middle.size(); ++i) {
    double ends[2];
    for (const int side : {0, 1}) {
      std::vector<double> moved = middle;
      moved[i] += side == 0 ? -step : step;
      ends[side] = sum(first_gradient(f, Array(moved, x.shape())) * direction).item();
    }
    const double expected = (ends[1] - ends[0]) / (2 * step);
    EXPECT_NEAR(got[i], expected, 1e-6 * std::max(1.0, std::abs(expected))) << "element " << i;
  }
}

TEST(SecondGradient, MovementsAgreeWithDifferences) {
  const Array x = numbers({3, 4}, 0.1);
  check_second_gradient(
      "reshape",
      [](const Array& a) {
        return reshape(a, {2, -1});
      },
      x);
  check_second_gradient(
      "permute",
      [](const Array& a) {
        return transpose(a) * numbers({4, 3}, 0.2);
      },
      x);
  check_second_gradient(
      "slice", [](const Array& a) { return slice(a, 1, 3, to_end, -2); }, x);
  check_second_gradient(
      "pad", [](const Array& a) { return pad(a, 0, 1, 2, sum(a)); }, x);
  check_second_gradient(
      "concat",
      [](const Array& a) {
        return concat({a, a * a, exp(a)}, 0);
      },
      x);
  check_second_gradient(
      "repeat", [](const Array& a) { return repeat(tile(a, 2, 0), 2, 1); }, x);
}

TEST(SecondGradient, ReductionsAgreeWithDifferences) {
  const Array x = numbers({3, 4}, 0.1);
  check_second_gradient(
      "sum", [](const Array& a) { return sum(a, 1); }, x);
  check_second_gradient(
      "prod", [](const Array& a) { return prod(a, 0); }, x);
  check_second_gradient(
      "prod of all", [](const Array& a) { return prod(a); }, x);
  check_second_gradient(
      "maximum", [](const Array& a) { return maximum(a, 0); }, x);
  check_second_gradient(
      "var", [](const Array& a) { return var(a, 1); }, x);
  check_second_gradient(
      "stddev", [](const Array& a) { return stddev(a); }, x);
  check_second_gradient(
      "logsumexp", [](const Array& a) { return logsumexp(a, 0); }, x);
  check_second_gradient(
      "norm", [](const Array& a) { return norm(a, 0); }, x);
  check_second_gradient(
      "norm 3", [](const Array& a) { return norm(a, 0, 3); }, x);
  check_second_gradient(
      "softmax", [](const Array& a) { return softmax(a); }, x);
  check_second_gradient(
      "softmax along dim 1", [](const Array& a) { return softmax(a, 1); }, x);
  check_second_gradient(
      "logsoftmax", [](const Array& a) { return logsoftmax(a); }, x);
  check_second_gradient(
      "logsoftmax along dim 1", [](const Array& a) { return logsoftmax(a, 1); }, x);
  check_second_gradient(
      "normalise", [](const Array& a) { return normalise(a, 0); }, x);
  check_second_gradient(
      "cosine",
      [](const Array& a) {
        return cosine_similarity(a, numbers({3, 4}, 0.9));
      },
      x);
}

TEST(SecondGradient, ProductsAndScansAgreeWithDifferencesAtZeros) {
  const Array x({0.5, 0.0, -0.7, 0.0, 0.4, 0.9}, {3, 2});
  check_second_gradient(
      "prod", [](const Array& a) { return prod(a, 0); }, x);
  check_second_gradient(
      "prod of all", [](const Array& a) { return prod(a); }, x);
  check_second_gradient(
      "cumsum", [](const Array& a) { return cumsum(a, 0); }, x);
  check_second_gradient(
      "cumprod", [](const Array& a) { return cumprod(a, 0); }, x);
  check_second_gradient(
      "cumprod along 1", [](const Array& a) { return cumprod(a, 1); }, x);
  check_second_gradient(
      "logcumsumexp", [](const Array& a) { return logcumsumexp(a, 0); }, x);
  check_second_gradient(
      "cummax", [](const Array& a) { return cummax(square(a), 0); }, numbers({3, 4}, 0.1));
}

TEST(SecondGradient, IndexingAgreesWithDifferences) {
  const Array x = numbers({3, 4}, 0.1);
  const Array indices({1, 3, 1}, {3});
  check_second_gradient(
      "gather", [&](const Array& a) { return gather(a, indices); }, x);
  check_second_gradient(
      "scatter_add", [&](const Array& a) { return scatter_add(a, indices, slice(a, 1, 0, 3) * 2); }, x);
  check_second_gradient(
      "scatter", [&](const Array& a) { return scatter(a, indices, slice(a, 1, 0, 3) * 2); }, x);
  check_second_gradient(
      "sort",
      [](const Array& a) {
        return sort(a, 1) * numbers({3, 4}, 0.8);
      },
      x);
  check_second_gradient(
      "topk", [](const Array& a) { return topk(a, 2).values; }, x);
}

TEST(SecondGradient, PoolingAgreesWithDifferences) {
  const Array x = numbers({5, 4, 2, 1}, 0.1);
  check_second_gradient(
      "maxpool", [](const Array& a) { return maxpool(a, 3, 2, 1); }, x);
  check_second_gradient(
      "meanpool",
      [](const Array& a) {
        return meanpool(a, {2, 3}, {1, 2}, {1, 0, 0, 1});
      },
      x);
  check_second_gradient(
      "adaptive",
      [](const Array& a) {
        return adaptive_maxpool(a, {2, 3});
      },
      x);
  check_second_gradient(
      "global", [](const Array& a) { return global_meanpool(a); }, x);
}

TEST(SecondGradient, OfScatteredProductsHoldsAtZeros) {
  const Array indices({0, 1, 0, 2, 1, 0}, {6});
  const auto f = [&](const Array& at) {  // 1 beside the products: theirs are not multiplied by 0
    return scatter_mul(slice(at, 0, 0, 3), indices, slice(at, 0, 3, 9)) + 1;
  };
  check_second_gradient("no zero", f, Array({0.5, -2.0, 3.0, 1.5, 0.7, -0.3, 2.0, 1.1, 0.9}, {9}));
  check_second_gradient("a zero in each", f, Array({0.0, -2.0, 3.0, 1.5, 0.0, -0.3, 0.0, 1.1, 0.9}, {9}));
  check_second_gradient("two zeros", f, Array({0.0, 0.0, 0.0, 1.5, 0.7, 0.0, 0.0, 0.0, 0.9}, {9}));
  check_second_gradient("all zeros", f, zeros({9}, Float64));
}

}  // namespace
}  // namespace rosin
