// Making an elementwise op in one place: name, doc line, body, types; gradient and sample range follow by
// with_gradient() and samples(). Read first: scalar/scalar.hpp. Read next: elementwise_arithmetic.cpp.
#pragma once

#include <string_view>

#include "graph/op.hpp"
#include "scalar/make_body.hpp"

namespace rosin {

/// How result types follow from the types a body is defined for.
template <class F, int operands, Operands kind, ScalarType... types>
constexpr TypeRule type_rule_of(TypeSet<types...>) {
  constexpr bool gives_bool = (std::same_as<typename LoopOn<F, kind, operands, types>::Result, bool> && ...);
  constexpr bool takes_bool = ((types == ScalarType::boolean) || ...);
  constexpr bool takes_integers = ((types == ScalarType::int32) || ...);
  if (gives_bool) return TypeRule::boolean;
  if (takes_bool) return TypeRule::same;
  return takes_integers ? TypeRule::number : TypeRule::floating;
}

/// Registers an elementwise op of so many operands. `doc` says what it computes and its edge rules.
template <int operands, Operands kind = Operands::alike, class F, ScalarType... types>
Op& elementwise(std::string_view name, std::string_view doc, F body, TypeSet<types...> set) {
  Op op;
  op.name = name;
  op.kind = Kind::elementwise;
  op.operands = operands;
  op.doc = doc;
  op.type_rule = type_rule_of<F, operands, kind>(set);
  op.mask_first = kind == Operands::mask_first;
  op.body = make_body<operands, kind>(body, set);
  return *register_op(op);
}

}  // namespace rosin
