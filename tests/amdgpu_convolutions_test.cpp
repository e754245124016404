// Convolutions that MIOpen computes, on the pretended GPUs of tests/fake_hip: which are taken and what comes out, what
// becomes of a step without the library, and graphs with convolutions in them. Read first:
// convolution_call_testing.hpp. See cuda_convolutions_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "convolution_call_testing.hpp"
#include "cuda_testing.hpp"

namespace rosin {
namespace {

Device amdgpu() { return get_device("AMDGPU", 0); }

// What is fastest with its channels first.
constexpr const char* with_matrix_units = "name=gfx90a,warp=64";

TEST(DISABLED_Inside, AmdgpuConvolves) {
  EXPECT_TRUE(functional("AMDGPU", "MIOpen")) << why_not("AMDGPU", "MIOpen");
  const Array x = randn({7, 6, 4, 2}), w = randn({3, 2, 4, 5});
  EXPECT_EQ(calls(amdgpu(), convolved(), {x, w}), one_call);
  EXPECT_EQ(calls(amdgpu(), crossed(), {x, w}), one_call);
  EXPECT_EQ(calls(amdgpu(), convolved({.stride = {2, 1}, .pad = 1}), {x, w}), one_call);
  EXPECT_EQ(calls(amdgpu(), crossed({.pad = {1, 1, 2, 2}, .dilation = {1, 2}}), {x, w}), one_call);
  EXPECT_EQ(calls(amdgpu(), crossed({.groups = 2}), {x, randn({3, 2, 2, 6})}), one_call);
  EXPECT_EQ(calls(amdgpu(), convolved({.groups = 4}), {x, randn({3, 2, 1, 8})}), one_call);
  EXPECT_EQ(calls(amdgpu(), convolved(), {x, randn({1, 1, 4, 3})}), one_call);
  EXPECT_EQ(calls(amdgpu(), convolved(), {randn({7, 6, 1, 2}), randn({3, 3, 1, 2})}), one_call);
  EXPECT_EQ(calls(amdgpu(), convolved({.stride = 2}), {randn({9, 3, 2}), randn({3, 3, 4})}), one_call);
  EXPECT_EQ(calls(amdgpu(), crossed({.pad = 1}), {randn({4, 5, 3, 2, 2}), randn({3, 2, 2, 2, 3})}), one_call);
}

TEST(DISABLED_Inside, AmdgpuConvolvesOtherTypes) {
  const Array x = randn({7, 6, 4, 2}), w = randn({3, 2, 4, 5});
  const Calls none{0, 0};
  for (const DType half : {Float16, BFloat16}) {
    EXPECT_EQ(calls(amdgpu(), convolved({.pad = 1}), {cast(x, half), cast(w, half)}, 5 * half_tolerance), one_call);
    const auto gradients = [](const Arrays& a) { return gradient_of_both(crossed(), a); };
    EXPECT_EQ(calls(amdgpu(), gradients, {cast(x, half) / 8, cast(w, half) / 8}, half_tolerance), (Calls{3, 0}));
  }
  // What it has not: these types, padding of one side, and groups of BFloat16 in the stand-in.
  EXPECT_EQ(calls(amdgpu(), convolved(), {cast(x, Float64), cast(w, Float64)}), none);
  EXPECT_EQ(launches_on(amdgpu(), convolved(), {cast(x, Int64), cast(w, Int64)}).by_library, 0);
  EXPECT_EQ(launches_on(amdgpu(), convolved(), {zeros({7, 6, 4, 0}), w}).by_library, 0);
  EXPECT_EQ(calls(amdgpu(), convolved({.pad = {0, 1, 0, 1}}), {x, w}), none);
  const Array in_groups = cast(randn({3, 2, 2, 6}), BFloat16);
  EXPECT_EQ(calls(amdgpu(), convolved({.groups = 2}), {cast(x, BFloat16), in_groups}, 5 * half_tolerance), one_refused);
}

TEST(AmdgpuConvolutions, AreThoseOfTheCpu) {
  for (const bool matrix_units : {false, true}) {
    const Products products;
    const std::string options = matrix_units ? with_matrix_units : "devices=1";
    expect_success(on_pretended_amd_gpu("AmdgpuConvolves", options, products.variable()));
    EXPECT_EQ(products.count("error"), 0);
    EXPECT_GE(products.count("convolution forward"), 10);
    EXPECT_EQ(products.count(matrix_units ? "planes" : "channels first"), 0);
    EXPECT_EQ(products.count("convolution "), products.count("deterministic solver"));
    EXPECT_EQ(products.count("solver 101"), 0);
    EXPECT_EQ(products.count("solver 85"), 0);
    EXPECT_EQ(products.count("solver 102"), 0);                                          // without Winograd
    EXPECT_GE(products.count("refused in miopenConvolutionForwardCompileSolution"), 8);  // named, and then not there
    EXPECT_GE(products.count("solver 104"), 8);
    EXPECT_EQ(products.count("solver 106"), 2);  // where nothing else is named
  }
}

TEST(AmdgpuConvolutions, OfHalvesAreNotRoundedToBFloat16) {
  const Products products;
  expect_success(on_pretended_amd_gpu("AmdgpuConvolvesOtherTypes", with_matrix_units, products.variable()));
  EXPECT_EQ(products.count("error"), 0);
  EXPECT_GE(products.count("type 2 channels first"), 4);
  EXPECT_EQ(products.count("as bfloat"), 0);
}

TEST(DISABLED_Inside, AmdgpuConvolvesBackwards) {
  const Array x = randn({7, 6, 4, 2}), w = randn({3, 2, 4, 5});
  expect_gradients(amdgpu(), convolved(), {x, w});
  expect_gradients(amdgpu(), crossed({.stride = {2, 1}, .pad = {0, 0, 1, 1}}), {x, w});
  expect_gradients(amdgpu(), convolved({.dilation = 2, .groups = 2}), {x, randn({2, 2, 2, 6})});
  expect_gradients(amdgpu(), convolved({.stride = 2}), {randn({9, 3, 2}), randn({3, 3, 4})});
  expect_gradients(amdgpu(), convolved({.pad = 1}), {randn({4, 3, 3, 2, 2}), randn({3, 2, 2, 2, 3})});
  // A transposed convolution is the gradient of one.
  const auto transposed = [](const Arrays& a) { return conv_transpose(a[0], a[1], {.stride = 2}, 1); };
  EXPECT_EQ(calls(amdgpu(), transposed, {randn({4, 3, 5, 2}), randn({3, 2, 4, 5})}), one_call);
}

TEST(AmdgpuConvolutions, HaveGradientsByDataAndWeights) {
  for (const std::string options : {"devices=1,order=3", with_matrix_units}) {
    const Products products;
    expect_success(on_pretended_amd_gpu("AmdgpuConvolvesBackwards", options, products.variable()));
    EXPECT_EQ(products.count("error"), 0);
    EXPECT_GE(products.count("convolution data"), 6);
    EXPECT_GE(products.count("convolution weights"), 5);
  }
}

TEST(AmdgpuConvolutions, LeaveOutSolversThatAddUpInAnyOrder) {
  for (const auto& [version, named] : {std::pair("miopen=30501", 0), std::pair("miopen=30600", 5)}) {
    const Products products;
    expect_success(on_pretended_amd_gpu("AmdgpuConvolvesBackwards", version, products.variable()));
    EXPECT_EQ(products.count("error"), 0);
    EXPECT_GE(products.count("solver 156"), named);
    if (named == 0) {
      EXPECT_EQ(products.count("solver 156"), 0);
    }
  }
}

TEST(DISABLED_Inside, AmdgpuLeavesTheBiasToKernels) {
  const Array x = randn({7, 6, 4, 2}), w = randn({3, 2, 4, 5}), b = randn({5});
  EXPECT_EQ(calls(amdgpu(), with_bias, {x, w, b}), one_call);
  EXPECT_EQ(calls(amdgpu(), sum_with_bias, {x, w, b}), one_call);
  const Array got = with_bias({full({7, 6, 4, 2}, NAN) | amdgpu(), w | amdgpu(), b | amdgpu()});
  EXPECT_TRUE(std::isnan(got.to_vector<float>()[0]));
}

TEST(AmdgpuConvolutions, LeaveTheBiasToKernels) {
  const Products products;
  expect_success(on_pretended_amd_gpu("AmdgpuLeavesTheBiasToKernels", with_matrix_units, products.variable()));
  EXPECT_EQ(products.count("error"), 0);
}

TEST(DISABLED_Inside, AmdgpuTrainsAConvnet) {
  const std::vector<float> here = trained(Device(), 6);
  const Stats before = stats();
  const std::vector<float> there = trained(amdgpu(), 6);
  const Stats after = stats();
  EXPECT_GE(after.library_calls - before.library_calls, 6 * convolutions_of_a_step);
  EXPECT_EQ(after.refused_calls, before.refused_calls);
  EXPECT_GE(after.graph_launches - before.graph_launches, 4);  // with the calls in them
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-4) << i;
  print(there);
  trim();
  synchronize(amdgpu());
}

TEST(DISABLED_Inside, AmdgpuTrainsAConvnetDirectly) {
  print(trained(amdgpu(), 6));
  EXPECT_EQ(stats().graph_launches, 0);
  EXPECT_GT(stats().library_calls, 0);
}

TEST(AmdgpuConvolutions, TrainAModelInGraphsWithTheSameBits) {
  const Products products;
  const Outcome graphs = on_pretended_amd_gpu("AmdgpuTrainsAConvnet", "devices=1,order=2", products.variable());
  expect_success(graphs);
  EXPECT_EQ(products.count("error"), 0);
  const Outcome direct = on_pretended_amd_gpu("AmdgpuTrainsAConvnetDirectly", "devices=1", "ROSIN_GRAPHS=0");
  expect_success(direct);
  EXPECT_EQ(printed(graphs.text), printed(direct.text));
  EXPECT_FALSE(printed(direct.text).empty());
}

TEST(DISABLED_Inside, AmdgpuTrainsAConvnetAlone) {
  const char* const wanted = std::getenv("ROSIN_TEST_REASON");
  ASSERT_NE(wanted, nullptr);
  EXPECT_FALSE(functional("AMDGPU", "MIOpen"));
  EXPECT_NE(why_not("AMDGPU", "MIOpen").find(wanted), std::string::npos) << why_not("AMDGPU", "MIOpen");
  const std::vector<float> here = trained(Device(), 3), there = trained(amdgpu(), 3);
  EXPECT_EQ(stats().refused_calls, 0);
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-4) << i;
}

