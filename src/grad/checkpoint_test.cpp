// checkpoint and custom_gradient: values and gradients against the same function without them.
#include <rosin/gradient_rules.hpp>

#include <gtest/gtest.h>

#include <rosin/approx.hpp>
#include <rosin/complex.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

Array some(const Shape& shape) {
  Rng rng(7);
  Array x = randn(rng, shape) * 0.3;
  eval(x);
  return x;
}

Array block(const Array& w, const Array& x) { return tanh(matmul(w, tanh(matmul(w, x)) * 0.5 + x)); }

TEST(Checkpoint, GradientsAreEqualBitForBitWithAndWithoutIt) {
  const Array w = some({6, 6}), x = some({6, 5});
  const auto plain = [&](const Array& v) { return sum(square(block(v, block(v, x)))); };
  const auto saving = [&](const Array& v) {
    const auto part = checkpoint([&](const Array& y) { return block(v, y); });
    return sum(square(part(part(x))));
  };
  EXPECT_EQ(gradient(plain, w).to_vector(), gradient(saving, w).to_vector());
}

TEST(Checkpoint, TheFunctionRunsOnceAndDrawsItsRandomNumbersOnce) {
  const Array x = some({50});
  int calls = 0;
  Rng rng(3);
  const auto masked = checkpoint([&](const Array& y) {
    ++calls;
    return tanh(y * where(rand(rng, {50}) < 0.5, 0.0, 1.0));
  });
  const auto [loss, g] = withgradient([&](const Array& y) { return sum(square(masked(y))); }, x);
  EXPECT_EQ(calls, 1);
  Rng same(3);
  const Array mask = where(rand(same, {50}) < 0.5, 0.0, 1.0);
  const Array t = tanh(x * mask);
  EXPECT_TRUE(all(abs(g - 2.0 * t * (1.0 - t * t) * mask) < 1e-6).item<bool>());
}

TEST(Checkpoint, SecondGradientsPassThroughIt) {
  const Array x = some({4});
  const auto cube = checkpoint([](const Array& y) { return y * y * y; });
  const auto slope = [&](const Array& y) { return sum(gradient([&](const Array& z) { return sum(cube(z)); }, y)); };
  EXPECT_TRUE(all(abs(gradient(slope, x) - 6.0 * x) < 1e-5).item<bool>());
}

TEST(Checkpoint, RecomputedRegionsNeedLessMemory) {
  const Array w = some({64, 64}), x = some({64, 256});
  const auto arena_of = [&](auto&& step) {
    trim();
    const Array g = gradient(step, w);
    eval(g);
    return stats().pooled_bytes;  // what the run has worked in
  };
  const auto deep = [&](const Array& v, auto&& part) {
    Array y = x;
    for (int i = 0; i < 12; ++i) y = part(v, y);
    return sum(y);
  };
  const int64_t all_kept = arena_of([&](const Array& v) { return deep(v, block); });
  const int64_t recomputed = arena_of(
      [&](const Array& v) { return deep(v, [](const Array& u, const Array& y) { return checkpoint(block)(u, y); }); });
  EXPECT_LT(recomputed, all_kept * 3 / 4);
}

TEST(CustomGradient, TheRuleReplacesTheGradientOfTheValue) {
  const Array x({0.4f, 1.6f, -0.7f}, {3});
  const auto rounded = [](const Array& y) {
    return custom_gradient(round(y), {y}, [](const Array& dy) { return dy * 3.0; });
  };
  const auto [loss, g] = withgradient([&](const Array& y) { return sum(rounded(y) * y); }, x);
  EXPECT_FLOAT_EQ(static_cast<float>(loss.item()), 2 * 1.6f + 0.7f);
  const std::vector<float> want = {0.4f * 3, 2 + 1.6f * 3, -1 - 0.7f * 3};
  const std::vector<float> got = g.to_vector();
  for (size_t i = 0; i < 3; ++i) EXPECT_FLOAT_EQ(got[i], want[i]);
}

