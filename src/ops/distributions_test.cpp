// Distributions: the shares of numbers below points against SciPy's distribution functions (distributions.txt), by the
// statistic of Kolmogorov and Smirnov; mean and variance; parameters, types, gradients and errors. All seeds are fixed.
#include <rosin/distributions.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <rosin/approx.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "../../tests/error_testing.hpp"
#include "../../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::OracleCase;

Array drawn(const OracleCase& entry, Rng& rng, const Shape& shape, DType type) {
  const std::vector<double> p = entry.numbers("parameters");
  if (entry.op == "exponential") return exponential(rng, shape, p[0], type);
  if (entry.op == "laplace") return laplace(rng, shape, p[0], p[1], type);
  if (entry.op == "gumbel") return gumbel(rng, shape, p[0], p[1], type);
  if (entry.op == "truncated_normal") return truncated_normal(rng, shape, p[0], p[1], p[2], p[3], type);
  if (entry.op == "gamma") return gamma(rng, shape, p[0], p[1], type);
  if (entry.op == "beta") return beta(rng, shape, p[0], p[1], type);
  return poisson(rng, shape, p[0], type);
}

/// The largest distance between the shares of sorted numbers and those that are stated.
double distance_of(const std::vector<double>& sorted, const OracleCase& entry) {
  double distance = 0;
  for (size_t i = 0; i < entry.inputs[0].values.size(); ++i) {
    const auto above = std::upper_bound(sorted.begin(), sorted.end(), entry.inputs[0].values[i]);
    const double share = static_cast<double>(above - sorted.begin()) / static_cast<double>(sorted.size());
    distance = std::max(distance, std::abs(share - entry.outputs[0].values[i]));
  }
  return distance;
}

TEST(Distributions, AreThoseOfSciPy) {
  std::set<std::string> met;
  for (const OracleCase& entry : oracles::read_oracles(oracles::oracle_path("distributions.txt"))) {
    met.insert(entry.op);
    const auto draws = static_cast<int64_t>(entry.number("draws", 0));
    const double middle = entry.number("mean", 0), deviation = std::sqrt(entry.number("variance", 0));
    for (const DType type : {Float32, Float64}) {
      SCOPED_TRACE(entry.op + " " + entry.attributes.at("parameters") + " " + to_string(type));
      Rng rng(17);
      const Array x = drawn(entry, rng, {draws}, type);
      EXPECT_EQ(x.dtype(), type);
      EXPECT_TRUE(all(is_finite(x)).item<bool>());
      std::vector<double> numbers = x.to_vector<double>();
      std::sort(numbers.begin(), numbers.end());
      EXPECT_LT(distance_of(numbers, entry), entry.number("distance", 0));
      const Array wide = cast(x, Float64);  // four standard errors of the mean
      EXPECT_NEAR(mean(wide).item(), middle, 4 * deviation / std::sqrt(static_cast<double>(draws)));
      EXPECT_NEAR(stddev(wide).item(), deviation, 0.03 * deviation);
    }
  }
  EXPECT_EQ(
      met, (std::set<std::string>{"beta", "exponential", "gamma", "gumbel", "laplace", "poisson", "truncated_normal"}));
}

TEST(Distributions, ParametersAreArraysThatBroadcast) {
  Rng rng(3);
  const Array rates({1, 4, 100}, {3}), x = exponential(rng, {3, 20000}, rates);
  const std::vector<float> means = mean(x, 1).to_vector();
  for (const auto& [got, want] : {std::pair{means[0], 1.0f}, {means[1], 0.25f}, {means[2], 0.01f}}) {
    EXPECT_NEAR(got, want, 0.04f * want);
  }
  const Array counts = poisson(rng, {3, 20000}, cast(rates, Float64));
  EXPECT_EQ(counts.dtype(), Int32);
  const std::vector<double> of = mean(cast(counts, Float64), 1).to_vector<double>();
  for (const auto& [got, want] : {std::pair{of[0], 1.0}, {of[1], 4.0}, {of[2], 100.0}}) {
    EXPECT_NEAR(got, want, 4 * std::sqrt(want / 20000));
  }
  const Array halves = gamma(rng, {3, 4}, cast(rates, Float16), 2, Float16);
  EXPECT_EQ(halves.dtype(), Float16);
}

