// The code of a pass in the making: what stands there is shared, and what rounds nothing is left out. Read first:
// machine_loop.hpp. Read next: fused_passes.cpp (who makes passes).
#pragma once

#include <bit>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <rosin/half.hpp>

#include "base/hash.hpp"
#include "cpu/machine_loop.hpp"

namespace rosin::cpu {

/// Of halves: in which packings all values of a place are, so that rounding them changes nothing.
struct Fits {
  bool half = false, bfloat = false;

  bool in(Packing packing) const {
    return (packing == Packing::half && half) || (packing == Packing::bfloat && bfloat);
  }
  Fits operator&(const Fits& other) const { return {half && other.half, bfloat && other.bfloat}; }
};

inline Fits fits_of(Packing packing) { return {packing == Packing::half, packing == Packing::bfloat}; }

inline Fits fits_of_literal(const Instruction& made) {
  if (made.type != ScalarType::float32) return {};
  const auto value = std::bit_cast<float>(static_cast<uint32_t>(made.immediate));
  return {half_value(half_bits(value)) == value, bfloat_value(bfloat_bits(value)) == value};
}

/// Inputs are added to the text before their instructions.
class PassCode {
 public:
  explicit PassCode(LoopText& text) : text_(text), code_(text.code) {}

  uint16_t add(const Instruction& made) {
    if (fits(made.operands[0], rounding_of(made))) return made.operands[0];
    const auto [known, is_new] = places_.try_emplace(made, static_cast<uint16_t>(code_.list.size()));
    if (is_new) {
      fits_.push_back(fits_of(made));
      code_.list.push_back(made);
    }
    return known->second;
  }
  bool fits(uint16_t place, Packing packing) const { return packing != Packing::none && fits_[place].in(packing); }
  /// A code in terms of places of this one; returns that of its result.
  uint16_t add(const ScalarCode& code, const std::vector<uint16_t>& inputs) {
    std::vector<uint16_t> places;
    for (Instruction made : code.list) {
      if (made.primitive == Primitive::input) {
        places.push_back(inputs[static_cast<size_t>(made.immediate)]);
        continue;
      }
      for (int i = 0; i < info(made.primitive).arity; ++i) made.operands[i] = places[made.operands[i]];
      places.push_back(add(made));
    }
    return places[code.result];
  }

 private:
  Fits fits_of(const Instruction& made) const {
    const auto of = [&](int i) { return fits_[made.operands[i]]; };
    switch (made.primitive) {
      case Primitive::input: return cpu::fits_of(text_.inputs[static_cast<size_t>(made.immediate)].packing);
      case Primitive::literal: return fits_of_literal(made);
      case Primitive::convert: return cpu::fits_of(rounding_of(made));
      case Primitive::negate:
      case Primitive::absolute: return of(0);
      case Primitive::minimum:
      case Primitive::maximum: return of(0) & of(1);
      case Primitive::select: return of(1) & of(2);
      default: return {};
    }
  }

  struct Hash {
    size_t operator()(const Instruction& made) const {
      uint64_t key = static_cast<uint64_t>(made.primitive) << 8 | static_cast<uint64_t>(made.type);
      for (const uint16_t operand : made.operands) key = mix(key, operand);
      return static_cast<size_t>(mix(key, static_cast<uint64_t>(made.immediate)));
    }
  };
  const LoopText& text_;
  ScalarCode& code_;
  std::vector<Fits> fits_;  // by place
  std::unordered_map<Instruction, uint16_t, Hash> places_;
};

}  // namespace rosin::cpu
