// Products by matrix units against sums in Float64, on the code of backends/reference: sizes that fill no square, every
// way in which operands lie in memory, batches, types, for each way in which warps have matrices; and when they are
// taken.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/math_mode.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>

#include "kernels/kernel_testing.hpp"

namespace rosin::kernels {
namespace {

class MatrixUnits : public testing::TestWithParam<MatrixLayout> {
 protected:
  Rng rng{11};
  MathMode mode = MathMode::standard;

  Array drawn(const Shape& shape, DType type) {
    Array y = cast(randn(rng, shape), type);
    eval(y);
    return y;
  }

  template <class F> Array made(F&& f, const char* what = "") {
    InterpretedExecutor executor;
    executor.mode = mode;
    executor.device.matrix_layout = GetParam();
    Array got = by_kernels(std::forward<F>(f), executor);
    EXPECT_TRUE(has_units(executor.codes)) << what;
    return got;
  }

  /// The product of f(a) and g(b) is that in Float64 but for rounding: of the result, and of sums of so many Float32.
  template <class F, class G>
  void expect_product(const Array& a, const Array& b, F&& f, G&& g, double tolerance, const char* what) {
    const Array got = made([&] { return matmul(f(a), g(b)); }, what);
    const Array wide = matmul(f(cast(a, Float64)), g(cast(b, Float64)));
    ASSERT_EQ(got.dtype(), a.dtype()) << what;
    ASSERT_EQ(got.shape(), wide.shape()) << what;
    const std::vector<double> wanted = wide.to_vector<double>(), values = got.to_vector<double>();
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(values[i], wanted[i], tolerance * (4 + std::abs(wanted[i]))) << what << ", element " << i;
    }
  }
  void expect_product(const Array& a, const Array& b, double tolerance, const char* what = "") {
    const auto same = [](const Array& x) { return x; };
    expect_product(a, b, same, same, tolerance, what);
  }

