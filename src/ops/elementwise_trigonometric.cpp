// Circular and hyperbolic functions, the error function and the gamma family. Read first: elementwise_op.hpp,
// math_trigonometric.hpp, math_gamma.hpp.
#include <rosin/elementwise.hpp>
#include <rosin/special.hpp>

#include <algorithm>
#include <bit>
#include <numbers>

#include "graph/record.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/drawing.hpp"
#include "ops/elementwise_op.hpp"
#include "ops/math_gamma.hpp"
#include "ops/math_special.hpp"
#include "ops/math_trigonometric.hpp"
#include "ops/slopes.hpp"

namespace rosin {
namespace {

constexpr double two_over_root_pi = 1.1283791670955126;

// Of any angle, and of one below near_limit, which takes a fraction of the time.
constexpr auto any_sin = [](auto x) __attribute__((always_inline)) { return math::sin(x); };
constexpr auto any_cos = [](auto x) __attribute__((always_inline)) { return math::cos(x); };
constexpr auto any_tan = [](auto x) __attribute__((always_inline)) { return math::tan(x); };
constexpr auto near_sin = [](auto x) __attribute__((always_inline)) { return math::sin<math::Angle::near>(x); };
constexpr auto near_cos = [](auto x) __attribute__((always_inline)) { return math::cos<math::Angle::near>(x); };
constexpr auto near_tan = [](auto x) __attribute__((always_inline)) { return math::tan<math::Angle::near>(x); };

/// The loops of an op of one Float32 whose body gives for elements below near_limit what `Near` gives.
template <class Any, class Near> struct NearLoop {
  static constexpr int64_t block = 256;

  /// The sign bits of magnitudes moved so that near_limit has the first one.
  static bool is_near(const float* x, int64_t count) {
    constexpr uint32_t sign = 0x80000000, limit = std::bit_cast<uint32_t>(math::near_limit);
    uint32_t far = 0;
    for (int64_t i = 0; i < count; ++i) far |= (std::bit_cast<uint32_t>(x[i]) & ~sign) + (sign - limit);
    return (far & sign) == 0;
  }

  template <InstructionSet set> static void run(void* out, const void* const* in, int64_t count) {
    using OfAny = LoopOn<Any, Operands::alike, 1, ScalarType::float32>;
    using OfNear = LoopOn<Near, Operands::alike, 1, ScalarType::float32>;
    for (int64_t at = 0; at < count; at += block) {
      const int64_t here = std::min(block, count - at);
      const float* x = static_cast<const float*>(in[0]) + at;
      const void* const from[] = {x};
      const StripLoop loop = is_near(x, here) ? OfNear::choose(set) : OfAny::choose(set);
      loop(static_cast<float*>(out) + at, from, here);
    }
  }
};

template <class Any, class Near> Op& with_near_loop(Op& op, Any, Near) {
  op.body.variant = [](ScalarType type, InstructionSet set) -> StripLoop {
    using Loops = NearLoop<Any, Near>;
    if (type != ScalarType::float32) {
      return type == ScalarType::float64 ? LoopOn<Any, Operands::alike, 1, ScalarType::float64>::choose(set) : nullptr;
    }
    switch (set) {
      case InstructionSet::baseline: return Loops::template run<InstructionSet::baseline>;
      case InstructionSet::wide: return Loops::template run<InstructionSet::wide>;
      case InstructionSet::widest: return Loops::template run<InstructionSet::widest>;
    }
    return nullptr;
  };
  op.body.loops[static_cast<int>(ScalarType::float32)] = op.body.variant(ScalarType::float32, best_instruction_set());
  return op;
}

const Op& sin_op = with_near_loop(elementwise<1>("sin", "sine", any_sin, floats), any_sin, near_sin)
                       .with_gradient([](Backward& b) { b.give(0, b.gradient * cos(b.in(0))); })
                       .called(sin);

const Op& cos_op = with_near_loop(elementwise<1>("cos", "cosine", any_cos, floats), any_cos, near_cos)
                       .with_gradient([](Backward& b) { b.give(0, -(b.gradient * sin(b.in(0)))); })
                       .called(cos);

const Op& cos_of_turns_op = elementwise<1>(
                                "cos_of_turns", "cos(2*pi*x)", [](auto x) { return math::cos_of_turns(x); }, floats)
                                .with_gradient([](Backward& b) {
                                  b.give(0, (-2 * std::numbers::pi) * b.gradient * cos_of_turns(b.in(0) - 0.25));
                                });

const Op& tan_op = with_near_loop(elementwise<1>("tan", "tangent", any_tan, floats), any_tan, near_tan)
                       .with_gradient([](Backward& b) { b.give(0, b.gradient * (1.0 + square(b.out()))); })
                       .samples(-1, 1)
                       .called(tan);

const Op& asin_op = elementwise<1>(
                        "asin", "the angle with this sine; NaN outside [-1, 1]; gradient Inf at both",
                        [](auto x) { return math::asin(x); }, floats)
                        .with_gradient([](Backward& b) { b.give(0, b.gradient * rsqrt(1.0 - square(b.in(0)))); })
                        .samples(-0.9, 0.9)
                        .called(asin);

const Op& acos_op = elementwise<1>(
                        "acos", "the angle with this cosine; NaN outside [-1, 1]; gradient -Inf at both",
                        [](auto x) { return math::acos(x); }, floats)
                        .with_gradient([](Backward& b) { b.give(0, -(b.gradient * rsqrt(1.0 - square(b.in(0))))); })
                        .samples(-0.9, 0.9)
                        .called(acos);

const Op& atan_op = elementwise<1>(
                        "atan", "the angle with this tangent", [](auto x) { return math::atan(x); }, floats)
                        .with_gradient([](Backward& b) { b.give(0, b.gradient / (1.0 + square(b.in(0)))); })
                        .called(atan);

const Op& atan2_op = elementwise<2>(
                         "atan2", "the angle of the point (second operand, first operand); gradient 0 at (0, 0)",
                         [](auto y, auto x) { return math::atan2(y, x); }, floats)
                         .with_gradient([](Backward& b) {
                           const DType type = b.node().dtype;  // squares of integers would overflow
                           const Array y = as_computed(b.in(0), type), x = as_computed(b.in(1), type),
                                       squares = square(x) + square(y);
                           const Array scaled = b.gradient / where(squares == 0, 1.0, squares);
                           if (b.needs(0)) b.give(0, scaled * x);
                           if (b.needs(1)) b.give(1, -(scaled * y));
                         })
                         .samples(0.5, 2);

const Op& sinh_op = elementwise<1>(
                        "sinh", "hyperbolic sine", [](auto x) { return math::sinh(x); }, floats)
                        .with_gradient([](Backward& b) { b.give(0, b.gradient * cosh(b.in(0))); })
                        .called(sinh);

const Op& cosh_op = elementwise<1>(
                        "cosh", "hyperbolic cosine", [](auto x) { return math::cosh(x); }, floats)
                        .with_gradient([](Backward& b) { b.give(0, b.gradient * sinh(b.in(0))); })
                        .called(cosh);

const Op& tanh_op = elementwise<1>(
                        "tanh", "hyperbolic tangent", [](auto x) { return math::tanh(x); }, floats)
                        .with_gradient([](Backward& b) { b.give(0, tanh_slope(b.gradient, b.out())); })
                        .called(tanh);

const Op& asinh_op = elementwise<1>(
                         "asinh", "the number with this hyperbolic sine", [](auto x) { return math::asinh(x); }, floats)
                         .with_gradient([](Backward& b) { b.give(0, b.gradient * rsqrt(square(b.in(0)) + 1.0)); })
                         .called(asinh);

const Op& acosh_op =
    elementwise<1>(
        "acosh", "the number with this hyperbolic cosine; NaN below 1; gradient Inf at 1",
        [](auto x) { return math::acosh(x); }, floats)
        .with_gradient([](Backward& b) { b.give(0, b.gradient * (rsqrt(b.in(0) - 1.0) * rsqrt(b.in(0) + 1.0))); })
        .samples(1.5, 3)
        .called(acosh);

const Op& atanh_op = elementwise<1>(
                         "atanh", "the number with this hyperbolic tangent; NaN outside [-1, 1]; gradient Inf at both",
                         [](auto x) { return math::atanh(x); }, floats)
                         .with_gradient([](Backward& b) { b.give(0, b.gradient / (1.0 - square(b.in(0)))); })
                         .samples(-0.9, 0.9)
                         .called(atanh);

const Op& erf_op =
    elementwise<1>(
        "erf", "error function", [](auto x) { return math::erf(x); }, floats)
        .with_gradient([](Backward& b) { b.give(0, b.gradient * (two_over_root_pi * exp(-square(b.in(0))))); })
        .called(erf);

const Op& lgamma_op = elementwise<1>(
                          "lgamma", "log|Gamma(x)|; Inf at 0, -1, -2, ...",
                          [](auto x) __attribute__((always_inline)) { return math::lgamma(x); }, floats)
                          .with_gradient([](Backward& b) { b.give(0, b.gradient * digamma(b.in(0))); })
                          .samples(0.5, 4)
                          .called(lgamma);

const Op& digamma_op =
    elementwise<1>(
        "digamma", "the derivative of lgamma; NaN at 0, -1, -2, ...", [](auto x) { return math::digamma(x); }, floats)
        .with_gradient([](Backward& b) { b.give(0, b.gradient * trigamma(b.in(0))); })
        .samples(0.5, 4)
        .called(digamma);

const Op& trigamma_op = elementwise<1>(
                            "trigamma", "the derivative of digamma; Inf at 0, -1, -2, ...",
                            [](auto x) { return math::trigamma(x); }, floats)
                            .with_gradient([](Backward& b) { b.give(0, b.gradient * polygamma(2, b.in(0))); })
                            .samples(0.5, 4)
                            .called(trigamma);

}  // namespace

Array sin(const Array& x) { return record(sin_op, x); }
Array cos(const Array& x) { return record(cos_op, x); }
Array cos_of_turns(const Array& x) { return record(cos_of_turns_op, x); }
Array tan(const Array& x) { return record(tan_op, widened(x)); }
Array asin(const Array& x) { return record(asin_op, widened(x)); }
Array acos(const Array& x) { return record(acos_op, widened(x)); }
Array atan(const Array& x) { return record(atan_op, x); }
Array atan2(const Array& y, const Array& x) { return record(atan2_op, y, x); }
Array sinh(const Array& x) { return record(sinh_op, widened(x)); }
Array cosh(const Array& x) { return record(cosh_op, widened(x)); }
Array tanh(const Array& x) { return record(tanh_op, x); }
Array asinh(const Array& x) { return record(asinh_op, x); }
Array acosh(const Array& x) { return record(acosh_op, x); }
Array atanh(const Array& x) { return record(atanh_op, x); }
Array erf(const Array& x) { return record(erf_op, x); }
Array lgamma(const Array& x) { return record(lgamma_op, x); }
Array digamma(const Array& x) { return record(digamma_op, x); }
Array trigamma(const Array& x) { return record(trigamma_op, x); }

}  // namespace rosin
