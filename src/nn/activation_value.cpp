// Names of the library's functions of one array, as Flux prints them.
#include <rosin/activation_value.hpp>

#include <rosin/activation.hpp>
#include <rosin/compose.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/movement.hpp>
#include <rosin/pool.hpp>
#include <rosin/reduce.hpp>

namespace rosin {
namespace {

struct NamedFunction {
  UnaryFunction function;
  std::string_view name;
};

constexpr NamedFunction named_functions[] = {
    {identity, "identity"},
    {sigmoid, "σ"},
    {hardsigmoid, "hardσ"},
    {logsigmoid, "logσ"},
    {hardtanh, "hardtanh"},
    {relu, "relu"},
    {leakyrelu, "leakyrelu"},
    {relu6, "relu6"},
    {elu, "elu"},
    {gelu, "gelu"},
    {gelu_sigmoid, "gelu_sigmoid"},
    {gelu_erf, "gelu_erf"},
    {swish, "swish"},
    {hardswish, "hardswish"},
    {lisht, "lisht"},
    {selu, "selu"},
    {celu, "celu"},
    {trelu, "trelu"},
    {softsign, "softsign"},
    {softplus, "softplus"},
    {logcosh, "logcosh"},
    {mish, "mish"},
    {tanhshrink, "tanhshrink"},
    {softshrink, "softshrink"},
    {tanh, "tanh"},
    {sin, "sin"},
    {cos, "cos"},
    {exp, "exp"},
    {log, "log"},
    {abs, "abs"},
    {square, "square"},
    {sqrt, "sqrt"},
    {neg, "neg"},
    {softmax, "softmax"},
    {logsoftmax, "logsoftmax"},
    {normalise, "normalise"},
    {flatten, "flatten"},
    {squeeze, "squeeze"},
    {transpose, "transpose"},
    {sum, "sum"},
    {mean, "mean"},
    {global_maxpool, "global_maxpool"},
    {global_meanpool, "global_meanpool"},
};

}  // namespace

std::string_view function_name(UnaryFunction function) noexcept {
  for (const NamedFunction& named : named_functions) {
    if (named.function == function) return named.name;
  }
  return "function";
}

Activation::Activation(UnaryFunction function) noexcept
    : function_(function == UnaryFunction{identity} ? nullptr : function), name_(function_name(function)) {}

}  // namespace rosin
