// LoopWriter: writes a LoopText as AVX-512 code (Vector is Zmm) or as AVX2 code (Ymm). Sixteen elements a turn, at once
// or in two halves. Types of 4 bytes take one vector register, those of 8 bytes two (parts); a Bool takes a mask
// register, or without such registers a vector of 4-byte elements, all bits of which are its value. What does not
// depend on the element is computed before the loop, or once a row, and kept in a register or on the stack. Code that
// no element of a turn needs is leapt over (rare_code.hpp). A row ends with a turn under a mask. Read first:
// machine_loop.hpp. Read next: machine_wide.hpp and machine_narrow.hpp (the instruction sets).
#pragma once

#include <array>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <xbyak/xbyak.h>

#include "cpu/bfloat_code.hpp"
#include "cpu/machine_loop.hpp"
#include "cpu/rare_code.hpp"

namespace rosin::cpu {

inline bool is_float(ScalarType type) { return type == ScalarType::float32 || type == ScalarType::float64; }
inline bool is_signed(ScalarType type) { return type == ScalarType::int32 || type == ScalarType::int64; }
inline bool is_wide(ScalarType type) { return bytes_of(type) == 8; }

/// How instructions number comparisons of floats that raise no exception.
enum FloatComparison : uint8_t {
  float_equal = 0x00,
  unordered = 0x03,
  float_not_equal = 0x04,
  ordered_less = 0x11,
  ordered_less_equal = 0x12,
  not_below = 0x1d
};
inline FloatComparison float_comparison(Primitive what) {
  switch (what) {
    case Primitive::less: return ordered_less;
    case Primitive::less_equal: return ordered_less_equal;
    case Primitive::equal: return float_equal;
    default: return float_not_equal;
  }
}

constexpr uint8_t to_nearest_even = 0;  // how instructions number ways to round
/// From the sign of a short integer to that of an Int32.
constexpr uint8_t sign_shift(Packing packing) { return static_cast<uint8_t>(32 - 8 * bytes_of(packing)); }
/// The bits of a short integer in an Int32.
constexpr uint64_t low_bits(Packing packing) { return (uint64_t{1} << (8 * bytes_of(packing))) - 1; }

/// How debuggers find the registers of a loop's caller (platform::NamedCode).
std::vector<unsigned char> call_frame(size_t leaves_at);

template <class Vector> class LoopWriter : public Xbyak::CodeGenerator {
 public:
  /// Error (Xbyak::Error): code or values have no room.
  void write();
  /// Where the registers of the caller are put back, in bytes from the beginning.
  size_t leaves_at() const { return leaves_at_; }

 protected:
  /// Code in `memory`, which runs wherever it is copied to.
  LoopWriter(const OrderedText& ordered, void* memory, size_t bytes);

  static constexpr bool has_masks = std::is_same_v<Vector, Xbyak::Zmm>;
  static constexpr int vector_bytes = has_masks ? 64 : 32;
  static constexpr int vector_count = has_masks ? 32 : 16;
  static constexpr int turn_elements = 16;
  static constexpr int halves = turn_elements * 4 / vector_bytes;  // of a turn, one after the other

  using LowerHalf = std::conditional_t<has_masks, Xbyak::Ymm, Xbyak::Xmm>;  // of a vector
  using Opmask = Xbyak::Opmask;
  using Operand = Xbyak::Operand;

  /// When a value is computed.
  enum class Level : uint8_t { once, row, element };

  /// Where a value is.
  struct Home {
    Level level = Level::once;
    int parts = 1;  // vector registers; 0: a mask
    int reg[2] = {-1, -1};
    bool pinned = false;       // its registers are its own for good
    int stack = -1;            // bytes from the stack pointer, once it has a place there
    bool stands = false;       // on the stack, now
    bool written = false;      // it is an output
    std::vector<size_t> uses;  // places of the code that read it, rising; the code's size: at the end of the turn
  };

  /// An operand: a register, or memory.
  struct Source {
    Vector reg;
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
  void write_last_turn();
  void write_turn();
  void write_half();
  void write_outputs(size_t place, bool late);
  bool is_late(const LoopOutput& output) const;
  void begin_sum(const LoopOutput& output, size_t number);
  void accumulate(const LoopOutput& output, size_t number);
  void combine_lanes(const LoopOutput& output, size_t number);
  void leap_gaps();
  void begin_rare(const RareCode& rare);
  Vector sum_of(size_t number, int half, int part) const {
    return Vector(sums_[number][static_cast<size_t>(2 * half + part)]);
  }
  void write_constants();

  // --- where values are (machine_values.cpp) ---
  void load_pointers();
  Xbyak::Reg64 pointer(size_t memory);
  void leap(size_t memory, size_t gap);
  Xbyak::Address element(size_t memory, ScalarType type, int part);
  Xbyak::Address packed_element(size_t memory, Packing packing);
  int new_stack(int bytes);
  int take(Bank& bank, int first, int last);
  void evict(int reg);
  void load_input(size_t place, int part);
  void load_pairs(size_t place, int part, Pairing pairing);
  void keep(size_t place);
  void end_rare();
  void reload(size_t place, int part);
  void end_use(size_t place);
  void forget_all();
  void unlock();
  size_t next_use(size_t place) const;
  size_t input_memory(size_t place) const;

  Vector vector_of(size_t place, int part);
  Source source_of(size_t place, int part);
  Vector new_vector(size_t place, int part);
  bool is_extreme_of_number(const Instruction& made) const;
  void extreme_float(bool least, ScalarType type, const Vector& out, const Vector& x, const Operand& y);
  Vector spare();
  std::pair<uint64_t, int> literal_bits(size_t place) const;
  void broadcast_literal(size_t place, const Vector& out);
  const Xbyak::Label& constant(uint64_t bits, int bytes);
  Xbyak::Address splat(double value, ScalarType type);

  // --- of each instruction set (WideWriter, NarrowWriter) ---
  virtual void compute(size_t place) = 0;
  virtual void binary(Primitive what, ScalarType type, const Vector& out, const Vector& x, const Operand& y) = 0;
  virtual void load_each(size_t place, int part) = 0;
  virtual void store(const LoopOutput& output, size_t number) = 0;
  /// Ready for the rows, of which edx tells how many elements they have; and for a half of the last turn of one, of
  /// which r8d tells that.
  virtual void begin_rows() {}
  virtual void begin_last_turn() {}
  /// The least and greatest of rows whose values the instruction set watches, and which are right where no value is
  /// NaN: begins one at each row, joins values to it, and ends it when its lanes are joined.
  virtual void watch_sum(const LoopOutput&, size_t) {}
  virtual bool accumulates_watched(const LoopOutput&, size_t) { return false; }
  virtual bool watches(size_t) const { return false; }
  virtual void end_watched(size_t) {}
  /// Leaps where no element of the turn has a Bool that is so.
  virtual void leap_unless_any(size_t place, bool chosen, const Xbyak::Label& end) = 0;
  /// sum = next, but behind the end of the row.
  virtual void keep_sum(ScalarType type, int part, const Vector& sum, const Vector& next) = 0;
  /// Float32 of the 16-bit floats in the lower part of `packed`, which may be the lower part of `out`.
  virtual void unpack(Packing packing, const Vector& out, const Xbyak::Operand& packed) = 0;
  /// The bits in all elements of an operand.
  virtual Xbyak::Address splat_bits(uint64_t bits, int bytes) = 0;

  /// The code that a leap may leave out, and where all values were before it.
  struct Leap {
    const RareCode* code = nullptr;
    Xbyak::Label end;
    std::vector<Home> homes;
  };

  const LoopText& text_;
  const std::vector<Instruction>& list_;
  std::vector<Home> homes_;
  Bank vectors_, masks_;
  std::vector<std::array<int, 4>> sums_;  // by output: registers in which it combines, those of one half together
  const std::vector<RareCode>& rare_;
  std::optional<Leap> leap_;
  size_t now_ = 0;       // place that is computed
  int half_ = 0;         // of the turn
  bool masked_ = false;  // the turn at the end of a row
  int frame_ = 64;       // bytes of the stack; the number of rows stands first
  size_t frame_at_ = 0, leaves_at_ = 0;
  std::map<std::pair<uint64_t, int>, Xbyak::Label> constants_;
};

}  // namespace rosin::cpu
