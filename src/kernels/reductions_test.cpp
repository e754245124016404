// Reductions by kernels whose items own strips and columns: of every length, against the CPU, and with the same bits on
// devices with and without vectors, alone and behind other ops. And divisions by numbers that come in with a launch.
// Read first: kernel_testing.hpp, shares.hpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include <rosin/approx.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "graph/node.hpp"
#include "kernels/kernel_testing.hpp"
#include "kernels/shares.hpp"

namespace rosin::kernels {
namespace {

using Arrays = std::vector<Array>;

template <class F> Arrays evaluated(F&& f) {
  Arrays made = f();
  eval();
  return made;
}

template <class F> Arrays all_on(const Abilities& device, F&& f) {
  InterpretedExecutor executor;
  executor.device = device;
  return by_kernels([&] { return f(); }, executor);
}

/// Near the CPU's, and the same bits with all abilities and with none.
template <class F> void expect_good(F&& f, double tolerance, const std::string& what) {
  const Arrays here = evaluated(f), plain = all_on(Abilities(), f), able = all_on(InterpretedExecutor().device, f);
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_TRUE(allclose(plain[i], here[i], {.rtol = tolerance, .atol = tolerance})) << what << ", result " << i;
    expect_same_bits(able[i], plain[i], what + ", result " + std::to_string(i));
  }
}

std::string text_of(const Shape& shape, DType type) { return to_string(shape) + " " + to_string(type); }

TEST(Shares, FollowFromTheLengthAlone) {
  const auto of = [](int64_t length) {
    const Shares shares(length, length);
    return std::vector<int64_t>{shares.strip, shares.lanes, shares.turns};
  };
  EXPECT_EQ(of(1), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(of(10), (std::vector<int64_t>{1, 16, 1}));
  EXPECT_EQ(of(34), (std::vector<int64_t>{2, 32, 1}));
  EXPECT_EQ(of(768), (std::vector<int64_t>{8, 128, 1}));
  EXPECT_EQ(of(4096), (std::vector<int64_t>{8, 256, 2}));
  EXPECT_EQ(of(1001), (std::vector<int64_t>{1, 256, 4}));
}

TEST(Reductions, RowsOfEveryLength) {
  for (const int64_t length : {1, 2, 5, 8, 10, 12, 16, 100, 257, 768, 1024, 1500, 2500, 4096, 4104, 5001}) {
    for (const DType type : {Float32, BFloat16}) {
      const Array x = numbers({length, 3}, type);
      const auto f = [&]() -> Arrays { return {softmax(x), normalise(x, 0), sum(x * x, {0}), maximum(x, {0})}; };
      expect_good(f, type == Float32 ? 1e-4 : 2e-2, text_of(x.shape(), type));
    }
  }
}

TEST(Reductions, RowsOfSeveralDims) {
  const Array x = numbers({4, 6, 5}), y = numbers({3, 5, 7}), scale = numbers({4, 1, 5});
  const auto f = [&]() -> Arrays {
    return {normalise(x * scale, {0, 1}), sum(exp(y), {0, 1}), normalise(permute(y, {1, 0, 2}), {0, 1})};
  };
  expect_good(f, 1e-4, "rows of two dims");
}

TEST(Reductions, ColumnsOfEveryNumber) {
  for (const int64_t columns : {1, 2, 3, 8, 10, 33, 64, 100, 768}) {
    for (const int64_t lines : {1, 7, 300, 2100}) {
      const Array x = numbers({columns, lines}), z = numbers({columns, lines}, BFloat16);
      const auto f = [&]() -> Arrays { return {sum(x, {1}), maximum(abs(x), {1}), sum(cast(z, Float32) * x, {1})}; };
      expect_good(f, 1e-4, text_of(x.shape(), Float32));
    }
  }
}

TEST(Reductions, OverDimsInBetweenAndAround) {
  const Array x = numbers({8, 6, 4, 5}), y = numbers({7, 3, 2, 9});
  for (const Array& z : {x, y}) {
    for (const Dims& dims : {Dims{0, 1, 3}, Dims{0, 2}, Dims{1}, Dims{1, 3}, Dims{2, 3}, Dims{0, 1, 2, 3}, Dims{3}}) {
      expect_good([&]() -> Arrays { return {sum(z * z, dims), sum(z, dims)}; }, 1e-4, to_string(z.shape()));
    }
  }
  const Array wide = numbers({16, 1024, 3});
  expect_good([&]() -> Arrays { return {sum(wide, {0, 1}), sum(wide), mean(wide, {1})}; }, 1e-3, "parts");
}

TEST(Reductions, SumsHaveTheSameBitsAloneAndBehindOthers) {
  for (const int64_t length : {10, 24, 768, 1001}) {
    const Array x = numbers({length, 5});
    const Array doubled = evaluated([&]() -> Arrays { return {x * 2}; })[0];
    const Abilities device = InterpretedExecutor().device;
    const auto whole = [&]() -> Arrays {
      const Array y = x * 2;
      return {sum(y, {0}), y - sum(y, {0}), sum(y, {1})};
    };
    const auto alone = [&]() -> Arrays { return {sum(doubled, {0}), sum(doubled, {1})}; };
    const Arrays a = all_on(device, whole), b = all_on(device, alone);
    expect_same_bits(a[0], b[0], "rows of " + std::to_string(length));
    expect_same_bits(a[2], b[1], "columns of " + std::to_string(length));
  }
}

TEST(Reductions, GradientsOfNormalisationKeepNoOperandsOfSums) {
  for (const DType type : {Float32, BFloat16}) {
    const Array x = numbers({96, 40}, type), scale = numbers({96}, type), bias = numbers({96}, type);
    const Array dy = numbers({96, 40}, type);
    const auto f = [&]() -> Arrays {
      const auto [dx, dscale, dbias] =
          gradient([&](const Array& a, const Array& b,
                       const Array& c) { return sum(cast((normalise(a, 0) * b + c) * dy, Float32)); },
                   x, scale, bias);
      return {dx, dscale, dbias};
    };
    expect_good(f, type == Float32 ? 1e-4 : 5e-2, text_of(x.shape(), type));
  }
}

/// How many codes of this kind have run.
int64_t codes_of(const InterpretedExecutor& executor, const std::string& kind) {
  return std::count_if(executor.codes.begin(), executor.codes.end(),
                       [&](const auto& code) { return code.first.substr(0, code.first.rfind('_')) == kind; });
}

using Normalised = Array (*)(const Array& x, const Array& scale, const Array& bias);

Array centred(const Array& x, const Array& scale, const Array& bias) { return normalise(x, 0) * scale + bias; }

/// Items exchange one sum a row alone.
Array by_root_of_squares(const Array& x, const Array& scale, const Array& bias) {
  return x * rsqrt(mean(square(x), 0) + 1e-5) * scale + bias;
}

/// Gradients of normalised rows, whose scale and bias get sums over all rows: near those that are computed in order.
void expect_rows_to_add_up(const Shape& shape, DType type, bool expected, Normalised normalised = centred) {
  const Array x = numbers(shape, type), scale = numbers({shape[0]}, type), dy = numbers(shape, type);
  const auto f = [&]() -> Arrays {
    const auto loss = [&](const Array& a, const Array& b, const Array& c) {
      return sum(cast(normalised(a, b, c) * dy, Float32));
    };
    const auto [dx, dscale, dbias] = gradient(loss, x, scale, scale);
    return {dx, dscale, dbias};
  };
  const Arrays here = evaluated(f);
  InterpretedExecutor able, plain;
  plain.device = Abilities();
  able.mode = plain.mode = MathMode::standard;
  const Arrays found = by_kernels(f, able), same = by_kernels(f, plain);
  const std::string what = text_of(shape, type);
  EXPECT_EQ(codes_of(able, "columns") == 0, expected) << what;
  EXPECT_EQ(codes_of(able, "column_parts"), expected ? 1 : 0) << what;
  for (size_t i = 0; i < here.size(); ++i) {
    const double tolerance = type == Float32 ? 2e-3 : i == 0 ? 5e-2 : 2e-1;
    EXPECT_TRUE(allclose(found[i], here[i], {.rtol = tolerance, .atol = tolerance})) << what << ", result " << i;
    expect_same_bits(same[i], found[i], what + ", result " + std::to_string(i));
  }
}

TEST(Reductions, RowsAddUpWhatRunsAlongThem) {
  expect_rows_to_add_up({1032, 1100}, Float32, true);   // some items have no second strip
  expect_rows_to_add_up({4096, 1026}, BFloat16, true);  // rows end unevenly
  expect_rows_to_add_up({768, 2051}, BFloat16, true);   // a group has two rows
  expect_rows_to_add_up({264, 4100}, Float32, true);    // and items without a strip
  expect_rows_to_add_up({1032, 1100}, Float32, true, by_root_of_squares);
  expect_rows_to_add_up({768, 300}, Float32, false);   // few rows
  expect_rows_to_add_up({60, 9000}, BFloat16, false);  // short ones
}

TEST(Reductions, OperandsThatRunAlongAnotherDim) {
  for (const DType type : {Float32, BFloat16, Float64}) {
    const Array x = numbers({40, 70}, type), y = numbers({70, 40}, type), z = numbers({33, 2, 64}, type);
    const auto f = [&]() -> Arrays {
      return {permute(x, {1, 0}) * y, abs(permute(z, {2, 1, 0})), permute(z, {1, 2, 0}) + 1};
    };
    expect_good(f, 1e-6, to_string(type));
  }
}

TEST(Reductions, UpdatesOfOnePlaceAreAddedInTheirOrder) {
  std::vector<int32_t> places;
  for (int i = 0; i < 700; ++i) places.push_back(i * i % 23 - 3);
  const Array at(places, {700}), updates = numbers({6, 700}), target = numbers({6, 40});
  const auto f = [&]() -> Arrays {
    return {scatter_add(target, at, updates, 1), scatter_add(cast(target, BFloat16), at, cast(updates, BFloat16), 1),
            scatter_add(numbers({40, 2}), at, numbers({700, 2}), 0)};
  };
  const Arrays here = evaluated(f), there = by_kernels(f);
  for (size_t i = 0; i < here.size(); ++i) {
    EXPECT_TRUE(allclose(there[i], here[i], {.rtol = i == 1 ? 2e-2 : 1e-4, .atol = i == 1 ? 2e-1 : 1e-4})) << i;
  }
}

/// Quotients of `numbers` by a divisor that comes in with the launch.
template <class T> std::vector<T> quotients(std::vector<T> dividends, T divisor) {
  const bool wide = sizeof(T) == 8;
  KernelWriter w("quotients", 1, wide ? ScalarType::int64 : ScalarType::int32);
  const int from = w.buffer(wide ? DType::Int64 : DType::Int32, {}),
            to = w.buffer(wide ? DType::Int64 : DType::Int32, {});
  const Term at = w.group(0);
  w.store(to, at, w.quotient(w.load(from, at), w.number(divisor)));
  const Launch launch = w.finish(1);
  std::vector<rosin_number> numbers;
  for (const LaunchNumber& number : launch.numbers) numbers.push_back(number_of(number, nullptr));
  std::vector<T> found(dividends.size());
  const uint32_t groups[3] = {static_cast<uint32_t>(dividends.size()), 1, 1};
  const uint64_t bytes = dividends.size() * sizeof(T);
  const reference::Block buffers[] = {{dividends.data(), bytes}, {found.data(), bytes}};
  reference::Kernel(PluginCode(launch.code).plain()).run(groups, buffers, numbers.data());
  return found;
}

template <class T> void expect_quotients() {
  constexpr T most = std::numeric_limits<T>::max();
  std::vector<T> divisors{1, 2, 3, 5, 7, 10, 255, 256, 257, 641, 65535, 65537, most / 2, most / 2 + 1, most - 1, most};
  for (T x = 11; x < most / 5; x = x * 5 + 3) divisors.push_back(x);
  for (const T divisor : divisors) {
    std::vector<T> dividends{0, 1, 2, most, most - 1, most / 2, divisor - 1, divisor};
    for (T x = 3; x < most / 3; x = x * 3 + 1) dividends.push_back(x);
    for (const T times : {T{2}, T{3}, most / divisor}) {
      if (times > 0 && most / divisor >= times) {
        dividends.push_back(times * divisor);
        dividends.push_back(times * divisor - 1);
      }
    }
    const std::vector<T> found = quotients(dividends, divisor);
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i], dividends[i] / divisor) << dividends[i] << " by " << divisor;
    }
  }
}

TEST(Quotients, OfEverySizeAreExact) {
  expect_quotients<int32_t>();
  expect_quotients<int64_t>();
}

TEST(Quotients, NeedNoCodeOfTheirOwnForADivisor) {
  const auto code = [](int64_t size) {
    KernelWriter w("quotients", 1, ScalarType::int32);
    const int to = w.buffer(DType::Int32, {});
    w.store(to, w.group(0), w.quotient(w.group(0), w.number(size)));
    return w.finish(1).code;
  };
  EXPECT_EQ(code(3), code(4096));
  for (const KernelInstruction& instruction : code(7).instructions) EXPECT_FALSE(instruction.is(Primitive::divide));
}

}  // namespace
}  // namespace rosin::kernels
