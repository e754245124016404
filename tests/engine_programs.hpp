// Random programs for the tests of the engine: a list of ops that runs on Arrays (fused, or op by op) and on a plain
// model of nested loops in double. In a whole program every value is a small integer, so that sums are exact in any
// order and all three must agree to the last bit. Read next: engine_fuzz_test.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/array.hpp>
#include <rosin/conv.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/pool.hpp>
#include <rosin/reduce.hpp>

namespace rosin::engine_programs {

using Sizes = std::vector<int64_t>;

inline int64_t count_of(const Sizes& sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

/// A plain array: column-major doubles.
struct Plain {
  Sizes sizes;
  std::vector<double> x;

  double at(const Sizes& index) const {  // dims that are missing or 1 repeat
    int64_t offset = 0, stride = 1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      offset += (sizes[d] == 1 ? 0 : index[d]) * stride;
      stride *= sizes[d];
    }
    return x[static_cast<size_t>(offset)];
  }
};

/// Calls f(index) for every element of an array of these sizes, in column-major order.
template <class F> void for_each_index(const Sizes& sizes, F&& f) {
  Sizes index(sizes.size(), 0);
  for (int64_t left = count_of(sizes); left > 0; --left) {
    f(index);
    for (size_t d = 0; d < sizes.size() && ++index[d] == sizes[d]; ++d) index[d] = 0;
  }
}

template <class F> Plain made(const Sizes& sizes, F&& value) {
  Plain result{sizes, {}};
  result.x.reserve(static_cast<size_t>(count_of(sizes)));
  for_each_index(sizes, [&](const Sizes& index) { result.x.push_back(value(index)); });
  return result;
}

inline Sizes broadcast(const Sizes& a, const Sizes& b) {
  Sizes sizes(std::max(a.size(), b.size()), 1);
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t x = d < a.size() ? a[d] : 1, y = d < b.size() ? b[d] : 1;
    sizes[d] = x == 1 ? y : x;
  }
  return sizes;
}

enum class Do : uint8_t {
  add,
  subtract,
  multiply,
  higher,
  lower,
  negate,
  magnitude,
  limit,
  choose,
  plus_number,
  number_minus,
  times_number,
  whole,
  stop,
  argument,  // casts to Int32 and back; identities
  sigmoid_of,
  tanh_of,
  exp_of,
  reshape_to,
  permute_dims,
  slice_dim,
  flip_dim,
  expand_to,
  pad_dim,
  concat_dim,
  sum_over,
  maximum_over,
  minimum_over,
  product,  // matrices
  convolve,
  pool_largest,
  pool_mean  // images (w, h, channels, batch); windows of parameters[0] x parameters[1]
};

/// One op: which earlier values it takes, and its parameters.
struct Instruction {
  Do what;
  std::array<int, 3> in{-1, -1, -1};
  Sizes parameters{};
};

struct Program {
  std::vector<Plain> inputs;
  std::vector<Instruction> instructions;  // value i + inputs.size() is the result of instruction i
};

inline std::vector<int> ints(const Sizes& from) {
  std::vector<int> to;
  for (int64_t x : from) to.push_back(static_cast<int>(x));
  return to;
}

inline double limited(double x) { return std::min(std::max(x, -100.0), 100.0); }

