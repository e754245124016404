// See loss_terms.hpp. Read first: elementwise_op.hpp, math_exponential.hpp.
#include "ops/loss_terms.hpp"

#include <rosin/activation.hpp>
#include <rosin/elementwise.hpp>

#include "graph/record.hpp"
#include "ops/elementwise_op.hpp"
#include "ops/math_exponential.hpp"
#include "ops/slopes.hpp"

namespace rosin {
namespace {

/// x, 0 where it is infinite or NaN.
Array finite_part(const Array& x) { return where(is_finite(x), x, 0.0); }

const Op& masked_product_op =
    elementwise<2>(
        "masked_product", "weight*value, 0 where the weight is 0",
        [](auto weight, auto value) { return select(weight == 0, 0, weight * value); }, floats)
        .with_arithmetic_gradient([](Backward& b) {
          if (b.needs(0)) b.give(0, b.gradient * finite_part(as_computed(b.in(1), b.out().dtype())));
          if (b.needs(1)) b.give(1, b.gradient * b.in(0));
        });

const Op& logit_entropy_op = elementwise<2>(
                                 "logit_entropy", "-y*log(sigmoid(x)) - (1 - y)*log(1 - sigmoid(x))",
                                 [](auto x, auto y) {
                                   const auto size = abs(x), wrong = select(x > 0, 1 - y, y);
                                   return select(wrong == 0, 0, wrong * size) + math::softplus(-size);
                                 },
                                 floats)
                                 .with_arithmetic_gradient([](Backward& b) {
                                   if (b.needs(0)) b.give(0, b.gradient * (sigmoid(b.in(0)) - b.in(1)));
                                   if (b.needs(1))
                                     b.give(1, b.gradient * -finite_part(as_computed(b.in(0), b.out().dtype())));
                                 });

}  // namespace

Array masked_product(const Array& weight, const Array& value) { return record(masked_product_op, weight, value); }
Array logit_entropy(const Array& x, const Array& y) { return record(logit_entropy_op, x, y); }

}  // namespace rosin
