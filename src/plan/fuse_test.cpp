// Tests of fusion: how many kernels and calls typical graphs take, and that shapes of every kind come out right.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "plan/plan_testing.hpp"

namespace rosin {
namespace {

using Values = std::vector<float>;

Array ramp(const Shape& shape) { return reshape(cast(arange(shape.count()), Float32) * 0.01, shape); }

class Fusion : public testing::Test {
 protected:
  const Array x = ramp({10, 33}), y = ramp({10, 33}) + 1, bias = ramp({10});
  void SetUp() override { eval(); }
};

TEST_F(Fusion, AChainIsOneKernel) {
  EXPECT_EQ(launches([&] { return exp(tanh(x * 2 + y) - 1) / y; }), (Launched{1, 0}));
}

TEST_F(Fusion, BiasAndActivationArePartOfTheProduct) {
  const Array w = ramp({10, 10});
  eval();
  EXPECT_EQ(launches([&] { return relu(matmul(w, x) + bias); }), (Launched{0, 1}));
}

TEST_F(Fusion, SoftmaxAndLogSoftmaxAreOneKernel) {
  EXPECT_EQ(launches([&] { return softmax(x); }), (Launched{1, 0}));
  EXPECT_EQ(launches([&] { return logsoftmax(x); }), (Launched{1, 0}));
  EXPECT_EQ(launches([&] { return logsumexp(x, 0); }), (Launched{1, 0}));
}

TEST_F(Fusion, ANormalisationOfRowsIsOneKernel) {
  EXPECT_EQ(launches([&] {
              const Array centred = x - mean(x, 0);
              return centred / sqrt(mean(centred * centred, 0) + 1e-5) * bias + 1;
            }),
            (Launched{1, 0}));
}

TEST_F(Fusion, ASumOfProductsIsOneKernel) {
  EXPECT_EQ(launches([&] { return sum(x * y); }), (Launched{1, 0}));
  EXPECT_EQ(launches([&] { return sum(x * y, 1); }), (Launched{1, 0}));
  EXPECT_EQ(launches([&] { return sum(x * y, 0); }), (Launched{1, 0}));
}

TEST_F(Fusion, ManyResultsOfOneWalkAreOneKernel) {
  EXPECT_EQ(launches([&] {
              const Array z = x * y;
              return std::vector<Array>{z, z + 1, sum(z, 0), sum(z, 1), sum(z), maximum(z, 1)};
            }),
            (Launched{1, 0}));
}

TEST_F(Fusion, TheStepOfAnAdaptiveRuleIsOneKernel) {
  Array w = x * 1, m = x * 0, v = x * 0;
  eval();
  EXPECT_EQ(launches([&] {
              m = m * 0.9 + y * 0.1;
              v = v * 0.999 + y * y * 0.001;
              w = w - 0.01 * (m / 0.1) / (sqrt(v / 0.001) + 1e-8);
              return 0;
            }),
            (Launched{1, 0}));
}

TEST_F(Fusion, ViewsCostNothing) {
  EXPECT_EQ(launches([&] {
              return transpose(slice(x, 1, 2, 20)) * 2 + reshape(expand(bias, {10, 18}), {10, 18}).size(0);
            }),
            (Launched{1, 0}));
  EXPECT_EQ(launches([&] { return reshape(x, {33, 10}); }), (Launched{0, 0}));
  EXPECT_EQ(launches([&] { return matmul(transpose(x), y); }), (Launched{0, 1}));
}

TEST_F(Fusion, ALongRowIsReducedAndThenUsed) {
  const Array z = ramp({20000, 3}) * 1e-3;
  eval();
  Array p;
  EXPECT_EQ(launches([&] { return p = softmax(z); }).calls, 0);
  for (float total : sum(p, 0).to_vector()) EXPECT_NEAR(total, 1, 1e-5);
  const Array short_rows = softmax(slice(z, 0, 0, 4096));
  for (float total : sum(short_rows, 0).to_vector()) EXPECT_NEAR(total, 1, 1e-5);
}

TEST_F(Fusion, ARowOfOneDimAndSumsAcrossItAreOneKernel) {
  const Array z = sin(ramp({5003, 37})), cubes = sin(ramp({5003, 3, 7}));
  eval();
  Array p, across;
  const Launched launched = launches([&] {
    p = softmax(z);
    return across = sum(p * z, 1);
  });
  EXPECT_EQ(launched.kernels, 1);
  const Array alone = p * z;
  eval();
  EXPECT_EQ(across.to_vector(), sum(alone, 1).to_vector()) << "the bits of a sum do not depend on the kernel";
  for (float total : sum(p, 0).to_vector()) EXPECT_NEAR(total, 1, 1e-5);
  const Array both = sum(cubes, {0, 1});
  const Array shares = cubes - both / 15009.0;
  eval();
  EXPECT_NEAR(maximum(abs(mean(shares, {0, 1}))).item(), 0, 1e-6);
}

/// Backwards the kernel of the rows' sums reads an array of the forward kernel that it has not read yet; an array of
/// another size does not join what has given a sum.
TEST_F(Fusion, TheGradientOfANormalisationIsOneKernel) {
  const Array w = ramp({10, 10}), weight = sin(ramp({10, 33})), longer = ramp({7, 33});
  eval();
  const auto loss = [&](const Array& a, const Array& b) { return sum(matmul(b, normalise(matmul(w, a), 0)) * weight); };
  // The normalisation and its gradient.
  EXPECT_EQ(launches([&] { return gradient(loss, x, w); }).kernels, 2);
  Array scaled;
  EXPECT_EQ(launches([&] { return scaled = sqrt(sum(x * x, 0)) * longer; }), (Launched{2, 0}));
  const Array lengths = sqrt(sum(x * x, 0));
  eval();
  EXPECT_EQ(scaled.to_vector(), (lengths * longer).to_vector());
}

TEST_F(Fusion, TheGradientOfARootOfMeanSquaresIsOneKernel) {
  EXPECT_EQ(launches([&] {
              const auto loss = [&](const Array& a, const Array& b) {
                return sum(a * rsqrt(mean(square(a), 0) + 1e-5) * b * y);
              };
              const auto [dx, dscale] = gradient(loss, x, bias);
              return std::array{dx, dscale};
            }),
            (Launched{1, 0}));
}

/// As the gradients of a bias and of a factor are; the kernel of the means comes first.
TEST_F(Fusion, ASumOfWhatAnotherKernelReadsIsMadeThere) {
  const Array slopes = ramp({6, 5, 4, 3}), image = sin(slopes);
  eval();
  const Dims dims = {0, 1, 3};
  std::array<Array, 2> sums;
  const auto made = launches([&] {
    sums[0] = sum(slopes, dims);
    return sums[1] = sum(slopes * (image - mean(image, dims)), dims);
  });
  EXPECT_EQ(made, (Launched{2, 0}));
  const Array distance = image - mean(image, dims);
  eval();
  EXPECT_EQ(sums[0].to_vector(), sum(slopes + 0, dims).to_vector());
  EXPECT_EQ(sums[1].to_vector(), sum(slopes * distance, dims).to_vector());
}

/// The second kernel has all that it needs as soon as the first one, but for what is made of few numbers.
TEST_F(Fusion, KernelsThatWaitForTheSameAreOne) {
  const Array slopes = ramp({6, 5, 4, 3}), image = sin(slopes);
  eval();
  const Dims dims = {0, 1, 3};
  const auto gradient_of_statistics = [&] {
    const Array average = mean(image, dims), factor = rsqrt(mean(square(image), dims) + 1);
    const Array distance = image - average;
    const Array scaled = sum(slopes * factor, dims), product = sum(slopes * distance, dims);
    return slopes * factor - distance * product - scaled;
  };
  // Statistics; both sums; the result.
  EXPECT_EQ(launches(gradient_of_statistics), (Launched{3, 0}));
}

TEST_F(Fusion, AReshapeOfAReshapeIsNone) {
  const Array w = ramp({10, 10}), cubes = reshape(x, {10, 3, 11});
  eval();
  EXPECT_EQ(launches([&] { return relu(reshape(reshape(matmul(w, x), {10, 3, 11}), {10, 33})); }), (Launched{0, 1}));
  EXPECT_EQ(reshape(reshape(cubes, {330}), {5, 66}).to_vector(), x.to_vector());
  const auto loss = [](const Array& a) { return sum(square(reshape(reshape(a, {33, 10}), {330}))); };
  EXPECT_EQ(gradient(loss, x).to_vector(), (x * 2).to_vector());
}

TEST_F(Fusion, ADiamondThroughAProductHasNoCycle) {
  const Array w = ramp({10, 10});
  eval();
  Array a, c;
  EXPECT_EQ(launches([&] {
              a = x + y;  // before the product ...
              const Array b = matmul(w, a);
              return c = a * b + a;  // ... and needed after it
            }),
            (Launched{2, 1}));
  EXPECT_EQ(c.to_vector(), (a * matmul(w, a) + a).to_vector());
}

TEST_F(Fusion, ADiamondThroughAReductionHasNoCycle) {
  Array first, second;
  launches([&] {
    const Array a = exp(x), total = sum(a), b = a / total, other = sum(b * a, 1);
    first = b + other;
    second = a * total + first;
    return 0;
  });
  const std::vector<double> xs = x.to_vector<double>();
  double total = 0;
  for (double value : xs) total += std::exp(value);
  std::vector<double> other(10, 0);
  for (size_t i = 0; i < xs.size(); ++i) other[i % 10] += std::exp(xs[i]) / total * std::exp(xs[i]);
  for (size_t i = 0; i < xs.size(); i += 17) {
    const double b = std::exp(xs[i]) / total + other[i % 10];
    EXPECT_NEAR(first.item(static_cast<int64_t>(i % 10), static_cast<int64_t>(i / 10)), b, 1e-5);
    EXPECT_NEAR(second.item(static_cast<int64_t>(i % 10), static_cast<int64_t>(i / 10)), std::exp(xs[i]) * total + b,
                0.05);
  }
}

TEST_F(Fusion, TwoChainsThatMeetBecomeOneKernel) {
  EXPECT_EQ(launches([&] {
              const Array a = exp(x), b = tanh(y);
              return a * b;
            }),
            (Launched{1, 0}));
}

TEST_F(Fusion, ABroadcastOverAnyDimIsRight) {
  const Array a = ramp({2, 1, 3}), b = ramp({1, 4}), c = ramp({1, 1, 1, 2});
  const Array z = a + b * c;
  ASSERT_EQ(z.shape(), Shape({2, 4, 3, 2}));
  const std::vector<double> av = a.to_vector<double>(), bv = b.to_vector<double>(), cv = c.to_vector<double>();
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < 3; ++k)
        for (int l = 0; l < 2; ++l) {
          EXPECT_NEAR(z.item(i, j, k, l),
                      av[static_cast<size_t>(i + 2 * k)] + bv[static_cast<size_t>(j)] * cv[static_cast<size_t>(l)],
                      1e-6);
        }
}

TEST_F(Fusion, ViewsOfViewsOfBroadcastsAreRight) {
  const Array base = Array({1.0f, 2.0f, 3.0f}, {3, 1});
  const Array seen = slice(permute(expand(base, {3, 4}), {1, 0}), 1, 1, 3);  // (4, 2): columns 2, 3
  EXPECT_EQ(seen.to_vector(), (Values{2, 2, 2, 2, 3, 3, 3, 3}));
  EXPECT_EQ((seen * 2).to_vector(), (Values{4, 4, 4, 4, 6, 6, 6, 6}));
  EXPECT_EQ(sum(seen, 0).to_vector(), (Values{8, 12}));
  EXPECT_EQ(reshape(seen, {2, 4}).to_vector(), (Values{2, 2, 2, 2, 3, 3, 3, 3}));
  EXPECT_EQ(matmul(transpose(seen), seen).to_vector(), (Values{16, 24, 24, 36}));
  const Array odd = slice(
      transpose(reshape(slice(Array({0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f}, {8}), 0, 7, to_end, -2), {2, 2})),
      0, 1, 2);
  EXPECT_EQ(odd.to_vector(), (Values{3, 1}));
}

TEST_F(Fusion, AHeldIdentityOfAViewHasItsElements) {
  const Array m({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3});
  const Array stopped = stop_gradient(transpose(m));
  EXPECT_EQ(stopped.to_vector(), (Values{1, 3, 5, 2, 4, 6}));
  Array argument;
  const Array g = gradient([&](const Array& a) { return argument = a, sum(a * a); }, slice(m, 1, 1, 3));
  EXPECT_EQ(argument.to_vector(), (Values{3, 4, 5, 6}));
  EXPECT_EQ(g.to_vector(), (Values{6, 8, 10, 12}));
}

TEST_F(Fusion, ArraysWithoutElementsAreRight) {
  const Array none = zeros({0, 3}), flat = zeros({4, 0});
  EXPECT_EQ((none + 1).shape(), Shape({0, 3}));
  EXPECT_EQ((none * ones({1, 3}) + ones({1})).to_vector(), Values{});
  for (int again = 0; again < 2; ++again) {
    Array dirty = full({3}, 77);  // memory that is used again
    eval();
    dirty = Array();
    EXPECT_EQ(sum(none * 2, 0).to_vector(), (Values{0, 0, 0}));
    EXPECT_EQ((sum(none, 0) + 1).to_vector(), (Values{1, 1, 1}));
    EXPECT_EQ(prod(flat, 1).to_vector(), (Values{1, 1, 1, 1}));
    EXPECT_EQ(sum(flat).item(), 0);
    EXPECT_EQ(matmul(flat, zeros({0, 2})).to_vector(), Values(8, 0));
    EXPECT_EQ((matmul(flat, zeros({0, 2})) + 2).to_vector(), Values(8, 2));
  }
}

TEST_F(Fusion, OneElementInEveryRankIsRight) {
  for (int rank = 0; rank <= Shape::max_rank; ++rank) {
    const std::vector<int64_t> sizes(static_cast<size_t>(rank), 1);
    const Array one = full(Shape(sizes), 3);
    EXPECT_EQ((one * one + 1).item(), 10) << rank;
    EXPECT_EQ(sum(one).item(), 3);
    if (rank > 0) {
      EXPECT_EQ(maximum(one * 2, rank - 1).item(), 6);
    }
  }
}

TEST_F(Fusion, EightDimsAreRight) {
  const Array a = ramp({2, 1, 3, 2, 1, 2, 2, 2}), b = ramp({1, 2, 3, 1, 2, 1, 2, 1});
  const Array z = permute(a * b, {7, 3, 5, 1, 2, 0, 4, 6});
  ASSERT_EQ(z.shape(), Shape({2, 2, 2, 2, 3, 2, 2, 2}));
  const auto at = [](const Array& from, std::array<int64_t, 8> i) {
    int64_t offset = 0, stride = 1;
    for (int d = 0; d < 8; ++d) {
      offset += (from.size(d) == 1 ? 0 : i[static_cast<size_t>(d)]) * stride;
      stride *= from.size(d);
    }
    return 0.01 * static_cast<double>(offset);
  };
  for (std::array<int64_t, 8> i : {std::array<int64_t, 8>{0, 0, 0, 0, 0, 0, 0, 0},
                                   {1, 1, 2, 1, 1, 1, 1, 1},
                                   {1, 0, 2, 0, 1, 1, 0, 1},
                                   {0, 1, 1, 1, 0, 1, 1, 0}}) {
    EXPECT_NEAR(z.item(i[7], i[3], i[5], i[1], i[2], i[0], i[4], i[6]), at(a, i) * at(b, i), 1e-6);
  }
  EXPECT_NEAR(sum(sum(z, {0, 2, 4}), {1, 3, 5, 6, 7}).item(), sum(z).item(), 1e-3);
}

TEST_F(Fusion, NumbersStandAnywhere) {
  const Array a({1.0f, 2.0f}, {2});
  EXPECT_EQ((2 - a).to_vector(), (Values{1, 0}));
  EXPECT_EQ((a - 2).to_vector(), (Values{-1, 0}));
  EXPECT_EQ(where(a > 1, 5, a).to_vector(), (Values{1, 5}));
  EXPECT_EQ(where(a > 1, a, 0.5).to_vector(), (Values{0.5, 2}));
  EXPECT_EQ(where(a > 1, 1, 2).to_vector(), (Values{2, 1}));
  EXPECT_EQ(where(Array(true), a, 9).to_vector(), (Values{1, 2}));
  EXPECT_EQ((Array(3) * Array(4) + a).to_vector(), (Values{13, 14}));
  EXPECT_EQ(expand(Array(7), {2, 2}).to_vector(), (Values{7, 7, 7, 7}));
  EXPECT_EQ(reshape(Array(7), {1, 1}).to_vector(), (Values{7}));
  EXPECT_EQ(sum(expand(Array(2.5), {3, 2}), 1).to_vector(), (Values{5, 5, 5}));
  EXPECT_EQ(sum(Array(2)).item(), 2);
  EXPECT_EQ(concat({reshape(Array(1.5), {1}), a}, 0).to_vector(), (Values{1.5, 1, 2}));
  EXPECT_EQ(transpose(expand(Array(1), {2, 3})).shape(), Shape({3, 2}));
  const Array kept = expand(Array(4), {2});
  eval();
  EXPECT_EQ((kept + a).to_vector(), (Values{5, 6}));
}

TEST_F(Fusion, TypesAreConvertedInsideAKernel) {
  const Array k({1, 2, 3}, {3}), t = k > 1;
  EXPECT_EQ(launches([&] { return cast(t, Float32) * 2.5 + cast(k, Float32); }), (Launched{1, 0}));
  EXPECT_EQ((t + t).to_vector<int32_t>(), (std::vector<int32_t>{0, 2, 2}));
  EXPECT_EQ((cast(k, Int8) * 100).to_vector<int32_t>(), (std::vector<int32_t>{100, -56, 44}));
  const Array h = cast(Array({1.0f, 2049.0f, 0.1f}, {3}), Float16);
  EXPECT_EQ((h + h).to_vector(), (Values{2, 4096, 0.199951171875f}));
  EXPECT_EQ(sum(cast(h, Float64)).dtype(), Float64);
  EXPECT_EQ(sum(t).item(), 2);
}

TEST_F(Fusion, AGraphOfThousandsOfNodesIsRight) {
  Array sums = zeros({7}), z = full({7}, 1);
  std::vector<Array> held;
  double expected = 0, one = 1;
  for (int i = 0; i < 6000; ++i) {
    z = z * (i % 2 ? 0.5 : 2) + (i % 5 == 0 ? 1 : 0);
    one = one * (i % 2 ? 0.5 : 2) + (i % 5 == 0 ? 1 : 0);
    if (i % 50 == 0) z = z - floor(z / 8) * 8, one = one - std::floor(one / 8) * 8;
    if (i % 3 == 0) sums = sums + sum(z) / 64, expected += one * 7 / 64;
    if (i % 100 == 0) held.push_back(z);
  }
  EXPECT_NEAR(sums.item(6), expected, 1e-3 * expected);
  EXPECT_EQ(held.size(), 60u);
  EXPECT_NEAR(z.item(3), one, 1e-3);
}

TEST_F(Fusion, ManyOperandsOfOneKernelAreRight) {
  std::vector<Array> parts;
  for (int i = 0; i < 300; ++i) parts.push_back(full({11}, i));
  eval();
  Array total = parts[0];
  for (int i = 1; i < 300; ++i) total = total + parts[static_cast<size_t>(i)] * 2;
  EXPECT_EQ(total.to_vector(), Values(11, 299 * 300));
}

}  // namespace
}  // namespace rosin
