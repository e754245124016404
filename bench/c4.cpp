// C4: an MLP for digits with relu, trained on the logit cross-entropy; and its inference. Read first: training.hpp.
#include "training.hpp"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options& options, const bench::Inputs& inputs) {
    return bench::measure(options, inputs, bench::mlp(inputs));
  });
}
