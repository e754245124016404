// LoopWriter: writes a LoopText as AVX-512 code. Sixteen elements a turn: types of 4 bytes take one vector register,
// those of 8 bytes two (parts), Bool a mask register. What does not depend on the element is computed before the loop,
// or once a row, and kept in a register or on the stack. A row ends with a turn under a mask.
// Read first: machine_loop.hpp. Read next: machine_primitives.cpp (the instructions of each primitive).
#pragma once

#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <xbyak/xbyak.h>

#include "cpu/machine_loop.hpp"

namespace rosin::cpu {

class LoopWriter final : public Xbyak::CodeGenerator {
 public:
  /// Writes all into `memory`; the code runs wherever it is copied to. Throws Xbyak::Error where code or values have no
  /// room.
  LoopWriter(const LoopText& text, void* memory, size_t bytes);

  static bool knows(const ScalarCode& code, const Instruction& instruction);
  static bool combines_with(Primitive primitive, ScalarType type);

 private:
  using Zmm = Xbyak::Zmm;
  using Opmask = Xbyak::Opmask;
  using Operand = Xbyak::Operand;

  /// When a value is computed.
  enum class Level : uint8_t { once, row, element };

  /// Where a value is.
  struct Home {
    Level level = Level::once;
    int parts = 1;  // vector registers; 0: a Bool
    int reg[2] = {-1, -1};
    bool pinned = false;       // its registers are its own for good
    int stack = -1;            // bytes from the stack pointer, once it has a place there
    bool stands = false;       // on the stack, now
    bool written = false;      // it is an output
    std::vector<size_t> uses;  // places of the code that read it, rising; the code's size: at the end of the turn
  };

  /// An operand: a register, or memory.
  struct Source {
    Zmm reg;
    std::optional<Xbyak::Address> memory;
    operator const Operand&() const { return memory ? static_cast<const Operand&>(*memory) : reg; }
  };

  /// Registers of one kind, and whose they are.
  struct Bank {
    static constexpr int nobody = -1, reserved = -2;
    std::array<int, 32> owner{};
    std::array<bool, 32> locked{};  // the present instruction needs it
  };

  // --- what is known before a byte is written (machine_writer.cpp) ---
  void find_levels();
  void find_uses();
  void reserve_registers();
  int most_alive() const;

  // --- the frame of the code ---
  void enter();
  void leave();
  void write_level(Level level);
  void write_rows();
  void write_turn();
  void write_outputs(size_t place, bool late);
  bool is_late(const LoopOutput& output) const;
  void store(const LoopOutput& output, size_t number);
  void begin_sum(const LoopOutput& output, size_t number);
  void accumulate(const LoopOutput& output, size_t number);
  void combine_lanes(const LoopOutput& output, size_t number);
  void write_constants();

  // --- where values are (machine_values.cpp) ---
  void load_pointers();
  Xbyak::Reg64 pointer(size_t memory);
  Xbyak::Address element(size_t memory, ScalarType type, int part);
  int new_stack(int bytes);
  int take(Bank& bank, int first, int last);
  void evict(int reg);
  void load_input(size_t place, int part);
  void load_mask_input(size_t place);
  void keep(size_t place);
  void end_use(size_t place);
  void forget_all();
  void unlock();
  size_t next_use(size_t place) const;
  size_t input_memory(size_t place) const;

  Zmm vector_of(size_t place, int part);
  Source source_of(size_t place, int part);
  Opmask mask_of(size_t place);
  Opmask mask_of(size_t place, ScalarType of, int part);
  Zmm new_vector(size_t place, int part);
  Opmask new_mask(size_t place);
  Zmm spare();
  void broadcast_literal(size_t place, const Zmm& out);
  const Xbyak::Label& constant(uint64_t bits, int bytes);
  Xbyak::Address splat(double value, ScalarType type);

  // --- primitives (machine_primitives.cpp) ---
  void compute(size_t place);
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
  void binary(Primitive what, ScalarType type, const Zmm& out, const Zmm& x, const Operand& y);
  void extreme(bool least, ScalarType type, const Zmm& out, const Zmm& x, const Operand& y);
  void unary(Primitive what, ScalarType type, const Zmm& out, const Zmm& x);
  void shift(size_t place, int part);

  const LoopText& text_;
  const std::vector<Instruction>& list_;
  std::vector<Home> homes_;
  Bank vectors_, masks_;
  std::vector<std::array<int, 2>> sums_;  // by output: registers in which it combines
  size_t now_ = 0;                        // place that is computed
  bool masked_ = false;                   // the turn at the end of a row
  int frame_ = 64;                        // bytes of the stack; the number of rows stands first
  size_t frame_at_ = 0;
  std::map<std::pair<uint64_t, int>, Xbyak::Label> constants_;
};

}  // namespace rosin::cpu
