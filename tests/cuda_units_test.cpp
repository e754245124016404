// Products by tensor cores of the pretended GPUs of tests/fake_cuda, where no library takes them: the text of their
// kernels, run there, against sums in Float64. Read first: cuda_testing.hpp.
#include <gtest/gtest.h>

#include <cmath>

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
  const Device there = cuda();
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

TEST(DISABLED_Inside, CudaMultipliesByUnits) {
  for (const Case& c : cases) {
    expect_product(c, BFloat16, 0x1p-8);
    expect_product(c, Float16, 0x1p-11);
  }
}

TEST(DISABLED_Inside, CudaMultipliesFloat32ByUnits) {
  math_mode(MathMode::fast);
  for (const Case& c : std::span(cases).first(8)) expect_product(c, Float32, 0x1p-9);
  math_mode(MathMode::standard);
  for (const Case& c : std::span(cases).first(3)) expect_product(c, Float32, 1e-5);
}

// No product is a library's: whatever handle is asked for, there is none.
const char* const alone = "arch=90,fail=cublasLtCreate:1+2+3+4+5+6";

TEST(CudaUnits, MultiplyHalvesThatNoLibraryTakes) { expect_success(on_pretended_gpu("CudaMultipliesByUnits", alone)); }

TEST(CudaUnits, MultiplyFloat32WhereItMayBeFast) {
  expect_success(on_pretended_gpu("CudaMultipliesFloat32ByUnits", alone));
}

TEST(CudaUnits, AreNotAskedForOnOlderDevices) {
  expect_success(on_pretended_gpu("CudaMultipliesByUnits", "arch=75,fail=cublasLtCreate:1+2+3+4+5+6"));
}

}  // namespace
}  // namespace rosin
