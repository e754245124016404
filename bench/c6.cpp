// C6: ResNet-18 as torchvision has it, trained, and run forward with frozen statistics. Read first: training.hpp.
#include "training.hpp"

#include "../examples/models/resnet.hpp"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options& options, const bench::Inputs& inputs) {
    return bench::measure(options, inputs, bench::loaded(inputs, models::resnet18(inputs.sizes.at("classes"))));
  });
}