/// Nothing but the generator's place counts, and each function moves it on.
TEST(Distributions, FollowTheGenerator) {
  Rng rng(5), again(5);
  const Array first = gumbel(rng, {50}), second = gumbel(rng, {50});
  EXPECT_NE(first.to_vector(), second.to_vector());
  EXPECT_EQ(gumbel(again, {50}).to_vector(), first.to_vector());
  seed(5);
  const std::vector<Array> all_of = {exponential({9}),
                                     laplace({9}),
                                     gumbel({9}),
                                     truncated_normal({9}, 0, 1, -1, 1),
                                     gamma({9}, 2),
                                     beta({9}, 2, 3),
                                     cast(poisson({9}, 2), Float32),
                                     cast(categorical(zeros({4, 9})), Float32),
                                     cast(categorical(zeros({4}), 9), Float32),
                                     cast(multinomial(ones({9}), 9), Float32),
                                     choice(linspace(0, 1, 5), 9)};
  std::set<std::vector<float>> different;
  for (const Array& x : all_of) {
    EXPECT_EQ(x.shape(), (Shape{9}));
    EXPECT_TRUE(different.insert(x.to_vector()).second);
  }
}

/// Where the options say, or where a parameter is; the generator's numbers are the same there.
TEST(Distributions, AreTheSameOnADevice) {
  const Device there = some_device();
  const auto each = [](const ArrayOptions& options, const Array& two) {
    Rng rng(4);
    return std::vector<Array>{exponential(rng, {40}, 2, options),
                              laplace(rng, {40}, 0, 1, options),
                              gumbel(rng, {40}, two),
                              truncated_normal(rng, {40}, 0, two, -1, 3),
                              gamma(rng, {40}, 0.5, two, options),
                              beta(rng, {40}, two, 3),
                              poisson(rng, {40}, two, options),
                              categorical(rng, broadcast_to(two, {5}), 40),
                              multinomial(rng, broadcast_to(two, {40}), 40),
                              choice(rng, broadcast_to(two, {40}) * arange(40), 40)};
  };
  const Array two({2.0f}, {1});
  const std::vector<Array> here = each(Float32, two), others = each({Float32, there}, two | there);
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_EQ(others[i].device(), there) << i;
    EXPECT_TRUE(allclose(cast(others[i] | Device(), Float64), cast(here[i], Float64), {.rtol = 1e-5, .atol = 1e-6}))
        << i;
  }
}

TEST(Distributions, BoundsHold) {
  Rng rng(6);
  const Array x = truncated_normal(rng, {1000}, 5, 2, Array({4.5f}, {1}), 4.75);
  EXPECT_GE(minimum(x).item(), 4.5);
  EXPECT_LE(maximum(x).item(), 4.75);
  const Array shares = beta(rng, {1000}, 0.01, 0.01);
  EXPECT_TRUE(all(is_finite(shares)).item<bool>()) << "gamma variables of 0.01 are mostly 0 in Float32";
  EXPECT_NEAR(mean(shares).item(), 0.5, 0.07);
  EXPECT_GE(minimum(poisson(rng, {1000}, 1e-3)).item(), 0);
}

/// What is drawn is mean + scale * something: PyTorch's rsample has the same slopes.
TEST(Distributions, GradientsGoToParameters) {
  const auto slopes = [](auto&& f, const Array& a, const Array& b) {
    const auto [x, y] = gradient(
        [&](const Array& p, const Array& q) {
          Rng rng(8);
          return sum(f(rng, p, q));
        },
        a, b);
    return std::pair{x.item(), y.item()};
  };
  const Array mean(0.5f), scale(2.0f);
  for (auto* f : {+[](Rng& rng, const Array& p, const Array& q) { return laplace(rng, {7}, p, q); },
                  +[](Rng& rng, const Array& p, const Array& q) { return gumbel(rng, {7}, p, q); }}) {
    Rng rng(8);
    const double away = sum(f(rng, 0, 1)).item();
    const auto [by_mean, by_scale] = slopes(f, cast(mean, Float32), cast(scale, Float32));
    EXPECT_FLOAT_EQ(static_cast<float>(by_mean), 7.0f);
    EXPECT_NEAR(by_scale, away, 1e-4);
  }
}

