// NarrowWriter: loops as AVX2 code with FMA; a Bool is a vector of 4-byte elements, of which all bits are its value.
// What this instruction set lacks for integers of 8 bytes and unsigned ones is not known to it. Read first:
// machine_writer.hpp.
#pragma once

#include "cpu/machine_writer.hpp"

namespace rosin::cpu {

class NarrowWriter final : public LoopWriter<Xbyak::Ymm> {
 public:
  NarrowWriter(const OrderedText& text, void* memory, size_t bytes);

  static bool knows(const ScalarCode& code, const Instruction& instruction);
  static bool combines_with(Primitive primitive, ScalarType type);

 private:
  using Ymm = Xbyak::Ymm;

  void compute(size_t place) override;
  void binary(Primitive what, ScalarType type, const Ymm& out, const Ymm& x, const Operand& y) override;
  void load_each(size_t place, int part) override;
  void store(const LoopOutput& output, size_t number) override;
  void begin_rows() override;
  void leap_unless_any(size_t place, bool chosen, const Xbyak::Label& end) override;
  void keep_sum(ScalarType type, int part, const Ymm& sum, const Ymm& next) override;
  Xbyak::Address splat_bits(uint64_t bits, int bytes) override;
  void unpack(Packing packing, const Ymm& out, const Operand& packed) override;

  Ymm last_mask(ScalarType type, int part);
  void load_bool(size_t place);
  void load_packed(size_t place, Packing packing);
  void store_packed(const LoopOutput& output, size_t number);
  Ymm bfloat_bits(const Ymm& x);
  void round(Packing packing, const Ymm& out, const Ymm& x);
  void store_bool(const LoopOutput& output, size_t number);
  Ymm expanded(size_t place, ScalarType type, int part);
  void compute_bool(size_t place);
  void compute_vector(size_t place, int part);
  void compare(Primitive what, size_t place);
  void compare_part(Primitive what, ScalarType type, const Ymm& out, const Ymm& x, const Ymm& y);
  void pack_masks(const Ymm& out, const Ymm& first, const Ymm& second);
  void convert(size_t place);
  void change_width(size_t place);
  void convert_part(ScalarType from, ScalarType to, const Ymm& out, const Ymm& x);
  void to_integer(ScalarType from, const Ymm& out, const Ymm& x);
  void divide_integers(size_t place);
  void extreme(bool least, ScalarType type, const Ymm& out, const Ymm& x, const Operand& y);
  void unary(Primitive what, ScalarType type, const Ymm& out, const Ymm& x);
  void shift(size_t place, int part);

  int last_masks_ = -1;   // on the stack
  Xbyak::Label numbers_;  // 0, 1, ... behind the code
};

}  // namespace rosin::cpu
