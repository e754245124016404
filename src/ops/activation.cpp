// Activations with a fused body and a closed gradient each. Read first: elementwise_op.hpp, math_exponential.hpp.
#include <rosin/activation.hpp>
#include <rosin/elementwise.hpp>

#include "graph/record.hpp"
#include "graph/refuse_type.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/elementwise_op.hpp"
#include "ops/math_exponential.hpp"
#include "ops/math_special.hpp"
#include "ops/slopes.hpp"

namespace rosin {
namespace {

constexpr double selu_scale = 1.0507009873554805;
constexpr double selu_alpha = 1.6732632423543772;
constexpr double gelu_sigmoid_slope = 1.702;
constexpr double log_of_two = 0x1.62e42fefa39efp-1;

/// x between low and high; NaN stays.
template <class X> [[gnu::always_inline]] inline X between(X x, double low, double high) {
  const X above = select(x < low, low, x);
  return select(above > high, high, above);
}

/// g where low < x < high, else 0.
Array inside(const Array& x, double low, double high, const Array& g) { return where((x > low) & (x < high), g, 0.0); }

const Op& sigmoid_op = elementwise<1>(
                           "sigmoid", "1/(1 + e^-x)", [](auto x) { return math::sigmoid(x); }, floats)
                           .with_gradient([](Backward& b) { b.give(0, sigmoid_slope(b.gradient, b.out())); })
                           .called(sigmoid, "σ");

const Op& hardsigmoid_op =
    elementwise<1>(
        "hardsigmoid", "(x + 3)/6 between 0 and 1", [](auto x) { return between((x + 3) * (1.0 / 6), 0, 1); }, floats)
        .with_gradient([](Backward& b) { b.give(0, inside(b.in(0), -3, 3, b.gradient * (1.0 / 6))); })
        .called(hardsigmoid, "hardσ");

const Op& logsigmoid_op = elementwise<1>(
                              "logsigmoid", "log(sigmoid(x))", [](auto x) { return -math::softplus(-x); }, floats)
                              .with_gradient([](Backward& b) { b.give(0, b.gradient * sigmoid(-b.in(0))); })
                              .called(logsigmoid, "logσ");

const Op& hardtanh_op =
    elementwise<1>(
        "hardtanh", "x between -1 and 1; gradient 0 at both", [](auto x) { return between(x, -1, 1); }, floats)
        .with_gradient([](Backward& b) { b.give(0, inside(b.out(), -1, 1, b.gradient)); })
        .samples(-0.9, 0.9)
        .called(hardtanh);

const Op& relu_op = elementwise<1>(
                        "relu", "x where positive, else 0; gradient 0 at 0; NaN stays",
                        [](auto x) { return select(x < 0, 0, x); }, floats)
                        .with_gradient([](Backward& b) { b.give(0, relu_slope(b.gradient, b.out())); })
                        .samples(0.5, 2)
                        .called(relu);

const Op& leakyrelu_op = elementwise<2>(
                             "leakyrelu", "x where positive, else slope*x; gradient slope at 0",
                             [](auto x, auto slope) { return select(x > 0, x, slope * x); }, floats)
                             .with_gradient([](Backward& b) {
                               const Array positive = b.in(0) > 0;
                               if (b.needs(0)) b.give(0, where(positive, b.gradient, b.gradient * b.in(1)));
                               if (b.needs(1)) b.give(1, where(positive, 0.0, b.gradient * b.in(0)));
                             })
                             .samples(0.5, 2)
                             .called(leakyrelu);

const Op& relu6_op =
    elementwise<1>(
        "relu6", "x between 0 and 6; gradient 0 at both", [](auto x) { return between(x, 0, 6); }, floats)
        .with_gradient([](Backward& b) { b.give(0, inside(b.out(), 0, 6, b.gradient)); })
        .samples(0.5, 2)
        .called(relu6);

const Op& elu_op = elementwise<2>(
                       "elu", "x where positive, else alpha*(e^x - 1)",
                       [](auto x, auto alpha) { return select(x > 0, x, alpha * math::expm1(x)); }, floats)
                       .with_gradient([](Backward& b) {
                         const Array x = as_computed(b.in(0), b.out().dtype()), positive = x > 0;
                         if (b.needs(0)) b.give(0, b.gradient * where(positive, 1.0, b.out() + b.in(1)));
                         if (b.needs(1)) b.give(1, b.gradient * where(positive, 0.0, expm1(min(x, 0.0))));
                       })
                       .samples(0.5, 2)
                       .called(elu);

const Op& gelu_op = elementwise<1>(
                        "gelu", "x times the normal distribution function, approximated by tanh",
                        [](auto x) { return x * math::sigmoid(x * (gelu_linear + gelu_cubic * (x * x))); }, floats)
                        .with_gradient([](Backward& b) { b.give(0, gelu_slope(b.gradient, b.in(0))); })
                        .called(gelu);

const Op& gelu_sigmoid_op =
    elementwise<1>(
        "gelu_sigmoid", "x*sigmoid(1.702*x)", [](auto x) { return x * math::sigmoid(x * gelu_sigmoid_slope); }, floats)
        .with_gradient([](Backward& b) {
          const Array s = sigmoid(b.in(0) * gelu_sigmoid_slope);
          b.give(0, b.gradient * (s + gelu_sigmoid_slope * (b.out() * (1.0 - s))));
        })
        .called(gelu_sigmoid);

const Op& gelu_erf_op = elementwise<1>(
                            "gelu_erf", "x times the normal distribution function",
                            [](auto x) { return x * math::normal_below(x); }, floats)
                            .with_gradient([](Backward& b) {
                              const Array x = b.in(0);
                              const Array below = 0.5 + 0.5 * erf(x * 0.7071067811865476);
                              b.give(0, b.gradient * (below + x * (0.3989422804014327 * exp(square(x) * -0.5))));
                            })
                            .called(gelu_erf);

const Op& swish_op = elementwise<1>(
                         "swish", "x*sigmoid(x)", [](auto x) { return x * math::sigmoid(x); }, floats)
                         .with_gradient([](Backward& b) {
                           const Array s = sigmoid(b.in(0));
                           b.give(0, b.gradient * (s + b.out() * (1.0 - s)));
                         })
                         .called(swish);

const Op& hardswish_op =
    elementwise<1>(
        "hardswish", "x*hardsigmoid(x)", [](auto x) { return x * between((x + 3) * (1.0 / 6), 0, 1); }, floats)
        .with_gradient([](Backward& b) {
          const Array x = b.in(0);
          b.give(0, b.gradient * where(x >= 3, 1.0, where(x > -3, x * (1.0 / 3) + 0.5, 0.0)));
        })
        .called(hardswish);

const Op& lisht_op = elementwise<1>(
                         "lisht", "x*tanh(x)", [](auto x) { return x * math::tanh(x); }, floats)
                         .with_gradient([](Backward& b) {
                           const Array t = tanh(b.in(0));
                           b.give(0, b.gradient * (t + b.in(0) * (1.0 - square(t))));
                         })
                         .called(lisht);

const Op& selu_op = elementwise<1>(
                        "selu", "1.0507009873554805 * elu(x, 1.6732632423543772)",
                        [](auto x) { return selu_scale * select(x > 0, x, selu_alpha * math::expm1(x)); }, floats)
                        .with_gradient([](Backward& b) {
                          b.give(0, b.gradient * where(b.in(0) > 0, selu_scale, b.out() + selu_scale * selu_alpha));
                        })
                        .samples(0.5, 2)
                        .called(selu);

const Op& celu_op = elementwise<2>(
                        "celu", "x where positive, else alpha*(e^(x/alpha) - 1)",
                        [](auto x, auto alpha) { return select(x > 0, x, alpha * math::expm1(x / alpha)); }, floats)
                        .with_gradient([](Backward& b) {
                          const Array x = b.in(0), alpha = b.in(1), positive = x > 0;
                          const Array slope = where(positive, 1.0, b.out() / alpha + 1.0);
                          if (b.needs(0)) b.give(0, b.gradient * slope);
                          if (b.needs(1)) b.give(1, b.gradient * where(positive, 0.0, (b.out() - x * slope) / alpha));
                        })
                        .samples(0.5, 2)
                        .called(celu);

const Op& trelu_op = elementwise<2>(
                         "trelu", "x where above theta, else 0; gradient 0 at theta and by theta",
                         [](auto x, auto theta) { return select((x > theta) | is_nan(x), x, 0); }, floats)
                         .with_gradient([](Backward& b) {
                           if (b.needs(0)) b.give(0, where(b.in(0) > b.in(1), b.gradient, 0.0));
                         })
                         .called(trelu);

const Op& softsign_op = elementwise<1>(
                            "softsign", "x/(1 + |x|)", [](auto x) { return quotient(x, 1 + abs(x)); }, floats)
                            .with_gradient([](Backward& b) { b.give(0, b.gradient * square(1.0 - abs(b.out()))); })
                            .called(softsign);

const Op& softplus_op = elementwise<1>(
                            "softplus", "log(1 + e^x)", [](auto x) { return math::softplus(x); }, floats)
                            .with_gradient([](Backward& b) { b.give(0, b.gradient * sigmoid(b.in(0))); })
                            .called(softplus);

const Op& logcosh_op = elementwise<1>(
                           "logcosh", "log(cosh(x))",
                           [](auto x) {
                             const auto a = abs(x);
                             // sinh(a)^2 and e^-2a from one exponential; beyond 40 the second one is 0.
                             const auto e = math::expm1(select(a > 40, 40, a) * 2);
                             const auto q = plain_quotient(lit(x, 1), 1 + e);
                             const auto near = a < 1;
                             const auto logarithm = math::log1p_near(select(near, e * e * q * 0.25, q));
                             return select(near, logarithm * 0.5, (a - log_of_two) + logarithm);
                           },
                           floats)
                           .with_gradient([](Backward& b) { b.give(0, b.gradient * tanh(b.in(0))); })
                           .called(logcosh);

const Op& mish_op = elementwise<1>(
                        "mish", "x*tanh(softplus(x))",
                        [](auto x) {
                          // tanh(log(1 + e)) = (e^2 + 2e)/(e^2 + 2e + 2), which is 1 beyond 40.
                          const auto e = math::exp(select(x > 40, 40, x));
                          const auto w = e * (e + 2);
                          return x * plain_quotient(w, w + 2);
                        },
                        floats)
                        .with_gradient([](Backward& b) {
                          const Array x = b.in(0), t = tanh(softplus(x));
                          b.give(0, b.gradient * (t + x * sigmoid(x) * (1.0 - square(t))));
                        })
                        .called(mish);

const Op& tanhshrink_op = elementwise<1>(
                              "tanhshrink", "x - tanh(x)", [](auto x) { return x - math::tanh(x); }, floats)
                              .with_gradient([](Backward& b) { b.give(0, b.gradient * square(tanh(b.in(0)))); })
                              .called(tanhshrink);

const Op& softshrink_op =
    elementwise<2>(
        "softshrink", "x moved toward 0 by lambda, 0 in between; gradient 0 at both",
        [](auto x, auto lambda) { return select(x > lambda, x - lambda, select(x < -lambda, x + lambda, x * 0)); },
        floats)
        .with_gradient([](Backward& b) {
          const Array outside = abs(b.in(0)) > b.in(1);
          if (b.needs(0)) b.give(0, where(outside, b.gradient, 0.0));
          if (b.needs(1)) b.give(1, where(outside, -(b.gradient * sign(b.in(0))), 0.0));
        })
        .samples(0.5, 2)
        .called(softshrink);

const bool named[] = {name_function(identity, "identity")};

}  // namespace

Array identity(const Array& x) { return x; }
Array sigmoid(const Array& x) { return record(sigmoid_op, x); }
Array hardsigmoid(const Array& x) { return record(hardsigmoid_op, x); }
Array hardsigmoid(const Array& x, double alpha, double beta) {
  require_real("hardsigmoid", x);
  return hardtanh(2 * alpha * x + (2 * beta - 1)) * 0.5 + 0.5;
}
Array logsigmoid(const Array& x) { return record(logsigmoid_op, x); }
Array hardtanh(const Array& x) { return record(hardtanh_op, x); }
Array relu(const Array& x) { return record(relu_op, x); }
Array leakyrelu(const Array& x) { return leakyrelu(x, 0.01); }
Array leakyrelu(const Array& x, double slope) { return record(leakyrelu_op, x, slope); }
Array relu6(const Array& x) { return record(relu6_op, x); }
Array elu(const Array& x) { return elu(x, 1); }
Array elu(const Array& x, double alpha) { return record(elu_op, x, alpha); }
Array gelu(const Array& x) { return record(gelu_op, x); }
Array gelu_sigmoid(const Array& x) { return record(gelu_sigmoid_op, x); }
Array gelu_erf(const Array& x) { return record(gelu_erf_op, x); }
Array swish(const Array& x) { return record(swish_op, x); }
Array swish(const Array& x, double beta) {
  require_real("swish", x);
  return x * sigmoid(beta * x);
}
Array hardswish(const Array& x) { return record(hardswish_op, x); }
Array lisht(const Array& x) { return record(lisht_op, x); }
Array selu(const Array& x) { return record(selu_op, x); }
Array selu(const Array& x, double alpha, double scale) {
  require_real("selu", x);
  return scale * elu(x, alpha);
}
Array celu(const Array& x) { return celu(x, 1); }
Array celu(const Array& x, double alpha) { return record(celu_op, x, alpha); }
Array trelu(const Array& x) { return trelu(x, 1); }
Array trelu(const Array& x, double theta) { return record(trelu_op, x, theta); }
Array softsign(const Array& x) { return record(softsign_op, x); }
Array softplus(const Array& x) { return record(softplus_op, widened(x)); }
Array logcosh(const Array& x) { return record(logcosh_op, x); }
Array mish(const Array& x) { return record(mish_op, x); }
Array tanhshrink(const Array& x) { return record(tanhshrink_op, x); }
Array softshrink(const Array& x) { return softshrink(x, 0.5); }
Array softshrink(const Array& x, double lambda) { return record(softshrink_op, x, lambda); }

}  // namespace rosin
