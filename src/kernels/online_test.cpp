// Rows that items do not hold in registers: kept in shared memory or read again, and their sums of exponentials, which
// are added up beside the largest elements. Doubles against the definition in Float64, special ones against the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "kernels/kernel_testing.hpp"

namespace rosin::kernels {
namespace {

using Doubles = std::vector<double>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

class OnlineRows : public testing::Test {
 protected:
  MathMode mode = MathMode::standard;
  bool kept = false;  // whether shared memory has room for rows
  std::map<std::string, KernelCode> codes;

  template <class F> Array on_device(F&& f) {
    InterpretedExecutor executor;
    executor.mode = mode;
    if (!kept) executor.device.shared_bytes = 16384;
    const Array result = by_kernels(f, executor);
    codes = executor.codes;
    return result;
  }

  /// Loops that load from memory in the codes of rows.
  int walks() const {
    int count = 0;
    for (const auto& [name, code] : codes) {
      std::vector<char> reads;  // of the loops that are open
      for (const KernelInstruction& each : code.instructions) {
        if (each.is(KernelOperation::loop)) reads.push_back(0);
        if (each.is(KernelOperation::load) || each.is(KernelOperation::load_vector)) {
          if (!reads.empty()) reads.back() = 1;
        }
        if (!each.is(KernelOperation::end_loop)) continue;
        count += reads.back();
        reads.pop_back();
      }
    }
    return count;
  }
  int64_t shared_bytes() const {
    int64_t most = 0;
    for (const auto& [name, code] : codes) most = std::max(most, code.shared_bytes());
    return most;
  }
};

Array evaluated(Array x) {
  eval(x);
  return x;
}

/// Rows that climb, fall, and jump about, so that the largest element comes late, early, or anywhere.
Array scores(int64_t length, int64_t rows, DType type = Float32) {
  Rng rng(11);
  Doubles values(static_cast<size_t>(length * rows));
  const Doubles noise = uniform(rng, {length, rows}, -4, 4).to_vector<double>();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < length; ++i) {
      const double along = 200.0 * static_cast<double>(i) / static_cast<double>(length);
      const auto at = static_cast<size_t>(r * length + i);
      values[at] = noise[at] + (r % 3 == 0 ? along : r % 3 == 1 ? -along : 0);
    }
  }
  return evaluated(cast(Array(values, {length, rows}), type));
}

/// By definition.
Doubles log_of_sums(const Array& x) {
  const Doubles values = x.to_vector<double>();
  const int64_t length = x.size(0);
  Doubles made;
  for (int64_t r = 0; r < x.size(1); ++r) {
    const auto row = values.begin() + r * length;
    const double largest = *std::max_element(row, row + length);
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += std::exp(row[i] - largest);
    made.push_back(largest + std::log(sum));
  }
  return made;
}

/// The gradient of the sum of these.
Doubles slopes_of(const Array& x) {
  Doubles slopes = x.to_vector<double>();
  const Doubles logs = log_of_sums(x);
  const auto length = static_cast<size_t>(x.size(0));
  for (size_t i = 0; i < slopes.size(); ++i) slopes[i] = std::exp(slopes[i] - logs[i / length]);
  return slopes;
}

void expect_near(const Doubles& got, const Doubles& wanted, double relative, double least = 0) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], wanted[i], relative * std::abs(wanted[i]) + least) << "element " << i;
}

/// The same, NaN for NaN.
void expect_alike(const Doubles& got, const Doubles& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(i);
    const bool same = (std::isnan(wanted[i]) && std::isnan(got[i])) || got[i] == wanted[i];
    const bool near = std::abs(got[i] - wanted[i]) <= 1e-5 * std::abs(wanted[i]) + 1e-30;
    ASSERT_TRUE(same || (near && std::isfinite(wanted[i]))) << got[i] << " for " << wanted[i];
  }
}

TEST_F(OnlineRows, LogarithmsOfSumsAreThoseOfTheDefinition) {
  for (const int64_t length : {4100, 5003, 6000, 6142}) {
    for (const DType type : {Float32, BFloat16, Float16, Float64}) {
      SCOPED_TRACE(std::to_string(length) + " " + std::string(to_string(type)));
      const Array x = scores(length, 25, type);
      for (const bool room : {false, true}) {
        kept = room;
        const Array got = on_device([&] { return logsumexp(type == Float64 ? x : cast(x, Float32), {0}); });
        expect_near(got.to_vector<double>(), log_of_sums(x), type == Float64 ? 1e-14 : 2e-6);
      }
    }
  }
}

TEST_F(OnlineRows, ARowIsWalkedOverOnceForItsSum) {
  const Array x = scores(6000, 25);
  on_device([&] { return logsumexp(x, {0}); });
  const int once = walks();
  mode = MathMode::exact;
  on_device([&] { return logsumexp(x, {0}); });
  EXPECT_EQ(2 * once, walks());
}

