// Names of the library's functions of one array, as Flux prints them: those that stand beside their definitions.
#include <rosin/activation_value.hpp>

#include <rosin/activation.hpp>

#include "graph/op.hpp"

namespace rosin {

std::string_view function_name(UnaryFunction function) noexcept {
  const std::string_view name = name_of(function);
  return name.empty() ? "function" : name;
}

Activation::Activation(UnaryFunction f) noexcept
    : function_(f == UnaryFunction{identity} ? nullptr : f), name_(function_name(f)) {}

}  // namespace rosin
