// Infinities and NaN in one operand of a contraction reach those results whose definition multiplies them, and no
// others, in every engine. The definitions are lists of products made here; taps outside an image are no products.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engines/onednn.hpp"
#include "engines/plain.hpp"
#include "engines/vendor_testing.hpp"
#include "engines/winograd.hpp"

namespace rosin::engines {
namespace {

/// result[to] is the sum of first[a] * second[b] over all products with that `to`.
struct Product {
  int64_t a, b, to;
};

struct Problem {
  int64_t first = 0, second = 0, result = 0;  // elements
  std::vector<Product> products;
};

std::vector<double> sums(const Problem& problem, const std::vector<double>& first, const std::vector<double>& second) {
  std::vector<double> sums(static_cast<size_t>(problem.result));
  for (const Product& p : problem.products) {
    sums[static_cast<size_t>(p.to)] += first[static_cast<size_t>(p.a)] * second[static_cast<size_t>(p.b)];
  }
  return sums;
}

/// Small numbers other than 0.
std::vector<double> pattern(int64_t count, int64_t step) {
  std::vector<double> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = static_cast<double>(i * step % 9 - 4) + 0.5;
  return values;
}

template <class T> std::vector<T> as(const std::vector<double>& values) {
  std::vector<T> result;
  for (const double value : values) result.push_back(static_cast<T>(static_cast<float>(value)));
  return result;
}

bool agrees(double found, double expected, double tolerance) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found)) return found == expected;
  return std::abs(found - expected) <= tolerance * (1 + std::abs(expected));
}

/// Puts Inf and then NaN at each place of each operand, or at every `step`th.
template <class T>
void check(const VendorCall& call, const Problem& problem, double tolerance, const std::string& name, int64_t step) {
  for (int operand = 0; operand < 2; ++operand) {
    const int64_t count = operand == 0 ? problem.first : problem.second;
    for (int64_t place = 0; place < count; place += step) {
      for (const double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        std::vector<double> operands[2] = {pattern(problem.first, 5), pattern(problem.second, 7)};
        operands[operand][static_cast<size_t>(place)] = bad;
        const std::vector<double> expected = sums(problem, operands[0], operands[1]);
        const std::vector<T> first = as<T>(operands[0]), second = as<T>(operands[1]);
        std::vector<T> found(static_cast<size_t>(problem.result));
        execute(call, {first.data(), second.data(), nullptr, found.data(), nullptr});
        for (size_t i = 0; i < found.size(); ++i) {
          ASSERT_TRUE(agrees(static_cast<double>(found[i]), expected[i], tolerance))
              << name << " by " << call.engine() << ": " << bad << " at " << place << " of operand " << operand
              << " gives element " << i << " as " << static_cast<double>(found[i]) << ", not " << expected[i];
        }
      }
    }
  }
}

Problem products_of(const MatmulSpec& s) {
  Problem problem{s.m * s.k, s.k * s.n, s.m * s.n, {}};
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      for (int64_t k = 0; k < s.k; ++k) {
        problem.products.push_back(
            {s.a_transposed ? k + i * s.k : i + k * s.m, s.b_transposed ? j + k * s.n : k + j * s.k, i + j * s.m});
      }
    }
  }
  return problem;
}

template <class T> void check_matmul(DType type, double tolerance) {
  constexpr int64_t sizes[][4] = {{1, 1, 1, 1},   {5, 3, 7, 1},      {17, 13, 9, 1},     {2, 33, 5, 1},
                                  {33, 2, 19, 7}, {20, 50, 30, 211}, {3, 4, 2100, 1601}, {40, 6, 300, 2311},
                                  {4, 1, 33, 1},  {1, 3, 35, 1}};
  for (const auto& size : sizes) {
    for (int form = 0; form < 4; ++form) {
      MatmulSpec spec;
      spec.type = type;
      spec.m = size[0], spec.n = size[1], spec.k = size[2];
      spec.a_transposed = form & 1, spec.b_transposed = form & 2;
      spec.lda = spec.a_transposed ? spec.k : spec.m, spec.ldb = spec.b_transposed ? spec.n : spec.k;
      spec.ldc = spec.m;
      const Problem problem = products_of(spec);
      const std::string name = "matmul (" + std::to_string(spec.m) + ", " + std::to_string(spec.n) + ", " +
                               std::to_string(spec.k) + ") form " + std::to_string(form);
      for (const Engine engine : engines_for(type)) {
        check<T>(*prepare_matmul(spec, engine), problem, tolerance, name, size[3]);
      }
    }
  }
}

TEST(NotFinite, AMatmulReadsNoElementButItsFactors) {
  check_matmul<float>(DType::Float32, 1e-5);
  check_matmul<double>(DType::Float64, 1e-12);
  check_matmul<BFloat>(DType::BFloat16, 2e-2);
  check_matmul<Half>(DType::Float16, 2e-2);
}

ConvSpec conv(int64_t in_channels, int64_t out_channels, int64_t groups, const std::vector<ConvDim>& dims) {
  return conv_of(2, in_channels, out_channels, groups, dims);
}