/// The library is tried for the question for it, and for the device.
TEST(AmdgpuConvolutions, AreKernelsWhereTheLibraryDoesNotDo) {
  namespace fs = std::filesystem;
  const fs::path cache = fs::temp_directory_path() / ("rosin-kernels-" + std::to_string(getpid()));
  const auto without = [&](const std::string& options, const std::string& reason) {
    const Products products;
    expect_success(on_pretended_amd_gpu(
        "AmdgpuTrainsAConvnetAlone", options,
        products.variable() + "ROSIN_CACHE_DIR='" + cache.string() + "' ROSIN_TEST_REASON='" + reason + "'"));
    EXPECT_EQ(products.count("convolution weights"), 0) << options;
  };
  without("miopen=21999", "MIOpen is too old: it is 2.19.99, 2.20 is needed; install ROCm 5.7 or later");
  without("wrong=miopen", "MIOpen 3.2.0 computes a small convolution wrongly");
  const auto failing = [&](const std::string& call, const std::string& what) {
    without("fail=" + call + ":1+2+3+4+5+6+7+8", "MIOpen: " + what);
  };
  failing("miopenCreate", "start: miopenStatusUnknownError (status 7)");
  failing("miopenSetStream", "use of a stream: miopenStatusUnknownError (status 7)");
  failing("miopenCreateTensorDescriptor", "a descriptor: ");
  failing("miopenSetNdTensorDescriptorWithLayout", "an array: ");
  failing("miopenCreateConvolutionDescriptor", "a descriptor: ");
  failing("miopenInitConvolutionNdDescriptor", "a window: ");
  failing("miopenSetConvolutionGroupCount", "a window: ");
  failing("miopenSetConvolutionAttribute", "a window: ");
  failing("miopenConvolutionForwardGetSolution", "it has no solver for this convolution");
  failing("miopenConvolutionForwardCompileSolution", "none of its solvers does for this convolution");
  failing("miopenConvolutionForwardImmediate", "convolution: ");
  without("code=2,fail=miopenConvolutionForwardGetSolution:1+2",
          "MIOpen: search for a solver: out of memory (status 4)");
  fs::remove_all(cache);
}