/// Shares of classes against softmax, and of pairs drawn without replacement against p(a) p(b) / (1 - p(a)).
TEST(Distributions, ClassesComeAsOftenAsTheyMust) {
  constexpr int64_t n = 60000;
  Rng rng(9);
  const Array logits({0.5f, -1.0f, 2.0f, -INFINITY, 0.0f, 0.0f, 0.0f, 0.0f}, {4, 2});
  const Array drawn = categorical(rng, logits, n);
  EXPECT_EQ(drawn.shape(), (Shape{n, 2}));
  EXPECT_EQ(drawn.dtype(), Int32);
  const std::vector<double> shares = mean(cast(onehot(drawn, 4), Float64), {1}).to_vector<double>();
  const std::vector<double> wanted = softmax(cast(logits, Float64)).to_vector<double>();
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_NEAR(shares[i], wanted[i], 4 * std::sqrt(wanted[i] * (1 - wanted[i]) / n));
  }
  EXPECT_EQ(categorical(rng, logits).shape(), (Shape{2}));
  const std::vector<double> p = {0.5, 0.3, 0.2};
  const Array weights = expand(Array({5, 3, 2}, {3, 1}), {3, n}), pairs = multinomial(rng, weights, 2);
  EXPECT_EQ(pairs.shape(), (Shape{2, n}));
  std::vector<double> seen(9);
  const std::vector<int> list = pairs.to_vector<int>();
  for (size_t i = 0; i < list.size(); i += 2) seen[static_cast<size_t>(list[i] * 3 + list[i + 1])] += 1.0 / n;
  for (size_t a = 0; a < 3; ++a) {
    for (size_t b = 0; b < 3; ++b) {
      const double want = a == b ? 0 : p[a] * p[b] / (1 - p[a]);
      EXPECT_NEAR(seen[a * 3 + b], want, 4 * std::sqrt(want / n));
    }
  }
  const Array counted = multinomial(rng, Array({5.0f, 0.0f, 2.0f}, {3}), n, true);
  EXPECT_NEAR(mean(cast(counted == 0, Float64)).item(), 5.0 / 7, 0.01);
  EXPECT_FALSE(any(counted == 1).item<bool>());
}

/// Shares of 400 classes in two columns, some of weight 0, within five deviations; and the same for all threads.
TEST(Distributions, DrawsWithReplacementFollowTheWeights) {
  constexpr int64_t classes = 400, n = 400000;
  Rng rng(12);
  const Array drawn_at = uniform(rng, {classes, 2}, -0.5, 1, Float64), weights = max(drawn_at, 0.0);
  const std::vector<double> shares = (weights / sum(weights, 0)).to_vector<double>();
  const Rng before = rng;
  const auto draws = [&](int threads) {
    set_num_threads(threads);
    Rng own = before;
    const Array all = multinomial(own, cast(weights, Float32), n, true);
    EXPECT_EQ(all.shape(), (Shape{n, 2}));
    EXPECT_EQ(all.dtype(), Int32);
    return all.to_vector<int32_t>();
  };
  const std::vector<int32_t> seen = draws(1);
  for (const int threads : {2, 3, 7}) EXPECT_EQ(draws(threads), seen);
  set_num_threads(0);
  std::vector<double> counts(2 * classes);
  for (size_t i = 0; i < seen.size(); ++i) ++counts[static_cast<size_t>(seen[i]) + (i < n ? 0 : classes)];
  for (size_t c = 0; c < counts.size(); ++c) {
    EXPECT_NEAR(counts[c], n * shares[c], 5 * std::sqrt(n * shares[c] * (1 - shares[c]))) << c;
  }
}

TEST(Distributions, DrawsWithReplacementMeetOddWeights) {
  Rng rng(13);
  const auto drawn = [&](const Array& weights, int64_t draws = 2000) {
    return multinomial(rng, weights, draws, true).to_vector<int32_t>();
  };
  EXPECT_EQ(drawn(Array({0.0f, 3.0f, 0.0f}, {3})), std::vector<int32_t>(2000, 1));
  EXPECT_EQ(drawn(Array({0, 0, 7}, {3})), std::vector<int32_t>(2000, 2)) << "integers";
  EXPECT_EQ(drawn(cast(Array({1e-3f, 0.0f}, {2}), Float16)), std::vector<int32_t>(2000, 0));
  EXPECT_EQ(drawn(ones({5}), 0), std::vector<int32_t>());
  for (const int32_t c : drawn(zeros({3}))) EXPECT_TRUE(c >= 0 && c < 3) << "all are 0: one of them";
  const Array many = cast(eq(mod(arange(20001), 2), 1), Float32);  // sums of segments are rounded
  for (const int32_t c : drawn(many * 0.1f, 100000)) EXPECT_EQ(c % 2, 1);
}

