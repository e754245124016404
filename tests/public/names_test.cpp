// `using namespace rosin;` beside the C library: every public op can be called without saying whose it is. Only the
// compiler tests this; the program needs no more than to link.
#include <strings.h>
#include <sys/select.h>
#include <unistd.h>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include <rosin/rosin.hpp>

#include <gtest/gtest.h>

#include <tuple>

using namespace rosin;

namespace {

TEST(Names, ElementwiseFunctionsMeetTheCLibraryWithoutAmbiguity) {
  const Array x({0.25f, 0.5f}, {2});
  const Array each[] = {abs(x),    sign(x),        floor(x),  ceil(x),    round(x),    sqrt(x),   cbrt(x),
                        exp(x),    exp2(x),        expm1(x),  log(x),     log2(x),     log1p(x),  sin(x),
                        cos(x),    tan(x),         asin(x),   acos(x),    atan(x),     sinh(x),   cosh(x),
                        tanh(x),   erf(x),         lgamma(x), pow(x, 2),  atan2(x, x), mod(x, 2), max(x, x),
                        min(x, 0), clamp(x, 0, 1), relu(x),   sigmoid(x), gelu(x)};
  for (const Array& result : each) EXPECT_EQ(result.shape(), (Shape{2}));
}

TEST(Names, ReductionsMovementsAndMakersHaveTheirOwnNames) {
  const Array x = rand({2, 3});
  const Array reduced[] = {sum(x), mean(x), prod(x), maximum(x), minimum(x),   argmax(x), argmin(x),
                           any(x), all(x),  var(x),  stddev(x),  logsumexp(x), norm(x)};
  for (const Array& result : reduced) EXPECT_EQ(result.count(), 1);
  const Array moved_arrays[] = {reshape(x, {3, 2}), permute(x, {1, 0}), transpose(x),
                                flip(x, 0),         concat({x, x}, 0),  stack({x, x}, 0),
                                repeat(x, 2, 0),    tile(x, 2, 0),      index(x, {slice(0, 1)}),
                                slice(x, 0, 0, 1),  select(x, 0, 0),    flatten(x),
                                cumsum(x, 0),       sort(x, 0),         expand(x, {2, 3, 2})};
  for (const Array& result : moved_arrays) EXPECT_GT(result.count(), 0);
  EXPECT_EQ(zeros({2}).count() + ones({2}).count() + full({2}, 1).count() + arange(2).count() + eye(2).count(), 12);
}

TEST(Names, WhatIsCalledAndWhatIsWrittenAfterABarAreTheSame) {
  const auto x = std::tuple{ones({2}), zeros({3})};
  EXPECT_TRUE(same(std::get<0>(cpu(x)), std::get<0>(x | cpu)));
  EXPECT_TRUE(same(std::get<0>(x | get_device("CPU")), std::get<0>(get_device("CPU")(x))));
}

}  // namespace
