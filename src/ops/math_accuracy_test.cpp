// How far functions of Float32 are from the true values, over all of their arguments: the design's bound is 2 ulp.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/special.hpp>

namespace rosin {
namespace {

/// In units of the place behind the last digit of a Float32 like the true value.
double ulps_between(float got, double want) {
  constexpr int digits = 24, least_exponent = -125;  // of subnormal numbers too
  const double nearest = static_cast<float>(want);
  if (std::isnan(want) || std::isinf(nearest)) {
    return std::isnan(got) == std::isnan(want) && (std::isnan(want) || got == nearest) ? 0 : INFINITY;
  }
  int exponent = 0;
  std::frexp(want, &exponent);
  return std::abs(got - want) / std::ldexp(1.0, std::max(exponent, least_exponent) - digits);
}

/// Numbers of all sizes and both signs: every 4001st pattern of bits.
std::vector<float> numbers_of_all_sizes() {
  std::vector<float> numbers;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4001) {
    numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  return numbers;
}

struct Curve {
  std::string name;
  Array (*computed)(const Array&);
  double (*wanted)(double);
};

TEST(FunctionsOfFloat32, AreWithinTwoUlp) {
  const std::vector<float> numbers = numbers_of_all_sizes();
  const Array x(numbers, {static_cast<int64_t>(numbers.size())});
  const std::vector<Curve> curves = {
      {"exp", exp, [](double v) { return std::exp(v); }},
      {"exp2", exp2, [](double v) { return std::exp2(v); }},
      {"expm1", expm1, [](double v) { return std::expm1(v); }},
      {"log", log, [](double v) { return std::log(v); }},
      {"log2", log2, [](double v) { return std::log2(v); }},
      {"log1p", log1p, [](double v) { return std::log1p(v); }},
      {"tanh", tanh, [](double v) { return std::tanh(v); }},
      {"sigmoid", sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }},
      {"softplus", softplus, [](double v) { return std::log1p(std::exp(-std::abs(v))) + std::fmax(v, 0); }},
      {"erf", erf, [](double v) { return std::erf(v); }},
      {"sin", sin, [](double v) { return std::sin(v); }},
      {"cos", cos, [](double v) { return std::cos(v); }},
      {"pow", [](const Array& a) { return pow(abs(a), 1.7f); },
       [](double v) { return std::pow(std::abs(v), static_cast<double>(1.7f)); }},
  };
  for (const Curve& curve : curves) {
    const std::vector<float> got = curve.computed(x).to_vector<float>();
    double worst = 0;
    float where = 0;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const double off = ulps_between(got[i], curve.wanted(numbers[i]));
      if (off <= worst) continue;
      worst = off;
      where = numbers[i];
    }
    EXPECT_LE(worst, 2) << curve.name << " of " << where;
    RecordProperty(curve.name, std::to_string(worst));
  }
}

}  // namespace
}  // namespace rosin