TEST(Distributions, ChoicesAreSlicesOfTheArray) {
  Rng rng(10);
  const Array x = reshape(arange(20), {2, 10});
  const Array some = choice(rng, x, 4), all_once = choice(rng, x, 10, {.replacement = false});
  EXPECT_EQ(some.shape(), (Shape{2, 4}));
  EXPECT_TRUE(all(row(some, 1) == row(some, 0) + 1).item<bool>());
  std::vector<float> taken = row(all_once, 0).to_vector();
  EXPECT_FALSE(std::is_sorted(taken.begin(), taken.end()));
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, (std::vector<float>{0, 2, 4, 6, 8, 10, 12, 14, 16, 18}));
  const Array weighted = choice(rng, x, 50, {.dim = 0, .weights = Array({0.0f, 1.0f}, {2})});
  EXPECT_EQ(weighted.shape(), (Shape{50, 10}));
  EXPECT_TRUE(all(mod(weighted, 2) == 1).item<bool>());
  const Array even = choice(rng, arange(5), 50000);
  for (int i = 0; i < 5; ++i) EXPECT_NEAR(mean(cast(even == i, Float64)).item(), 0.2, 0.008);
  EXPECT_EQ(choice(rng, x, 0).shape(), (Shape{2, 0}));
}

TEST(Distributions, ErrorsSayWhatToDo) {
  Rng rng(1);
  const auto starts = [](const std::string& text, const std::string& with) {
    EXPECT_EQ(text.rfind(with, 0), 0u) << text;
  };
  starts(error_of([&] { exponential(rng, {2}, 1, Int32); }, ErrorKind::dtype),
         "exponential: it draws floats; got Int32");
  starts(error_of([&] { poisson(rng, {2}, 1, Bool); }, ErrorKind::dtype), "poisson: counts are integers or floats");
  starts(error_of([&] { gumbel(rng, {2}, {}, 1); }, ErrorKind::argument), "gumbel: every parameter must be given");
  starts(error_of([&] { beta(rng, {2}, ones({3}), 1); }, ErrorKind::shape), "");
  starts(error_of([&] { laplace(rng, {1}, ones({3})); }, ErrorKind::shape), "laplace: parameters must broadcast to");
  starts(error_of([&] { categorical(rng, zeros({3}, Int32)); }, ErrorKind::dtype), "categorical: logits are floats");
  starts(error_of([&] { categorical(rng, zeros({0, 2})); }, ErrorKind::argument), "categorical: there must be classes");
  starts(error_of([&] { categorical(rng, zeros({2}), -1); }, ErrorKind::argument), "categorical: the number of draws");
  starts(error_of([&] { categorical(rng, 1.0f); }, ErrorKind::shape), "categorical: classes stand along dim 0");
  starts(error_of([&] { multinomial(rng, ones({2}), 3); }, ErrorKind::argument), "multinomial: without replacement");
  starts(error_of([&] { choice(rng, ones({2}), 3, {.replacement = false}); }, ErrorKind::argument), "choice: ");
  starts(error_of([&] { choice(rng, ones({2}), 3, {.dim = 1}); }, ErrorKind::shape), "choice: dim 1 does not exist");
  starts(error_of([&] { choice(rng, ones({2}), 3, {.weights = ones({3})}); }, ErrorKind::shape),
         "choice: there is one");
}

TEST(Distributions, NumbersOutsideTheirRangeAreRefused) {
  Rng rng(1);
  const auto refused = [](const auto& draws) {
    const std::string text = error_of(draws, ErrorKind::argument);
    EXPECT_NE(text.find(": a parameter lies in its range; got "), std::string::npos) << text;
  };
  refused([&] { poisson(rng, {2}, -1.0); });
  refused([&] { bernoulli(rng, 1.5, {2}); });
  refused([&] { bernoulli(rng, -1, {2}); });
  refused([&] { gamma(rng, {2}, 0.0); });
  refused([&] { gamma(rng, {2}, 1, -1); });
  refused([&] { beta(rng, {2}, 1, 0); });
  refused([&] { exponential(rng, {2}, 0); });
  refused([&] { laplace(rng, {2}, 0, -2.0); });
  refused([&] { gumbel(rng, {2}, 0, std::nan("")); });
  refused([&] { normal(rng, {2}, 0, -1); });
  refused([&] { truncated_normal(rng, {2}, 0, 0, -1, 1); });
  for (const auto& [low, high] : {std::pair{4.5, 9.0}, {-9.0, -4.5}}) {
    EXPECT_EQ(error_of([&, low = low, high = high] { truncated_normal(rng, {2}, 0, 1, low, high); }).substr(0, 71),
              "truncated_normal: the range begins within 4 deviations of the mean; got");
    const Array tail = truncated_normal(rng, {2000}, 0, 1, low, high, Float64);
    EXPECT_NEAR(std::abs(mean(tail).item()), 4.7, 0.05);  // SciPy: truncnorm(4.5, 9).mean() is 4.7043
  }
  EXPECT_EQ(bernoulli(rng, 1, {2}).dtype(), Bool);
  EXPECT_EQ(sum(poisson(rng, {5}, 0)).item(), 0);
}

}  // namespace
}  // namespace rosin
