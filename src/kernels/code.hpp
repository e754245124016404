// KernelCode: what one kernel of a device does, as a list of instructions; from it come the text in every language
// (text.hpp) and what plug-ins without a compiler run. Sizes are run-time parameters, so one code serves all
// sizes. KernelWriter writes a code and, in the same breath, the arguments of its launch.
// Read first: scalar/primitives.hpp, include/rosin/backend.h (Kernels). Read next: launches.hpp (who writes what).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rosin/dtype.hpp>

#include "scalar/body.hpp"
#include "scalar/combine.hpp"
#include "scalar/primitives.hpp"
#include "scalar/scalar_code.hpp"

namespace rosin::kernels {

/// What kernels do beside computing; the numbers follow those of the primitives. Meaning: backend.h.
enum class KernelOperation : uint16_t {
  round = primitive_count,
  parameter,
  group,
  item,
  load,
  store,
  shared_load,
  shared_store,
  barrier,
  variable,
  assign,
  loop,
  end_loop,
  begin_if,
  begin_else,
  end_if,
  multiply_high,
  exp2_approximate,
  reciprocal_approximate,
  tanh_approximate,
  load_vector,  // from here on: only where Abilities say so, see launches.hpp
  lane,
  join,
  store_vector,
  read_only,
  shuffle,
  pack,
  shared_load_vector,
  shared_store_vector,
  multiply_matrices,
  choose,
  arrive
};

/// `operation` is a Primitive or a KernelOperation.
struct KernelInstruction {
  uint16_t operation = 0;
  ScalarType type = ScalarType::int32;
  uint32_t operands[3] = {};
  int64_t immediate = 0;

  bool is(Primitive primitive) const { return operation == static_cast<uint16_t>(primitive); }
  bool is(KernelOperation what) const { return operation == static_cast<uint16_t>(what); }
  bool operator==(const KernelInstruction&) const = default;
};

/// `operation`: a Primitive, a KernelOperation, or the number of one.
template <class Operation>
KernelInstruction make_instruction(Operation operation, ScalarType type, std::initializer_list<uint32_t> operands = {},
                                   int64_t immediate = 0) {
  KernelInstruction made;
  made.operation = static_cast<uint16_t>(operation);
  made.type = type;
  std::copy(operands.begin(), operands.end(), made.operands);
  made.immediate = immediate;
  return made;
}

/// Loads and stores, of vectors too: the buffer or shared array and, of a vector, how many elements (else 1).
inline constexpr int lanes_shift = 32;
int array_of(const KernelInstruction& instruction);
int buffer_of(const KernelInstruction& instruction);  // -1: it touches none
/// Buffers from this number on are chosen while a kernel runs: CHOOSE says which of the others each is.
inline constexpr int chosen_buffer = 1 << 30;
int lanes_of(const KernelInstruction& instruction);
bool is_store(const KernelInstruction& instruction);
/// Whether it changes memory: a store, or an arrival.
bool is_write(const KernelInstruction& instruction);

struct SharedArray {
  ScalarType type = ScalarType::float32;
  int32_t count = 0;
  bool operator==(const SharedArray&) const = default;
};

struct KernelCode {
  std::string name;  // letters, digits, underscores; equal codes have equal names
  int32_t group = 1;
  int32_t beside = 0;  // groups that shall stand on a multiprocessor at once, where compilers ask; 0: what they choose
  std::vector<DType> buffers;
  std::vector<ScalarType> parameters;
  std::vector<SharedArray> shared;
  std::vector<KernelInstruction> instructions;