/// The op on arrays.
inline Array apply(const Instruction& op, const Array& a, const Array& b, const Array& c) {
  const Sizes& p = op.parameters;
  switch (op.what) {
    case Do::add: return a + b;
    case Do::subtract: return a - b;
    case Do::multiply: return a * b;
    case Do::higher: return max(a, b);
    case Do::lower: return min(a, b);
    case Do::negate: return -a;
    case Do::magnitude: return abs(a);
    case Do::limit: return clamp(a, -100, 100);
    case Do::choose: return where(a < b, c, a);
    case Do::plus_number: return a + p[0];
    case Do::number_minus: return p[0] - a;
    case Do::times_number: return static_cast<double>(p[0]) * a;
    case Do::whole: return cast(cast(a, Int32) + 1, Float32);
    case Do::stop: return stop_gradient(a);
    case Do::argument: return stop_gradient(stop_gradient(a));
    case Do::sigmoid_of: return sigmoid(a);
    case Do::tanh_of: return tanh(a);
    case Do::exp_of: return exp(a * 0.0625);
    case Do::reshape_to: return reshape(a, Shape(p));
    case Do::permute_dims: return permute(a, ints(p));
    case Do::slice_dim: return slice(a, static_cast<int>(p[0]), p[1], p[2], p[3]);
    case Do::flip_dim: return flip(a, static_cast<int>(p[0]));
    case Do::expand_to: return expand(a, Shape(p));
    case Do::pad_dim: return pad(a, static_cast<int>(p[0]), p[1], p[2], 3);
    case Do::concat_dim: return concat({a, b}, static_cast<int>(p[0]));
    case Do::sum_over: return sum(a, Dims(ints(p)));
    case Do::maximum_over: return maximum(a, Dims(ints(p)));
    case Do::minimum_over: return minimum(a, Dims(ints(p)));
    case Do::product: return matmul(a, b);
    case Do::convolve: return crosscor(a, b, {.stride = {p[0], p[1]}, .pad = {p[2], p[3]}});
    case Do::pool_largest: return maxpool(a, {p[0], p[1]}, 1);
    case Do::pool_mean: return meanpool(a, {p[0], p[1]}, 1) * static_cast<double>(p[0] * p[1]);
  }
  return {};
}

template <class F> Plain elementwise(const Plain& a, F&& f) {
  Plain result = a;
  for (double& x : result.x) x = f(x);
  return result;
}

template <class F> Plain combined(const Plain& a, const Plain& b, F&& f) {
  return made(broadcast(a.sizes, b.sizes), [&](const Sizes& i) { return f(a.at(i), b.at(i)); });
}

template <class F> Plain reduced(const Plain& a, const Sizes& dims, double start, F&& combine) {
  Sizes sizes = a.sizes;
  for (int64_t d : dims) sizes[static_cast<size_t>(d)] = 1;
  Plain result{sizes, std::vector<double>(static_cast<size_t>(count_of(sizes)), start)};
  size_t next = 0;
  for_each_index(a.sizes, [&](const Sizes& index) {
    int64_t offset = 0, stride = 1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      offset += (sizes[d] == 1 ? 0 : index[d]) * stride;
      stride *= sizes[d];
    }
    double& into = result.x[static_cast<size_t>(offset)];
    into = combine(into, a.x[next++]);
  });
  return result;
}

/// Ops that move elements, on plain arrays.
inline Plain moved(const Instruction& op, const Plain& a, const Plain& b) {
  const Sizes& p = op.parameters;
  const size_t dim = p.empty() ? 0 : static_cast<size_t>(p[0]);
  Sizes sizes = a.sizes;
  switch (op.what) {
    case Do::reshape_to: return {p, a.x};
    case Do::expand_to: return made(p, [&](const Sizes& i) { return a.at(i); });
    case Do::permute_dims:
      for (size_t d = 0; d < p.size(); ++d) sizes[d] = a.sizes[static_cast<size_t>(p[d])];
      return made(sizes, [&](const Sizes& i) {
        Sizes from(i.size());
        for (size_t d = 0; d < p.size(); ++d) from[static_cast<size_t>(p[d])] = i[d];
        return a.at(from);
      });
    case Do::slice_dim:
      sizes[dim] = (p[2] - p[1] + p[3] - 1) / p[3];
      return made(sizes, [&](Sizes i) { return i[dim] = p[1] + i[dim] * p[3], a.at(i); });
    case Do::flip_dim: return made(sizes, [&](Sizes i) { return i[dim] = sizes[dim] - 1 - i[dim], a.at(i); });
    case Do::pad_dim:
      sizes[dim] += p[1] + p[2];
      return made(sizes, [&](Sizes i) {
        i[dim] -= p[1];
        return i[dim] < 0 || i[dim] >= a.sizes[dim] ? 3 : a.at(i);
      });
    default:  // concat
      sizes[dim] += b.sizes[dim];
      return made(sizes, [&](Sizes i) {
        if (i[dim] < a.sizes[dim]) return a.at(i);
        i[dim] -= a.sizes[dim];
        return b.at(i);
      });
  }
}