TEST(CustomGradient, SeveralInputsGetTheirOwnGradients) {
  const auto product = [](const Array& a, const Array& b) {
    return custom_gradient(a * b, {a, b}, [=](const Array& dy) { return std::vector<Array>{dy * b, Array()}; });
  };
  const auto [by_a, by_b] = gradient([&](const Array& a, const Array& b) { return product(a, b); }, 2.0, 5.0);
  EXPECT_EQ(by_a.item(), 5);
  EXPECT_TRUE(by_b.is_nothing());
}

TEST(CustomGradient, AnyNumberOfInputsIsTaken) {
  std::vector<Array> x;
  for (int i = 0; i < 9; ++i) x.push_back(some({2, i + 1}));
  const auto loss = [](const std::vector<Array>& in) {
    Array value = 0.0f;
    for (const Array& part : in) value = value + sum(part);
    return custom_gradient(value, in, [in](const Array& dy) {
      std::vector<Array> slopes;
      for (size_t i = 0; i < in.size(); ++i) slopes.push_back(i == 4 ? Array() : dy * static_cast<float>(i) * in[i]);
      return slopes;
    });
  };
  const std::vector<Array> slopes = gradient(loss, x);
  for (size_t i = 0; i < x.size(); ++i) {
    if (i == 4) EXPECT_TRUE(slopes[i].is_nothing());
    else EXPECT_EQ(slopes[i].to_vector(), (static_cast<float>(i) * x[i]).to_vector()) << i;
  }
  const auto five = [](const Array& a, const Array& b) {
    return custom_gradient(a * b, {a, b, a, b, a}, [=](const Array& dy) { return std::vector<Array>(5, dy); });
  };
  const auto [by_a, by_b] = gradient(five, 2.0, 5.0);
  EXPECT_EQ(by_a.item(), 3);
  EXPECT_EQ(by_b.item(), 2);
}

/// sqrt(a*a + b*b) and a*b with rules of one's own, which say the same as those of the ops; `asked` counts.
std::vector<Array> length_and_product(const Array& a, const Array& b, int& asked) {
  const Array length = sqrt(a * a + b * b);
  return custom_gradients({length, a * b}, {a, b}, [=, &asked](const std::vector<Array>& dy) {
    ++asked;
    Array by_a = zeros_like(a), by_b = zeros_like(b);
    if (!dy[0].is_nothing()) by_a = by_a + dy[0] * a / length, by_b = by_b + dy[0] * b / length;
    if (!dy[1].is_nothing()) by_a = by_a + dy[1] * b, by_b = by_b + dy[1] * a;
    return std::vector<Array>{by_a, by_b};
  });
}

TEST(CustomGradient, SeveralValuesHaveOneRuleThatIsAskedOnce) {
  const Array a({3.f, 1.f}, {2}), b({4.f, -2.f}, {2});
  int asked = 0;
  const auto both = [&](const Array& u, const Array& v) {
    const std::vector<Array> y = length_and_product(u, v, asked);
    return sum(y[0] * y[0]) + sum(y[1] * 5);
  };
  const auto [by_a, by_b] = gradient(both, a, b);
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(allclose(by_a, 2 * a + 5 * b));
  EXPECT_TRUE(allclose(by_b, 2 * b + 5 * a));
  const auto second_alone = [&](const Array& u, const Array& v) { return sum(length_and_product(u, v, asked)[1]); };
  EXPECT_TRUE(allclose(std::get<0>(gradient(second_alone, a, b)), b));
  EXPECT_EQ(asked, 2);
  const std::vector<Array> outside = length_and_product(a, b, asked);
  EXPECT_TRUE(allclose(outside[0], sqrt(a * a + b * b)));
  EXPECT_EQ(asked, 2);
}

