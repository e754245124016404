// What tests of vendor calls share: what an evaluation launches, and a small model that trains. Read first:
// test_device.hpp.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/approx.hpp>
#include <rosin/create.hpp>
#include <rosin/dense.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/loss.hpp>
#include <rosin/matmul.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/optim.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

namespace rosin {

struct Launched {
  int64_t launches = 0, by_library = 0, refused = 0;
  bool operator==(const Launched&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Launched& l) {
  return out << l.launches << " launches, " << l.by_library << " by the library, " << l.refused << " refused";
}

/// What the evaluation of f's result launches on a device; it must be what the CPU computes, within a tolerance.
template <class F>
Launched launches_on(const Device& device, F&& f, const std::vector<Array>& here, double tolerance = 1e-6) {
  std::vector<Array> there;
  for (const Array& x : here) there.push_back(x | device.with(keep));
  eval();
  const Stats before = stats();
  const Array got = f(there);
  eval(got);
  const Stats after = stats();
  EXPECT_TRUE(allclose(got | Device(), f(here), {.rtol = tolerance, .atol = tolerance}));
  return {after.launches - before.launches, after.library_calls - before.library_calls,
          after.refused_calls - before.refused_calls};
}

using Arrays = std::vector<Array>;

inline Array product(const Arrays& x) { return matmul(x[0], x[1]); }
inline Array layer(const Arrays& x) { return relu(matmul(x[0], x[1]) + x[2]); }
inline Array smooth_layer(const Arrays& x) { return tanh(matmul(x[0], x[1]) + x[2]); }

/// A step of two layers: gradients by their weights and biases.
template <Array (*act)(const Array&)> Array step_of_two_layers(const Arrays& a) {
  const auto loss = [&](const Array& w, const Array& b, const Array& v, const Array& c) {
    return sum(square(matmul(v, act(matmul(w, a[0]) + b)) + c));
  };
  const auto [dw, db, dv, dc] = gradient(loss, a[1], a[2], a[3], a[4]);
  return concat({reshape(dw, {-1}), db, reshape(dv, {-1}), dc}, 0);
}

inline Array as_it_is(const Array& x) { return x; }

inline Arrays two_layers(DType type = Float32) {
  return {normal({5, 7}, 0, 1, type), normal({9, 5}, 0, 1, type), normal({9}, 0, 1, type), normal({3, 9}, 0, 1, type),
          normal({3}, 0, 1, type)};
}

struct Network {
  Dense hidden{12, 20, relu};
  Dense out{20, 10};
  Array operator()(const Array& x) const { return out(hidden(x)); }
};

/// Of a model on a device, with the same numbers each time.
inline std::vector<float> losses(const Device& device, int steps = 5) {
  seed(3);
  Network model = Network{} | device;
  State state = setup(Adam{.eta = 1e-2}, model);
  std::vector<float> all;
  for (int i = 0; i < steps; ++i) {
    const Array x = randn({12, 16}) | device, y = cast(randn({10, 16}) > 1, Float32) | device;
    const auto [loss, g] = withgradient([&](const Network& m) { return logitcrossentropy(m(x), y); }, model);
    update(state, model, g);
    all.push_back(loss.item<float>());
  }
  return all;
}

}  // namespace rosin
