// What tests of convolutions by a vendor's library share: what is computed, and what is given to the library. Read
// first: library_call_testing.hpp.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <vector>

#include <rosin/conv.hpp>
#include <rosin/conv_layers.hpp>
#include <rosin/movement.hpp>
#include <rosin/pool.hpp>
#include <rosin/reduce.hpp>

#include "library_call_testing.hpp"

namespace rosin {

constexpr double tolerance = 1e-5, half_tolerance = 2e-2;

struct Calls {
  int64_t by_library = 0, refused = 0;
  bool operator==(const Calls&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Calls& c) {
  return out << c.by_library << " and " << c.refused;
}

constexpr Calls one_call{1, 0}, one_refused{0, 1};

/// Of the evaluation of f's result, which must be what the CPU computes, in Float64 too.
template <class F>
Calls calls(const Device& device, F&& f, const std::vector<Array>& arrays, double close = tolerance) {
  const Launched all = launches_on(device, f, arrays, close);
  std::vector<Array> wide;
  for (const Array& x : arrays) wide.push_back(cast(x, Float64));
  std::vector<Array> there;
  for (const Array& x : arrays) there.push_back(x | device.with(keep));
  EXPECT_TRUE(allclose(cast(f(there) | Device().with(keep), Float64), f(wide), {.rtol = close, .atol = close}));
  return {all.by_library, all.refused};
}

inline auto convolved(const ConvOptions& options = {}) {
  return [=](const Arrays& a) { return conv(a[0], a[1], options); };
}
inline auto crossed(const ConvOptions& options = {}) {
  return [=](const Arrays& a) { return crosscor(a[0], a[1], options); };
}

template <class F> Array gradient_of_both(F&& f, const Arrays& a) {
  const auto loss = [&](const Array& x, const Array& w) { return sum(square(f({x, w}))); };
  const auto [gx, gw] = gradient(loss, a[0], a[1]);
  return concat({reshape(gx, {-1}), reshape(gw, {-1})}, 0);
}

/// Calls forward, by data and by weights.
template <class F> void expect_gradients(const Device& device, F&& f, const Arrays& arrays, double close = 1e-4) {
  EXPECT_EQ(calls(
                device, [&](const Arrays& a) { return gradient_of_both(f, a); }, arrays, close),
            (Calls{3, 0}));
}

inline Array with_bias(const Arrays& a) { return relu(conv(a[0], a[1]) + reshape(a[2], {1, 1, -1, 1})); }
inline Array sum_with_bias(const Arrays& a) { return conv(a[0], a[1]) + reshape(a[2], {1, 1, -1, 1}); }

struct Convnet {
  Conv first{{3, 3}, 2, 4, relu};
  Conv second{{3, 3}, 4, 6, relu, {.pad = 1}};
  Dense out{24, 3};
  Array operator()(const Array& x) const { return out(flatten(maxpool(second(first(x)), 2))); }
};

/// Losses of a small convnet, and the sum of its weights at the end.
inline std::vector<float> trained(const Device& device, int steps) {
  seed(3);
  Convnet model = Convnet{} | device;
  State state = setup(Adam{.eta = 1e-2}, model);
  std::vector<float> all;
  for (int i = 0; i < steps; ++i) {
    const Array x = randn({6, 6, 2, 3}) | device, y = cast(randn({3, 3}) > 0, Float32) | device;
    const auto [loss, g] = withgradient([&](const Convnet& m) { return logitcrossentropy(m(x), y); }, model);
    update(state, model, g);
    all.push_back(loss.item<float>());
  }
  all.push_back(sum(model.first.weight).item<float>());
  return all;
}

constexpr int convolutions_of_a_step = 5;  // two forward, three backward: nobody wants the gradient by the images

}  // namespace rosin