TEST(AmdgpuConvolutions, AreKernelsWhereTheLibraryIsMissingOrOfAnotherRocm) {
  namespace fs = std::filesystem;
  const fs::path all = fs::read_symlink("/proc/self/exe").parent_path() / "fake_hip";
  const fs::path some = fs::temp_directory_path() / ("rosin-rocm-" + std::to_string(getpid()));
  fs::create_directory(some);
  for (const char* name : {"libamdhip64.so.6", "libhiprtc.so.6"}) fs::create_symlink(all / name, some / name);
  const auto without = [&](const std::string& reason) {
    expect_success(on_pretended_amd_gpu(
        "AmdgpuTrainsAConvnetAlone", "devices=1",
        "ROSIN_ROCM_LIBRARIES='" + some.string() + "' ROSIN_TEST_REASON='MIOpen is " + reason + "'"));
  };
  if (!fs::exists("/opt/rocm")) without("missing: libMIOpen.so.1: not found (ROCm");
  fs::copy_file(all / "libamdhip64.so.6", some / "libMIOpen.so.1");
  without("built for another HIP runtime than the one in use");
  fs::remove_all(some);
}

TEST(AmdgpuConvolutions, ChooseTheFastestOnceForAllProcesses) {
  namespace fs = std::filesystem;
  const fs::path cache = fs::temp_directory_path() / ("rosin-ways-" + std::to_string(getpid()));
  const std::string variables = "ROSIN_TUNE=1 ROSIN_CACHE_DIR='" + cache.string() + "' ";
  for (const bool first : {true, false}) {
    const Products products;
    const std::string compiler = first ? "" : "CXX=false ";  // all kernels are there, that for weights too
    expect_success(
        on_pretended_amd_gpu("AmdgpuTrainsAConvnet", "devices=1", products.variable() + variables + compiler));
    EXPECT_EQ(products.count("error"), 0);
    // Five convolutions; each way runs once where MIOpen measures, and five times where rosin does. The fastest is one
    // that MIOpen names only when it has measured it: the second process takes it by its number.
    EXPECT_EQ(products.count("measured: "), first ? convolutions_of_a_step : 0);
    EXPECT_EQ(products.count("solver 106"), first ? convolutions_of_a_step * 6 : 0);
    EXPECT_GE(products.count("solver 107"), convolutions_of_a_step);
    EXPECT_EQ(products.count("solver 101"), 0);
  }
  fs::remove_all(cache);
}

}  // namespace
}  // namespace rosin
