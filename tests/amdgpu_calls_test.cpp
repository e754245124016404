// Products that hipBLASLt computes, on the pretended GPUs of tests/fake_hip, and what becomes of them where it is not
// used. Read first: cuda_calls_test.cpp, whose tests called TheGpu run here.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <rosin/device.hpp>
#include <rosin/math_mode.hpp>

#include "cuda_testing.hpp"
#include "library_call_testing.hpp"

namespace rosin {
namespace {

namespace fs = std::filesystem;

TEST(AmdgpuCalls, MultiplyWhateverLiesEvenly) {
  const Products products;
  expect_success(on_pretended_amd_gpu("TheGpuMultiplies", "devices=1", products.variable()));
  EXPECT_GE(products.count("type 0 compute 2 "), 7);  // Float32 as it is, without TF32
  EXPECT_GE(products.count("type 2 compute 2 "), 1);
  EXPECT_GE(products.count("type 14 compute 2 "), 1);
  EXPECT_GE(products.count("type 1 compute 7 "), 1);
  EXPECT_EQ(products.count("error"), 0);
}

TEST(AmdgpuCalls, MultiplyBatches) {
  const Products products;
  expect_success(on_pretended_amd_gpu("TheGpuMultipliesBatches", "devices=1,order=4", products.variable()));
  EXPECT_EQ(products.count("matmul 5x5x8 batch 3"), 2);  // heads, for each of two
  EXPECT_EQ(products.count("error"), 0);
}

TEST(AmdgpuCalls, TakeBiasResidualAndRelu) {
  const Products products;
  expect_success(on_pretended_amd_gpu("TheGpuTakesEpilogues", "devices=1", products.variable()));
  EXPECT_GE(products.count("epilogue 2 beta 1"), 1);
  EXPECT_EQ(products.count("error"), 0);
}

TEST(AmdgpuCalls, MultiplyFloat32AsTF32InFastModeAlone) {
  const Products products;
  expect_success(on_pretended_amd_gpu("TheGpuMultipliesInModes", "devices=1", products.variable()));
  EXPECT_GE(products.count("type 0 compute 2 "), 2);
  EXPECT_EQ(products.count("type 0 compute 6 "), 3);
  EXPECT_EQ(products.count("error"), 0);
}

TEST(AmdgpuCalls, LeaveReluAloneWhereItMakesNumbersOfNaN) {
  expect_success(on_pretended_amd_gpu("TheGpuReluMakesNumbers", "nan=0"));
}

TEST(AmdgpuCalls, InGraphsTakeTheNumberOfTheRun) {
  const Products products;
  expect_success(on_pretended_amd_gpu("TheGpuScales", "devices=1", products.variable()));
  EXPECT_EQ(products.count("error"), 0);
}

TEST(AmdgpuCalls, TrainAModelInGraphs) {
  const Products products;
  expect_success(on_pretended_amd_gpu("TheGpuTrains", "devices=1,order=2", products.variable()));
  EXPECT_EQ(products.count("error"), 0);
  EXPECT_EQ(products.count("algorithm 1"), 0);  // those that want room add in any order
}

/// relu keeps nothing for its gradient, gelu its operand, whose columns are multiples of 8.
TEST(DISABLED_Inside, AmdgpuDoesGradients) {
  const Launched of_relu = launches_on(pretended_gpu(), step_of_two_layers<relu>, two_layers(), 1e-5);
  EXPECT_EQ(of_relu, (Launched{8, 5, 0}));
  const Arrays arrays = {randn({5, 7}), randn({16, 5}), randn({16}), randn({8, 16}), randn({8})};
  const Launched of_gelu = launches_on(pretended_gpu(), step_of_two_layers<gelu>, arrays, 1e-4);
  EXPECT_EQ(of_gelu, (Launched{7, 5, 0}));
  EXPECT_EQ(launches_on(pretended_gpu(), step_of_two_layers<as_it_is>, two_layers(), 1e-5), (Launched{7, 5, 0}));
}

TEST(AmdgpuCalls, DoWhatGradientsNeedBesideTheirProducts) {
  const Products products;
  expect_success(on_pretended_amd_gpu("AmdgpuDoesGradients", "devices=1", products.variable()));
  EXPECT_EQ(products.count("epilogue 134 "), 0);
  EXPECT_EQ(products.count("epilogue 164 "), 1);  // bias, gelu and its operand
  EXPECT_EQ(products.count("epilogue 208 "), 1);  // the gradient of gelu, and sums of the result
  EXPECT_EQ(products.count("epilogue 256 "), 1);  // sums of the left operand, where a product has made it
  EXPECT_EQ(products.count("error"), 0);
}

TEST(DISABLED_Inside, AmdgpuTrainsAlone) {
  const char* const wanted = std::getenv("WANTED_REASON");
  EXPECT_FALSE(functional("AMDGPU", "hipBLASLt"));
  EXPECT_EQ(reason_of_library("hipBLASLt").find(wanted), 0u) << reason_of_library("hipBLASLt");
  const std::vector<float> here = losses(Device());
  const std::vector<float> there = losses(pretended_gpu());
  EXPECT_EQ(stats().library_calls, 0);
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-5) << i;
}

void expect_kernels(const std::string& options, const std::string& reason, const std::string& more = "") {
  expect_success(on_pretended_amd_gpu("AmdgpuTrainsAlone", options, more + "WANTED_REASON='" + reason + "'"));
}

TEST(AmdgpuCalls, AreKernelsWhereTheLibraryDoesNotStart) {
  expect_kernels("fail=hipblasLtCreate:1+2+3+4+5+6", "hipBLASLt: start: the device failed (status 5)");
  expect_kernels("fail=hipblasLtMatmul:1+2+3+4+5+6", "hipBLASLt: product: the device failed (status 5)");
  expect_kernels("memory=50331648", "hipBLASLt: less than 64 MiB of device memory are free");
}

TEST(AmdgpuCalls, AreKernelsWhereTheLibraryHasNone) {
  expect_kernels("name=gfx1030", "hipBLASLt has no kernels for gfx1030");
  expect_kernels("devices=1", "hipBLASLt has no kernels for gfx1100", "HIPBLASLT_TENSILE_LIBPATH=/nonexistent ");
}

TEST(AmdgpuCalls, AreKernelsWhereTheLibraryIsOldOrMissing) {
  expect_kernels("hipblaslt=200", "hipBLASLt is too old: it is 0.2.0, 0.3.0 is needed");
  const fs::path fakes = fs::read_symlink("/proc/self/exe").parent_path() / "fake_hip";
  const fs::path folder = fs::temp_directory_path() / ("rosin-no-blas-" + std::to_string(getpid()));
  fs::create_directory(folder);
  for (const char* file : {"libamdhip64.so.6", "libhiprtc.so.6"}) fs::create_symlink(fakes / file, folder / file);
  expect_kernels("devices=1", "hipBLASLt is missing: ", "ROSIN_ROCM_LIBRARIES='" + folder.string() + "' ");
  fs::remove_all(folder);
}

TEST(AmdgpuCalls, ChooseTheFastestOnceForAllProcesses) {
  const fs::path cache = fs::temp_directory_path() / ("rosin-amd-choices-" + std::to_string(getpid()));
  const std::string variables = "ROSIN_TUNE=1 ROSIN_CACHE_DIR='" + cache.string() + "' ";
  {
    const Products products;
    expect_success(on_pretended_amd_gpu("TheGpuTrains", "devices=1", products.variable() + variables));
    EXPECT_EQ(products.count("error"), 0);
    // Five products; to be timed, each algorithm without room runs five times.
    EXPECT_GE(products.count("algorithm 4"), 5 * 5 + 5);
  }
  const Products products;
  expect_success(on_pretended_amd_gpu("TheGpuTrains", "devices=1", products.variable() + variables));
  EXPECT_EQ(products.count("error"), 0);
  EXPECT_GE(products.count("algorithm 4"), 5);
  fs::remove_all(cache);
}

}  // namespace
}  // namespace rosin
