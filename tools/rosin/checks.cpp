// The checks of the self-test. Inputs are moved to the device, results copied back; see plain.cpp for what is expected.
#include "checks.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>

#include <rosin/rosin.hpp>

namespace command {
namespace {

using plain::numbers;
using plain::Values;
using plain::wide;
using rosin::Array;
using rosin::Device;
using rosin::Shape;

/// Series `series` of the numbers as an array on the device.
Array input(const Shape& shape, uint32_t series, const Device& device) {
  return Array(numbers(static_cast<size_t>(shape.count()), series), shape) | device;
}

Values expected(size_t count, uint32_t series) { return wide(numbers(count, series)); }

Values back(const Array& x) { return (x | rosin::cpu_device()).to_vector<double>(); }

Values joined(Values first, const Values& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

template <class F> Values each(size_t count, F f) {
  Values values(count);
  for (size_t i = 0; i < count; ++i) values[i] = f(i);
  return values;
}

// --- copies and elements

Values copied(const Device& device) { return back(input({100'003}, 1, device)); }
Values copied_expected() { return expected(100'003, 1); }

Values functions(const Device& device) {
  const Array x = input({1009}, 2, device);
  return back(exp(x) + tanh(x * 3) - log(x * x + 1) * sqrt(abs(x)));
}
Values functions_expected() {
  const Values x = expected(1009, 2);
  return each(x.size(), [&](size_t i) {
    return std::exp(x[i]) + std::tanh(x[i] * 3) - std::log(x[i] * x[i] + 1) * std::sqrt(std::abs(x[i]));
  });
}

/// A range that must be reduced, too.
Values sine(const Device& device) {
  const Array x = input({1009}, 26, device) * 100;
  return joined(back(sin(x)), back(cos(x)));
}
Values sine_expected() {
  const Values x =
      each(1009, [x = numbers(1009, 26)](size_t i) { return x[i] * 100; });  // a product of floats, rounded
  return joined(each(1009, [&](size_t i) { return std::sin(x[i]); }),
                each(1009, [&](size_t i) { return std::cos(x[i]); }));
}

Values broadcast(const Device& device) {
  return back(input({5, 1, 7}, 3, device) * input({1, 6, 7}, 4, device) + input({5, 6, 1}, 5, device));
}
Values broadcast_expected() {
  const Values x = expected(35, 3), y = expected(42, 4), z = expected(30, 5);
  return each(210, [&](size_t i) {
    const size_t a = i % 5, b = i / 5 % 6, c = i / 30;
    return x[a + 5 * c] * y[b + 6 * c] + z[a + 5 * b];
  });
}

Array integers(const Device& device) {
  return Array({7, -3, 1'000'000'007, 0, -2'147'483'647, 12, 99, -41}, Shape{8}) | device;
}
Values whole_numbers(const Device& device) {
  const Array x = integers(device);
  return back(x * 1'000'003 + 17);
}
Values whole_numbers_expected() {
  const std::array<int32_t, 8> x = {7, -3, 1'000'000'007, 0, -2'147'483'647, 12, 99, -41};
  return each(8, [&](size_t i) { return static_cast<int32_t>(static_cast<uint32_t>(x[i]) * 1'000'003u + 17u); });
}

/// Multiples of 1/8 up to 8, whose sums and products Float16 and BFloat16 hold exactly.
std::vector<float> short_numbers() {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(static_cast<float>(i % 16 - 8) / 8);
  return values;
}
Values half_types(const Device& device) {
  const Array x = Array(short_numbers(), {64}) | device;
  const Array half = cast(x, rosin::Float16), brain = cast(x, rosin::BFloat16);
  return joined(back(half * half + half), back(brain * brain + brain));
}
Values half_types_expected() {
  const Values x = wide(short_numbers());
  const Values once = each(64, [&](size_t i) { return x[i] * x[i] + x[i]; });
  return joined(once, once);
}

// --- reductions and rows

Values sum(const Device& device) {
  const Array x = input({1000, 17}, 6, device);
  return joined(back(rosin::sum(x, 0)), back(rosin::sum(x, 1)));
}
Values sum_expected() { return plain::sums(expected(17'000, 6), 1000, 17); }

Values extremes(const Device& device) {
  const Array x = input({301, 5}, 7, device);
  return joined(back(maximum(x, 0)), joined(back(minimum(x, 0)), back(argmax(x, 0))));
}
Values extremes_expected() {
  const Values x = expected(1505, 7);
  Values high, low, place;
  for (auto column = x.begin(); column != x.end(); column += 301) {
    const auto largest = std::max_element(column, column + 301);
    high.push_back(*largest);
    low.push_back(*std::min_element(column, column + 301));
    place.push_back(static_cast<double>(largest - column));
  }
  return joined(high, joined(low, place));
}

Values softmax(const Device& device) { return back(rosin::softmax(input({37, 21}, 8, device) * 4)); }
Values softmax_expected() {
  Values x = expected(777, 8);
  for (double& value : x) value *= 4;
  return plain::softmax(x, 37, 21);
}

Values running_sum(const Device& device) { return back(cumsum(input({2000}, 9, device))); }
Values running_sum_expected() {
  Values x = expected(2000, 9);
  for (size_t i = 1; i < x.size(); ++i) x[i] += x[i - 1];
  return x;
}

// --- products and windows

Values matmul(const Device& device) {
  return back(rosin::matmul(input({70, 33}, 10, device), input({33, 45}, 11, device)));
}
Values matmul_expected() { return plain::matmul(expected(2310, 10), expected(1485, 11), 70, 33, 45); }

Values larger_matmul(const Device& device) {
  return back(rosin::matmul(input({160, 96}, 12, device), transpose(input({112, 96}, 13, device))));
}
Values larger_matmul_expected() {
  const Values rows = expected(10'752, 13);  // (112, 96), to be (96, 112)
  const Values columns = each(rows.size(), [&](size_t i) { return rows[i / 96 + 112 * (i % 96)]; });
  return plain::matmul(expected(15'360, 12), columns, 160, 96, 112);
}

Values wide_matmul(const Device& device) {
  const Array a = cast(Array(numbers(600, 14), {20, 30}), rosin::Float64) | device.with(rosin::keep);
  const Array b = cast(Array(numbers(300, 15), {30, 10}), rosin::Float64) | device.with(rosin::keep);
  return back(rosin::matmul(exp(a), b));
}
Values wide_matmul_expected() {
  Values a = expected(600, 14);
  for (double& value : a) value = std::exp(value);
  return plain::matmul(a, expected(300, 15), 20, 30, 10);
}

Values conv(const Device& device) {
  return back(crosscor(input({12, 12, 3, 1}, 16, device), input({3, 3, 3, 4}, 17, device), {.pad = 1}));
}
Values conv_expected() { return plain::crosscor(expected(432, 16), expected(108, 17), 12, 3, 4); }

Values pool(const Device& device) { return back(maxpool(input({16, 16, 1, 1}, 18, device), 2)); }
Values pool_expected() { return plain::maxpool(expected(256, 18), 16); }

// --- elements in other places

Values movement(const Device& device) {
  const Array x = input({7, 5, 3}, 19, device);
  return joined(back(permute(x, {2, 0, 1})), back(slice(x, 0, 1, 6, 2)));
}
Values movement_expected() {
  const Values x = expected(105, 19);
  const Values sliced = each(45, [&](size_t i) { return x[1 + 2 * (i % 3) + 7 * (i / 3)]; });
  return joined(plain::permuted(x, 7, 5, 3), sliced);
}

const std::vector<int32_t> places = {3, 0, 3, 9, 1, 3};

Values indexing(const Device& device) {
  const Array at = Array(places, {6}) | device, x = input({4, 10}, 20, device);
  return joined(back(gather(x, at)), back(scatter_add(x, at, input({4, 6}, 21, device))));
}
Values indexing_expected() {
  const Values x = expected(40, 20), added = expected(24, 21);
  const auto place = [](size_t i) { return static_cast<size_t>(places[i]); };
  Values sums = x;
  for (size_t i = 0; i < 24; ++i) sums[i % 4 + 4 * place(i / 4)] += added[i];
  return joined(each(24, [&](size_t i) { return x[i % 4 + 4 * place(i / 4)]; }), sums);
}

Values sort(const Device& device) { return back(rosin::sort(input({1000}, 22, device))); }
Values sort_expected() {
  Values x = expected(1000, 22);
  std::sort(x.begin(), x.end());
  return x;
}

// --- random numbers and training

/// A draw where x is: an element stays, scaled, where its uniform number is below 1 - p.
Values random(const Device& device) {
  rosin::Rng rng(2026);
  const Array x = Array(std::vector<float>(1003, 1), {1003}) | device;
  return back(dropout(rng, x, 0.25));
}
Values random_expected() {
  Values values = plain::philox_uniform(2026, 1003);
  for (double& value : values) value = value < 0.75 ? 1 / 0.75 : 0;
  return values;
}

/// Weight and bias after one step of Adam on the mean square of a layer's results.
Values training(const Device& device) {
  rosin::Dense layer = rosin::Dense(Array(numbers(24, 23), {4, 6}), Array(numbers(4, 24), {4})) | device;
  const Array x = input({6, 9}, 25, device);
  auto state = setup(rosin::Adam{.eta = 0.01}, layer);
  const rosin::Dense slope = rosin::gradient(
      [&](const rosin::Dense& model) {
        const Array y = model(x);
        return mean(y * y);
      },
      layer);
  update(state, layer, slope);
  return joined(back(layer.weight), back(layer.bias));
}
/// The first step of Adam goes by eta along the sign of the gradient, but for its epsilon.
Values training_expected() {
  const Values weight = expected(24, 23), bias = expected(4, 24), x = expected(54, 25);
  Values y = plain::matmul(weight, x, 4, 6, 9), stepped = joined(weight, bias);
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % 4];
  Values slope(28);
  for (size_t i = 0; i < 36; ++i) {
    const double of_result = 2 * y[i] / 36;
    for (size_t k = 0; k < 6; ++k) slope[i % 4 + 4 * k] += of_result * x[k + 6 * (i / 4)];
    slope[24 + i % 4] += of_result;
  }
  for (size_t i = 0; i < 28; ++i) stepped[i] -= 0.01 * slope[i] / (std::abs(slope[i]) + 1e-8);
  return stepped;
}

constexpr Check table[] = {
    {"copy", false, false, 0, copied, copied_expected},
    {"functions", false, false, 2e-6, functions, functions_expected},
    {"sine", false, false, 1e-6, sine, sine_expected},
    {"broadcast", false, false, 1e-6, broadcast, broadcast_expected},
    {"integers", false, false, 0, whole_numbers, whole_numbers_expected},
    {"half types", false, false, 0, half_types, half_types_expected},
    {"sum", true, false, 1e-6, sum, sum_expected},
    {"extremes", false, false, 0, extremes, extremes_expected},
    {"softmax", true, false, 1e-6, softmax, softmax_expected},
    {"cumsum", false, false, 1e-5, running_sum, running_sum_expected},
    {"matmul", true, false, 1e-6, matmul, matmul_expected},
    {"transposed", false, false, 1e-6, larger_matmul, larger_matmul_expected},
    {"Float64", false, true, 1e-14, wide_matmul, wide_matmul_expected},
    {"conv", true, false, 1e-6, conv, conv_expected},
    {"maxpool", false, false, 0, pool, pool_expected},
    {"movement", false, false, 0, movement, movement_expected},
    {"gather", false, false, 1e-6, indexing, indexing_expected},
    {"sort", false, false, 0, sort, sort_expected},
    {"random", true, false, 1e-6, random, random_expected},
    {"training", false, false, 1e-5, training, training_expected},
};

/// The greatest difference, relative to the largest value expected or to 1; infinite where a value is NaN.
double error_of(const Values& computed, const Values& expected) {
  double greatest = 0, scale = 1;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(computed[i] - expected[i]);
    if (!(difference <= std::numeric_limits<double>::max())) return std::numeric_limits<double>::infinity();
    greatest = std::max(greatest, difference);
    scale = std::max(scale, std::abs(expected[i]));
  }
  return greatest / scale;
}

}  // namespace

std::span<const Check> all_checks() { return table; }

CheckResult run_check(const Check& check, const Device& device, bool has_float64) {
  CheckResult result{check.name, Outcome::left_out, 0, check.bound, 0, {}};
  if (check.needs_float64 && !has_float64) {
    result.reason = "the device has no Float64";
    return result;
  }
  result.outcome = Outcome::failed;
  const auto start = std::chrono::steady_clock::now();
  try {
    const Values computed = check.computed(device), expected = check.expected();
    if (computed.size() != expected.size()) {
      result.reason = std::to_string(computed.size()) + " values came instead of " + std::to_string(expected.size());
      return result;
    }
    result.error = error_of(computed, expected);
    if (result.error <= check.bound) result.outcome = Outcome::ok;
  } catch (const std::exception& error) {
    result.reason = error.what();
  }
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  result.milliseconds = taken.count();
  return result;
}

}  // namespace command
