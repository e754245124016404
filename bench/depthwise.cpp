// A 3x3 convolution of each channel by itself, forward. Read first: common.hpp.
#include "common.hpp"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options& options, const bench::Inputs& inputs) {
    const rosin::ConvOptions window{.pad = 1, .groups = inputs.sizes.at("channels")};
    return bench::forward(
        options, [=, x = inputs["x"], kernel = inputs["kernel"]] { return rosin::crosscor(x, kernel, window); });
  });
}
