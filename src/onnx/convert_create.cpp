// Conversions of ops that make arrays from nothing: random numbers, windows of signals. Read first: convert.hpp.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/random.hpp>

#include "onnx/convert.hpp"

namespace rosin::onnx {
namespace {

DType wanted_type(const NodeCall& call, DType fallback) {
  return call.find("dtype") ? stated_type(call, call.integer("dtype", 1)) : fallback;
}

Shape wanted_shape(const NodeCall& call) {
  const std::vector<int64_t> sizes = reversed(call.integers("shape"));
  return Shape(std::span<const int64_t>(sizes));
}

/// Drawn from the thread's generator: the seed of a file is not taken, as it would give the same numbers in each call.
Array drawn_uniform(const NodeCall& call, const Shape& shape, DType type) {
  return uniform(shape, call.real("low", 0), call.real("high", 1), type);
}

Array drawn_normal(const NodeCall& call, const Shape& shape, DType type) {
  return normal(shape, call.real("mean", 0), call.real("scale", 1), type);
}

/// a - b*cos(2 pi i / n) + c*cos(4 pi i / n).
Arrays window(const NodeCall& call, double a, double b, double c) {
  const int64_t count = call.integer_in(0);
  if (count < 0 || count > (1 << 24)) call.refuse("a window has up to 2^24 elements", std::to_string(count));
  const bool periodic = call.integer("periodic", 1) != 0;
  const double step = 2 * std::numbers::pi / static_cast<double>(periodic ? count : count - 1);
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    const double x = step * static_cast<double>(i);
    values.push_back(a - b * std::cos(x) + c * std::cos(2 * x));
  }
  const DType type = stated_type(call, call.integer("output_datatype", 1));
  return {as(worked_out(values, {count}, Float64), type)};
}

}  // namespace

Arrays bernoulli_value(const NodeCall& call) {
  return {as(bernoulli(call[0], call[0].shape()), wanted_type(call, call[0].dtype()))};
}
Arrays random_uniform(const NodeCall& call) {
  return {drawn_uniform(call, wanted_shape(call), wanted_type(call, Float32))};
}
Arrays random_normal(const NodeCall& call) {
  return {drawn_normal(call, wanted_shape(call), wanted_type(call, Float32))};
}
Arrays random_uniform_like(const NodeCall& call) {
  return {drawn_uniform(call, call[0].shape(), wanted_type(call, call[0].dtype()))};
}
Arrays random_normal_like(const NodeCall& call) {
  return {drawn_normal(call, call[0].shape(), wanted_type(call, call[0].dtype()))};
}

Arrays hann_window(const NodeCall& call) { return window(call, 0.5, 0.5, 0); }
Arrays hamming_window(const NodeCall& call) { return window(call, 25.0 / 46, 1 - 25.0 / 46, 0); }
Arrays blackman_window(const NodeCall& call) { return window(call, 0.42, 0.5, 0.08); }

/// Triangles between places that are equally far apart on the mel scale: (mels, frequencies).
Arrays mel_weights(const NodeCall& call) {
  const int64_t mels = call.integer_in(0), length = call.integer_in(1), rate = call.integer_in(2);
  if (mels < 1 || length < 1 || rate < 1 || std::max(mels, length) > (1 << 14)) {
    call.refuse("bins and length are 1 to 16384", std::to_string(mels) + " and " + std::to_string(length));
  }
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(call.real_in(3)), step = (mel(call.real_in(4)) - low) / static_cast<double>(mels + 2);
  const int64_t frequencies = length / 2 + 1;
  const auto corner = [&](int64_t i) {
    const double hertz = 700 * (std::pow(10, (low + step * static_cast<double>(i)) / 2595) - 1);
    return std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
  };
  std::vector<double> weights(static_cast<size_t>(mels * frequencies));
  for (int64_t i = 0; i < mels; ++i) {
    const double left = corner(i), middle = corner(i + 1), right = corner(i + 2);
    for (int64_t j = 0; j < frequencies; ++j) {
      const auto at = static_cast<double>(j);
      double& weight = weights[static_cast<size_t>(j * mels + i)];
      if (at == middle) weight = 1;
      else if (left <= at && at < middle) weight = (at - left) / (middle - left);
      else if (middle < at && at < right) weight = (right - at) / (right - middle);
    }
  }
  const DType type = stated_type(call, call.integer("output_datatype", 1));
  return {as(worked_out(weights, {mels, frequencies}, Float64), type)};
}

}  // namespace rosin::onnx
