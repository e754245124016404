// Leaves: nodes that are data, C++ numbers, and arguments of gradient calls.
#pragma once

#include <string_view>

#include <rosin/array.hpp>

#include "graph/op.hpp"

namespace rosin {

extern const Op& leaf_op;
extern const Op& scalar_op;
extern const Op& argument_op;
extern const Op& part_op;

/// A ready node on this memory (one owner of the buffer passes to the node).
Array leaf(Memory* buffer, DType type, const Shape& shape);
/// A fresh array with memory that the caller fills before anybody else sees it.
Array fresh_leaf(DType type, const Shape& shape);
/// x, a leaf of the CPU, as a constant: values that stand in the program, and so follow what they meet (follow.hpp).
Array constant(Array x);
inline bool is_constant(const Node& node) {
  return (node.op == &leaf_op && node.attributes.bytes[0] != 0) || node.settled;
}
/// What keeps memory of a user alive: `drop(object)` lets it go, once, on whichever thread uses the memory last.
class MemoryOwner {
 public:
  MemoryOwner(void* object, void (*drop)(void* object) noexcept) noexcept : object_(object), drop_(drop) {}
  MemoryOwner(MemoryOwner&& other) noexcept : object_(other.object_), drop_(other.drop_) { other.drop_ = nullptr; }
  MemoryOwner& operator=(MemoryOwner&&) = delete;
  ~MemoryOwner() {
    if (drop_) drop_(object_);
  }

 private:
  void* object_;
  void (*drop_)(void* object) noexcept;
};
/// A ready node on memory of a user, column-major, which is read and never written. Error (argument): it is not aligned
/// as its elements are.
Array borrowed_leaf(const void* values, DType type, const Shape& shape, MemoryOwner owner);
/// The same on a mapped file.
Array mapped_leaf(const void* values, DType type, const Shape& shape, MemoryOwner owner);
/// Memory that is the `bytes` of `whole` from byte `offset` on, which it keeps: neither is written while both are
/// there.
Memory* part_of(Memory& whole, size_t offset, size_t bytes);
/// What is there as long as this memory is: itself, or the memory of which it is a part.
Memory& whole_of(Memory& memory) noexcept;
/// The operations of such memory, by which it is known.
extern const MemoryOperations lent_memory, file_memory, part_memory;
/// Whether memory is a user's, a file's or a part of another, so that no result may take it.
inline bool is_lent(const Memory& memory) noexcept {
  return memory.operations == &lent_memory || memory.operations == &file_memory || memory.operations == &part_memory;
}
/// Whether the node is what a mapped file holds with its dims in another order. It is read where it stands: a handle
/// alone does not bring it into memory, only who asks for its values by themselves does.
bool is_look_at_file(const Node& node) noexcept;
/// A fresh identity of x: what a gradient call differentiates by.
Array argument(const Array& x);
/// Whether the node is a C++ number.
inline bool is_scalar(const Node& node) { return node.op == &scalar_op; }
/// What messages call a node that is not evaluated: one of several results by its op.
inline std::string_view op_name(const Node& node) {
  return node.op == &part_op && node.in[0] ? node.in[0]->op->name : node.op->name;
}
inline ScalarValue scalar_value(const Node& node) { return node.attributes.as<ScalarValue>(); }
/// Whether x is this C++ number.
inline bool is_number(const Array& x, double value) {
  if (x.is_nothing() || !is_scalar(*x.node())) return false;
  const ScalarValue number = scalar_value(*x.node());
  return is_float(x.dtype()) ? number.real == value : static_cast<double>(number.integer) == value;
}

/// Writes the C++ number as an element of `type`.
void write_number(const Node& number, void* target, DType type);

/// The array with its value in memory of the CPU: x itself, evaluated, or a copy of what is on another device.
Array on_cpu(const Array& x);

/// A fresh array on the CPU whose element i is value(i).
template <class T, class Value> Array leaf_of(const Shape& shape, Value value) {
  Array made = fresh_leaf(dtype_of<T>, shape);
  T* const elements = static_cast<T*>(made.node()->data());
  for (int64_t i = 0, count = shape.count(); i < count; ++i) elements[i] = value(i);
  return made;
}

/// Bytes of an array.
size_t bytes_of(DType type, const Shape& shape);

}  // namespace rosin
