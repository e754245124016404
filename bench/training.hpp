// Trains a model as a user would (withgradient, update) and times it; and the network that C1, C4 and C10 share.
// Read first: common.hpp.
#pragma once

#include "common.hpp"

namespace bench {

/// A model, its optimiser state and the loss to make small.
template <class Model, class Loss> class Training {
 public:
  /// loss maps a model to its loss.
  Training(const Model& initial, const Loss& loss) : initial_(initial), loss_(loss) { restart(); }

  /// Back to the beginning: a copy of the initial model that shares no array with it, and a fresh state, both
  /// evaluated.
  void restart() {
    model_ = rosin::clone(initial_);
    state_ = rosin::setup(rosin::Adam{.eta = 1e-3}, model_);
    rosin::eval();
  }

  void step() {
    auto [loss, gradient] = rosin::withgradient(loss_, model_);
    rosin::update(state_, model_, gradient);
    last_ = loss;
  }

  /// The loss of the last step, before its update.
  double last() const { return last_.item(); }

 private:
  Model initial_, model_;
  Loss loss_;
  rosin::State state_;
  rosin::Array last_;
};

/// The losses of the next steps, each before its update.
template <class Model, class Loss> std::vector<double> losses(Training<Model, Loss>& training, int steps) {
  std::vector<double> found;
  for (int k = 0; k < steps; ++k) {
    training.step();
    found.push_back(training.last());
  }
  return found;
}

/// Losses, then the repeats; each starts from the initial model.
template <class Model, class Loss> Record train(const Options& options, const Model& initial, const Loss& loss) {
  Training training(initial, loss);
  Record record;
  record.losses = losses(training, compared_steps);
  repeat(
      options, record, [&] { training.restart(); }, [&] { training.step(); }, [&] { training.last(); });
  return record;
}

struct MLP {
  rosin::Dense hidden;
  rosin::Dense out;

  /// x is (features, batch) -> (outputs, batch).
  rosin::Array operator()(const rosin::Array& x) const { return out(hidden(x)); }
};

/// The Dense layer with the weight and bias of that name.
inline rosin::Dense dense(const Inputs& inputs, const std::string& name, rosin::Activation act = {}) {
  return {inputs[name + ".weight"], inputs[name + ".bias"], act};
}

inline MLP mlp(const Inputs& inputs, rosin::Activation act) {
  return {dense(inputs, "hidden", act), dense(inputs, "out")};
}

}  // namespace bench
