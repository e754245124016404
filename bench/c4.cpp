// C4: the MLP for digits with relu, trained on the logit cross-entropy. Read first: training.hpp.
#include "training.hpp"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options& options, const bench::Inputs& inputs) {
    const rosin::Array x = inputs["x"], y = inputs["y"];
    return bench::train(options, bench::mlp(inputs, rosin::relu),
                        [=](const bench::MLP& m) { return rosin::logitcrossentropy(m(x), y); });
  });
}