Problem products_of(const ConvSpec& s) {
  const int64_t places = count_of(s.in), outs = count_of(s.out), taps = count_of(s.kernel);
  const int64_t in_of_group = s.in_channels / s.groups, out_of_group = s.out_channels / s.groups;
  const int64_t x_count = places * s.in_channels * s.batch, y_count = outs * s.out_channels * s.batch;
  const int64_t w_count = taps * in_of_group * s.out_channels;
  Problem problem;
  const auto add = [&](int64_t x, int64_t w, int64_t y) {
    if (s.kind == ConvKind::forward) problem.products.push_back({x, w, y});
    else if (s.kind == ConvKind::backward_data) problem.products.push_back({y, w, x});
    else problem.products.push_back({x, y, w});
  };
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t out = 0; out < outs; ++out) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t place = place_of(s, out, tap);
        for (int64_t c = 0; place >= 0 && c < s.out_channels; ++c) {
          for (int64_t i = 0; i < in_of_group; ++i) {
            const int64_t in = c / out_of_group * in_of_group + i;
            const int64_t x =
                s.logical ? (n * s.in_channels + in) * places + place : (n * places + place) * s.in_channels + in;
            const int64_t w = (c * in_of_group + i) * taps + (s.flipped ? taps - 1 - tap : tap);
            add(x, w, s.logical ? (n * s.out_channels + c) * outs + out : (n * outs + out) * s.out_channels + c);
          }
        }
      }
    }
  }
  const bool forward = s.kind == ConvKind::forward, by_data = s.kind == ConvKind::backward_data;
  problem.first = by_data ? y_count : x_count;
  problem.second = forward || by_data ? w_count : y_count;
  problem.result = forward ? y_count : by_data ? x_count : w_count;
  return problem;
}

struct TriedConv {
  const char* name;
  ConvSpec spec;
  int64_t step = 1;  // between the places that are tried
};

std::vector<TriedConv> tried_convs() {
  std::vector<TriedConv> cases{
      {"one channel", conv(1, 1, 1, {{5, 2}, {5, 2}})},
      {"few channels, padded", conv(2, 3, 1, {{7, 3, 1, 1, 1, 0}, {6, 2, 1, 1, 1, 1}})},
      {"strided and dilated", conv(2, 3, 1, {{9, 3, 2, 1, 1, 2}, {8, 2, 3, 2, 0, 2}})},
      {"dilated rows", conv(1, 5, 1, {{9, 3, 1, 2, 2, 2}, {5, 2, 1, 1, 1, 0}})},
      {"groups", conv(4, 6, 2, {{6, 3, 1, 1, 1, 1}, {5, 3, 1, 1, 1, 1}})},
      {"one channel a group", conv(3, 6, 3, {{6, 3, 2, 1, 1, 1}, {5, 3, 1, 1, 1, 1}})},
      {"wide planes", conv(2, 2, 2, {{19, 3, 1, 1, 1, 1}, {6, 3, 1, 1, 1, 1}}), 29},
      {"three by three, far apart", conv(2, 2, 2, {{13, 3, 2, 2, 3, 2}, {15, 3, 2, 2, 2, 3}}), 23},
      {"volumes of single channels", conv(2, 4, 2, {{5, 2, 2, 1, 1, 0}, {3, 3, 1, 1, 1, 1}, {4, 2, 1, 2, 1, 1}}), 7},
      {"a line", conv(1, 2, 1, {{11, 3, 2, 1, 1, 1}})},
      {"a volume", conv(2, 2, 1, {{4, 2, 1, 1, 1, 0}, {3, 2, 2, 1, 1, 1}, {4, 3, 1, 1, 1, 1}})},
      {"much padding", conv(1, 3, 1, {{2, 3, 1, 1, 4, 4}, {3, 2, 2, 1, 3, 5}})},
      {"one tap", conv(3, 5, 1, {{5, 1}, {4, 1, 2}}), 1},
      {"a blockful of channels", conv(16, 16, 1, {{5, 3, 1, 1, 1, 1}, {4, 3, 1, 1, 1, 1}}), 331},
      {"odd channels", conv(17, 33, 1, {{4, 3, 1, 1, 1, 1}, {3, 3, 1, 1, 1, 1}}), 557},
      {"few to many", conv(3, 32, 1, {{8, 3, 2, 1, 1, 1}, {7, 3, 2, 1, 1, 1}}), 103},
      {"many to few", conv(33, 3, 1, {{6, 3, 1, 1, 1, 1}, {6, 3, 1, 1, 1, 1}}), 211},
      {"wide taps", conv(32, 32, 1, {{6, 1}, {5, 1}}), 307},
  };
  for (const int flipped : {1, 3, 6, 9, 14}) cases[static_cast<size_t>(flipped)].spec.flipped = true;
  return cases;
}

template <class T> void check_conv(DType type, double tolerance) {
  for (const TriedConv& given : tried_convs()) {
    for (const ConvKind kind : {ConvKind::forward, ConvKind::backward_data, ConvKind::backward_weights}) {
      ConvSpec spec = given.spec;
      spec.type = type;
      spec.kind = kind;
      const Problem problem = products_of(spec);
      const std::string name = std::string(given.name) + ", kind " + std::to_string(static_cast<int>(kind));
      SCOPED_TRACE(name);
      for (const Engine engine : engines_for(type)) {
        check<T>(*prepare_conv(spec, engine), problem, tolerance, name, given.step);
      }
      if (winograd_can(spec)) {
        check<T>(*prepare_conv(spec, Engine::winograd), problem, tolerance, name, given.step);
      }
      spec.logical = takes_logical(spec);
      if (spec.logical) check<T>(*prepare_conv(spec), products_of(spec), tolerance, name + ", planes", given.step);
    }
  }
}

TEST(NotFinite, AConvolutionReadsNoElementButItsFactors) {
  check_conv<float>(DType::Float32, 1e-5);
  check_conv<double>(DType::Float64, 1e-12);
}

TEST(NotFinite, AConvolutionOfHalvesReadsNoElementButItsFactors) {
  check_conv<BFloat>(DType::BFloat16, 2e-2);
  check_conv<Half>(DType::Float16, 2e-2);
}

}  // namespace
}  // namespace rosin::engines
