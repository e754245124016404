// See convolution_trial.hpp.
#include "vendor/convolution_trial.hpp"

namespace rosin::vendor {
namespace {

constexpr int64_t batch = 2, channels = 8, rows = 5, columns = 6, window = 3, results = 16;

size_t at(const Tensor& tensor, int64_t n, int64_t c, int64_t h, int64_t w) {
  const std::vector<int64_t>& s = tensor.strides;
  return static_cast<size_t>(n * s[0] + c * s[1] + h * s[2] + w * s[3]);
}

std::vector<float> small_integers(size_t count, size_t period) {
  std::vector<float> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<float>(i % period) - static_cast<float>(period / 2);
  return all;
}

}  // namespace

ConvolutionTrial::ConvolutionTrial(DimOrder images, DimOrder weights, bool flipped)
    : x(small_integers(batch * channels * rows * columns, 7)),
      w(small_integers(results * channels * window * window, 5)), bias(results, 1.0f) {
  plain_.deterministic = true;
  plain_.flipped = flipped;
  plain_.x = tensor_in({batch, channels, rows, columns}, images, 0);
  plain_.w = tensor_in({results, channels, window, window}, weights, 1);
  plain_.y = tensor_in({batch, results, rows, columns}, images, 2);
  plain_.stride = plain_.dilation = plain_.pad_low = plain_.pad_high = {1, 1};
}

Convolution ConvolutionTrial::convolution(bool with_epilogue) const {
  Convolution made = plain_;
  if (!with_epilogue) return made;
  made.bias = {{1, results, 1, 1}, {results, 1, results, results}, 3};
  made.relu = true;
  return made;
}

float ConvolutionTrial::element(int64_t image, int64_t filter, int64_t row, int64_t column) const {
  float sum = 0;
  for (int64_t tap = 0; tap < window * window; ++tap) {
    const int64_t h = row + tap / window - 1, v = column + tap % window - 1;
    if (h < 0 || h >= rows || v < 0 || v >= columns) continue;
    const int64_t of = plain_.flipped ? window * window - 1 - tap : tap;
    for (int64_t channel = 0; channel < channels; ++channel) {
      sum += x[at(plain_.x, image, channel, h, v)] * w[at(plain_.w, filter, channel, of / window, of % window)];
    }
  }
  return sum;
}

std::vector<float> ConvolutionTrial::wanted() const {
  std::vector<float> all(static_cast<size_t>(batch * results * rows * columns));
  for (int64_t i = 0; i < static_cast<int64_t>(all.size()); ++i) {
    const int64_t column = i % columns, row = i / columns % rows, filter = i / columns / rows % results;
    const int64_t image = i / columns / rows / results;
    all[at(plain_.y, image, filter, row, column)] = element(image, filter, row, column);
  }
  return all;
}

}  // namespace rosin::vendor
