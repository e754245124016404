// For tests of layers and losses: gradients against finite differences in Float64.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/layer.hpp>
#include <rosin/model.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/show.hpp>

#include "error_testing.hpp"

namespace rosin::layer_testing {

/// A number from an array that weighs each element differently.
inline Array weighed(const Array& y) {
  const Array weights = reshape(cos(arange(0.0, static_cast<double>(y.count()), 1.0, Float64) * 1.7), y.shape());
  return sum(cast(y, Float64) * weights);
}

/// Compares d value / d array with central differences; `set` puts an array in the place and gives the value.
template <class Set>
void compare_differences(const Array& at, const Array& gradient, const std::string& name, Set set) {
  const std::vector<double> base = at.to_vector<double>();
  const std::vector<double> got =
      gradient.is_nothing() ? std::vector<double>(base.size()) : gradient.to_vector<double>();
  const double h = 1e-5;
  for (size_t i = 0; i < base.size(); ++i) {
    std::vector<double> moved = base;
    moved[i] = base[i] + h;
    const double above = set(Array(moved, at.shape()));
    moved[i] = base[i] - h;
    const double below = set(Array(moved, at.shape()));
    const double want = (above - below) / (2 * h);
    EXPECT_NEAR(got[i], want, 1e-4 + 1e-4 * std::abs(want)) << name << " element " << i;
  }
}

/// Gradients of a function of one array.
template <class F> void check_function_gradient(F f, const Array& x, const std::string& name) {
  const Array in = cast(x, Float64);
  const auto loss = [&](const Array& a) { return weighed(f(a)); };
  compare_differences(in, gradient(loss, in), name, [&](const Array& moved) { return loss(moved).item(); });
}

/// Gradients of a layer by its parameters and by x (where that is floating point), in training mode.
inline void check_layer_gradient(const Layer& given, const Array& x, const std::string& name) {
  const Layer layer = f64(given);
  const bool floating = is_float(x.dtype());
  const Array in = floating ? cast(x, Float64) : x;
  eval();
  const auto loss = [](const Layer& l, const Array& a) { return weighed(l(a)); };
  const auto value_at = [&](const Layer& l, const Array& a) {
    seed(7);
    return withgradient(loss, l, a).value.item();
  };
  seed(7);
  auto [by_layer, by_x] = withgradient(loss, layer, in).gradient;
  if (floating) compare_differences(in, by_x, name + " by input", [&](const Array& a) { return value_at(layer, a); });
  Layer moved = layer;
  std::vector<detail::ArrayPlace<Array*>> places, gradients;
  detail::list_arrays(ModelEdit(moved), places);
  detail::list_arrays(ModelEdit(by_layer), gradients);
  for (size_t i = 0; i < places.size(); ++i) {
    if (!places[i].trainable) continue;
    const Array kept = *places[i].array;
    compare_differences(kept, *gradients[i].array, name + " by " + detail::path_at(ModelView(layer), i),
                        [&](const Array& a) {
                          *places[i].array = a;
                          return value_at(moved, in);
                        });
    *places[i].array = kept;
  }
}

inline std::vector<double> values(const Array& x) { return x.to_vector<double>(); }

inline void expect_near(const Array& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.count(), static_cast<int64_t>(want.size()));
  const std::vector<double> all = values(got);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(all[i], want[i], tolerance) << "element " << i;
}

}  // namespace rosin::layer_testing
