// The compiled part of train: a step that needs a finite loss, and its messages.
#include <rosin/train.hpp>

#include <chrono>
#include <string>

#include <rosin/error.hpp>
#include <rosin/log.hpp>
#include <rosin/model.hpp>

#include "optim/step.hpp"

namespace rosin {

void detail::train_step(State& state, ModelEdit model, ModelView gradient, const Array& loss, int64_t item) {
  const CheckedLoss checked{loss, item};
  take_step(state, model, gradient, &checked);
}

void detail::finish_training(const Array& last_loss) {
  if (!last_loss.is_nothing()) last_loss.item();
}

void detail::warn_of_lost_state(const State& state, const detail::ErasedRule& rule) {
  if (fleaves(state).empty()) return;
  const std::string name = rule_text(rule);
  warn_once("lost-state", "train: what " + name +
                              " keeps between steps is lost when train returns; write state = setup(" + name +
                              ", model) and give train the state");
}

double detail::steady_seconds() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace rosin
