// The op suite, programs: random programs of many ops give the same bits however they are cut into kernels, whichever
// results are held, and whether their inputs may be overwritten. Read first: op_suite.hpp.
#include <gtest/gtest.h>

#include <random>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/sort.hpp>
#include <rosin/stats.hpp>

#include "op_suite.hpp"

namespace rosin::suite {
namespace {

/// Records one random program; the same seed records the same one.
class RandomProgram {
 public:
  /// Leaves have sizes from this list; values with more elements than the limit are thrown away.
  struct Sizes {
    std::vector<int64_t> list;
    int64_t limit;
  };
  RandomProgram(uint64_t seed, Sizes sizes, int device) : engine_(seed), sizes_(std::move(sizes)), device_(device) {}

  /// Values in recording order; the first ones are leaves.
  Arrays record(size_t ops) {
    for (int i = 0; i < 4; ++i) values_.push_back(leaf());
    while (values_.size() < ops) {
      if (below(40) == 0) eval();  // cuts the program in two
      Array made = one_more();
      if (made.count() <= sizes_.limit && made.rank() <= 4) values_.push_back(made);
    }
    return std::move(values_);
  }

  size_t below(size_t bound) { return static_cast<size_t>(engine_() >> 33) % bound; }

 private:
  Array leaf() {
    std::vector<int64_t> shape;
    int64_t count = 1;
    for (size_t d = below(4); d-- > 0;) {
      const int64_t size = sizes_.list[below(sizes_.list.size())];
      if (count * size > sizes_.limit) break;
      shape.push_back(size);
      count *= size;
    }
    const Shape made{std::span<const int64_t>(shape)};
    std::vector<float> values(static_cast<size_t>(made.count()));
    for (float& value : values) value = static_cast<float>(below(64)) * 0.0625f - 2;
    return transferred(Array(values, made), device_);
  }

  Array any() {
    return values_[values_.size() < 8 || below(3) == 0 ? below(values_.size()) : values_.size() - 1 - below(6)];
  }
  Array number() { return as_number(any()); }
  static Array as_number(const Array& x) { return x.dtype() == Float32 ? x : cast(x, Float32); }
  int dim_of(const Array& x) { return static_cast<int>(below(static_cast<size_t>(x.rank()))); }

  /// y, or what of y broadcasts with x to an array that is not too large.
  Array fitting(const Array& x, const Array& y) {
    Array result = y;
    int64_t count = 1;
    for (int d = 0; d < std::max(x.rank(), y.rank()); ++d) {
      count *= std::max(d < x.rank() ? x.size(d) : 1, d < y.rank() ? y.size(d) : 1);
    }
    if (count > sizes_.limit) return mean(exact(y));
    for (int d = 0; d < std::min(x.rank(), y.rank()); ++d) {
      if (result.size(d) == x.size(d) || result.size(d) == 1 || x.size(d) == 1) continue;
      result = below(2) == 0 && result.size(d) > 0 ? slice(result, d, 0, 1) : sum(exact(result), d) * 0.125;
    }
    return result;
  }

  Array one_more() {
    const size_t choice = below(26);
    const Array x = number();
    if (choice < 9) return elementwise(choice, x);
    if (choice < 16) return reduced(choice, x);
    return moved(choice, choice == 19 || choice == 23 || choice == 25 ? x : any());
  }

  Array elementwise(size_t choice, const Array& x) {
    const Array y = fitting(x, number());
    switch (choice) {
      case 0: return x + y;
      case 1: return x * y * 0.5;
      case 2: return x - y;
      case 3: return tanh(x);
      case 4: return where(x > y, x, y * 2);
      case 5: return x > y;
      case 6: return cast(clamp(x, -100, 100), below(2) == 0 ? Int32 : Float16);
      case 7: return max(x, relu(y));
      default: return x / (abs(y) + 1);
    }
  }

  /// Numbers whose sums are exact in every order: which kernel adds them must not be seen here.
  static Array exact(const Array& x) { return round(clamp(x, -64, 64)); }

  Array reduced(size_t choice, const Array& x) {
    if (x.rank() == 0 || (x.count() == 0 && choice == 11)) return sigmoid(x);
    const int dim = dim_of(x);
    const int first = std::min(dim, 1), second = dim_of(x);
    switch (choice) {
      case 9: return sum(exact(x), dim) * 0.125;
      case 10: return mean(exact(x));
      case 11: return maximum(x, dim);
      case 12: return x / sum(exact(exp(min(x, 2) - mean(exact(x), dim))) + 1, dim);
      case 13: return x - mean(exact(x), {0, dim});
      case 14: return sum(exact(abs(x)), {second, first}) * 0.0625 + 1;
      default: return cumsum(exact(x), dim) * 0.125;
    }
  }

  Array moved(size_t choice, const Array& x) {
    if (x.rank() == 0) return expand(x, {3, 4});
    const int dim = dim_of(x);
    switch (choice) {
      case 16: return reversed_dims(x);
      case 17: return flip(x, dim);
      case 18: return slice(x, dim, 0, (x.size(dim) + 1) / 2);
      case 19: return pad(x, dim, 1, 0, 0.5);
      case 20: return concat({x, x * 2}, dim);
      case 21: return reshape(x, {-1});
      case 22: return expand(unsqueeze(x, dim), with_two_at(x, dim));
      case 23:
        return x.rank() == 2 && x.size(0) * x.size(0) <= sizes_.limit ? matmul(exact(x), transpose(exact(x))) * 0.0625
                                                                      : -x;
      case 24: return x.size(dim) == 0 ? -x : gather(x, transferred(Array({0, -1}, {2}), device_), dim);
      default: return sort(x, dim);
    }
  }

