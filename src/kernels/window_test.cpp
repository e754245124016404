// Gradients of maximum pooling by kernels: windows that meet and windows that do not, equal elements, NaN, padding.
// Read first: kernel_testing.hpp.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/movement.hpp>
#include <rosin/pool.hpp>
#include <rosin/reduce.hpp>

#include "kernels/kernel_testing.hpp"

namespace rosin::kernels {
namespace {

using Values = std::vector<float>;

Array slope(const Array& x, const Extents& window, const Extents& stride, const Extents& pad) {
  const Array pooled = maxpool(x, window, stride, pad);
  const Array weights = reshape(cast(arange(pooled.count()), Float32) + 1, pooled.shape());
  return gradient([&](const Array& z) { return sum(maxpool(z, window, stride, pad) * weights); }, x);
}

struct Slope {
  Array value;
  std::vector<std::string> kernels;
};

Slope by_device(const Array& x, const Extents& window, const Extents& stride, const Extents& pad = 0) {
  InterpretedExecutor executor;
  Slope made;
  made.value = by_kernels(
      [&] {
        Array found = slope(x, window, stride, pad);
        eval(found);
        return found;
      },
      executor);
  for (const auto& [name, code] : executor.codes) {
    if (name.starts_with("maxpool_gradient")) made.kernels.push_back(name);
  }
  return made;
}

TEST(WindowKernels, TheFirstLargestElementOfAWindowGetsItsSlope) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // Two rows of windows of 2x2 elements: all equal, the last one largest; equal in the second row, one is NaN.
  const Array x(Values{1, 1, 2, 3, 1, 1, 4, 5, 0, 0, 7, 6, 3, 3, nan, 8}, {4, 4, 1, 1});
  const Slope got = by_device(x, 2, 2);
  EXPECT_EQ(got.value.to_vector(), (Values{1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0, 4, 0}));
  EXPECT_EQ(got.kernels.size(), 1u);  // windows that do not meet: each element finds whether it is the one
}

TEST(WindowKernels, WindowsThatMeetAddTheirSlopes) {
  const Array x(Values{1, 5, 2, 5, 0}, {5, 1, 1});
  const Slope got = by_device(x, 3, 1);
  EXPECT_EQ(got.value.to_vector(), (Values{0, 3, 0, 3, 0}));
  EXPECT_EQ(got.kernels.size(), 2u);
}

TEST(WindowKernels, DevicesAgreeWithTheCpu) {
  // Few distinct numbers, so that many are equal; windows with gaps between them, padding, three dims.
  const Array noise = cast(arange(7 * 6 * 5 * 3 * 2), Float32);
  const Array x = reshape(floor(sin(noise * 12.9898) * 3), {7, 6, 5, 3, 2});
  eval();
  struct WindowCase {
    Extents window, stride, pad;
  };
  for (const WindowCase& c : {WindowCase{2, 2, 0}, WindowCase{{2, 1, 2}, {3, 2, 2}, 0}, WindowCase{2, 2, 1},
                              WindowCase{3, 2, 1}, WindowCase{4, 4, 2}}) {
    EXPECT_EQ(by_device(x, c.window, c.stride, c.pad).value.to_vector(),
              slope(x, c.window, c.stride, c.pad).to_vector());
  }
  const float lowest = -std::numeric_limits<float>::infinity();
  const Array below = full({4, 4, 1, 1}, lowest);  // padding wins
  EXPECT_EQ(by_device(below, 2, 2, 1).value.to_vector(), slope(below, 2, 2, 1).to_vector());
}

}  // namespace
}  // namespace rosin::kernels