inline Plain multiplied(const Plain& a, const Plain& b) {
  return made({a.sizes[0], b.sizes[1]}, [&](const Sizes& i) {
    double sum = 0;
    for (int64_t k = 0; k < a.sizes[1]; ++k) sum += a.at({i[0], k}) * b.at({k, i[1]});
    return sum;
  });
}

/// Cross-correlation of images: x (w, h, in, batch), k (kw, kh, in, out).
inline Plain convolved(const Plain& x, const Plain& k, const Sizes& p) {
  const auto length = [&](size_t d) { return (x.sizes[d] + 2 * p[d + 2] - k.sizes[d]) / p[d] + 1; };
  return made({length(0), length(1), k.sizes[3], x.sizes[3]}, [&](const Sizes& i) {
    double sum = 0;
    for_each_index({k.sizes[0], k.sizes[1], k.sizes[2]}, [&](const Sizes& j) {
      const int64_t w = i[0] * p[0] + j[0] - p[2], h = i[1] * p[1] + j[1] - p[3];
      if (w < 0 || h < 0 || w >= x.sizes[0] || h >= x.sizes[1]) return;
      sum += x.at({w, h, j[2], i[3]}) * k.at({j[0], j[1], j[2], i[2]});
    });
    return sum;
  });
}

/// The sum or the largest element of every window.
inline Plain pooled(const Plain& x, const Sizes& p, bool largest) {
  return made({x.sizes[0] - p[0] + 1, x.sizes[1] - p[1] + 1, x.sizes[2], x.sizes[3]}, [&](const Sizes& i) {
    double result = largest ? -HUGE_VAL : 0;
    for_each_index({p[0], p[1]}, [&](const Sizes& j) {
      const double value = x.at({i[0] + j[0], i[1] + j[1], i[2], i[3]});
      result = largest ? std::max(result, value) : result + value;
    });
    return result;
  });
}

/// The op on plain arrays.
inline Plain apply(const Instruction& op, const Plain& a, const Plain& b, const Plain& c) {
  const auto number = static_cast<double>(op.parameters.empty() ? 0 : op.parameters[0]);
  switch (op.what) {
    case Do::add: return combined(a, b, [](double x, double y) { return x + y; });
    case Do::subtract: return combined(a, b, [](double x, double y) { return x - y; });
    case Do::multiply: return combined(a, b, [](double x, double y) { return x * y; });
    case Do::higher: return combined(a, b, [](double x, double y) { return std::max(x, y); });
    case Do::lower: return combined(a, b, [](double x, double y) { return std::min(x, y); });
    case Do::negate: return elementwise(a, [](double x) { return -x; });
    case Do::magnitude: return elementwise(a, [](double x) { return std::abs(x); });
    case Do::limit: return elementwise(a, limited);
    case Do::choose:
      return made(broadcast(broadcast(a.sizes, b.sizes), c.sizes),
                  [&](const Sizes& i) { return a.at(i) < b.at(i) ? c.at(i) : a.at(i); });
    case Do::plus_number: return elementwise(a, [=](double x) { return x + number; });
    case Do::number_minus: return elementwise(a, [=](double x) { return number - x; });
    case Do::times_number: return elementwise(a, [=](double x) { return number * x; });
    case Do::whole: return elementwise(a, [](double x) { return std::trunc(x) + 1; });
    case Do::stop:
    case Do::argument: return a;
    case Do::sigmoid_of: return elementwise(a, [](double x) { return 1 / (1 + std::exp(-x)); });
    case Do::tanh_of: return elementwise(a, [](double x) { return std::tanh(x); });
    case Do::exp_of: return elementwise(a, [](double x) { return std::exp(x * 0.0625); });
    case Do::sum_over: return reduced(a, op.parameters, 0, [](double x, double y) { return x + y; });
    case Do::maximum_over:
      return reduced(a, op.parameters, -HUGE_VAL, [](double x, double y) { return std::max(x, y); });
    case Do::minimum_over:
      return reduced(a, op.parameters, HUGE_VAL, [](double x, double y) { return std::min(x, y); });
    case Do::product: return multiplied(a, b);
    case Do::convolve: return convolved(a, b, op.parameters);
    case Do::pool_largest: return pooled(a, op.parameters, true);
    case Do::pool_mean: return pooled(a, op.parameters, false);
    default: return moved(op, a, b);
  }
}

}  // namespace rosin::engine_programs
