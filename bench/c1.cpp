// C1: a small MLP with tanh, trained on the mean squared error. Read first: training.hpp.
#include "training.hpp"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options& options, const bench::Inputs& inputs) {
    const rosin::Array x = inputs["x"], y = inputs["y"];
    return bench::train(options, bench::mlp(inputs, rosin::tanh),
                        [=](const bench::MLP& m) { return rosin::mse(m(x), y); });
  });
}