  static bool has_units(const std::map<std::string, KernelCode>& codes) {
    return std::any_of(codes.begin(), codes.end(), [](const auto& one) {
      const auto& list = one.second.instructions;
      return std::any_of(list.begin(), list.end(),
                         [](const KernelInstruction& i) { return i.is(KernelOperation::multiply_matrices); });
    });
  }
  template <class F> std::map<std::string, KernelCode> codes(F&& f, const Abilities& device = {}) const {
    InterpretedExecutor executor;
    executor.mode = mode;
    if (device.warp > 0) executor.device = device;
    executor.device.matrix_layout = GetParam();
    by_kernels(std::forward<F>(f), executor);
    return executor.codes;
  }
};

constexpr double half_step = 0x1p-11, brain_step = 0x1p-8, tf32_step = 0x1p-9;

double step_of(DType type) { return type == Float16 ? half_step : brain_step; }

TEST_P(MatrixUnits, ProductsOfAnySizesAreThoseInFloat64) {
  const int64_t sizes[][3] = {{16, 16, 16},    {17, 19, 23},   {64, 64, 64},  {65, 63, 33},
                              {40, 72, 8 * 5}, {130, 20, 100}, {16, 200, 31}, {64, 62, 66}};
  for (const DType type : {Float16, BFloat16}) {
    for (const auto& [m, n, k] : sizes) expect_product(drawn({m, k}, type), drawn({k, n}, type), step_of(type));
  }
}

TEST_P(MatrixUnits, OperandsAreReadWhereTheyStand) {
  const auto same = [](const Array& x) { return x; };
  const auto turned = [](const Array& x) { return transpose(x); };
  const auto part = [](const Array& x) { return slice(x, 0, 3, 43); };
  const auto even = [](const Array& x) { return slice(x, 0, 8, 48); };
  const auto back = [](const Array& x) { return flip(slice(x, 0, 3, 43), 1); };
  for (const DType type : {Float16, BFloat16}) {
    const double step = step_of(type);
    const Array a = drawn({48, 48}, type), b = drawn({48, 48}, type);
    expect_product(a, b, same, same, step, "as they are");
    expect_product(a, b, turned, same, step, "a transposed");
    expect_product(a, b, same, turned, step, "b transposed");
    expect_product(a, b, turned, turned, step, "both transposed");
    expect_product(a, b, part, same, step, "odd rows of a");
    expect_product(a, b, even, same, step, "even rows of a");
    expect_product(a, b, back, same, step, "flipped");
    expect_product(
        a, b, [&](const Array& x) { return turned(part(x)); }, part, step, "slices along k");
    expect_product(
        a, b, [&](const Array& x) { return turned(even(x)); }, even, step, "even slices along k");
  }
}

TEST_P(MatrixUnits, LargeSquaresAreReadInEveryWay) {
  const auto same = [](const Array& x) { return x; };
  const auto turned = [](const Array& x) { return permute(x, {1, 0, 2}); };
  for (const int64_t size : {72, 75}) {  // vectors and pairs, single elements
    const Array a = drawn({size, size, 64}, BFloat16), b = drawn({size, size, 64}, BFloat16);
    expect_product(a, b, same, same, brain_step, "as they are");
    expect_product(a, b, turned, turned, brain_step, "transposed");
  }
  const Array a = drawn({136, 40, 128}, Float16), b = drawn({40, 72}, Float16);
  expect_product(a, b, half_step, "long squares");
  expect_product(drawn({40, 136, 128}, Float16), b, turned, same, half_step, "long squares, transposed");
}

TEST_P(MatrixUnits, BatchesBroadcast) {
  const Array a = drawn({24, 32, 3}, Float16), b = drawn({32, 20, 3}, Float16), one = drawn({32, 20}, Float16);
  const Array many = drawn({24, 32, 3, 2}, Float16), last = drawn({32, 20, 1, 2}, Float16);
  const auto same = [](const Array& x) { return x; };
  expect_product(a, b, half_step, "a batch");
  expect_product(a, one, half_step, "one for all");
  expect_product(many, last, half_step, "two dims");
  expect_product(many, b, half_step, "a dim that one of them lacks");
  expect_product(
      many, last, [](const Array& x) { return slice(x, 3, 1, 2); }, same, half_step, "a slice of a batch");
}

TEST_P(MatrixUnits, Float32RoundsToTf32WhereItMayBeFast) {
  const auto same = [](const Array& x) { return x; };
  const auto turned = [](const Array& x) { return transpose(x); };
  mode = MathMode::fast;
  for (const int64_t size : {48, 45}) {
    const Array a = drawn({size, size}, Float32), b = drawn({size, size}, Float32);
    expect_product(a, b, same, same, tf32_step, "as they are");
    expect_product(a, b, turned, turned, tf32_step, "transposed");
  }
  const Array infinite = ones({16, 16}) * std::numeric_limits<float>::infinity();
  const Array nothing = ones({16, 16}) * std::numeric_limits<float>::quiet_NaN(), some = ones({16, 16});
  EXPECT_EQ(minimum(made([&] { return matmul(infinite, some); })).item(), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(minimum(made([&] { return matmul(nothing, some); })).item()));
}

TEST_P(MatrixUnits, AreTakenWhereTheyAreThereAndPay) {
  const Array a = drawn({48, 48}, Float16), wide = drawn({48, 48}, Float32), narrow = drawn({48, 15}, Float16);
  const auto product = [&] { return matmul(a, a); };
  EXPECT_TRUE(has_units(codes(product)));
  // Units of 8 columns round Float32.
  EXPECT_EQ(has_units(codes([&] { return matmul(wide, wide); })), GetParam() != MatrixLayout::none);
  EXPECT_FALSE(has_units(codes([&] { return matmul(a, narrow); })));
  Abilities other = InterpretedExecutor().device;
  other.matrix_types = 1u << static_cast<int>(BFloat16);
  EXPECT_FALSE(has_units(codes(product, other)));
  other = InterpretedExecutor().device;
  other.shared_bytes = 4096;
  EXPECT_FALSE(has_units(codes(product, other)));
  mode = MathMode::exact;
  EXPECT_FALSE(has_units(codes(product)));
}

TEST_P(MatrixUnits, ANewBatchSizeHasTheSameCode) {
  const Array w = drawn({32, 48}, Float16), x = drawn({48, 24}, Float16), more = drawn({48, 56}, Float16);
  EXPECT_EQ(codes([&] { return matmul(w, x); }), codes([&] { return matmul(w, more); }));
}

/// Every place of a row and every number of the result has one owner, so that nothing is missing or there twice.
TEST(SquareLayouts, ShareASquareAmongTheItemsOfAWarp) {
  for (const MatrixLayout name : {MatrixLayout::mfma, MatrixLayout::wmma11, MatrixLayout::wmma12}) {
    const SquareLayout& layout = square_layout(name);
    std::vector<int> owners(256, 0);
    for (int item = 0; item < layout.warp; ++item) {
      for (int n = 0; n < layout.sums; ++n) {
        ++owners[static_cast<size_t>(item % 16 * 16 + n * layout.next_sum + item / 16 * layout.next_part)];
      }
    }
    EXPECT_EQ(owners, std::vector<int>(256, 1));
    EXPECT_EQ(layout.parts() * layout.words, SquareLayout::words_of_row);
    EXPECT_LE(layout.parts(), layout.warp / 16);
  }
}

std::string name_of(const testing::TestParamInfo<MatrixLayout>& layout) {
  constexpr const char* names[] = {"EightColumns", "Mfma", "Wmma11", "Wmma12"};
  return names[static_cast<int>(layout.param)];
}

INSTANTIATE_TEST_SUITE_P(Layouts, MatrixUnits,
                         testing::Values(MatrixLayout::none, MatrixLayout::mfma, MatrixLayout::wmma11,
                                         MatrixLayout::wmma12),
                         name_of);

}  // namespace
}  // namespace rosin::kernels
