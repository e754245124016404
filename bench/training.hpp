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
template <class Model, class Loss>
Record train(const Options& options, const Inputs& inputs, const Model& initial, const Loss& loss) {
  Training training(initial, loss);
  Record record;
  time_first(record, [&] { record.losses = losses(training, 1); });
  const std::vector<double> later = losses(training, inputs.compared - 1);
  record.losses.insert(record.losses.end(), later.begin(), later.end());
  repeat(
      options, record, [&] { training.restart(); }, [&] { training.step(); }, [&] { training.last(); });
  return record;
}

/// The loss of a model in the types that the workload asks for.
template <class Loss> auto typed(const Inputs& inputs, const Loss& loss) {
  return [half = inputs.autocast, loss](const auto& model) {
    return half ? rosin::with(rosin::autocast(rosin::BFloat16), [&] { return loss(model); }) : loss(model);
  };
}

/// What a workload does with a model: trained on its loss, or without one run forward.
template <class Model> Record measure(const Options& options, const Inputs& inputs, const Model& model) {
  const rosin::Array x = inputs["x"];
  if (inputs.loss.empty()) return forward(options, [=] { return model(x); });
  const rosin::Array y = inputs["y"];
  if (inputs.loss == "mse") {
    return train(options, inputs, model, typed(inputs, [=](const Model& m) { return rosin::mse(m(x), y); }));
  }
  const auto loss = [=](const Model& m) { return rosin::logitcrossentropy(m(x), y); };
  return train(options, inputs, model, typed(inputs, loss));
}

/// A model with the arrays of its file.
template <class Model> Model loaded(const Inputs& inputs, Model model) {
  rosin::load((inputs.folder / model_file).string(), model, {.names = rosin::torch});
  return model;
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

inline rosin::Activation activation(const Inputs& inputs) {
  return inputs.activation == "tanh" ? rosin::Activation(rosin::tanh) : rosin::Activation(rosin::relu);
}

inline MLP mlp(const Inputs& inputs) { return {dense(inputs, "hidden", activation(inputs)), dense(inputs, "out")}; }

}  // namespace bench
