// Special functions beside those of elementwise_trigonometric.cpp. Read first: elementwise_op.hpp, math_erfinv.hpp.
#include <rosin/special.hpp>

#include <rosin/elementwise.hpp>

#include "graph/record.hpp"
#include "ops/autocast_casts.hpp"
#include "ops/elementwise_op.hpp"
#include "ops/math_erfinv.hpp"

namespace rosin {
namespace {

constexpr double half_root_pi = 0.886226925452758;

const Op& erfinv_op =
    elementwise<1>(
        "erfinv", "the inverse of erf; -Inf and Inf at -1 and 1, NaN outside",
        [](auto x) __attribute__((always_inline)) { return math::erfinv(x); }, floats)
        .with_gradient([](Backward& b) { b.give(0, b.gradient * (half_root_pi * exp(square(b.out())))); })
        .samples(-0.9, 0.9)
        .called(erfinv);

}  // namespace

Array erfinv(const Array& x) { return record(erfinv_op, widened(x)); }

}  // namespace rosin