TEST_F(OnlineRows, GradientsAreInTheKernelOfTheSums) {
  for (const DType type : {Float32, BFloat16, Float16}) {
    const Array x = scores(6000, 25, type);
    const Doubles wanted = slopes_of(x);
    const double relative = type == Float32 ? 4e-5 : 1.0 / 128, least = type == Float16 ? 1e-7 : 1e-10;
    for (const bool room : {false, true}) {
      for (const MathMode each : {MathMode::standard, MathMode::exact}) {
        SCOPED_TRACE(std::string(to_string(type)) + (room ? ", kept" : ", read again"));
        kept = room;
        mode = each;
        const Array got = on_device(
            [&] { return gradient([](const Array& v) { return sum(logsumexp(cast(v, Float32), {0})); }, x); });
        expect_near(got.to_vector<double>(), wanted, relative, least);
        const auto rows =
            std::count_if(codes.begin(), codes.end(), [](const auto& code) { return code.first.starts_with("rows"); });
        EXPECT_EQ(rows, 1);
        // Pairs of BFloat16 take half the room.
        EXPECT_EQ(shared_bytes() > 6000 * (type == BFloat16 ? 2 : 4), room);
        EXPECT_LT(shared_bytes(), 6144 * (type == BFloat16 ? 2 : 4) + 4096);
      }
    }
  }
}

TEST_F(OnlineRows, SoftmaxAndItsGradient) {
  const Array x = scores(5600, 23), dy = scores(5600, 23) / 200;
  eval(dy);
  const auto f = [&] { return gradient([&](const Array& v) { return sum(softmax(v, 0) * dy); }, x); };
  const Array wanted = evaluated(f());
  for (const bool room : {false, true}) {
    kept = room;
    expect_near(on_device(f).to_vector<double>(), wanted.to_vector<double>(), 1e-4, 1e-7);
    expect_near(on_device([&] { return softmax(x, 0); }).to_vector<double>(),
                evaluated(softmax(x, 0)).to_vector<double>(), 4e-5);
  }
}

TEST_F(OnlineRows, SpecialElementsDoWhatTheDefinitionSays) {
  constexpr int64_t length = 5200, rows = 21;
  Doubles values = scores(length, rows).to_vector<double>();
  const auto set = [&](int64_t row, int64_t from, int64_t to, double value) {
    std::fill(values.begin() + row * length + from, values.begin() + row * length + to, value);
  };
  set(0, 0, length, -infinity);
  set(1, 0, length - 1, -infinity);  // one element counts, the last
  set(2, 1, length, -infinity);      // the first
  set(3, 0, 3000, -infinity);        // items that have seen nothing else yet
  set(4, 2000, length, -infinity);
  set(5, 777, 778, infinity);
  set(6, 0, length, infinity);
  set(7, 0, 1, infinity);
  set(7, length - 1, length, -infinity);
  set(8, 4321, 4322, no_number);
  set(9, 0, 1, no_number);
  set(10, 0, length, no_number);
  set(11, 3000, 3001, 3e38);  // beside it all others vanish
  set(12, 0, length, -3e38);
  set(13, 0, 2600, -3e38);  // differences overflow
  set(13, 2600, length, 3e38);
  set(14, 0, 2600, 3e38);
  set(14, 2600, length, -3e38);
  set(15, 0, length, 0.0);
  set(16, 0, length, -1e-40);
  set(17, 0, 2600, infinity);
  set(17, 2600, length, no_number);
  set(18, 0, 2600, -infinity);
  set(18, 2600, length, -3e38);
  const Array x = evaluated(cast(Array(values, {length, rows}), Float32));
  const auto sums = [&] { return logsumexp(x, {0}); };
  const auto parts = [&] { return softmax(x, 0); };
  const auto slopes = [&] { return gradient([](const Array& v) { return sum(logsumexp(v, {0})); }, x); };
  for (const bool room : {false, true}) {
    kept = room;
    expect_alike(on_device(sums).to_vector<double>(), evaluated(sums()).to_vector<double>());
    expect_alike(on_device(parts).to_vector<double>(), evaluated(parts()).to_vector<double>());
    expect_alike(on_device(slopes).to_vector<double>(), evaluated(slopes()).to_vector<double>());
  }
}

TEST_F(OnlineRows, ManyLongRowsAreNoLongerThanTheyAreMany) {
  const auto f = [&](const Array& x) { return on_device([&] { return x - maximum(x, 0); }); };
  const auto rows = [&] {
    return std::count_if(codes.begin(), codes.end(), [](const auto& code) { return code.first.starts_with("rows"); });
  };
  f(scores(6000, 24));
  EXPECT_EQ(rows(), 1);
  f(scores(6000, 23));  // others may share a row
  EXPECT_EQ(rows(), 0);
}

}  // namespace
}  // namespace rosin::kernels
