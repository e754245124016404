// A chain of 3x3 convolutions with BatchNorm and relu on small images. Read first: training.hpp.
#include "training.hpp"

#include "../examples/models/convolutions.hpp"

namespace {

struct Network {
  rosin::CrossCor conv1, conv2, conv3, conv4, conv5, conv6;
  rosin::BatchNorm bn1, bn2, bn3, bn4, bn5, bn6;
  rosin::Dense fc;

  /// x is (width, height, channels, batch) -> (classes, batch).
  rosin::Array operator()(const rosin::Array& x) const {
    const rosin::Array wide = rosin::maxpool(bn2(conv2(bn1(conv1(x)))), 2);
    const rosin::Array half = rosin::maxpool(bn4(conv4(bn3(conv3(wide)))), 2);
    return fc(rosin::flatten(rosin::global_meanpool(bn6(conv6(bn5(conv5(half)))))));
  }
};

Network network(int64_t channels, int64_t width, int64_t classes) {
  const auto conv = [](int64_t in, int64_t out) { return models::plain_conv(3, in, out, 1, 1); };
  const auto norm = [](int64_t size) { return rosin::BatchNorm(size, rosin::relu); };
  return {conv(channels, width),
          conv(width, width),
          conv(width, 2 * width),
          conv(2 * width, 2 * width),
          conv(2 * width, 4 * width),
          conv(4 * width, 4 * width),
          norm(width),
          norm(width),
          norm(2 * width),
          norm(2 * width),
          norm(4 * width),
          norm(4 * width),
          rosin::Dense(4 * width, classes)};
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options& options, const bench::Inputs& inputs) {
    const auto size = [&](const char* name) { return inputs.sizes.at(name); };
    return bench::measure(options, inputs,
                          bench::loaded(inputs, network(size("channels"), size("conv"), size("classes"))));
  });
}
