// Hyper-parameters of rules of any class: checked, changed, shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/optim.hpp>

namespace rosin {

/// Error (argument) naming `op` and the rule when a learning rate is negative.
void check_rates(std::string_view op, detail::ErasedRule& rule);

/// Gives the rule, and rules inside it, the new values that it has names for.
void change_options(detail::ErasedRule& rule, const Adjustment& change);

/// What a state holds beside its arrays, as it stands in checkpoints.
struct StateOptions {
  std::string rule;                 // which hyper-parameters: "Adam(eta, beta, beta, epsilon)"
  std::vector<std::string> leaves;  // the paths of the trained arrays
  std::vector<double> values;       // all hyper-parameters of the first leaf, then those of the second, ...
  std::vector<uint8_t> frozen;      // 1 or 0 for each leaf
};
/// Error (argument): the state is of no model.
StateOptions options_of(const State& state);
/// Error (argument): these are the options of a state of another rule or model, or no options at all.
void check_options(const State& state, const StateOptions& saved);
/// Of a state that check_options has accepted them for; throws nothing then.
void set_options(State& state, const StateOptions& saved);

}  // namespace rosin
