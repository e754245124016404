// Products that cuBLASLt computes, on the pretended GPUs of tests/fake_cuda: which are taken and how they lie, what
// becomes of a step without the library, and graphs with calls in them. Those called TheGpu are AMDGPU's too
// (amdgpu_calls_test.cpp). Read first: library_call_testing.hpp.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <rosin/device.hpp>
#include <rosin/math_mode.hpp>
#include <rosin/matmul.hpp>
#include <rosin/move.hpp>
#include <rosin/movement.hpp>
#include <rosin/reduce.hpp>

#include "cuda_testing.hpp"
#include "library_call_testing.hpp"

namespace rosin {
namespace {

namespace fs = std::filesystem;

constexpr double half_tolerance = 2e-2;

template <class F> Launched launches(F&& f, const std::vector<Array>& arrays, double tolerance = 1e-6) {
  return launches_on(pretended_gpu(), f, arrays, tolerance);
}

/// That it is there, and works.
void expect_the_library() {
  EXPECT_TRUE(functional(pretended_backend(), pretended_backend() == "CUDA" ? "cuBLASLt" : "hipBLASLt"));
}

constexpr Launched one_call{1, 1, 0}, kernel_behind{2, 1, 0};

TEST(DISABLED_Inside, TheGpuMultiplies) {
  expect_the_library();
  const Array w = randn({6, 5}), x = randn({5, 4});
  EXPECT_EQ(launches(product, {w, x}), one_call);
  EXPECT_EQ(launches([](const Arrays& a) { return matmul(transpose(a[0]), a[1]); }, {randn({5, 6}), x}), one_call);
  EXPECT_EQ(launches([](const Arrays& a) { return matmul(a[0], transpose(a[1])); }, {w, randn({4, 5})}), one_call);
  EXPECT_EQ(launches([](const Arrays& a) { return matmul(transpose(a[0]), transpose(a[1])); }, {x, w}), one_call);
  EXPECT_EQ(launches(product, {cast(w, Float64), cast(x, Float64)}), one_call);
  for (const DType half : {Float16, BFloat16}) {
    EXPECT_EQ(launches(product, {cast(w, half), cast(x, half)}, half_tolerance), one_call);
  }
  EXPECT_EQ(launches(product, {randn({1, 5}), randn({5, 1})}), one_call);
  EXPECT_EQ(launches(product, {randn({7, 1}), randn({1, 3})}), one_call);
  EXPECT_EQ(launches(product, {zeros({6, 0}), zeros({0, 4})}).by_library, 0);
}

TEST(DISABLED_Inside, TheGpuMultipliesBatches) {
  EXPECT_EQ(launches(product, {randn({3, 4, 2}), randn({4, 5, 2})}), one_call);
  EXPECT_EQ(launches(product, {randn({3, 4, 2}), randn({4, 5, 1})}), one_call);
  EXPECT_EQ(launches(product, {randn({3, 4, 1, 2}), randn({4, 5, 6, 1})}), one_call);  // a product for each of two
  // Heads of attention: the batches of the operands lie between rows and columns.
  const auto heads = [](const Arrays& a) {
    const std::vector<int> order = {0, 2, 1, 3};
    return matmul(transpose(permute(a[0], order)), permute(a[1], order));
  };
  EXPECT_EQ(launches(heads, {randn({8, 3, 5, 2}), randn({8, 3, 5, 2})}), one_call);
  // Too many pieces.
  EXPECT_EQ(launches(product, {randn({2, 2, 65, 1}), randn({2, 2, 1, 65})}), (Launched{1, 0, 1}));
}

TEST(DISABLED_Inside, TheGpuTakesEpilogues) {
  const Array w = randn({6, 5}), x = randn({5, 4}), b = randn({6}), r = randn({6, 4});
  EXPECT_EQ(launches(layer, {w, x, b}), one_call);
  EXPECT_EQ(launches([](const Arrays& a) { return matmul(a[0], a[1]) + a[2]; }, {w, x, b}), one_call);
  EXPECT_EQ(launches([](const Arrays& a) { return relu(matmul(a[0], a[1])); }, {w, x}), one_call);
  EXPECT_EQ(launches([](const Arrays& a) { return matmul(a[0], a[1]) + a[2]; }, {w, x, r}), one_call);
  EXPECT_EQ(launches([](const Arrays& a) { return relu(matmul(a[0], a[1]) + a[2]); }, {w, x, r}), one_call);
  // cuBLASLt adds the two in the other order, and rounds halves once, where the mode lets it; else a kernel does the
  // rest.
  const auto both = [](const Arrays& a) { return relu(matmul(a[0], a[1]) + a[2] + a[3]); };
  const Arrays halves = {cast(w, BFloat16), cast(x, BFloat16), cast(b, BFloat16)};
  const auto in = [](MathMode mode, auto f) {
    return [mode, f](const Arrays& a) { return with(mode, [&] { return f(a); }); };
  };
  for (const MathMode mode : {MathMode::usual, MathMode::standard, MathMode::fast}) {
    const double close = mode == MathMode::fast ? 1e-2 : 1e-6;
    EXPECT_EQ(launches(in(mode, both), {w, x, b, r}, close), one_call);
    EXPECT_EQ(launches(in(mode, layer), halves, half_tolerance), one_call);
  }
  EXPECT_EQ(launches(in(MathMode::exact, both), {w, x, b, r}), kernel_behind);
  EXPECT_EQ(launches(in(MathMode::exact, layer), halves, half_tolerance), kernel_behind);
  EXPECT_EQ(launches([](const Arrays& a) { return 0.25 * matmul(a[0], a[1]) + a[2]; }, {w, x, r}), one_call);
  EXPECT_EQ(launches(smooth_layer, {w, x, b}), kernel_behind);  // tanh is a kernel behind
  EXPECT_EQ(launches([](const Arrays& a) { return relu(matmul(a[0], a[1])); }, {cast(w, BFloat16), cast(x, BFloat16)},
                     half_tolerance),
            one_call);
  const Array not_a_number = full({5, 4}, NAN);
  const Array got = layer({w | pretended_gpu(), not_a_number | pretended_gpu(), b | pretended_gpu()});
  EXPECT_TRUE(std::isnan(got.to_vector<float>()[0]));
}

TEST(CudaCalls, MultiplyWhateverLiesEvenly) {
  const Products products;
  expect_success(on_pretended_gpu("TheGpuMultiplies", "devices=1", products.variable()));
  EXPECT_GE(products.count("type 0 compute 68"), 7);  // Float32 as it is, without TF32
  EXPECT_GE(products.count("type 2 compute 68"), 1);
  EXPECT_GE(products.count("type 14 compute 68"), 1);
  EXPECT_GE(products.count("type 1 compute 70"), 1);
  EXPECT_EQ(products.count("error"), 0);
}

TEST(CudaCalls, MultiplyBatches) {
  const Products products;
  expect_success(on_pretended_gpu("TheGpuMultipliesBatches", "devices=1,order=4", products.variable()));
  EXPECT_EQ(products.count("matmul 5x5x8 batch 3"), 2);  // heads, for each of two
  EXPECT_EQ(products.count("error"), 0);
}

TEST(CudaCalls, TakeBiasResidualAndRelu) {
  const Products products;
  expect_success(on_pretended_gpu("TheGpuTakesEpilogues", "devices=1", products.variable()));
  EXPECT_GE(products.count("epilogue 2 beta 1"), 1);
  EXPECT_EQ(products.count("error"), 0);
}

TEST(DISABLED_Inside, TheGpuMultipliesInModes) {
  const Array w = full({4, 4}, 1 + 0x1p-12f) | pretended_gpu(), x = full({4, 4}, 1.0f) | pretended_gpu();
  const auto first = [&](MathMode mode) {
    return (with(mode, [&] { return matmul(w, x); }) | Device()).to_vector<float>()[0];
  };
  EXPECT_EQ(first(MathMode::exact), 4 + 0x1p-10f);
  EXPECT_EQ(first(MathMode::usual), 4 + 0x1p-10f);
  EXPECT_EQ(first(MathMode::fast), 4);  // TF32 has ten bits of fraction
  const Dense dense = Dense(4, 4) | pretended_gpu();
  with(MathMode::fast, [&] {  // the walk back multiplies in the mode of the forward pass
    const auto g = gradient([&](const Dense& d) { return sum(square(d(x))); }, dense);
    eval(g.weight);
  });
}

TEST(CudaCalls, MultiplyFloat32AsTF32InFastModeAlone) {
  const Products products;
  expect_success(on_pretended_gpu("TheGpuMultipliesInModes", "devices=1", products.variable()));
  EXPECT_GE(products.count("type 0 compute 68"), 2);
  EXPECT_EQ(products.count("type 0 compute 77"), 3);
  EXPECT_EQ(products.count("error"), 0);
}

TEST(DISABLED_Inside, TheGpuReluMakesNumbers) {
  expect_the_library();
  const Array w = randn({6, 5}), x = randn({5, 4}), b = randn({6});
  EXPECT_EQ(launches(layer, {w, x, b}), kernel_behind);
  const Array got = layer({w | pretended_gpu(), full({5, 4}, NAN) | pretended_gpu(), b | pretended_gpu()});
  EXPECT_TRUE(std::isnan(got.to_vector<float>()[0]));
}

TEST(CudaCalls, LeaveReluAloneWhereItMakesNumbersOfNaN) {
  expect_success(on_pretended_gpu("TheGpuReluMakesNumbers", "nan=0"));
}

TEST(DISABLED_Inside, TheGpuScales) {
  const Array w = randn({6, 5}), x = randn({5, 4}), sum = matmul(w, x);
  const Array there_w = w | pretended_gpu(), there_x = x | pretended_gpu();
  const Stats before = stats();
  for (int i = 1; i < 7; ++i) {
    const Array got = matmul(there_w, there_x) * i;
    EXPECT_TRUE(allclose(got | Device(), sum * i, {.rtol = 1e-6, .atol = 1e-6})) << i;
  }
  EXPECT_EQ(stats().library_calls - before.library_calls, 6);
  EXPECT_EQ(stats().graph_launches - before.graph_launches, 4);
  EXPECT_GE(stats().graph_updates - before.graph_updates, 3);
}

TEST(CudaCalls, InGraphsTakeTheNumberOfTheRun) {
  const Products products;
  expect_success(on_pretended_gpu("TheGpuScales", "devices=1", products.variable()));
  EXPECT_EQ(products.count("error"), 0);
}

TEST(DISABLED_Inside, TheGpuTrains) {
  const std::vector<float> here = losses(Device(), 8);
  const Stats before = stats();
  const std::vector<float> there = losses(pretended_gpu(), 8);
  const Stats after = stats();
  EXPECT_EQ(after.library_calls - before.library_calls, 8 * 5);  // two forward, three backward
  EXPECT_EQ(after.refused_calls, before.refused_calls);
  EXPECT_GE(after.graph_launches - before.graph_launches, 6);  // with the calls in them
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-5) << i;
  trim();
  synchronize(pretended_gpu());
}

TEST(CudaCalls, TrainAModelInGraphs) {
  const Products products;
  expect_success(on_pretended_gpu("TheGpuTrains", "devices=1,order=2", products.variable()));
  EXPECT_EQ(products.count("error"), 0);
}

TEST(DISABLED_Inside, CudaDoesGradients) {
  EXPECT_EQ(launches(step_of_two_layers<relu>, two_layers(), 1e-5), (Launched{7, 5, 0}));
  EXPECT_EQ(launches(step_of_two_layers<as_it_is>, two_layers(), 1e-5), (Launched{7, 5, 0}));
}

TEST(CudaCalls, DoWhatGradientsNeedBesideTheirProducts) {
  const Products products;
  expect_success(on_pretended_gpu("CudaDoesGradients", "devices=1", products.variable()));
  EXPECT_EQ(products.count("epilogue 134 "), 1);  // bias, relu and its bits
  EXPECT_EQ(products.count("epilogue 152 "), 1);  // the gradient of relu, and sums of the result
  EXPECT_EQ(products.count("epilogue 256 "), 1);  // sums of the left operand, where a product has made it
  EXPECT_EQ(products.count("error"), 0);
}

TEST(DISABLED_Inside, CudaTrainsAlone) {
  EXPECT_FALSE(functional("CUDA", "cuBLASLt"));
  EXPECT_EQ(reason_of_library("cuBLASLt"), "cuBLASLt: start: the device failed (status 13)");
  const std::vector<float> here = losses(Device());
  const std::vector<float> there = losses(cuda());
  EXPECT_EQ(stats().library_calls, 0);
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-5) << i;
}

