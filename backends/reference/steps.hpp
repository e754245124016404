// Step: one instruction of a checked kernel, with the function that runs it for all items of a group; Frame: what the
// steps of one launch work on. Read first: interpret.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <rosin/backend.h>

namespace rosin::reference {

/// A buffer argument: from its element 0 to the end of its block.
struct Block {
  void* base = nullptr;
  uint64_t bytes = 0;
};

/// From the first to the last byte that a launch has touched of a buffer.
struct Reach {
  const char* first = nullptr;
  const char* last = nullptr;

  void note(const char* at, size_t bytes) {
    if (!last || at < first) first = at;
    if (!last || at + bytes - 1 > last) last = at + bytes - 1;
  }
  bool meets(const Reach& other) const { return last && other.last && first <= other.last && other.first <= last; }
};

/// The items that take part, at one depth of nested loops and ifs: those of [first, last) whose `on` is 1.
struct Lanes {
  uint8_t* on = nullptr;  // one byte for each item of the group
  int first = 0;
  int last = 0;
  bool all = false;  // every item of the group

  bool none() const { return first == last; }
  bool has(int item) const { return all || on[item] != 0; }
};

/// Where a shared array stands in the shared memory of a group, and among all its elements.
struct SharedPlace {
  int32_t type = 0;
  int32_t count = 0;
  size_t offset = 0;
  size_t first_element = 0;
};

/// Who touched an element of shared memory since the last barrier.
struct Touch {
  static constexpr int32_t many = -1;
  uint64_t written = 0;  // the epoch of the last write
  uint64_t read = 0;
  int32_t writer = 0;
  int32_t reader = 0;  // an item, or `many`
};

struct Frame {
  std::string name;  // of the kernel, for faults
  int items = 0;
  int64_t group[3] = {};
  char* registers = nullptr;
  Block* buffers = nullptr;       // arguments, then those that are chosen
  uint32_t* arguments = nullptr;  // of each, the number of the argument that it is
  Reach* reaches = nullptr;       // of each buffer; null where nobody asks
  const rosin_number* parameters = nullptr;
  const SharedPlace* shared = nullptr;
  char* shared_memory = nullptr;
  Touch* touches = nullptr;  // of each shared element
  uint64_t epoch = 0;        // grows with each group and each barrier
  std::vector<Lanes> lanes;  // by depth; the last in use is lanes[depth]
  size_t depth = 0;
  size_t next = 0;  // the step after this one

  Lanes& active() { return lanes[depth]; }
  template <class T> T* at(size_t offset) { return reinterpret_cast<T*>(registers + offset); }
  /// Values of all items begin at multiples of 64 bytes; the lanes of a vector follow each other.
  size_t value_bytes(size_t scalar_bytes) const { return value_bytes(scalar_bytes, items); }
  static size_t value_bytes(size_t scalar_bytes, int items) {
    return (scalar_bytes * static_cast<size_t>(items) + 63) / 64 * 64;
  }
};

struct Step {
  void (*run)(Frame&, const Step&) = nullptr;
  size_t out = 0;           // byte offset of the value among the registers: one element for each item
  size_t operands[3] = {};  // likewise
  int64_t immediate = 0;
  int lanes = 1;       // of a vector
  size_t jump = 0;     // control: the step to go on with
  uint32_t place = 0;  // of the instruction in the code
};

using Run = void (*)(Frame&, const Step&);

/// Throws Fault; `what` says what the item did.
[[noreturn]] void fault(const Frame& frame, const Step& step, int item, const std::string& what);

// The function of an instruction whose types are known; null where it has none.

/// A primitive; `in`: the type of its operands (SELECT: of y and z).
Run primitive(int operation, int type, int in);
Run round(int rosin_type);
Run load(int rosin_type, int index_type);
Run store(int rosin_type, int index_type);
Run load_vector(int rosin_type, int index_type);
Run store_vector(int rosin_type, int index_type);
Run shuffle(int type);
Run pack(int rosin_type);
/// `lanes`: of the three operands, which say how a warp has the matrices.
Run multiply_matrices(int rosin_type, const int (&lanes)[3]);
Run shared_load(int type, int index_type);
Run shared_store(int type, int index_type);
Run shared_load_vector(int type, int index_type);
Run shared_store_vector(int type, int index_type);
/// LITERAL, PARAMETER, GROUP, ITEM.
Run constant(int operation, int type);
Run assign(int type);
Run copy(int type);
Run begin_loop(int type);
Run end_loop(int type);
void choose(Frame& frame, const Step& step);
Run arrive(int index_type);
void begin_if(Frame& frame, const Step& step);
void begin_else(Frame& frame, const Step& step);
void end_if(Frame& frame, const Step& step);
void barrier(Frame& frame, const Step& step);

}  // namespace rosin::reference
