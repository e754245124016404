// C7: a small GPT over characters. Read first: training.hpp.
#include "training.hpp"

#include "../examples/models/gpt2.hpp"

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options& options, const bench::Inputs& inputs) {
    const auto size = [&](const char* name) { return inputs.sizes.at(name); };
    const models::GPT2LMHead model = models::gpt2({.vocabulary = size("vocabulary"),
                                                   .positions = size("tokens"),
                                                   .width = size("width"),
                                                   .layers = size("layers"),
                                                   .heads = size("heads"),
                                                   .dropout = 0});
    const rosin::Array tokens = rosin::cast(inputs["x"], rosin::Int32), next = rosin::cast(inputs["y"], rosin::Int32);
    rosin::eval();
    return bench::train(options, inputs, bench::loaded(inputs, model),
                        [=](const models::GPT2LMHead& m) { return rosin::labelcrossentropy(m(tokens), next); });
  });
}
