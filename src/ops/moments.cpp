// Moments of optimisers. Read first: elementwise_op.hpp.
#include "ops/moments.hpp"

#include <rosin/elementwise.hpp>

#include "graph/record.hpp"
#include "ops/elementwise_op.hpp"

namespace rosin {
namespace {

const Op& running_mean_op =
    elementwise<4>(
        "running_mean", "weight*old + rest*now",
        [](auto old, auto now, auto weight, auto rest) { return weight * old + rest * now; }, floats)
        .with_gradient([](Backward& b) {
          b.give(0, b.gradient * b.in(2));
          b.give(1, b.gradient * b.in(3));
          if (b.needs(2)) b.give(2, b.gradient * b.in(0));
          if (b.needs(3)) b.give(3, b.gradient * b.in(1));
        });

const Op& running_square_op =
    elementwise<4>(
        "running_square", "weight*old + rest*now^2",
        [](auto old, auto now, auto weight, auto rest) { return weight * old + rest * (now * now); }, floats)
        .with_gradient([](Backward& b) {
          b.give(0, b.gradient * b.in(2));
          if (b.needs(1)) b.give(1, b.gradient * b.in(3) * (2.0 * b.in(1)));
          if (b.needs(2)) b.give(2, b.gradient * b.in(0));
          if (b.needs(3)) b.give(3, b.gradient * square(b.in(1)));
        });

const Op& scaled_by_root_op =
    elementwise<4>(
        "scaled_by_root", "scale*mean/(sqrt(square) + epsilon)",
        [](auto mean, auto square, auto scale, auto epsilon) { return scale * mean / (sqrt(square) + epsilon); },
        floats)
        .with_gradient([](Backward& b) {
          const Array root = sqrt(b.in(1)), below = root + b.in(3);
          if (b.needs(0)) b.give(0, b.gradient * b.in(2) / below);
          const Array by_divisor = -(b.gradient * b.out() / below);
          if (b.needs(1)) b.give(1, by_divisor / (2.0 * root));
          if (b.needs(2)) b.give(2, b.gradient * b.in(0) / below);
          if (b.needs(3)) b.give(3, by_divisor);
        })
        .samples(0.5, 2);

const Op& moved_by_root_op = elementwise<5>(
                                 "moved_by_root", "x - scale*mean/(sqrt(square) + epsilon)",
                                 [](auto x, auto mean, auto square, auto scale, auto epsilon) {
                                   return x - scale * mean / (sqrt(square) + epsilon);
                                 },
                                 floats)
                                 .with_gradient([](Backward& b) {
                                   const Array root = sqrt(b.in(2)), below = root + b.in(4);
                                   b.give(0, b.gradient);
                                   const Array by_mean = -(b.gradient * b.in(3) / below);
                                   b.give(1, by_mean);
                                   if (b.needs(2)) b.give(2, -(by_mean * b.in(1) / below) / (2.0 * root));
                                 })
                                 .samples(0.5, 2);

Array record_four(const Op& op, const Array& a, const Array& b, const Array& c, const Array& d) {
  const Array* operands[] = {&a, &b, &c, &d};
  return record_elementwise(op, operands);
}

}  // namespace

Array running_mean(const Array& old, const Array& now, const Array& weight, const Array& rest) {
  return record_four(running_mean_op, old, now, weight, rest);
}
Array running_square(const Array& old, const Array& now, const Array& weight, const Array& rest) {
  return record_four(running_square_op, old, now, weight, rest);
}
Array scaled_by_root(const Array& mean, const Array& square, const Array& scale, const Array& epsilon) {
  return record_four(scaled_by_root_op, mean, square, scale, epsilon);
}
Array moved_by_root(const Array& x, const Array& mean, const Array& square, const Array& scale, const Array& epsilon) {
  const Array* operands[] = {&x, &mean, &square, &scale, &epsilon};
  return record_elementwise(moved_by_root_op, operands);
}

}  // namespace rosin
