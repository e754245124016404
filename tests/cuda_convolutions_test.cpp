// Convolutions that cuDNN computes, on the pretended GPUs of tests/fake_cuda: which are taken and what comes out, what
// becomes of a step without the library, and graphs with convolutions in them. Read first:
// convolution_call_testing.hpp.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "convolution_call_testing.hpp"
#include "cuda_testing.hpp"

namespace rosin {
namespace {

TEST(DISABLED_Inside, CudaConvolves) {
  EXPECT_TRUE(functional("CUDA", "cuDNN")) << reason_of_library("cuDNN");
  const Array x = randn({7, 6, 4, 2}), w = randn({3, 2, 4, 5});
  EXPECT_EQ(calls(cuda(), convolved(), {x, w}), one_call);
  EXPECT_EQ(calls(cuda(), crossed(), {x, w}), one_call);
  EXPECT_EQ(calls(cuda(), convolved({.stride = {2, 1}, .pad = 1}), {x, w}), one_call);
  EXPECT_EQ(calls(cuda(), crossed({.pad = {1, 2, 0, 1}, .dilation = {1, 2}}), {x, w}), one_call);
  EXPECT_EQ(calls(cuda(), crossed({.groups = 2}), {x, randn({3, 2, 2, 6})}), one_call);
  EXPECT_EQ(calls(cuda(), convolved({.groups = 4}), {x, randn({3, 2, 1, 8})}), one_call);
  EXPECT_EQ(calls(cuda(), convolved(), {x, randn({1, 1, 4, 3})}), one_call);
  EXPECT_EQ(calls(cuda(), convolved(), {randn({7, 6, 1, 2}), randn({3, 3, 1, 2})}), one_call);
  EXPECT_EQ(calls(cuda(), convolved({.stride = 2}), {randn({9, 3, 2}), randn({3, 3, 4})}), one_call);
  EXPECT_EQ(calls(cuda(), crossed({.pad = 1}), {randn({4, 5, 3, 2, 2}), randn({3, 2, 2, 2, 3})}), one_call);
}

TEST(DISABLED_Inside, CudaConvolvesOtherTypes) {
  const Array x = randn({7, 6, 4, 2}), w = randn({3, 2, 4, 5});
  EXPECT_EQ(calls(cuda(), convolved(), {cast(x, Float64), cast(w, Float64)}), one_call);
  for (const DType half : {Float16, BFloat16}) {
    EXPECT_EQ(calls(cuda(), convolved({.pad = 1}), {cast(x, half), cast(w, half)}, 5 * half_tolerance), one_call);
    const Array deep = cast(randn({7, 6, 8, 2}), half), v = cast(randn({3, 2, 8, 9}) * 0.3, half);
    EXPECT_EQ(calls(cuda(), convolved(), {deep, v}, 10 * half_tolerance), one_call);
  }
  EXPECT_EQ(launches_on(cuda(), convolved(), {cast(x, Int64), cast(w, Int64)}).by_library, 0);
  EXPECT_EQ(launches_on(cuda(), convolved(), {zeros({7, 6, 4, 0}), w}).by_library, 0);
  // No engine has uneven padding of groups.
  EXPECT_EQ(calls(cuda(), convolved({.pad = {0, 1, 0, 1}, .groups = 2}), {x, randn({3, 2, 2, 6})}), one_refused);
}

TEST(CudaConvolutions, AreThoseOfTheCpu) {
  const Products products;
  expect_success(on_pretended_gpu("CudaConvolves", "devices=1", products.variable()));
  EXPECT_EQ(products.count("error"), 0);
  EXPECT_GE(products.count("convolution forward"), 10);
  EXPECT_GE(products.count("flipped"), 5);
  EXPECT_EQ(products.count("planes"), 0);    // all images have their channels first
  EXPECT_EQ(products.count("engine 0"), 0);  // Float32 as it is, without TF32
  EXPECT_EQ(products.count("engine 4"), 0);
  EXPECT_EQ(products.count("engine 5"), 0);
  EXPECT_GE(products.count("refused in cudnnBackendFinalize"), 8);  // a plan that is named, and then is none
  EXPECT_EQ(products.count("engine 6"), 2);                         // where nothing else is named
}

TEST(CudaConvolutions, OfHalvesUseTheUnitsThatMultiplyThem) {
  const Products products;
  expect_success(on_pretended_gpu("CudaConvolvesOtherTypes", "devices=1", products.variable()));
  EXPECT_EQ(products.count("error"), 0);
  // Of as many channels as the units multiply at once; of fewer what the library names first.
  for (const char* type : {"type 2", "type 9"}) {
    EXPECT_GE(products.count(std::string(type) + " channels first flipped engine 0"), 1);
    EXPECT_GE(products.count(std::string(type) + " channels first flipped engine 1"), 1);
  }
}

TEST(DISABLED_Inside, CudaConvolvesBackwards) {
  const Array x = randn({7, 6, 4, 2}), w = randn({3, 2, 4, 5});
  expect_gradients(cuda(), convolved(), {x, w});
  expect_gradients(cuda(), crossed({.stride = {2, 1}, .pad = {1, 0, 1, 1}}), {x, w});
  expect_gradients(cuda(), convolved({.dilation = 2, .groups = 2}), {x, randn({2, 2, 2, 6})});
  expect_gradients(cuda(), convolved({.stride = 2}), {randn({9, 3, 2}), randn({3, 3, 4})});
  expect_gradients(cuda(), crossed({.pad = 1}), {randn({4, 3, 3, 2, 2}), randn({3, 2, 2, 2, 3})});
  // A transposed convolution is the gradient of one.
  const auto transposed = [](const Arrays& a) { return conv_transpose(a[0], a[1], {.stride = 2}, 1); };
  EXPECT_EQ(calls(cuda(), transposed, {randn({4, 3, 5, 2}), randn({3, 2, 4, 5})}), one_call);
}

TEST(CudaConvolutions, HaveGradientsByDataAndWeights) {
  const Products products;
  expect_success(on_pretended_gpu("CudaConvolvesBackwards", "devices=1,order=3", products.variable()));
  EXPECT_EQ(products.count("error"), 0);
  EXPECT_GE(products.count("convolution data"), 5);
  EXPECT_GE(products.count("convolution weights"), 5);
  EXPECT_EQ(products.count("planes"), 0);
}

TEST(DISABLED_Inside, CudaTakesABiasAlong) {
  const Array x = randn({7, 6, 4, 2}), w = randn({3, 2, 4, 5}), b = randn({5});
  EXPECT_EQ(calls(cuda(), with_bias, {x, w, b}), one_call);
  EXPECT_EQ(calls(cuda(), sum_with_bias, {x, w, b}), one_call);
  EXPECT_EQ(calls(cuda(), [](const Arrays& a) { return relu(conv(a[0], a[1])); }, {x, w}), one_call);
  EXPECT_EQ(calls(cuda(), [](const Arrays& a) { return tanh(sum_with_bias(a)); }, {x, w, b}), one_call);
  EXPECT_EQ(calls(cuda(), with_bias, {cast(x, BFloat16), cast(w, BFloat16), cast(b, BFloat16)}, 5 * half_tolerance),
            one_call);
  EXPECT_EQ(calls(cuda(), [](const Arrays& a) { return conv(a[0], a[1]) + a[2]; }, {x, w, randn({5, 5, 5, 2})}),
            one_call);
  const Array got = with_bias({full({7, 6, 4, 2}, NAN) | cuda(), w | cuda(), b | cuda()});
  EXPECT_TRUE(std::isnan(got.to_vector<float>()[0]));
}

TEST(CudaConvolutions, TakeBiasAndRelu) {
  const Products products;
  expect_success(on_pretended_gpu("CudaTakesABiasAlong", "devices=1", products.variable()));
  EXPECT_EQ(products.count("error"), 0);
  // Beside the trial of the library: relu with a bias in Float32, and the bias before tanh and alone.
  EXPECT_EQ(products.count("type 0 channels first flipped bias relu engine"), 3);
  EXPECT_EQ(products.count("type 0 channels first flipped bias engine"), 4);
  EXPECT_EQ(products.count("type 9 channels first flipped bias relu engine"), 2);
}

TEST(CudaConvolutions, LeaveTheBiasAloneWhereReluMakesNumbersOfNaN) {
  const Products products;
  expect_success(on_pretended_gpu("CudaTakesABiasAlong", "nan=0", products.variable()));
  EXPECT_EQ(products.count("flipped bias"), 0);
}

TEST(DISABLED_Inside, CudaLeavesFewChannelsToKernels) {
  constexpr Calls none{0, 0};
  const Array x = randn({7, 6, 4, 300});
  for (const int64_t channels : {4, 5, 11}) {  // together in memory, one by one, in blocks of which one is not whole
    const Array w = randn({3, 2, 4, channels}), b = randn({channels});
    EXPECT_EQ(calls(cuda(), crossed({.stride = {2, 1}, .pad = 1}), {x, w}), none);
    EXPECT_EQ(calls(cuda(), with_bias, {x, w, b}), none);
    EXPECT_EQ(calls(cuda(), [](const Arrays& a) { return tanh(sum_with_bias(a)); }, {x, w, b}), none);
    const auto by_data = [](const Arrays& a) {
      return gradient([&](const Array& v) { return sum(sin(conv(v, a[1]))); }, a[0]);
    };
    EXPECT_EQ(calls(cuda(), by_data, {x, w}, 1e-4), none);
  }
  const auto transposed = [](const Arrays& a) {
    return relu(conv_transpose(a[0], a[1]) + reshape(a[2], {1, 1, -1, 1}));
  };
  EXPECT_EQ(calls(cuda(), transposed, {x, randn({3, 2, 5, 4}), randn({5})}), none);
}

TEST(CudaConvolutions, OfFewChannelsAndManyImagesAreKernels) {
  const Products products;
  expect_success(on_pretended_gpu("CudaLeavesFewChannelsToKernels", "devices=1", products.variable()));
  EXPECT_EQ(products.count("error"), 0);
}

TEST(DISABLED_Inside, CudaTrainsAConvnet) {
  const std::vector<float> here = trained(Device(), 6);
  const Stats before = stats();
  const std::vector<float> there = trained(cuda(), 6);
  const Stats after = stats();
  EXPECT_EQ(after.library_calls - before.library_calls, 6 * (convolutions_of_a_step + 3));
  EXPECT_EQ(after.refused_calls, before.refused_calls);
  EXPECT_GE(after.graph_launches - before.graph_launches, 4);  // with the calls in them
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-4) << i;
  print(there);
  trim();
  synchronize(cuda());
}

TEST(DISABLED_Inside, CudaTrainsAConvnetDirectly) {
  print(trained(cuda(), 6));
  EXPECT_EQ(stats().graph_launches, 0);
  EXPECT_GT(stats().library_calls, 0);
}

TEST(CudaConvolutions, TrainAModelInGraphsWithTheSameBits) {
  const Products products;
  const Outcome graphs = on_pretended_gpu("CudaTrainsAConvnet", "devices=1,order=2", products.variable());
  expect_success(graphs);
  EXPECT_EQ(products.count("error"), 0);
  const Outcome direct = on_pretended_gpu("CudaTrainsAConvnetDirectly", "devices=1", "ROSIN_GRAPHS=0");
  expect_success(direct);
  EXPECT_EQ(printed(graphs.text), printed(direct.text));
  EXPECT_FALSE(printed(direct.text).empty());
}

TEST(DISABLED_Inside, CudaTrainsAConvnetAlone) {
  const char* const wanted = std::getenv("ROSIN_TEST_REASON");
  ASSERT_NE(wanted, nullptr);
  EXPECT_FALSE(functional("CUDA", "cuDNN"));
  EXPECT_NE(reason_of_library("cuDNN").find(wanted), std::string::npos) << reason_of_library("cuDNN");
  const std::vector<float> here = trained(Device(), 3), there = trained(cuda(), 3);
  EXPECT_EQ(stats().library_calls, 3 * 3);  // of the dense layer
  EXPECT_EQ(stats().refused_calls, 0);
  for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(there[i], here[i], 1e-4) << i;
}

TEST(CudaConvolutions, AreKernelsWhereTheLibraryIsNotOneThatIsKnown) {
  namespace fs = std::filesystem;
  const fs::path cache = fs::temp_directory_path() / ("rosin-kernels-" + std::to_string(getpid()));
  const auto without = [&](const std::string& options, const std::string& reason) {
    expect_success(on_pretended_gpu("CudaTrainsAConvnetAlone", options,
                                    "ROSIN_CACHE_DIR='" + cache.string() + "' ROSIN_TEST_REASON='" + reason + "'"));
  };
  without("cudnn=80907", "cuDNN is too old: it is 8.9.7, 9 is needed");
  without("cudnn=100100", "cuDNN is 10.1.0, which this rosin does not know: 9 is needed");
  without("cudnn_runtime=14000", "cuDNN 9.19.0 is built for CUDA 14, the driver is of CUDA 13");
  without("fail=cudnnCreate:1+2+3+4", "cuDNN: start: cudnnCreate fails as FAKE_CUDA asks (status 5000)");
  without("fail=cudnnBackendExecute:1+2+3+4", "cuDNN: convolution: cudnnBackendExecute fails as FAKE_CUDA asks");
  fs::remove_all(cache);
}

TEST(CudaConvolutions, ChooseTheFastestOnceForAllProcesses) {
  namespace fs = std::filesystem;
  const fs::path cache = fs::temp_directory_path() / ("rosin-ways-" + std::to_string(getpid()));
  const std::string variables = "ROSIN_TUNE=1 ROSIN_CACHE_DIR='" + cache.string() + "' ";
  for (const bool first : {true, false}) {
    const Products products;
    expect_success(on_pretended_gpu("CudaTrainsAConvnet", "devices=1", products.variable() + variables));
    EXPECT_EQ(products.count("error"), 0);
    // Five convolutions; to be timed, each way runs five times. What is fastest of all is not deterministic.
    const int64_t timed = first ? convolutions_of_a_step * 5 : 0;
    EXPECT_EQ(products.count("engine 6"), timed);
    EXPECT_EQ(products.count("convolution weights x 3 2 6 6 w 4 2 3 3 type 0 channels first flipped engine 1"),
              first ? 5 : 0);
    EXPECT_GE(products.count("engine 3"), timed + convolutions_of_a_step);
    EXPECT_EQ(products.count("engine 4"), 0);
  }
  fs::remove_all(cache);
}

}  // namespace
}  // namespace rosin
