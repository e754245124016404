// PackedForms: other forms of arrays, in which calls of the CPU read them (weights in an engine's blocks or panels),
// kept beside the arrays' memory until that is overwritten or released. A form is made of values that a run before has
// read too: so weights that change with each step are packed by the calls themselves, those that stay once for all.
// Read next: cpu/executor.cpp (who asks), run/packed_leaves.hpp (of which memory).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/memory.hpp"

namespace rosin {

/// Which form of which values in a memory.
struct WantedForm {
  uint64_t name = 0;   // forms of one name have the same bytes
  int64_t offset = 0;  // of the values, in bytes
  size_t bytes = 0;    // of the form
};

/// Shared by all threads.
class PackedForms {
 public:
  static PackedForms& instance();

  /// Memory with the form, which stays as long as it is held; made by make(void* to) where there is none yet. Null
  /// where there is no memory for it, or the limit is in the way.
  template <class Make> std::shared_ptr<const Memory> find(Memory& memory, const WantedForm& wanted, Make make) {
    if (std::shared_ptr<const Memory> found = kept(memory, wanted)) return found;
    std::shared_ptr<Memory> fresh = room(wanted.bytes);
    if (!fresh) return nullptr;
    make(fresh->data);
    return keep(memory, wanted, std::move(fresh));
  }

  /// The memory is released, or its values change.
  static void forget(Memory& memory) noexcept {
    if (memory.reading.exchange(Reading::none, std::memory_order_relaxed) == Reading::packed) instance().drop(memory);
  }

  /// All forms go that no run holds.
  void trim() noexcept;
  int64_t bytes();
  /// Of all forms together; beyond it none is made. Without it, a quarter of the machine's memory.
  void set_limit(int64_t bytes);

 private:
  struct Form {
    WantedForm of;
    std::shared_ptr<Memory> memory;
  };
  using Forms = std::vector<Form>;

  PackedForms();
  std::shared_ptr<const Memory> kept(const Memory& memory, const WantedForm& wanted);
  std::shared_ptr<Memory> room(size_t bytes);
  std::shared_ptr<const Memory> keep(Memory& memory, const WantedForm& wanted, std::shared_ptr<Memory> made);
  void drop(const Memory& memory) noexcept;
  static const Form* among(const Forms& forms, const WantedForm& wanted);

  std::mutex lock_;
  std::unordered_map<const Memory*, Forms> forms_;
  int64_t bytes_ = 0, limit_;
};

}  // namespace rosin
