// Node: one recorded op (or one leaf). Fixed size, taken from slabs, counted, immutable but for its evaluation state.
// Read next: op.hpp (what an op is), record.hpp (how nodes are made).
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <rosin/array.hpp>
#include <rosin/dtype.hpp>
#include <rosin/shape.hpp>

#include "graph/attributes.hpp"
#include "graph/counting.hpp"
#include "graph/memory.hpp"
#include "graph/recorded_in.hpp"
#include "scalar/body.hpp"

namespace rosin {

struct Op;
class Context;

/// Parameters of one recorded op, at most 64 bytes; which struct is inside is known to the op. Unused bytes are zero.
struct Attributes {
  alignas(8) unsigned char bytes[64] = {};

  template <class T> static Attributes of(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 64);
    Attributes attributes;
    std::memcpy(attributes.bytes, &value, sizeof(T));
    return attributes;
  }
  template <class T> T as() const {
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    return value;
  }
  uint64_t word(int i) const {
    uint64_t value;
    std::memcpy(&value, bytes + i * 8, sizeof value);
    return value;
  }
};

/// Value of a C++ number; floats are exact as double, integers as int64.
struct ScalarValue {
  double real;
  int64_t integer;
};

/// Whether a node has its value. What could not be computed is left out until it, or what depends on it, is asked for:
/// it has failed where no error was thrown for it yet, and is reported where one was.
enum class NodeState : uint8_t { pending, ready, failed, reported };

struct Node;

/// Operands of a node that has more than stand in it. The node owns the list; its block comes from the free lists.
struct alignas(8) OperandList {
  uint32_t count;

  Node** nodes() { return reinterpret_cast<Node**>(this + 1); }
  /// With null for all of them. Error (memory).
  static OperandList* make(size_t count);
  void free() noexcept;
};

struct alignas(64) Node {
  static constexpr int max_operands = 4;   // arrays that stand in the node itself
  static constexpr int max_positions = 8;  // of elementwise ops: arrays (in the first four) and numbers
  static constexpr uint8_t many = 255;     // as `operands`: there are more arrays, in a list. Not for elementwise ops

  // User handles in bits 0 to 31, references from other nodes in bits 32 to 62; bit 63 while the recorder holds the
  // node: it lists it, or `own` is not 0. The node lives while any bit is set, but for a recorder that is the only
  // holder and has `own` 0. Only the recorder's thread changes bit 63.
  std::atomic<uint64_t> counts;
  const Op* op;  // never null
  // Operands: arrays() for who wants them all. Null once the value is there, unless a gradient call still needs them.
  union {
    Node* in[max_operands];
    OperandList* list;  // where `operands` is `many`
  };
  Context* recorder;  // the context of the thread that made it
  Node* previous;     // pending nodes of one context, in recording order
  Node* next;
  Node* next_orphan;
  Memory* buffer;     // the value, once ready: contiguous, column-major
  uint64_t sequence;  // recording order within the context
  // References from nodes of the same recorder; only its thread changes them, so no instruction is locked.
  std::atomic<uint32_t> own;
  // What never changes stands together, in the order of likeness() and facts(): each is read at once.
  bool weak;       // a C++ number: takes the type of its neighbours
  uint8_t device;  // index of the device; 0 is the CPU
  DType dtype;
  uint8_t rank;
  uint8_t wide;        // bit d: dim d has a size other than 1
  ScalarType compute;  // elementwise: the type the body runs in
  uint16_t op_id;
  uint8_t operands;
  uint8_t scalars;   // elementwise: bit i: operand i is a C++ number kept in `numbers`
  bool tied : 1;     // a tie made on purpose: copies inside one model are one parameter
  bool settled : 1;  // evaluated at its call, but made from nothing but the program: it still follows
  std::atomic<NodeState> state;
  std::atomic<bool> listed;     // in one of the lists of its recorder
  bool kept;                    // evaluated inside a gradient call that still needs its operands
  bool left;                    // its thread has ended: what it refers to does not count it in `own`
  std::atomic<uint8_t> guards;  // references that may be given back when a step fails; they do not hinder donation
  uint32_t mark;                // scratch of walks by the recording thread: valid when equal to the walk's stamp
  uint32_t slot;
  RecordedIn recorded_in;
  int64_t sizes[Shape::max_rank] = {};
  union {
    Attributes attributes;
    ScalarValue numbers[4];  // elementwise: the C++ numbers among the operands, in their order
  };