TEST(CudaCalls, AreKernelsWhereTheLibraryDoesNotStart) {
  expect_success(on_pretended_gpu("CudaTrainsAlone", "fail=cublasLtCreate:1+2+3+4+5+6"));
}

TEST(CudaCalls, ChooseTheFastestOnceForAllProcesses) {
  const fs::path cache = fs::temp_directory_path() / ("rosin-choices-" + std::to_string(getpid()));
  const std::string variables = "ROSIN_TUNE=1 ROSIN_CACHE_DIR='" + cache.string() + "' ";
  {
    const Products products;
    expect_success(on_pretended_gpu("TheGpuTrains", "devices=1", products.variable() + variables));
    EXPECT_EQ(products.count("error"), 0);
    // Five products; to be timed, each algorithm runs five times.
    EXPECT_EQ(products.count("algorithm 1"), 5 * 5);
    EXPECT_GE(products.count("algorithm 3"), 5 * 5 + 5);
  }
  const Products products;
  expect_success(on_pretended_gpu("TheGpuTrains", "devices=1", products.variable() + variables));
  EXPECT_EQ(products.count("algorithm 1"), 0);
  EXPECT_GE(products.count("algorithm 3"), 5);
  fs::remove_all(cache);
}

}  // namespace
}  // namespace rosin