  bool operator==(const KernelCode&) const = default;
  uint64_t hash() const;
  bool has(KernelOperation operation) const {
    return std::any_of(instructions.begin(), instructions.end(), [&](const auto& i) { return i.is(operation); });
  }
  /// Of all shared arrays, each from a multiple of 16 bytes on.
  int64_t shared_bytes() const;
};

/// Which buffers the code stores to, one entry a buffer; whatever is chosen where it stores to what is chosen.
std::vector<char> stored_buffers(const KernelCode& code);

/// Appends the hash to the name: equal codes then have equal names, different ones different names.
void name_by_hash(KernelCode& code);

/// A buffer argument: the memory of a value of the structure, or scratch block number `scratch` of the plan.
struct LaunchBuffer {
  // As `scratch`: the plan's flags, Int64 elements, one for each entry of LaunchList::checks; and the one Int64 of the
  // device that is not 0 from the first check that fails until that is reported. Who runs launches keeps both.
  static constexpr int32_t flag = -2, guard = -3;
  // From here on downwards: counters of the plan, see LaunchList::counters.
  static constexpr int32_t first_counters = -4;
  int32_t value = -1;
  int32_t scratch = -1;
};

/// A parameter: an integer that follows from the layout, or the C++ number that stands at `scalar` in each run.
struct LaunchNumber {
  ScalarType type = ScalarType::int32;
  int64_t integer = 0;
  int64_t scalar = -1;
};

/// With whom a launch may share one: none; those of the same code; any, as each item works for itself and does nothing
/// beyond a bound.
enum class Sharing : uint8_t { none, like, any };

struct Launch {
  KernelCode code;
  int32_t call = -1;  // the step that a library computes: then there is no code
  int32_t step = -1;  // what it is a part of; the first of several that were merged
  std::string what;   // the ops, for messages
  Sharing sharing = Sharing::none;
  int64_t groups[3] = {1, 1, 1};
  std::vector<LaunchBuffer> buffers;
  std::vector<LaunchNumber> numbers;
};

class KernelWriter;

/// What instructions may do for speed; see MathMode.
struct Allowed {
  bool contraction = false;  // x * y + z rounds once
  bool quick = false;        // Float32: the quick functions of the device
};

/// A value of the kernel that is being written. An operation on two of them needs equal types; integers join as
/// literals.
struct Term {
  KernelWriter* writer = nullptr;
  uint32_t place = 0;
  ScalarType type = ScalarType::int32;
};

class KernelWriter {
 public:
  /// `index`: the type of element numbers, Int32 or Int64.
  KernelWriter(std::string name, int group, ScalarType index);

  // Arguments. Whatever depends on sizes comes in through number(), so that the code does not.
  int buffer(DType type, LaunchBuffer where);
  Term number(int64_t value);                         // of the index type
  Term scalar(ScalarType type, size_t scalar_index);  // see kernels::scalar_index

  Term literal(ScalarType type, double value);  // exact for integers below 2^53
  Term bits(ScalarType type, int64_t immediate);
  Term index(int64_t value) { return bits(index_type_, value); }
  Term group(int dim);
  Term item();    // in this group
  Term global();  // group(0) * items of a group + item()

  Term load(int buffer, Term at);
  void store(int buffer, Term at, Term value);
  /// Elements at, at + 1, ...; `at` is a multiple of their number. As many vectors as it takes.
  std::vector<Term> load_vector(int buffer, Term at, int lanes, int vector_bytes);
  void store_vector(int buffer, Term at, std::span<const Term> values, int vector_bytes);
  /// What `value` is for item `of` (Int32) of the warp.
  Term shuffle(Term value, Term of);
  int shared(ScalarType type, int count);
  Term shared_load(int array, Term at);
  void shared_store(int array, Term at, Term value);
  /// Of 4 bytes each, 2 or 4 together; where Abilities::matrix_types says that anything is there.
  std::vector<Term> shared_load_vector(int array, Term at, int lanes);
  void shared_store_vector(int array, Term at, std::span<const Term> values);
  void barrier();
  /// Whether this group is the last of `count` that arrive at element `at` of a buffer of LaunchBuffer::counters.
  Term arrive(int buffer, Term at, Term count);
  /// UInt32: x and y (Float32) as neighbouring elements of a 16-bit float, x in the lower bits.
  Term pack(DType storage, Term x, Term y);
  /// x * y + z of the warp's matrices: x (16, k) in 4 words of each item, y (k, 8) in 2, z (16, 8) in 4 Float32, as the
  /// result. `element`: Float16 or BFloat16 (k = 16) or Float32 rounded to TF32 (k = 8), as Abilities::matrix_types has
  /// it; of square matrices y is (k, 16), z (16, 16), and an item has as much as its SquareLayout says. Which item has
  /// which elements: backend.h, MULTIPLY_MATRICES.
  std::vector<Term> multiply_matrices(DType element, std::span<const Term> x, std::span<const Term> y,
                                      std::span<const Term> z);

