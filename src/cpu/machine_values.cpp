// Where the values of a loop are while it is written: registers, the stack, the constants behind the code.
// When registers run out, the value that is used farthest in the future leaves its own.
#if defined(ROSIN_HAVE_XBYAK) && defined(__x86_64__)
#include <algorithm>
#include <bit>

#include "cpu/machine_writer.hpp"

namespace rosin::cpu {
namespace {

using namespace Xbyak;

constexpr int vector_bytes = 64;
constexpr int first_mask = 1, last_mask = 4;        // of Bools; 5 is for a moment, 6 and 7 are those of the last turn
const Opmask last_turn[] = {Opmask(7), Opmask(6)};  // of elements 0..15 (or 0..7), of elements 8..15
using util::rbx, util::r9, util::r10, util::r11, util::r12, util::r13, util::r14, util::r15;
const Reg64 pointer_registers[] = {rbx, r9, r10, r11, r12, r13, r14, r15};

}  // namespace

/// Pointers to the first arrays stay in registers; the others are fetched each time.
void LoopWriter::load_pointers() {
  const size_t arrays = text_.outputs.size() + text_.inputs.size();
  for (size_t i = 0; i < std::min(arrays, std::size(pointer_registers)); ++i) {
    mov(pointer_registers[i], qword[rdi + static_cast<int>(8 * i)]);
  }
}

Reg64 LoopWriter::pointer(size_t memory) {
  if (memory < std::size(pointer_registers)) return pointer_registers[memory];
  mov(rax, qword[rdi + static_cast<int>(8 * memory)]);
  return rax;
}

Address LoopWriter::element(size_t memory, ScalarType type, int part) {
  const Reg64 base = pointer(memory);
  return ptr[base + rcx * bytes_of(type) + part * vector_bytes];
}

size_t LoopWriter::input_memory(size_t place) const {
  return text_.outputs.size() + static_cast<size_t>(list_[place].immediate);
}

int LoopWriter::new_stack(int bytes) {
  const int at = frame_;
  frame_ += (bytes + vector_bytes - 1) / vector_bytes * vector_bytes;
  return at;
}

/// The next place after the present one that reads the value; past the end: none.
size_t LoopWriter::next_use(size_t place) const {
  const std::vector<size_t>& uses = homes_[place].uses;
  const auto next = std::upper_bound(uses.begin(), uses.end(), now_);
  return next == uses.end() ? list_.size() + 1 : *next;
}

int LoopWriter::take(Bank& bank, int first, int last) {
  int chosen = -1;
  for (int reg = first; reg <= last && chosen < 0; ++reg) {
    const auto at = static_cast<size_t>(reg);
    if (bank.owner[at] == Bank::nobody && !bank.locked[at]) chosen = reg;
  }
  size_t farthest = 0;
  for (int reg = first; reg <= last && (chosen < 0 || farthest > 0); ++reg) {
    const auto at = static_cast<size_t>(reg);
    if (bank.locked[at] || bank.owner[at] < 0) continue;
    const size_t use = next_use(static_cast<size_t>(bank.owner[at]));
    if (use <= farthest) continue;
    chosen = reg;
    farthest = use;
  }
  if (chosen < 0) throw Xbyak::Error(Xbyak::ERR_INTERNAL);  // a loop that is too wide for the registers
  const int owner = bank.owner[static_cast<size_t>(chosen)];
  if (owner >= 0) evict(owner);
  bank.locked[static_cast<size_t>(chosen)] = true;
  return chosen;
}

/// Takes a value out of its registers; it stands on the stack then, unless it can be read once more.
void LoopWriter::evict(int place) {
  Home& home = homes_[static_cast<size_t>(place)];
  const bool input = list_[static_cast<size_t>(place)].primitive == Primitive::input;
  const bool again = input && home.level == Level::element && !home.written;  // its memory may be overwritten then
  const bool literal = list_[static_cast<size_t>(place)].primitive == Primitive::literal && home.parts > 0;
  if (!again && !literal && !home.stands) keep(static_cast<size_t>(place));
  Bank& bank = home.parts == 0 ? masks_ : vectors_;
  for (int& reg : home.reg) {
    if (reg >= 0) bank.owner[static_cast<size_t>(reg)] = Bank::nobody;
    reg = -1;
  }
}

/// Writes a value that is in registers to its place on the stack.
void LoopWriter::keep(size_t place) {
  Home& home = homes_[place];
  if (home.stack < 0) home.stack = new_stack(std::max(home.parts, 1) * vector_bytes);
  if (home.parts == 0) kmovw(word[rsp + home.stack], Opmask(home.reg[0]));
  for (int part = 0; part < home.parts; ++part) {
    vmovups(ptr[rsp + home.stack + part * vector_bytes], Zmm(home.reg[part]));
  }
  home.stands = true;
}

/// Values that nobody reads any more leave their registers: the operands of the place, and its own.
void LoopWriter::end_use(size_t place) {
  const auto drop = [this](size_t value) {
    Home& home = homes_[value];
    if (home.pinned || next_use(value) <= list_.size()) return;
    Bank& bank = home.parts == 0 ? masks_ : vectors_;
    for (int& reg : home.reg) {
      if (reg >= 0) bank.owner[static_cast<size_t>(reg)] = Bank::nobody;
      reg = -1;
    }
  };
  for (int i = 0; i < info(list_[place].primitive).arity; ++i) drop(list_[place].operands[i]);
  drop(place);
}

void LoopWriter::unlock() {
  vectors_.locked.fill(false);
  masks_.locked.fill(false);
}

/// Nothing is in registers any more but what is pinned there; what was computed for each element is gone.
void LoopWriter::forget_all() {
  unlock();
  for (Bank* bank : {&vectors_, &masks_}) {
    for (int& owner : bank->owner) {
      if (owner != Bank::reserved) owner = Bank::nobody;
    }
  }
  for (Home& home : homes_) {
    if (!home.pinned) home.reg[0] = home.reg[1] = -1;
    if (home.level == Level::element) home.stands = false;
  }
}

void LoopWriter::load_input(size_t place, int part) {
  const ScalarType type = list_[place].type;
  const size_t memory = input_memory(place);
  const Zmm out(homes_[place].reg[part]);
  switch (text_.inputs[static_cast<size_t>(list_[place].immediate)]) {
    case Reads::each:
      if (!masked_) vmovups(out, element(memory, type, part));
      else if (bytes_of(type) == 8) vmovupd(out | last_turn[part] | T_z, element(memory, type, part));
      else vmovups(out | last_turn[part] | T_z, element(memory, type, part));
      return;
    case Reads::row:
    case Reads::one: {
      const bool row = text_.inputs[static_cast<size_t>(list_[place].immediate)] == Reads::row;
      const Reg64 base = pointer(memory);
      const Address from = row ? ptr[base + rsi * bytes_of(type)] : ptr[base];
      if (bytes_of(type) == 8) vbroadcastsd(out, from);
      else vbroadcastss(out, from);
    }
  }
}

void LoopWriter::load_mask_input(size_t place) {
  const size_t memory = input_memory(place);
  const Opmask out(homes_[place].reg[0]);
  const Reads reads = text_.inputs[static_cast<size_t>(list_[place].immediate)];
  if (reads == Reads::each) {
    const Xmm bytes(spare().getIdx());
    if (masked_) vmovdqu8(bytes | last_turn[0] | T_z, element(memory, ScalarType::boolean, 0));
    else vmovdqu8(bytes, element(memory, ScalarType::boolean, 0));
    vptestmb(out, bytes, bytes);
    return;
  }
  const Reg64 base = pointer(memory);
  movzx(eax, reads == Reads::row ? byte[base + rsi] : byte[base]);
  neg(eax);
  kmovw(out, eax);
}

/// A register of the value's own, to be written.
Zmm LoopWriter::new_vector(size_t place, int part) {
  Home& home = homes_[place];
  if (home.reg[part] < 0) {
    home.reg[part] = take(vectors_, 0, 31);
    vectors_.owner[static_cast<size_t>(home.reg[part])] = static_cast<int>(place);
  }
  if (!home.pinned) vectors_.locked[static_cast<size_t>(home.reg[part])] = true;
  return Zmm(home.reg[part]);
}

Opmask LoopWriter::new_mask(size_t place) {
  Home& home = homes_[place];
  if (home.reg[0] < 0) {
    home.reg[0] = take(masks_, first_mask, last_mask);
    masks_.owner[static_cast<size_t>(home.reg[0])] = static_cast<int>(place);
  }
  masks_.locked[static_cast<size_t>(home.reg[0])] = true;
  return Opmask(home.reg[0]);
}

Zmm LoopWriter::vector_of(size_t place, int part) {
  Home& home = homes_[place];
  if (home.reg[part] >= 0) {
    vectors_.locked[static_cast<size_t>(home.reg[part])] = true;
    return Zmm(home.reg[part]);
  }
  const Zmm out = new_vector(place, part);
  const Instruction& made = list_[place];
  if (home.stands) vmovups(out, ptr[rsp + home.stack + part * vector_bytes]);
  else if (made.primitive == Primitive::input) load_input(place, part);
  else broadcast_literal(place, out);
  return out;
}

void LoopWriter::broadcast_literal(size_t place, const Zmm& out) {
  const Instruction& made = list_[place];
  const Label& bits = constant(static_cast<uint64_t>(made.immediate), bytes_of(made.type));
  if (bytes_of(made.type) == 8) vbroadcastsd(out, ptr[rip + bits]);
  else vbroadcastss(out, ptr[rip + bits]);
}

/// The value as a second operand, which may stand in memory.
LoopWriter::Source LoopWriter::source_of(size_t place, int part) {
  const Home& home = homes_[place];
  const Instruction& made = list_[place];
  if (home.reg[part] >= 0) return {vector_of(place, part), {}};
  if (home.stands) return {Zmm(0), ptr[rsp + home.stack + part * vector_bytes]};
  if (made.primitive == Primitive::literal) {
    return {Zmm(0), ptr_b[rip + constant(static_cast<uint64_t>(made.immediate), bytes_of(made.type))]};
  }
  const bool last = next_use(place) > list_.size();
  if (last && !masked_ && home.level == Level::element && made.primitive == Primitive::input) {
    return {Zmm(0), element(input_memory(place), made.type, part)};
  }
  return {vector_of(place, part), {}};
}

Opmask LoopWriter::mask_of(size_t place) {
  Home& home = homes_[place];
  if (home.reg[0] >= 0) {
    masks_.locked[static_cast<size_t>(home.reg[0])] = true;
    return Opmask(home.reg[0]);
  }
  const Opmask out = new_mask(place);
  if (home.stands) {
    kmovw(out, word[rsp + home.stack]);
  } else if (list_[place].primitive == Primitive::input) {
    load_mask_input(place);
  } else if (list_[place].immediate != 0) {
    kxnorw(out, out, out);
  } else {
    kxorw(out, out, out);
  }
  return out;
}

/// The bits of a Bool that belong to a part of a value of another type.
Opmask LoopWriter::mask_of(size_t place, ScalarType of, int part) {
  const Opmask all = mask_of(place);
  if (part == 0 || bytes_of(of) != 8) return all;
  kshiftrw(k5, all, 8);
  return k5;
}

/// A register for the present instruction alone.
Zmm LoopWriter::spare() {
  const int reg = take(vectors_, 0, 31);
  return Zmm(reg);
}

/// Behind the code.
const Label& LoopWriter::constant(uint64_t bits, int bytes) {
  return constants_[{bytes == 4 ? bits & 0xffffffffu : bits, bytes}];
}

/// The number in all elements.
Address LoopWriter::splat(double value, ScalarType type) {
  auto bits = static_cast<uint64_t>(static_cast<int64_t>(value));
  if (type == ScalarType::float32) bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (type == ScalarType::float64) bits = std::bit_cast<uint64_t>(value);
  return ptr_b[rip + constant(bits, bytes_of(type))];
}

}  // namespace rosin::cpu

#endif