  Node() : attributes() {}
  /// The C++ number at a position whose bit is set in `scalars`.
  const ScalarValue& number(int position) const { return numbers[std::popcount(scalars & ((1u << position) - 1))]; }
  /// Operands that are nodes; null where a C++ number stands, and (or none) once the value is there.
  std::span<Node* const> arrays() const {
    if (operands <= max_operands) [[likely]]
      return {in, operands};
    if (operands != many) return {in, max_operands};
    return list ? std::span<Node* const>(list->nodes(), list->count) : std::span<Node* const>();
  }
  /// Operands, numbers among them; of a node that has not let them go.
  int operand_count() const { return operands == many ? static_cast<int>(arrays().size()) : operands; }
  /// weak, device, dtype and rank as one word.
  uint32_t likeness() const { return word_at<uint32_t>(offsetof(Node, weak)); }
  /// dtype, rank, wide, compute, op_id, operands and scalars as one word: what a kernel must know beside the operands.
  /// The fourth byte, compute, has free bits from `free_fact`.
  uint64_t facts() const { return word_at<uint64_t>(offsetof(Node, dtype)); }
  static constexpr int free_fact = std::endian::native == std::endian::little ? 28 : 36;
  void set_sizes(const int64_t* from, int count) {
    rank = static_cast<uint8_t>(count);
    unsigned others = 0;
    for (int d = 0; d < count; ++d) {
      sizes[d] = from[d];
      others |= unsigned{from[d] != 1} << d;
    }
    wide = static_cast<uint8_t>(others);
  }
  bool has_sizes_of(const Node& other) const { return rank == other.rank && is_as_large_as(other); }
  /// The same for a node of the same rank.
  bool is_as_large_as(const Node& other) const {
    for (int d = 0; d < rank; ++d) {  // a call of memcmp would cost more
      if (sizes[d] != other.sizes[d]) return false;
    }
    return true;
  }
  void set_sizes_of(const Node& other) {
    rank = other.rank;
    wide = other.wide;
    std::memcpy(sizes, other.sizes, sizeof sizes);  // all of them: a copy of known length
  }
  Shape shape() const { return Shape(sizes, rank); }
  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= sizes[d];
    return n;
  }
  bool ready() const { return state.load(std::memory_order_acquire) == NodeState::ready; }
  bool is_set_aside() const { return state.load(std::memory_order_relaxed) > NodeState::ready; }
  uint32_t users() const { return static_cast<uint32_t>(counts.load(std::memory_order_relaxed)); }
  uint32_t references() const { return references_in(counts.load(std::memory_order_relaxed)); }
  /// From nodes of other recorders, or whose thread has ended.
  uint32_t foreign_references() const { return foreign_in(counts.load(std::memory_order_relaxed)); }
  static uint32_t foreign_in(uint64_t loaded) { return static_cast<uint32_t>(loaded >> 32 & 0x7FFFFFFF); }
  /// All of them, where `counts` is loaded already.
  uint32_t references_in(uint64_t loaded) const { return foreign_in(loaded) + own.load(std::memory_order_relaxed); }
  /// The bytes of a ready node on the CPU; waits while work of another thread writes them.
  void* data() const {
    wait_for_values(*buffer);
    return buffer->data;
  }

 private:
  template <class Word> Word word_at(size_t offset) const {
    Word word;
    std::memcpy(&word, reinterpret_cast<const unsigned char*>(this) + offset, sizeof word);
    return word;
  }
};

static_assert(sizeof(Node) == 256);

inline constexpr uint64_t one_user = 1;
inline constexpr uint64_t one_reference = uint64_t{1} << 32;
inline constexpr uint64_t held_by_recorder = uint64_t{1} << 63;

inline void add_count(Node* node, uint64_t which) { add_to(node->counts, which, std::memory_order_relaxed); }
/// Makes one count another one.
inline void change_count(Node* node, uint64_t from, uint64_t to) {
  add_to(node->counts, to - from, std::memory_order_relaxed);
}
/// Drops a count and, with the last one, the node (and what only it held, without recursion).
void drop_count(Node* node, uint64_t which) noexcept;

/// Whether a reference counts in the operand's `own`.
inline bool is_own(const Node* node, const Node* operand) { return node->recorder == operand->recorder && !node->left; }
/// Counts the reference to an operand that another thread has recorded.
void add_foreign_reference(const Node* node, Node* operand);
/// Counts the reference from a fresh node of this thread to its operand.
inline void add_reference(const Node* node, Node* operand) {
  if (node->recorder != operand->recorder) return add_foreign_reference(node, operand);
  const uint32_t own = operand->own.load(std::memory_order_relaxed);
  operand->own.store(own + 1, std::memory_order_relaxed);
  const bool held = operand->counts.load(std::memory_order_relaxed) & held_by_recorder;
  if (!held) add_count(operand, held_by_recorder);
}

}  // namespace rosin
