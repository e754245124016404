// Products by tensor cores of the pretended GPUs of tests/fake_cuda, and by matrix cores of those of tests/fake_hip,
// where no library takes them: the text of their kernels, run there, against sums in Float64. Read first:
// cuda_testing.hpp.
#include <gtest/gtest.h>

#include <cmath>

#include <rosin/activation.hpp>
#include <rosin/approx.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/math_mode.hpp>
#include <rosin/matmul.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/stats.hpp>

#include "cuda_testing.hpp"

namespace rosin {
namespace {

struct Case {
  Shape a, b;
  bool turn_a = false, turn_b = false;  // the last two dims change places
  int64_t from = 0;                     // the first row of a
};

Array operand(const Array& x, bool turned, int64_t from) {
  const Array part = from > 0 ? slice(x, 0, from, x.size(0)) : x;
  std::vector<int> order(static_cast<size_t>(part.rank()));
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int>(d < 2 && turned ? 1 - d : d);
  return permute(part, order);
}

void expect_product(const Case& c, DType type, double tolerance) {
  Rng rng(5);
  const Array a = cast(randn(rng, c.a), type), b = cast(randn(rng, c.b), type);
  eval();
  const Array wanted = matmul(operand(cast(a, Float64), c.turn_a, c.from), operand(cast(b, Float64), c.turn_b, 0));
  const Device there = pretended_gpu();
  const int64_t by_library = stats().library_calls;
  const Array got = matmul(operand(a | there.with(keep), c.turn_a, c.from), operand(b | there.with(keep), c.turn_b, 0));
  ASSERT_EQ(got.dtype(), type);
  EXPECT_TRUE(allclose(cast(got | Device(), Float64), wanted, {.rtol = tolerance, .atol = 4 * tolerance}))
      << to_string(type) << " " << to_string(c.a) << " " << c.turn_a << " by " << to_string(c.b) << " " << c.turn_b;
  EXPECT_EQ(stats().library_calls, by_library);
}

const Case cases[] = {
    {{64, 64}, {64, 64}},
    {{17, 23}, {23, 19}},
    {{48, 40}, {40, 70}},
    {{40, 48}, {70, 40}, true, true},
    {{41, 33}, {41, 35}, true},
    {{50, 40}, {33, 40}, false, true, 3},
    {{56, 40}, {40, 33}, false, false, 8},
    {{24, 32, 3}, {32, 20, 1}},
    {{72, 32, 64}, {32, 72, 64}},               // larger parts of the result
    {{72, 34, 64}, {70, 34, 64}, false, true},  // the same, in pairs
    {{136, 16, 128}, {16, 72}},                 // the largest
};

/// A product of which a bias and relu go along.
void expect_epilogue(DType type, double tolerance) {
  Rng rng(7);
  const Array a = cast(randn(rng, {50, 33}), type), b = cast(randn(rng, {33, 21}), type);
  const Array bias = cast(randn(rng, {50}), type);
  eval();
  const auto layer = [](const Array& x, const Array& y, const Array& z) { return relu(matmul(x, y) + z); };
  const Array wanted = layer(cast(a, Float64), cast(b, Float64), cast(bias, Float64));
  const Device there = pretended_gpu().with(keep);
  const Array got = layer(a | there, b | there, bias | there);
  EXPECT_TRUE(allclose(cast(got | Device(), Float64), wanted, {.rtol = 2 * tolerance, .atol = 8 * tolerance}));
}

TEST(DISABLED_Inside, TheGpuMultipliesByUnits) {
  for (const Case& c : cases) {
    expect_product(c, BFloat16, 0x1p-8);
    expect_product(c, Float16, 0x1p-11);
  }
  expect_epilogue(BFloat16, 0x1p-8);
  expect_epilogue(Float16, 0x1p-11);
}

TEST(DISABLED_Inside, TheGpuMultipliesFloat32ByUnits) {
  math_mode(MathMode::fast);
  for (const Case& c : std::span(cases).first(8)) expect_product(c, Float32, 0x1p-9);
  math_mode(MathMode::standard);
  for (const Case& c : std::span(cases).first(3)) expect_product(c, Float32, 1e-5);
}

// No product is a library's: whatever handle is asked for, there is none.
const char* const alone = "arch=90,fail=cublasLtCreate:1+2+3+4+5+6";

TEST(SlowCudaUnits, MultiplyHalvesThatNoLibraryTakes) {
  expect_success(on_pretended_gpu("TheGpuMultipliesByUnits", alone));
}

TEST(CudaUnits, MultiplyFloat32WhereItMayBeFast) {
  expect_success(on_pretended_gpu("TheGpuMultipliesFloat32ByUnits", alone));
}

TEST(CudaUnits, AreNotAskedForOnOlderDevices) {
  expect_success(on_pretended_gpu("TheGpuMultipliesByUnits", "arch=75,fail=cublasLtCreate:1+2+3+4+5+6"));
}

/// On AMD's GPU of this architecture, without a library.
void expect_products(const std::string& test, const std::string& architecture, int warp) {
  expect_success(on_pretended_amd_gpu(
      test, "name=" + architecture + ",warp=" + std::to_string(warp) + ",fail=hipblasLtCreate:1+2+3+4+5+6"));
}

TEST(SlowAmdgpuUnits, MultiplyHalvesByMfma) {
  expect_products("TheGpuMultipliesByUnits", "gfx90a", 64);
  expect_products("TheGpuMultipliesByUnits", "gfx908", 64);
}

TEST(AmdgpuUnits, MultiplyFloat32ByMfma) { expect_products("TheGpuMultipliesFloat32ByUnits", "gfx942", 64); }

TEST(SlowAmdgpuUnits, MultiplyHalvesByWmma) {
  expect_products("TheGpuMultipliesByUnits", "gfx1100", 32);
  expect_products("TheGpuMultipliesByUnits", "gfx1201", 32);
}

TEST(AmdgpuUnits, AreNotAskedForWhereThereAreNone) { expect_products("TheGpuMultipliesByUnits", "gfx1030", 32); }

}  // namespace
}  // namespace rosin
