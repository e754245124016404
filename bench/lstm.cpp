// Two layers of LSTM over a sequence, and a classifier of the last output. Read first: training.hpp.
#include "training.hpp"

namespace {

struct Network {
  rosin::LSTM lstm1, lstm2;
  rosin::Dense out;

  /// x is (features, tokens, batch) -> (classes, batch).
  rosin::Array operator()(const rosin::Array& x) const { return out(rosin::select(lstm2(lstm1(x)), 1, x.size(1) - 1)); }
};

rosin::LSTM lstm(const bench::Inputs& inputs, const std::string& name) {
  const rosin::Array from_input = inputs[name + ".input.weight"], from_hidden = inputs[name + ".hidden.weight"];
  rosin::LSTM layer(from_input.size(1), from_hidden.size(1));
  layer.cell.input_weight = from_input;
  layer.cell.recurrent_weight = from_hidden;
  layer.cell.bias = inputs[name + ".bias"];
  return layer;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [](const bench::Options& options, const bench::Inputs& inputs) {
    const Network model{lstm(inputs, "lstm1"), lstm(inputs, "lstm2"), bench::dense(inputs, "out")};
    return bench::measure(options, inputs, model);
  });
}