TEST(CustomGradient, RulesOfSeveralValuesHaveGradients) {
  const Array a({3.f, 1.f}, {2}), b({4.f, -2.f}, {2});
  int asked = 0;
  const auto slope_of = [&](const auto& f) {
    return gradient([&](const Array& u) { return sum(square(gradient([&](const Array& v) { return f(v); }, u))); }, a);
  };
  const Array own = slope_of([&](const Array& v) {
    const std::vector<Array> y = length_and_product(v, b, asked);
    return sum(y[0] * y[1]);
  });
  const Array plain = slope_of([&](const Array& v) { return sum(sqrt(v * v + b * b) * (v * b)); });
  EXPECT_TRUE(allclose(own, plain, {.rtol = 1e-5}));
}

TEST(CustomGradient, ARuleThatFailedLeavesNothingForTheNextWalk) {
  const auto rule = [](const std::vector<Array>& dy) {
    if (!dy[0].is_nothing()) throw Error(ErrorKind::argument, "not by the first");
    return std::vector<Array>{dy[1]};
  };
  const auto caught = [&](const Array& u) {
    std::vector<Array> y;
    const auto inner = [&](const Array& v) {
      y = custom_gradients({v * 1, v * 2}, {v}, rule);
      return sum(y[0] * y[1]);
    };
    EXPECT_EQ(error_of([&] { gradient(inner, u); }), "not by the first");
    return sum(y[1]);
  };
  EXPECT_EQ(gradient(caught, Array({3.f}, {1})).item(), 1);
}

TEST(CustomGradient, NoValueIsAnError) {
  EXPECT_EQ(error_of([] { custom_gradients({}, {ones({2})}, [](const std::vector<Array>& dy) { return dy; }); }),
            "custom_gradients: there must be a value; got none; name what was computed");
}

TEST(CustomGradient, NoInputIsAnError) {
  const Array x({1.f}, {1});
  EXPECT_EQ(error_of([&] { custom_gradient(x, {}, [](const Array& dy) { return dy; }); }),
            "custom_gradient: there must be an input; got none; name the arrays of which the value was computed, or "
            "write stop_gradient(value)");
}

TEST(CustomGradient, AWrongNumberOfGradientsIsAnError) {
  const auto wrong = [](const Array& a) {
    return custom_gradient(a, {a}, [](const Array&) { return std::vector<Array>{}; });
  };
  try {
    gradient([&](const Array& a) { return wrong(a); }, 2.0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "custom_gradient: the rule must give one gradient for each input; got 0 for 1 inputs; use "
                 "an empty Array where there is none");
  }
}

TEST(CustomGradient, AGradientOfAnotherShapeOrOfNumbersThatDoNotFitIsAnError) {
  const auto of_rule = [](auto rule) {
    return error_of(
        [&] { gradient([&](const Array& v) { return sum(custom_gradient(v * 2, {v}, rule)); }, ones({3})); });
  };
  EXPECT_EQ(
      of_rule([](const Array& dy) { return sum(dy); }),
      "custom_gradient: the gradient of input 0 must have its shape (3); got (); reduce it with sum_to, or repeat "
      "it with expand");
  EXPECT_NE(of_rule([](const Array&) { return ones({3, 1}); }).find("got (3, 1)"), std::string::npos);
  EXPECT_NE(of_rule([](const Array&) { return ones({1}); }).find("got (1)"), std::string::npos);
  EXPECT_NE(of_rule([](const Array&) { return Array(1.0); }).find("got ()"), std::string::npos);
  EXPECT_EQ(of_rule([](const Array& dy) { return complex(dy, dy); }),
            "custom_gradient: the gradient of input 0 must have its type Float32; got ComplexF32; give the real part: "
            "real(g)");
  EXPECT_EQ(of_rule([](const Array& dy) { return cast(dy, Float64); }), "no error");
  EXPECT_EQ(of_rule([](const Array&) { return Array(); }), "no error");
}

TEST(CustomGradient, OutsideGradientCallsTheValueIsReturnedAsItIs) {
  const Array x({1.f}, {1});
  EXPECT_TRUE(same(custom_gradient(x, {x}, [](const Array& dy) { return dy; }), x));
}

}  // namespace
}  // namespace rosin
