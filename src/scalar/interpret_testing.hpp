// For tests: the interpreter of scalar code, one compiled loop per primitive and type, run over strips. It is the
// portable reference that the compiled loops and every other executor are tested against. Read first: compute.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "scalar/compute.hpp"
#include "scalar/scalar_code.hpp"

namespace rosin {
namespace {

constexpr int64_t strip = 256;
constexpr std::size_t value_bytes = 8 * strip;

using Step = void (*)(void* out, const void* const* in, int64_t count);

template <class T> T load(const void* from, int64_t at) {
  if constexpr (std::same_as<T, bool>) return static_cast<const uint8_t*>(from)[at] != 0;
  else return static_cast<const T*>(from)[at];
}

/// The loop of one primitive on operands of types T...
template <Primitive p, class... T, std::size_t... i> Step step_of(std::index_sequence<i...>) {
  return [](void* out, const void* const* in, int64_t count) {
    using R = decltype(Compute<p>::run(T{}...));
    auto* target = static_cast<Stored<R>*>(out);
    for (int64_t k = 0; k < count; ++k) target[k] = Compute<p>::run(load<T>(in[i], k)...);
  };
}

/// The loop of a primitive whose last operand is a T, or null where it has no meaning for T.
template <Primitive p, class T> Step find_step() {
  if constexpr (p == Primitive::select) {
    return step_of<p, bool, T, T>(std::make_index_sequence<3>());
  } else if constexpr (info(p).arity == 1) {
    if constexpr (requires { Compute<p>::run(T{}); }) return step_of<p, T>(std::make_index_sequence<1>());
  } else if constexpr (info(p).arity == 2) {
    if constexpr (requires { Compute<p>::run(T{}, T{}); }) return step_of<p, T, T>(std::make_index_sequence<2>());
  } else if constexpr (info(p).arity == 3) {
    if constexpr (requires { Compute<p>::run(T{}, T{}, T{}); })
      return step_of<p, T, T, T>(std::make_index_sequence<3>());
  }
  return nullptr;
}

template <class From, class To> Step convert_step() {
  return [](void* out, const void* const* in, int64_t count) {
    auto* target = static_cast<Stored<To>*>(out);
    for (int64_t k = 0; k < count; ++k) target[k] = Compute<Primitive::convert>::to<To>(load<From>(in[0], k));
  };
}

template <std::size_t type> using Element = typename ElementOf<static_cast<ScalarType>(type)>::Type;
using Types = std::make_index_sequence<static_cast<std::size_t>(scalar_type_count)>;
using StepsOfTypes = std::array<Step, static_cast<std::size_t>(scalar_type_count)>;

template <Primitive p, std::size_t... type> StepsOfTypes steps_of_primitive(std::index_sequence<type...>) {
  return {find_step<p, Element<type>>()...};
}

template <std::size_t... p> auto all_steps(std::index_sequence<p...>) {
  return std::array<StepsOfTypes, sizeof...(p)>{steps_of_primitive<static_cast<Primitive>(p)>(Types())...};
}

template <class From, std::size_t... to> StepsOfTypes conversions_from(std::index_sequence<to...>) {
  return {convert_step<From, Element<to>>()...};
}

template <std::size_t... from> auto all_conversions(std::index_sequence<from...>) {
  return std::array<StepsOfTypes, sizeof...(from)>{conversions_from<Element<from>>(Types())...};
}

/// The loop of an instruction; never null for code that a body wrote.
Step step_for(const ScalarCode& code, const Instruction& instruction) {
  static const auto steps = all_steps(std::make_index_sequence<static_cast<std::size_t>(primitive_count)>());
  static const auto conversions = all_conversions(Types());
  const int arity = info(instruction.primitive).arity;
  const ScalarType operand = code.list[instruction.operands[arity - 1]].type;
  if (instruction.primitive == Primitive::convert)
    return conversions[static_cast<std::size_t>(operand)][static_cast<std::size_t>(instruction.type)];
  return steps[static_cast<std::size_t>(instruction.primitive)][static_cast<std::size_t>(operand)];
}

/// The low bytes of `bits`, `count` times.
void fill(void* out, int64_t bits, int bytes, int64_t count) {
  auto* target = static_cast<unsigned char*>(out);
  for (int64_t k = 0; k < count; ++k) std::memcpy(target + k * bytes, &bits, static_cast<std::size_t>(bytes));
}

/// out[i] = code(in[0][i], in[1][i], ...) for i in [0, count). All contiguous, Bool as bytes 0 and 1; out may equal an
/// operand of the same element size.
void evaluate(const ScalarCode& code, void* out, const void* const* in, int64_t count) {
  std::vector<unsigned char> scratch(code.list.size() * value_bytes);
  const auto value = [&](std::size_t place) { return scratch.data() + place * value_bytes; };
  const int result_bytes = bytes_of(code.list[code.result].type);
  for (int64_t first = 0; first < count; first += strip) {
    const int64_t length = std::min(strip, count - first);
    for (std::size_t i = 0; i < code.list.size(); ++i) {
      const Instruction& instruction = code.list[i];
      const int bytes = bytes_of(instruction.type);
      if (instruction.primitive == Primitive::input) {
        const auto* operand = static_cast<const unsigned char*>(in[instruction.immediate]);
        std::memcpy(value(i), operand + first * bytes, static_cast<std::size_t>(length * bytes));
      } else if (instruction.primitive == Primitive::literal) {
        fill(value(i), instruction.immediate, bytes, length);
      } else {
        const void* operands[3];
        for (int k = 0; k < 3; ++k) operands[k] = value(instruction.operands[k]);
        step_for(code, instruction)(value(i), operands, length);
      }
    }
    std::memcpy(static_cast<unsigned char*>(out) + first * result_bytes, value(code.result),
                static_cast<std::size_t>(length * result_bytes));
  }
}

}  // namespace
}  // namespace rosin
