// C2 and C5: MLPs with two hidden layers. Read first: training.hpp.
#include "training.hpp"

namespace {

struct Deep {
  rosin::Dense hidden1, hidden2, out;

  /// x is (features, batch) -> (outputs, batch).
  rosin::Array operator()(const rosin::Array& x) const { return out(hidden2(hidden1(x))); }
};

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options& options, const bench::Inputs& inputs) {
    const rosin::Activation act = bench::activation(inputs);
    const Deep model{bench::dense(inputs, "hidden1", act), bench::dense(inputs, "hidden2", act),
                     bench::dense(inputs, "out")};
    return bench::measure(options, inputs, model);
  });
}
