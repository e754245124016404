// Hyper-parameters of rules of any class: checked, changed, shown.
#pragma once

#include <string>
#include <string_view>

#include <rosin/optim.hpp>

namespace rosin {

/// Error (argument) naming `op` and the rule when a learning rate is negative.
void check_rates(std::string_view op, detail::ErasedRule& rule);

/// Gives the rule, and rules inside it, the new values that it has names for.
void change_options(detail::ErasedRule& rule, const Adjustment& change);

}  // namespace rosin
