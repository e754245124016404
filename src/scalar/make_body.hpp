// From a generic lambda to an ElementBody: loops over strips, compiled for three instruction sets (the same text, so
// the same bits), and the scalar code. Read first: scalar.hpp. Read next: ops/elementwise_op.hpp.
//
// Files that make bodies are compiled with -O3 -fno-trapping-math -fno-math-errno: without them the compiler may not
// turn `select` and `sqrt` into vector instructions. -ffp-contract=off holds everywhere.
#pragma once

#include <cstdint>
#include <utility>

#include "scalar/body.hpp"
#include "scalar/scalar.hpp"

namespace rosin {

/// The types that a body has a meaning for.
template <ScalarType... types> struct TypeSet {};

inline constexpr TypeSet<ScalarType::float32, ScalarType::float64> floats;
inline constexpr TypeSet<ScalarType::int32, ScalarType::uint32, ScalarType::int64, ScalarType::uint64,
                         ScalarType::float32, ScalarType::float64>
    numbers;
inline constexpr TypeSet<ScalarType::boolean> bools;
inline constexpr TypeSet<ScalarType::boolean, ScalarType::int32, ScalarType::uint32, ScalarType::int64,
                         ScalarType::uint64, ScalarType::float32, ScalarType::float64>
    everything;

/// What the operands of a body are.
enum class Operands : uint8_t { alike, mask_first };

/// One body on one type: T is the element, F the lambda.
template <class F, class T, Operands operands, class Indices> struct Loop;

template <class F, class T, Operands operands, std::size_t... i>
struct Loop<F, T, operands, std::index_sequence<i...>> {
  template <std::size_t number>
  using Operand = std::conditional_t<number == 0 && operands == Operands::mask_first, bool, T>;
  using Result = typename decltype(F{}(scalar::Num<Operand<i>>{}...))::Element;

  template <class E> [[gnu::always_inline]] static inline scalar::Num<E> load(const void* from, int64_t at) {
    if constexpr (std::same_as<E, bool>) return {static_cast<const uint8_t*>(from)[at] != 0};
    else return {static_cast<const E*>(from)[at]};
  }

  [[gnu::always_inline]] static inline void run(void* out, const void* const* in, int64_t count) {
    auto* target = static_cast<Stored<Result>*>(out);
    const void* const from[] = {in[i]...};
    // An operand may be the result's own memory, element by element: no iteration reads what another one writes.
    // (clang checks that at run time.)
#ifndef __clang__
#pragma GCC ivdep
#endif
    for (int64_t k = 0; k < count; ++k) target[k] = F{}(load<Operand<i>>(from[i], k)...).v;
  }

  [[gnu::flatten]] static void baseline(void* out, const void* const* in, int64_t count) { run(out, in, count); }
#ifdef __x86_64__
  [[gnu::flatten, gnu::target("arch=x86-64-v3")]] static void wide(void* out, const void* const* in, int64_t count) {
    run(out, in, count);
  }
#ifdef __clang__
  [[gnu::target("arch=x86-64-v4")]]
#else
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]]
#endif
  [[gnu::flatten]] static void
  widest(void* out, const void* const* in, int64_t count) {
    run(out, in, count);
  }
#endif

  static StripLoop choose([[maybe_unused]] InstructionSet set) {
#ifdef __x86_64__
    if (set == InstructionSet::widest) return widest;
    if (set == InstructionSet::wide) return wide;
#endif
    return baseline;
  }

  template <class E> static scalar::Sym<E> input(ScalarCode& code, std::size_t number) {
    const auto immediate = static_cast<int64_t>(number);
    return {&code, append(code, {.primitive = Primitive::input, .type = scalar_type_of<E>, .immediate = immediate})};
  }

  /// Once for each kernel that is compiled.
  [[gnu::cold]] static void write(ScalarCode& code) { code.result = F{}(input<Operand<i>>(code, i)...).place; }
};

template <class F, Operands operands, int arity, ScalarType type>
using LoopOn =
    Loop<F, typename ElementOf<type>::Type, operands, std::make_index_sequence<static_cast<std::size_t>(arity)>>;

template <int arity, Operands operands = Operands::alike, class F, ScalarType... types>
ElementBody make_body(F, TypeSet<types...>) {
  ElementBody body;
  ((body.result[static_cast<int>(types)] = scalar_type_of<typename LoopOn<F, operands, arity, types>::Result>), ...);
  body.variant = [](ScalarType type, InstructionSet set) -> StripLoop {
    StripLoop loop = nullptr;
    ((type == types ? void(loop = LoopOn<F, operands, arity, types>::choose(set)) : void()), ...);
    return loop;
  };
  body.code = [](ScalarType type, ScalarCode& code) {
    ((type == types ? LoopOn<F, operands, arity, types>::write(code) : void()), ...);
  };
  for (int t = 0; t < scalar_type_count; ++t)
    body.loops[t] = body.variant(static_cast<ScalarType>(t), best_instruction_set());
  return body;
}

}  // namespace rosin
