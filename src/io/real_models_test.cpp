// Real models from safetensors files of others, built from plain ops, on the 10 000 test images of MNIST, also after
// their arrays went through BSON and JLD2. The oracle (ORACLES.tsv) was computed by NumPy.
#include <gtest/gtest.h>

#include <cmath>

#include <rosin/activation.hpp>
#include <rosin/conv.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/idx.hpp>
#include <rosin/io.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/pool.hpp>

#include "io/real_files_testing.hpp"

#if defined(ROSIN_HAVE_JSON) && defined(ROSIN_HAVE_ZLIB)

namespace rosin {
namespace {

using namespace rosin::testing;

std::string mnist_folder() {
  const char* root = std::getenv("ROSIN_DATA");
  return (root ? std::string(root) : std::string(ROSIN_SOURCE_DIR) + "/../shared/data") + "/mnist";
}

/// x is (features, batch), the weight (out, in) as PyTorch has it.
Array dense(const SavedFile& file, const std::string& name, const Array& x) {
  return matmul(file[name + ".weight"], x) + unsqueeze(file[name + ".bias"], -1);
}

/// x is (width, height, channels, batch), the weight (out, in, height, width) as PyTorch has it.
Array padded_conv(const SavedFile& file, const std::string& name, const Array& x) {
  const Array kernel = permute(file[name + ".weight"], {3, 2, 1, 0});
  const Array& bias = file[name + ".bias"];
  return crosscor(x, kernel, {.pad = 1}) + reshape(bias, {1, 1, bias.count(), 1});
}

Array dalotia(const SavedFile& file, const Array& x) {
  const Array first = maxpool(relu(padded_conv(file, "conv1", x)), 2);
  const Array second = maxpool(relu(padded_conv(file, "conv2", first)), 2);
  return dense(file, "fc1", flatten(second));
}

Array dfdx(const SavedFile& file, const Array& x) {
  const Array first = relu(dense(file, "0.0", flatten(x)));
  const Array second = relu(dense(file, "1.0", first));
  return dense(file, "3", relu(dense(file, "2.0", second)));
}

struct Scores {
  int correct = 0;
  double loss = 0;
};

Scores score(const std::vector<float>& logits, const std::vector<uint8_t>& labels) {
  Scores scores;
  for (size_t i = 0; i < labels.size(); ++i) {
    const float* row = logits.data() + 10 * i;
    const float* best = std::max_element(row, row + 10);
    double sum = 0;
    for (int c = 0; c < 10; ++c) sum += std::exp(double{row[c]} - double{*best});
    scores.correct += best - row == labels[i];
    scores.loss += (std::log(sum) + double{*best} - double{row[labels[i]]}) / static_cast<double>(labels.size());
  }
  return scores;
}

class RealModels : public ScratchFolder {
 protected:
  /// The file itself, then what it holds through the formats of Julia.
  void check(const std::string& name, Array (*model)(const SavedFile&, const Array&)) {
    const auto rows = table_rows(real_files("ORACLES.tsv"));
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& cells) { return cells[0] == name; });
    if (row == rows.end()) GTEST_SKIP() << "no " << real_files("ORACLES.tsv") << " (set ROSIN_FILES)";
    if (!std::filesystem::exists(mnist_folder())) GTEST_SKIP() << "no " << mnist_folder() << " (set ROSIN_DATA)";
    const LabelledImages test = read_image_folder(mnist_folder()).test;
    const SavedFile file = load(real_files("safetensors/" + name));
    const std::vector<float> logits = logits_of(file, model, test);
    check_logits(logits, test, *row);
    for (const char* other : {"x.bson", "x.jld2"}) {
      save(path(other), file.arrays());
      EXPECT_EQ(logits_of(load(path(other)), model, test), logits) << other;
    }
  }

 private:
  static std::vector<float> logits_of(const SavedFile& file, Array (*model)(const SavedFile&, const Array&),
                                      const LabelledImages& test) {
    std::vector<float> logits;
    constexpr int64_t batch = 1000;
    for (int64_t first = 0; first < test.count; first += batch) {
      const std::span<const uint8_t> pixels(test.pixels.data() + 784 * first, size_t{784} * batch);
      const Array x = cast(Array(pixels, {28, 28, 1, batch}), Float32) / 255;
      const std::vector<float> some = model(file, x).to_vector();
      logits.insert(logits.end(), some.begin(), some.end());
    }
    return logits;
  }

  static void check_logits(const std::vector<float>& logits, const LabelledImages& test,
                           const std::vector<std::string>& row) {
    const Scores scores = score(logits, test.labels);
    EXPECT_NEAR(scores.correct, std::stoi(row[5]), 1);
    EXPECT_NEAR(scores.loss, std::stod(row[6]), 2e-6);
    const auto expected = split_text(row[7], ' ');
    for (size_t c = 0; c < 10; ++c) {
      const double want = std::stod(expected[c]);
      EXPECT_NEAR(logits[c], want, 1e-5 * (1 + std::abs(want))) << c;
    }
  }
};

TEST_F(RealModels, ConvolutionsFromPyTorchReachTheirAccuracy) { check("dalotia_model-mnist.safetensors", dalotia); }
TEST_F(RealModels, DenseLayersFromRustReachTheirAccuracy) { check("dfdx_mnist.safetensors", dfdx); }

}  // namespace
}  // namespace rosin

#endif
