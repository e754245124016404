// WideWriter: loops as AVX-512 code; a Bool is a mask register. Read first: machine_writer.hpp.
#pragma once

#include "cpu/machine_writer.hpp"

namespace rosin::cpu {

class WideWriter final : public LoopWriter<Xbyak::Zmm> {
 public:
  WideWriter(const OrderedText& text, void* memory, size_t bytes) : LoopWriter(text, memory, bytes) { write(); }

  static bool knows(const ScalarCode& code, const Instruction& instruction);
  static bool combines_with(Primitive primitive, ScalarType type);

 private:
  using Zmm = Xbyak::Zmm;

  void compute(size_t place) override;
  void binary(Primitive what, ScalarType type, const Zmm& out, const Zmm& x, const Operand& y) override;
  void load_each(size_t place, int part) override;
  void store(const LoopOutput& output, size_t number) override;
  void begin_last_turn() override;
  void watch_sum(const LoopOutput& output, size_t number) override;
  bool accumulates_watched(const LoopOutput& output, size_t number) override;
  bool watches(size_t number) const override { return watched_.contains(number); }
  void end_watched(size_t number) override;
  void leap_unless_any(size_t place, bool chosen, const Xbyak::Label& end) override;
  void keep_sum(ScalarType type, int part, const Zmm& sum, const Zmm& next) override;
  Xbyak::Address splat_bits(uint64_t bits, int bytes) override;
  void unpack(Packing packing, const Zmm& out, const Operand& packed) override;

  void load_packed(size_t place, Packing packing);
  void store_packed(const LoopOutput& output, size_t number);
  Zmm bfloat_bits(const Zmm& x);
  void round(Packing packing, const Zmm& out, const Zmm& x);
  void load_mask_input(size_t place);
  Opmask new_mask(size_t place);
  Opmask mask_of(size_t place);
  Opmask mask_of(size_t place, ScalarType of, int part);
  void compute_mask(size_t place);
  void compute_vector(size_t place, int part);
  void compare(size_t place);
  void compare_vectors(Primitive what, ScalarType type, const Opmask& out, const Zmm& x, const Operand& y);
  void to_mask(size_t place);
  void convert(size_t place);
  void change_width(size_t place);
  void convert_part(ScalarType from, ScalarType to, const Zmm& out, const Zmm& x);
  void widen(ScalarType from, ScalarType to, const Zmm& out, const Xbyak::Ymm& x);
  void narrow(ScalarType from, ScalarType to, const Xbyak::Ymm& out, const Zmm& x);
  void to_integer(ScalarType from, const Zmm& out, const Zmm& x);
  void divide_integers(size_t place);
  void extreme(bool least, ScalarType type, const Zmm& out, const Zmm& x, const Operand& y);
  void unary(Primitive what, ScalarType type, const Zmm& out, const Zmm& x);
  void shift(size_t place, int part);

  std::map<size_t, Opmask> watched_;  // by output: the lanes that have met no NaN
};

}  // namespace rosin::cpu
