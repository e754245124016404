// Names of the library's functions of one array, as Flux prints them: those that stand beside their definitions.
#include <rosin/activation_value.hpp>

#include <rosin/activation.hpp>

#include "graph/op.hpp"

namespace rosin {

std::string_view function_name(UnaryFunction function) noexcept {
  const std::string_view name = name_of(function);
  return name.empty() ? "function" : name;
}

Activation::Activation(UnaryFunction function) noexcept
    : function_(function == UnaryFunction{identity} ? nullptr : function), name_(function_name(function)) {}

}  // namespace rosin
