// Memory of users as arrays, the memory of arrays for users, and parts of memory, all without a copy. Read next:
// memory.hpp.
#include <rosin/array.hpp>

#include <thread>
#include <utility>

#include <rosin/error.hpp>

#include "graph/device_facts.hpp"
#include "graph/leaf.hpp"
#include "graph/node.hpp"
#include "graph/packed_forms.hpp"

namespace rosin {
namespace {

struct LentMemory : Memory {
  explicit LentMemory(MemoryOwner from) : owner(std::move(from)) {}
  MemoryOwner owner;
};

struct PartMemory : Memory {
  Memory* whole;
};

void release_part(Memory* self) noexcept {
  PackedForms::forget(*self);
  auto* part = static_cast<PartMemory*>(self);
  release(part->whole);
  delete part;
}

/// What elements of a type must be aligned to: their size, and of complex ones that of a part.
size_t alignment_of(DType type) { return size_of(part_type(type)); }

void release_lent(Memory* self) noexcept {
  auto* lent = static_cast<LentMemory*>(self);
  PackedForms::forget(*lent);
  while (!is_over(lent->used_by)) std::this_thread::yield();  // a run behind its thread still reads
  delete lent;
}

Array leaf_on(const void* values, DType type, const Shape& shape, MemoryOwner owner,
              const MemoryOperations& operations) {
  const size_t bytes = bytes_of(type, shape);
  if (reinterpret_cast<uintptr_t>(values) % alignment_of(type) != 0) {
    throw Error(ErrorKind::argument, "borrow: memory of " + std::string(to_string(type)) + " must be aligned to " +
                                         std::to_string(alignment_of(type)) +
                                         " bytes; the pointer is not; copy the values instead: Array(span, shape)");
  }
  if (!values && bytes > 0) {
    throw Error(ErrorKind::argument,
                "borrow: an array of shape " + to_string(shape) + " needs memory; got a null pointer; give the values");
  }
  auto* lent = new LentMemory(std::move(owner));
  lent->data = const_cast<void*>(values);  // (nobody writes what is lent)
  lent->bytes = bytes;
  lent->operations = &operations;
  return leaf(lent, type, shape);
}

}  // namespace

const MemoryOperations lent_memory{.release = release_lent}, file_memory{.release = release_lent},
    part_memory{.release = release_part};

Memory* part_of(Memory& whole, size_t offset, size_t bytes) {
  auto* part = new PartMemory;
  part->whole = &whole_of(whole);
  part->data = static_cast<char*>(whole.data) + offset;
  part->bytes = bytes;
  part->operations = &part_memory;
  retain(part->whole);
  return part;
}

Memory& whole_of(Memory& memory) noexcept {
  return memory.operations == &part_memory ? *static_cast<PartMemory&>(memory).whole : memory;
}

Array borrowed_leaf(const void* values, DType type, const Shape& shape, MemoryOwner owner) {
  return leaf_on(values, type, shape, std::move(owner), lent_memory);
}

Array mapped_leaf(const void* values, DType type, const Shape& shape, MemoryOwner owner) {
  return leaf_on(values, type, shape, std::move(owner), file_memory);
}

bool is_look_at_file(const Node& node) noexcept {
  if (node.op->movement != Movement::permute || node.ready() || !node.in[0] || !node.in[0]->ready()) return false;
  const Memory* const memory = node.in[0]->buffer;
  return memory && memory->operations == &file_memory;
}

Node* Array::borrowed(const void* values, DType type, const Shape& shape, void* owner, void (*drop)(void*) noexcept) {
  return borrowed_leaf(values, type, shape, {owner, drop}).leak();
}

const void* Array::values_of(DType type) const {
  if (is_nothing()) {
    throw Error(ErrorKind::argument, "data: the array is nothing (an empty handle); give it a value first");
  }
  const Node& node = *node_;
  if (is_scalar(node)) throw Error(ErrorKind::argument, "data: a C++ number has no memory; read it with item()");
  if (node.dtype != type) {
    throw Error(ErrorKind::dtype, "data: the elements are read as they are; they are " +
                                      std::string(to_string(node.dtype)) + ", not " + to_string(type) +
                                      "; ask for their own type, or convert with cast or to_vector");
  }
  if (node.device != 0) {
    throw Error(ErrorKind::device, "data: the elements must be in memory of the CPU; the array is on " +
                                       device_text(node.device) + "; copy it with cpu(x) and hold the copy");
  }
  eval(*this);
  return node.data();
}

}  // namespace rosin
