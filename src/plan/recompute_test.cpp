// What a forward pass keeps for its backward pass: values that follow cheaply from others are computed again.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/matmul.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/stats.hpp>

namespace rosin {
namespace {

using Values = std::vector<float>;

constexpr int64_t rows = 96, columns = 64, size = rows * columns * 4;

struct Moved {
  int64_t read = 0, written = 0, kept = 0;
};

/// Bytes that one evaluation of what f returns moves.
template <class F> Moved moved_by(F&& f) {
  eval();
  const Stats before = stats();
  [[maybe_unused]] const auto held = f();
  eval();
  const Stats after = stats();
  return {after.read_bytes - before.read_bytes, after.written_bytes - before.written_bytes,
          after.kept_bytes - before.kept_bytes};
}

class Recompute : public testing::Test {
 protected:
  Array x, w, weight;
  void SetUp() override {
    seed(3);
    x = randn({rows, columns});
    w = randn({rows, rows});
    weight = randn({rows, columns});
    eval();
  }

  /// The gradients of a loss in which f stands between two products, by x and by both matrices.
  template <class F> auto gradients(F f) {
    return gradient(
        [&](const Array& a, const Array& b, const Array& c) { return sum(matmul(c, f(matmul(b, a))) * weight); }, x, w,
        w);
  }
  /// The same bits with every value of the forward pass held, so that all of them are stored.
  template <class F> void expect_same_bits(F f) {
    const auto less = gradients([&](const Array& z) { return f(z, [](const Array& value) { return value; }); });
    std::vector<Array> held;
    const auto all = gradients([&](const Array& z) {
      return f(z, [&](const Array& value) {
        held.push_back(value);
        return value;
      });
    });
    EXPECT_EQ(std::get<0>(less).to_vector(), std::get<0>(all).to_vector());
    EXPECT_EQ(std::get<1>(less).to_vector(), std::get<1>(all).to_vector());
    EXPECT_EQ(std::get<2>(less).to_vector(), std::get<2>(all).to_vector());
  }
};

TEST_F(Recompute, TrafficCountsWhatKernelsAndCallsMove) {
  const Moved sum_of_two = moved_by([&] { return x + weight; });
  EXPECT_EQ(sum_of_two.read, 2 * size);
  EXPECT_EQ(sum_of_two.written, size);
  EXPECT_EQ(sum_of_two.kept, 0);
  const Moved product = moved_by([&] { return matmul(w, x); });
  EXPECT_EQ(product.read, rows * rows * 4 + size);
  EXPECT_EQ(product.written, size);
}

TEST_F(Recompute, ANormalisationKeepsItsInputAndTheStatisticsOfRows) {
  const auto normalised = [](const Array& z, auto step) {
    const Array centred = step(z - mean(z, 0));
    return step(centred / sqrt(mean(centred * centred, 0) + 1e-5));
  };
  const Moved moved = moved_by([&] {
    return gradients([&](const Array& z) { return normalised(z, [](const Array& value) { return value; }); });
  });
  // z, the result (operand of the second product) and a few numbers a column
  EXPECT_LE(moved.kept, 2 * size + 4 * columns * 4);
  expect_same_bits(normalised);
}

TEST_F(Recompute, AnActivationKeepsItsInput) {
  const auto activation = [](const Array& z, auto step) { return step(step(z * 0.5) * step(sigmoid(z) + 1)); };
  const Moved moved = moved_by([&] {
    return gradients([&](const Array& z) { return activation(z, [](const Array& value) { return value; }); });
  });
  EXPECT_LE(moved.kept, 3 * size);
  expect_same_bits(activation);
}

}  // namespace
}  // namespace rosin
