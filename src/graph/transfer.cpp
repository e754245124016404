// See transfer.hpp.
#include "graph/transfer.hpp"

#include <string>

#include <rosin/error.hpp>

#include "graph/context.hpp"
#include "graph/device_facts.hpp"
#include "graph/hooks.hpp"
#include "graph/leaf.hpp"
#include "graph/record.hpp"
#include "graph/sent_constants.hpp"

namespace rosin {
namespace {

const Op& transfer_op =
    *register_op({.name = "transfer",
                  .kind = Kind::transfer,
                  .operands = 1,
                  .doc = "the same values on another device",
                  .gradient = [](Backward& b) { b.give(0, transferred(b.gradient, b.in(0).node()->device)); }});

void check_type(DType type, int position) {
  const bool wide = type == DType::Float64 || type == DType::ComplexF64;
  if (!wide || device_facts(position).float64) return;
  throw Error(ErrorKind::dtype, "move: " + device_text(position) + " has no " + to_string(DType::Float64) + "; got " +
                                    to_string(type) +
                                    "; move with the default policy, which makes it Float32 (x | device), or cast it");
}

void copy_memory(Memory& target, Memory& source, size_t bytes) {
  if (bytes == 0) return;
  if (source.device == 0) wait_for_values(source);
  const Memory& of_device = target.device != 0 ? target : source;
  of_device.operations->copy(target, source, bytes);
}

/// Inside a gradient call the copy remembers what it is a copy of.
Array arrived(const Array& x, Memory* memory) {
  const Node& from = *x.node();
  if (!Context::current().in_gradient()) {
    Array made = leaf(memory, from.dtype, from.shape());
    made.node()->tied = from.tied;
    return made;
  }
  const Array* operands[] = {&x};
  Array made = record(transfer_op, operands, from.dtype, from.shape());
  Node* node = made.node();
  node->device = static_cast<uint8_t>(memory->device);
  node->tied = from.tied;
  node->buffer = memory;
  node->state.store(NodeState::ready, std::memory_order_release);
  return made;
}

/// A constant that is made anew in each step is sent once.
Array sent(const Array& x, int position) {
  SentConstants& known = SentConstants::of_thread();
  if (Memory* const memory = known.find(x, position)) return leaf(memory, x.dtype(), x.shape());
  const size_t bytes = bytes_of(x.dtype(), x.shape());
  Memory* const memory = hooks.allocate({.bytes = bytes, .device = position});
  const Array there = leaf(memory, x.dtype(), x.shape());
  copy_memory(*memory, *x.node()->buffer, bytes);
  known.keep(x, there);
  retain(memory);
  return leaf(memory, x.dtype(), x.shape());
}

}  // namespace

Array transferred(const Array& x, int position) {
  if (x.node()->device == position || is_scalar(*x.node())) return x;
  check_type(x.dtype(), position);
  const bool is_fixed = x.node()->device == 0 && is_constant(*x.node());
  eval(x);
  const size_t bytes = bytes_of(x.dtype(), x.shape());
  if (is_fixed && !x.node()->tied && SentConstants::takes(bytes)) return sent(x, position);
  Memory* memory = hooks.allocate({.bytes = bytes, .device = position});
  try {
    copy_memory(*memory, *x.node()->buffer, bytes);
    return arrived(x, memory);
  } catch (...) {
    release(memory);
    throw;
  }
}

}  // namespace rosin
