// C1: a small MLP with tanh, trained on the mean squared error. Read first: training.hpp.
#include "training.hpp"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options& options, const bench::Inputs& inputs) {
    return bench::measure(options, inputs, bench::mlp(inputs));
  });
}
