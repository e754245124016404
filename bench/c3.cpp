// C3: LeNet-5 with relu and max pooling, trained on the logit cross-entropy; and its inference.
// Read first: training.hpp.
#include "training.hpp"

namespace {

struct LeNet {
  rosin::CrossCor conv1, conv2;
  rosin::Dense dense1, dense2, dense3;

  /// x is (width, height, channels, batch) -> (classes, batch).
  rosin::Array operator()(const rosin::Array& x) const {
    const rosin::Array edges = rosin::maxpool(conv1(x), 2);
    const rosin::Array parts = rosin::maxpool(conv2(edges), 2);
    return dense3(dense2(dense1(rosin::flatten(parts))));
  }
};

rosin::CrossCor conv(const bench::Inputs& inputs, const std::string& name) {
  return {inputs[name + ".weight"], inputs[name + ".bias"], rosin::relu};
}

LeNet lenet(const bench::Inputs& inputs) {
  return {conv(inputs, "conv1"), conv(inputs, "conv2"), bench::dense(inputs, "dense1", rosin::relu),
          bench::dense(inputs, "dense2", rosin::relu), bench::dense(inputs, "dense3")};
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options& options, const bench::Inputs& inputs) {
    return bench::measure(options, inputs, lenet(inputs));
  });
}
