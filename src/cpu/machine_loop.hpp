// MachineLoop: a loop of a fused kernel as x86-64 machine code. LoopText says what one pass over elements computes; the
// code is written once for each text and shared by all kernels and threads that have the same one. Rows of convolutions
// are such code too (row_writer.hpp).
// Read next: fused_passes.cpp (which instructions form a loop), machine_writer.hpp (how code is written).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scalar/combine.hpp"
#include "scalar/scalar_code.hpp"

namespace rosin::cpu {

/// How a loop reads one of its inputs, which are contiguous and of the type that the code states.
enum class Reads : uint8_t {
  each,  // an element of its own for each element
  row,   // one element for each row
  one    // one element for all
};

/// How elements lie in memory that loops compute with as Float32; and as Int32.
enum class Packing : uint8_t { none, half, bfloat, byte, signed_byte, word, signed_word };

/// How a half lies in memory; none of other types.
constexpr Packing half_packing(DType type) {
  if (type == DType::Float16) return Packing::half;
  return type == DType::BFloat16 ? Packing::bfloat : Packing::none;
}

/// Of an element that is packed.
constexpr int bytes_of(Packing packing) { return packing == Packing::byte || packing == Packing::signed_byte ? 1 : 2; }
/// Whether it is of integers.
constexpr bool is_integer(Packing packing) { return packing >= Packing::byte; }
constexpr bool is_signed(Packing packing) { return packing == Packing::signed_byte || packing == Packing::signed_word; }

/// What is read for the two elements of each pair, 2*i and 2*i + 1, as parts of complex numbers are.
enum class Pairing : uint8_t { none, first, second, swapped };

struct LoopInput {
  Reads reads = Reads::each;
  Packing packing = Packing::none;
  Pairing pairing = Pairing::none;  // of elements of 4 or 8 bytes of which each is read, an even number
  bool gaps = false;                // its rows, of which each element is read, stand apart
};

/// What a loop writes: a value of its code for each element, or the combination of a row's values for each row, in the
/// order of CombineLoops::reduce.
struct LoopOutput {
  uint16_t place = 0;                 // in the code
  std::optional<Primitive> combines;  // none: each element is written
  int64_t neutral = 0;                // of the combination: its bits
  bool shares = false;                // its memory is that of an input, all of whose elements of a turn are read first
  Packing packing = Packing::none;    // of each element
  bool fits = false;                  // each element is what the packing holds: it need not be rounded
  bool streams = false;               // past the caches, from a multiple of 64 bytes on, as each of several rows begins
};

/// x, a place of Float32 or Int32, as packing holds it, rounded or its low bits: known to machine code alone.
inline Instruction rounded_to(Packing packing, uint16_t x) {
  const ScalarType type = is_integer(packing) ? ScalarType::int32 : ScalarType::float32;
  return {
      .primitive = Primitive::convert, .type = type, .operands = {x, 0, 0}, .immediate = static_cast<int64_t>(packing)};
}
/// How a conversion rounds.
inline Packing rounding_of(const Instruction& made) {
  return made.primitive == Primitive::convert ? static_cast<Packing>(made.immediate) : Packing::none;
}

struct LoopText {
  ScalarCode code;  // over inputs by number; conversions may round
  std::vector<LoopInput> inputs;
  std::vector<LoopOutput> outputs;

  /// The same for texts of the same code alone.
  std::string key() const;
};

class MachineLoop {
 public:
  /// Of a LoopText. `memory`: of the outputs, then of the inputs; then for each input with gaps the bytes from the end
  /// of a row to the next one. Elements of row r of the others stand from r * count on. The code is called as System V
  /// has it, on Windows too, whose own calls keep other registers. It may change the list.
#if defined(__x86_64__)
  using Function = void(__attribute__((sysv_abi)) *)(void** memory, int64_t rows, int64_t count);
#else
  using Function = void (*)(void** memory, int64_t rows, int64_t count);
#endif

  virtual ~MachineLoop() = default;
  void run(void** memory, int64_t rows, int64_t count) const { function_(memory, rows, count); }
  size_t bytes() const { return bytes_; }

 protected:
  Function function_ = nullptr;
  size_t bytes_ = 0;
};

/// Whether this processor has what the code needs (AVX-512, or AVX2 with FMA) and ROSIN_JIT is not 0. Asked once. Where
/// ROSIN_JIT is "avx2" the code is AVX2 on every processor.
bool machine_code_works();
/// Whether loops may hold these instructions: all are known to the writer.
bool machine_knows(const ScalarCode& code);
/// How many outputs of a loop may combine rows: each has vector registers of its own.
int machine_sums();
/// What joins two elements, where it is one primitive that loops may combine with.
std::optional<Primitive> machine_combines(const CombineBody& body, ScalarType type);
/// The code of a text all of whose instructions are known; null where the system gives no memory for code.
std::shared_ptr<const MachineLoop> machine_loop(const LoopText& text);

}  // namespace rosin::cpu