  Term variable(Term initial);
  void assign(Term variable, Term value);
  /// body(i) for i = from, from + step, ... below to.
  template <class F> void loop(Term from, Term to, Term step, F&& body) {
    body(begin_loop(from, to, step));
    end(KernelOperation::end_loop);
  }
  template <class F> void loop(Term count, F&& body) { loop(index(0), count, index(1), body); }
  template <class F> void when(Term condition, F&& body) {
    append(static_cast<uint16_t>(KernelOperation::begin_if), condition.type, {condition.place});
    body();
    end(KernelOperation::end_if);
  }

  /// See KernelCode::beside; the first word counts.
  void stand_beside(int groups) { launch_.code.beside = launch_.code.beside > 0 ? launch_.code.beside : groups; }

  /// For what is written from here on.
  void allow(Allowed allowed) { allowed_ = allowed; }

  Term apply(Primitive primitive, ScalarType type, std::initializer_list<Term> operands);
  /// The body of an op on these operands.
  Term apply(const ScalarCode& body, std::span<const Term> operands);
  /// Both combined by a reducer's body, as elements of their type.
  Term combine(const CombineBody& body, Term x, Term y);
  Term convert(Term x, ScalarType type);
  /// x as an element of `storage` would come back from memory.
  Term round(Term x, DType storage);
  Term select(Term mask, Term x, Term y);

  /// x / y of numbers that are not below 0. Where y came in through number(), by a product: its factor comes in too.
  Term quotient(Term x, Term y);
  /// The coordinates of element `linear` of an array of these sizes, first dim fastest. The last is not reduced.
  std::vector<Term> coordinates(Term linear, std::span<const Term> sizes);

  ScalarType index_type() const { return index_type_; }
  int32_t items() const { return launch_.code.group; }
  DType element_of_buffer(int buffer) const { return launch_.code.buffers[static_cast<size_t>(buffer)]; }
  ScalarType type_of_buffer(int buffer) const { return scalar_type(element_of_buffer(buffer)); }
  Launch finish(int64_t groups, int64_t second = 1, int64_t third = 1);

 private:
  Term append(uint16_t operation, ScalarType type, std::initializer_list<uint32_t> operands, int64_t immediate = 0);
  Term parameter(size_t number);
  size_t reciprocal_of(size_t divisor);
  Term join(std::span<const Term> values);
  std::vector<Term> lanes_of_vector(Term vector, size_t lanes);
  bool is_product(uint32_t place) const;
  Term fused(uint16_t operation, ScalarType type, uint32_t x, uint32_t y);
  Term begin_loop(Term from, Term to, Term step);
  void end(KernelOperation what) { append(static_cast<uint16_t>(what), ScalarType::int32, {}); }

  Launch launch_;
  ScalarType index_type_;
  Allowed allowed_;
  std::vector<char> contracted_;  // of each instruction: whether it may round together with another one
  std::vector<std::pair<size_t, size_t>> reciprocals_;  // numbers that divide, and those that are their factors
};

Term operator+(Term x, Term y);
Term operator-(Term x, Term y);
Term operator*(Term x, Term y);
Term operator/(Term x, Term y);
Term operator%(Term x, Term y);  // integers: x - x / y * y
Term operator<(Term x, Term y);
Term operator<=(Term x, Term y);
Term operator==(Term x, Term y);
Term operator!=(Term x, Term y);
Term operator&&(Term x, Term y);  // Bool; both are computed
Term operator||(Term x, Term y);
Term operator!(Term x);
Term min(Term x, Term y);
Term max(Term x, Term y);
/// The integer as a literal of x's type.
Term like(Term x, int64_t value);
inline Term operator+(Term x, int64_t y) { return x + like(x, y); }
inline Term operator-(Term x, int64_t y) { return x - like(x, y); }
inline Term operator*(Term x, int64_t y) { return x * like(x, y); }
inline Term operator/(Term x, int64_t y) { return x / like(x, y); }
inline Term operator%(Term x, int64_t y) { return x % like(x, y); }
inline Term operator<(Term x, int64_t y) { return x < like(x, y); }
inline Term operator<=(Term x, int64_t y) { return x <= like(x, y); }
inline Term operator==(Term x, int64_t y) { return x == like(x, y); }
inline Term operator!=(Term x, int64_t y) { return x != like(x, y); }

}  // namespace rosin::kernels
