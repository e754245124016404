// Math modes on a device: how often what is computed together rounds, what quick functions cost, and whose mode counts.
// Numbers come from hand calculation and from the C library in Float64. Read first: test_device.hpp.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/math_mode.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "graph/math_mode_testing.hpp"
#include "oracle_reader.hpp"
#include "test_device.hpp"

namespace rosin {
namespace {

/// x * y + z = 2^-24, and 0 where the product is rounded before.
struct Numbers {
  Array x, y, z;
  explicit Numbers(const Device& device)
      : x(full({2}, 1 + 0x1p-12f) | device), y(full({2}, 1 + 0x1p-12f) | device),
        z(full({2}, -(1 + 0x1p-11f)) | device) {
    eval();
  }
  Array sum() const { return x * y + z; }
};
constexpr float rounded_once = 0x1p-24f, rounded_twice = 0;

float value_of(const Array& x) { return (x | Device()).to_vector<float>()[0]; }

TEST(MathModes, ExactRoundsEachStepAndTheOthersRoundOnce) {
  const Numbers numbers(some_device());
  for (const MathMode mode : math_modes) {
    const Array got = with(mode, [&] { return numbers.sum(); });
    EXPECT_EQ(value_of(got), mode == MathMode::exact ? rounded_twice : rounded_once) << name_of(mode);
    const Array difference = with(mode, [&] { return -numbers.z - numbers.x * numbers.y; });
    EXPECT_EQ(value_of(difference), mode == MathMode::exact ? rounded_twice : -rounded_once) << name_of(mode);
    const Array dot = with(mode, [&] { return sum(numbers.x * numbers.y) + 2.0 * numbers.z; });
    EXPECT_NEAR(value_of(dot), 0, 0x1p-22) << name_of(mode);
  }
}

TEST(MathModes, BelongToWhatIsRecordedNotToTheEvaluation) {
  const Numbers numbers(some_device());
  const Array exact = with(MathMode::exact, [&] { return numbers.sum(); });
  with(MathMode::standard, [&] { EXPECT_EQ(value_of(exact), rounded_twice); });
  const Array standard = with(MathMode::standard, [&] { return numbers.sum(); });
  float elsewhere = 1;
  std::thread([&] { with(MathMode::exact, [&] { elsewhere = value_of(standard); }); }).join();
  EXPECT_EQ(elsewhere, rounded_once);
}

TEST(MathModes, OneKernelHoldsSeveral) {
  const Numbers numbers(some_device());
  const Array exact = with(MathMode::exact, [&] { return numbers.sum(); });
  const Array standard = with(MathMode::standard, [&] { return numbers.sum(); });
  const Array product = with(MathMode::exact, [&] { return numbers.x * numbers.y; });
  const Array mixed = with(MathMode::standard, [&] { return product + numbers.z; });
  const Array all = stack({exact, standard, mixed}, 0);
  const std::vector<float> got = (all | Device()).to_vector<float>();
  EXPECT_EQ(got[0], rounded_twice);
  EXPECT_EQ(got[1], rounded_once);
  EXPECT_EQ(got[2], rounded_twice);  // an exact product is rounded, whoever reads it
}

TEST(MathModes, TakeTurnsWithoutPlanningAnew) {
  const Numbers numbers(some_device());
  const auto round = [&] {
    for (const MathMode mode : math_modes) eval(with(mode, [&] { return exp(numbers.sum()); }));
  };
  round();
  const Stats before = stats();
  for (int i = 0; i < 4; ++i) round();
  EXPECT_EQ(stats().structures, before.structures);
  EXPECT_EQ(stats().layouts, before.layouts);
  EXPECT_EQ(stats().evaluations - before.evaluations, 12);
}

TEST(MathModes, HaveOnePlanOnTheCpuWhichIsExact) {
  const Numbers numbers{Device()};
  const ProgramMode usual(MathMode::usual);
  EXPECT_EQ(value_of(numbers.sum()), rounded_twice);
  const Stats before = stats();
  for (const MathMode mode : math_modes) {
    EXPECT_EQ(value_of(with(mode, [&] { return numbers.sum(); })), rounded_twice) << name_of(mode);
  }
  EXPECT_EQ(stats().layouts, before.layouts);
}

TEST(MathModes, UsualIsStandardOnGpusAlone) {
  const Numbers numbers(some_device());
  const ProgramMode usual(MathMode::usual);
  EXPECT_EQ(value_of(numbers.sum()), some_device().is_gpu() ? rounded_once : rounded_twice);
}

TEST(MathModes, OfTheProgramCountWhereNoWithDoes) {
  const Numbers numbers(some_device());
  const Array pending = numbers.sum();
  const ProgramMode program(MathMode::standard);
  EXPECT_EQ(value_of(pending), rounded_once);
  EXPECT_EQ(value_of(with(MathMode::exact, [&] { return numbers.sum(); })), rounded_twice);
  EXPECT_EQ(value_of(with(MathMode::exact, [&] { return with(MathMode::usual, [&] { return numbers.sum(); }); })),
            rounded_once);
}

/// x^2 * y has the slope 2 * (x * y) by x: a sum of two products that the walk back makes.
TEST(MathModes, GradientsAreComputedInTheModeOfTheForwardPass) {
  const Device device = some_device();
  const Array x = full({1}, 1 + 0x1p-12f) | device, z = full({1}, -(1 + 0x1p-11f)) | device;
  const auto f = [&](const Array& a) { return sum(a * x * a + z * a); };  // slope: a*x + a*x + z, in some order
  for (const MathMode mode : math_modes) {
    const Array inside = with(mode, [&] { return gradient(f, x); });
    const Array outside = gradient([&](const Array& a) { return with(mode, [&] { return f(a); }); }, x);
    EXPECT_EQ(value_of(inside), value_of(outside)) << name_of(mode);
  }
}

// ---- What modes cost ----

/// A function on a device, and in Float64 by the C library.
struct Measured {
  const char* name;
  Array (*there)(const Array& x, const Array& y);
  double (*here)(double x, double y);
  double most[3];       // ulp in Float32, by mode
  double most_half[3];  // in Float16 and BFloat16
};

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

const Measured measured[] = {
    {"exp",
     [](const Array& x, const Array&) { return exp(x); },
     [](double x, double) { return std::exp(x); },
     {2, 2, 24},
     {1, 1, 1}},
    {"tanh",
     [](const Array& x, const Array&) { return tanh(x); },
     [](double x, double) { return std::tanh(x); },
     {2, 2, 8192},
     {1, 2, 2}},
    {"sigmoid",
     [](const Array& x, const Array&) { return sigmoid(x); },
     [](double x, double) { return sigmoid_of(x); },
     {2, 2, 24},
     {1, 1, 1}},
    {"swish",
     [](const Array& x, const Array&) { return swish(x); },
     [](double x, double) { return x * sigmoid_of(x); },
     {3, 3, 24},
     {1, 1, 1}},
    {"x / y",
     [](const Array& x, const Array& y) { return x / y; },
     [](double x, double y) { return x / y; },
     {0.5, 0.5, 4},
     {1, 1, 1}},
    {"x * y + x",
     [](const Array& x, const Array& y) { return x * y + x; },
     [](double x, double y) { return x * y + x; },
     {1e9, 0.5, 0.5},
     {1e9, 1e9, 1e9}},
    {"rsqrt",
     [](const Array& x, const Array&) { return rsqrt(abs(x) + 0.25); },
     [](double x, double) { return 1 / std::sqrt(std::abs(x) + 0.25); },
     {2, 2, 4},
     {2, 2, 2}},
};

/// The largest distance of what the device made of x and y from what is right for them, in ulp of the type.
double distance(const Measured& function, const Array& x, const Array& y, const Array& made) {
  const std::vector<double> got = cast(made | Device(), Float64).to_vector<double>();
  const std::vector<double> a = cast(x, Float64).to_vector<double>(), b = cast(y, Float64).to_vector<double>();
  const std::string type = to_string(x.dtype());
  double most = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double want = function.here(a[i], b[i]);
    most = std::max(most, std::abs(got[i] - want) / oracles::spacing(type, want));
  }
  return most;
}

void check_costs(const Array& x, const Array& y) {
  const Array there_x = x | some_device(), there_y = y | some_device();
  eval();
  std::vector<Array> made;
  for (const Measured& function : measured) {
    for (const MathMode mode : math_modes) {
      made.push_back(with(mode, [&] { return function.there(there_x, there_y); }));
    }
  }
  eval();  // all of them as one plan
  for (size_t i = 0; i < made.size(); ++i) {
    const Measured& function = measured[i / std::size(math_modes)];
    const size_t mode = i % std::size(math_modes);
    const double got = distance(function, x, y, made[i]);
    const std::string where =
        std::string(function.name) + " of " + to_string(x.dtype()) + ", " + name_of(math_modes[mode]);
    EXPECT_LE(got, (x.dtype() == Float32 ? function.most : function.most_half)[mode]) << where;
    testing::Test::RecordProperty(where, std::to_string(got));
  }
}

TEST(MathModes, CostNoMoreThanTheirPageSays) {
  seed(5);
  const Array x = (rand({4000}) - 0.5) * 22.0, y = exp((rand({4000}) - 0.5) * 8.0);
  for (const DType type : {Float32, Float16, BFloat16}) check_costs(cast(x, type), cast(y, type));
}

/// What quick functions make of numbers that have no neighbours.
TEST(MathModes, QuickFunctionsKnowInfinitiesAndNaN) {
  const Device device = some_device();
  const float inf = INFINITY;
  const Array x = Array({0.0f, -0.0f, inf, -inf, NAN}, {5}) | device;
  const auto get = [](const Array& a) { return (a | Device()).to_vector<float>(); };
  with(MathMode::fast, [&] {
    const std::vector<float> e = get(exp(x)), t = get(tanh(x)), s = get(sigmoid(x)), q = get(1.0 / x), p = get(x / x);
    EXPECT_EQ((std::vector<float>{e.begin(), e.end() - 1}), (std::vector<float>{1, 1, inf, 0}));
    EXPECT_EQ(t[0], 0);
    EXPECT_NEAR(t[2], 1, 0x1p-10);
    EXPECT_NEAR(t[3], -1, 0x1p-10);
    EXPECT_TRUE(std::signbit(t[1]));
    EXPECT_EQ((std::vector<float>{s.begin(), s.end() - 1}), (std::vector<float>{0.5f, 0.5f, 1, 0}));
    EXPECT_EQ((std::vector<float>{q.begin(), q.end() - 1}), (std::vector<float>{inf, -inf, 0, 0}));
    for (const std::vector<float>& all : {e, t, s, q, p}) EXPECT_TRUE(std::isnan(all.back()));
    for (const float each : p) EXPECT_TRUE(std::isnan(each));
  });
}

/// Where 1/y or y is subnormal, y times a power of two is not.
TEST(MathModes, QuickQuotientsKeepTheirRange) {
  const Device device = some_device();
  const Array x = Array({0x1p+127f, 0x1p-140f, 3.0f, 0x1p-120f, 0x1p+100f}, {5}) | device;
  const Array y = Array({0x1p+127f, 0x1p-140f, 0x1p+126f, 0x1p-130f, 0x1p-20f}, {5}) | device;
  const std::vector<float> want = {1, 1, 0x1.8p-125f, 0x1p+10f, 0x1p+120f};
  const Array quotient = with(MathMode::fast, [&] { return x / y; });
  const std::vector<float> got = (quotient | Device()).to_vector<float>();
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i] / want[i], 1, 0x1p-20) << i;
}

}  // namespace
}  // namespace rosin