  static Shape with_two_at(const Array& x, int dim) {
    std::vector<int64_t> sizes = sizes_of(x);
    sizes.insert(sizes.begin() + dim, 2);
    return Shape(std::span<const int64_t>(sizes));
  }

  std::mt19937_64 engine_;
  Sizes sizes_;
  int device_;  // its position
  Arrays values_;
};

const RandomProgram::Sizes small = {{1, 3, 4, 5, 7}, 4096};
const RandomProgram::Sizes with_empty = {{1, 2, 0}, 4096};
const RandomProgram::Sizes large = {{1, 3, 33, 130, 1030}, 150000};

/// The results that a program holds: every one, the last few, or a random third.
Arrays held_results(uint64_t seed, size_t ops, const RandomProgram::Sizes& sizes = small,
                    int device = test_device().position()) {
  RandomProgram program(seed, sizes, device);
  const Arrays values = program.record(ops);
  Arrays held;
  for (size_t i = 4; i < values.size(); ++i) {
    const bool last = i + 3 > values.size();
    if (last || (seed % 3 == 0) || (seed % 3 == 1 && program.below(3) == 0)) held.push_back(values[i]);
  }
  return held;
}

/// How many of these programs run: compiling kernels takes longer than running them, and an interpreter takes its time
/// for each element.
size_t some_of(size_t programs, size_t interpreted_part = 1) {
  return compiles_there() ? programs / 100 : on_other_device() ? programs / interpreted_part : programs;
}

void compare_programs(uint64_t first, size_t programs, const RandomProgram::Sizes& sizes) {
  run_checks(programs, [&](size_t at) {
    const uint64_t seed = program_seed(first + at);
    const size_t ops = 8 + seed % 40;
    const std::string where = "program " + std::to_string(seed) + " of " + std::to_string(ops) + " values";
    try {
      const Arrays fused = held_results(seed, ops, sizes);
      eval();
      const Arrays alone = one_by_one([&] { return held_results(seed, ops, sizes); });
      for (size_t i = 0; i < fused.size(); ++i)
        ASSERT_EQ(bit_difference(fused[i], alone[i]), "") << where << ", result " << i;
    } catch (const std::exception& error) {
      FAIL() << where << ": " << error.what();
    }
  });
}

TEST(OpSuitePrograms, GiveTheSameBitsFusedAndAlone) { compare_programs(0, some_of(2000), small); }
TEST(OpSuitePrograms, GiveTheSameBitsFusedAndAloneOnManyTiles) { compare_programs(5000, some_of(600, 20), large); }
TEST(OpSuitePrograms, GiveTheSameBitsFusedAndAloneOnEmptyArrays) { compare_programs(9000, some_of(200), with_empty); }

TEST(OpSuitePrograms, GiveTheSameGradientsFusedAndAloneButForRounding) {
  run_checks(some_of(400), [](size_t at) {
    const uint64_t seed = program_seed(1000 + at);
    const size_t ops = 8 + seed % 20;
    const auto make = [&] {
      const Array start = there(Array({0.5f, -0.25f, 1.5f, 0.125f}, {4}));
      return gradient(
          [&](const Arrays& x) {
            Array total = sum(x[0]);
            for (const Array& value : held_results(seed, ops)) {
              if (value.dtype() == Float32) total = total + mean(tanh(value * x[0].size(0) + sum(x[0] * x[0]) * 0.25));
            }
            return total;
          },
          Arrays{start});
    };
    const Arrays fused = make();
    eval();
    const std::vector<double> one = fused[0].to_vector<double>(), other = one_by_one(make)[0].to_vector<double>();
    for (size_t i = 0; i < one.size(); ++i) {
      if (std::isnan(one[i]) && std::isnan(other[i])) continue;
      ASSERT_NEAR(one[i], other[i], 1e-4 + 1e-4 * std::abs(one[i])) << "program " << seed << " of " << ops << " values";
    }
  });
}

/// The number of elements that differ; which zero is the largest of several is left to the order of a reduction.
size_t different_values(const Array& a, const Array& b) {
  const std::vector<double> x = oracles::values_of(a), y = oracles::values_of(b);
  if (x.size() != y.size()) return std::max(x.size(), y.size());
  size_t count = 0;
  for (size_t i = 0; i < x.size(); ++i) count += !(x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])));
  return count;
}

TEST(OpSuitePrograms, GiveTheSameValuesOnTheDeviceAsOnTheCpu) {
  if (!on_other_device()) GTEST_SKIP() << "the test device is the CPU";
  run_checks(some_of(2000), [](size_t at) {
    const uint64_t seed = program_seed(20000 + at);
    const size_t ops = 8 + seed % 40;
    const Arrays device = held_results(seed, ops), cpu = held_results(seed, ops, small, 0);
    for (size_t i = 0; i < device.size(); ++i) {
      ASSERT_EQ(different_values(device[i], cpu[i]), 0u)
          << bit_difference(device[i], cpu[i]) << " in program " << seed << " of " << ops << " values, result " << i;
    }
  });
}

TEST(OpSuitePrograms, GiveTheSameBitsForAnyNumberOfThreads) {
  if (on_other_device()) GTEST_SKIP() << "about the threads of the CPU";
  for (uint64_t seed = 2; seed < 40; seed += 3) {
    set_num_threads(1);
    const Arrays one = held_results(seed, 40, large);
    eval();
    set_num_threads(3);
    const Arrays three = held_results(seed, 40, large);
    eval();
    for (size_t i = 0; i < one.size(); ++i) ASSERT_EQ(bit_difference(one[i], three[i]), "") << "program " << seed;
  }
  set_num_threads(0);
}

}  // namespace
}  // namespace rosin::suite
