// Real models from ONNX files of others: official inputs with their results, and the accuracy on the 10 000 test images
// of MNIST that NumPy found (ORACLES.tsv).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include <rosin/elementwise.hpp>
#include <rosin/idx.hpp>
#include <rosin/onnx.hpp>

#include "io/real_files_testing.hpp"
#include "onnx/cases_testing.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;

std::string mnist_folder() {
  const char* root = std::getenv("ROSIN_DATA");
  return (root ? std::string(root) : std::string(ROSIN_SOURCE_DIR) + "/../shared/data") + "/mnist";
}

class RealOnnx : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!fs::exists(path())) GTEST_SKIP() << "there is no " << path();
  }
  std::string path() const { return real_files("onnx/mnist/") + GetParam(); }
};

/// Results are up to 6000, and of sums in another order.
TEST_P(RealOnnx, GivesTheOfficialResults) {
  const onnx::Model model = onnx::load(path());
  for (int set = 0; set < 3; ++set) {
    const std::string folder = real_files("onnx/mnist/test_data_set_" + std::to_string(set));
    const Array x = tensor_in(folder + "/input_0.pb");
    const std::vector<float> y = model(x).to_vector(), wanted = tensor_in(folder + "/output_0.pb").to_vector();
    ASSERT_EQ(y.size(), wanted.size());
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], wanted[i], 5e-3) << GetParam() << " set " << set;
  }
}

int most_likely(const std::vector<float>& scores) {
  return static_cast<int>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

TEST(RealOnnxModel, IsAsAccurateAsItsAuthorsSay) {
#ifndef ROSIN_HAVE_ZLIB
  GTEST_SKIP() << "the images are packed, and this rosin was built without zlib";
#endif
  const std::string path = real_files("onnx/mnist/mnist-8.onnx");
  if (!fs::exists(path)) GTEST_SKIP() << "there is no " << path;
  if (!fs::exists(mnist_folder())) GTEST_SKIP() << "there is no " << mnist_folder();
  const onnx::Model model = onnx::load(path);
  const LabelledImages test = read_image_folder(mnist_folder()).test;
  int correct = 0;
  for (int64_t i = 0; i < test.count; ++i) {
    const std::span<const uint8_t> pixels(test.pixels.data() + 784 * i, size_t{784});
    const std::vector<float> scores = model(cast(Array(pixels, {28, 28, 1, 1}), Float32)).to_vector();
    correct += most_likely(scores) == test.labels[static_cast<size_t>(i)];
  }
  EXPECT_NEAR(correct, 9891, 1);
}

INSTANTIATE_TEST_SUITE_P(Mnist, RealOnnx, ::testing::Values("mnist-8.onnx", "mnist-onnxjs.onnx", "opt-mnist.onnx"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           name.resize(name.find('.'));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace rosin
