// Where the values of a loop are while it is written: registers, the stack, the constants behind the code.
// When registers run out, the value that is used farthest in the future leaves its own.
#if defined(ROSIN_HAVE_XBYAK) && defined(__x86_64__)
#include <algorithm>
#include <bit>
#include <cmath>

#include "cpu/machine_writer.hpp"

namespace rosin::cpu {
namespace {

using namespace Xbyak;

using util::rbx, util::r9, util::r10, util::r11, util::r12, util::r13, util::r14, util::r15;
const Reg64 pointer_registers[] = {rbx, r9, r10, r11, r12, r13, r14, r15};

}  // namespace

/// Pointers to the first arrays stay in registers; the others are fetched each time.
template <class Vector> void LoopWriter<Vector>::load_pointers() {
  const size_t arrays = text_.outputs.size() + text_.inputs.size();
  for (size_t i = 0; i < std::min(arrays, std::size(pointer_registers)); ++i) {
    mov(pointer_registers[i], qword[rdi + static_cast<int>(8 * i)]);
  }
}

template <class Vector> Reg64 LoopWriter<Vector>::pointer(size_t memory) {
  if (memory < std::size(pointer_registers)) return pointer_registers[memory];
  mov(rax, qword[rdi + static_cast<int>(8 * memory)]);
  return rax;
}

/// Moves an array by what stands at another place of the list.
template <class Vector> void LoopWriter<Vector>::leap(size_t memory, size_t gap) {
  mov(rax, qword[rdi + static_cast<int>(8 * gap)]);
  if (memory < std::size(pointer_registers)) add(pointer_registers[memory], rax);
  else add(qword[rdi + static_cast<int>(8 * memory)], rax);
}

template <class Vector> Address LoopWriter<Vector>::element(size_t memory, ScalarType type, int part) {
  const Reg64 base = pointer(memory);
  return ptr[base + rcx * bytes_of(type) + part * vector_bytes + half_ * (vector_bytes / 4) * bytes_of(type)];
}

template <class Vector> Address LoopWriter<Vector>::packed_element(size_t memory, Packing packing) {
  const Reg64 base = pointer(memory);
  const int bytes = bytes_of(packing);
  return ptr[base + rcx * bytes + half_ * (vector_bytes / 4) * bytes];
}

template <class Vector> size_t LoopWriter<Vector>::input_memory(size_t place) const {
  return text_.outputs.size() + static_cast<size_t>(list_[place].immediate);
}

template <class Vector> int LoopWriter<Vector>::new_stack(int bytes) {
  const int at = frame_;
  frame_ += (bytes + vector_bytes - 1) / vector_bytes * vector_bytes;
  return at;
}

/// The next place after the present one that reads the value; past the end: none.
template <class Vector> size_t LoopWriter<Vector>::next_use(size_t place) const {
  const std::vector<size_t>& uses = homes_[place].uses;
  const auto next = std::upper_bound(uses.begin(), uses.end(), now_);
  return next == uses.end() ? list_.size() + 1 : *next;
}

template <class Vector> int LoopWriter<Vector>::take(Bank& bank, int first, int last) {
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
template <class Vector> void LoopWriter<Vector>::evict(int place) {
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
template <class Vector> void LoopWriter<Vector>::keep(size_t place) {
  Home& home = homes_[place];
  if (home.stack < 0) home.stack = new_stack(std::max(home.parts, 1) * vector_bytes);
  if constexpr (has_masks) {
    if (home.parts == 0) kmovw(word[rsp + home.stack], Opmask(home.reg[0]));
  }
  for (int part = 0; part < home.parts; ++part) {
    vmovups(ptr[rsp + home.stack + part * vector_bytes], Vector(home.reg[part]));
  }
  home.stands = true;
}

/// Values that nobody reads any more leave their registers: the operands of the place, and its own.
template <class Vector> void LoopWriter<Vector>::end_use(size_t place) {
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

template <class Vector> void LoopWriter<Vector>::unlock() {
  vectors_.locked.fill(false);
  masks_.locked.fill(false);
}

/// Nothing is in registers any more but what is pinned there; what was computed for each element is gone.
template <class Vector> void LoopWriter<Vector>::forget_all() {
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

/// After a leap and after the code that it leaves out all values are in the same places: where they were before. What
/// the code makes is on the stack; behind a leap anything stands there, which nobody chooses.
template <class Vector> void LoopWriter<Vector>::end_rare() {
  const size_t made = leap_->code->end - 1;
  now_ = made;
  if (!homes_[made].stands) keep(made);
  for (Bank* bank : {&vectors_, &masks_}) {
    for (int& owner : bank->owner) {
      if (owner != Bank::reserved) owner = Bank::nobody;
    }
  }
  for (size_t place = 0; place < homes_.size(); ++place) {
    Home& home = homes_[place];
    if (home.pinned) continue;
    Home& before = leap_->homes[place];
    const bool read = next_use(place) <= list_.size();
    for (int part = 0; part < 2; ++part) {
      const int reg = before.reg[part];
      const bool stayed = reg >= 0 && home.reg[part] == reg;
      const bool left = reg >= 0 && !stayed && home.stands && !before.stands;
      home.reg[part] = read && (stayed || left) ? reg : -1;
      if (home.reg[part] < 0) continue;
      Bank& bank = home.parts == 0 ? masks_ : vectors_;
      bank.owner[static_cast<size_t>(reg)] = static_cast<int>(place);
      if (left) reload(place, part);
    }
    home.stands = before.stands || place == made;
  }
  L(leap_->end);
  leap_.reset();
  ++now_;
}

/// From the stack to the register that it was in.
template <class Vector> void LoopWriter<Vector>::reload(size_t place, int part) {
  const Home& home = homes_[place];
  if constexpr (has_masks) {
    if (home.parts == 0) return kmovw(Opmask(home.reg[0]), word[rsp + home.stack]);
  }
  vmovups(Vector(home.reg[part]), ptr[rsp + home.stack + part * vector_bytes]);
}

template <class Vector> void LoopWriter<Vector>::load_input(size_t place, int part) {
  const LoopInput& input = text_.inputs[static_cast<size_t>(list_[place].immediate)];
  if (input.pairing != Pairing::none) return load_pairs(place, part, input.pairing);
  if (input.reads == Reads::each) return load_each(place, part);
  const ScalarType type = list_[place].type;
  const Vector out(homes_[place].reg[part]);
  const Reg64 base = pointer(input_memory(place));
  const int bytes = input.packing == Packing::none ? bytes_of(type) : bytes_of(input.packing);
  const RegExp from = input.reads == Reads::row ? base + rsi * bytes : RegExp(base);
  if (input.packing != Packing::none) {
    const LowerHalf packed(out.getIdx());
    const Xmm low(out.getIdx());
    if (bytes == 1) vpbroadcastb(low, ptr[from]);
    else vpbroadcastw(packed, ptr[from]);
    unpack(input.packing, out, bytes == 1 ? static_cast<const Operand&>(low) : packed);
  } else if (type == ScalarType::boolean) {
    movzx(eax, byte[from]);
    neg(eax);
    vmovd(Xmm(out.getIdx()), eax);
    vpbroadcastd(out, Xmm(out.getIdx()));
  } else if (bytes_of(type) == 8) {
    vbroadcastsd(out, ptr[from]);
  } else {
    vbroadcastss(out, ptr[from]);
  }
}

template <class Vector> void LoopWriter<Vector>::load_pairs(size_t place, int part, Pairing pairing) {
  load_each(place, part);
  const Vector out(homes_[place].reg[part]);
  const bool wide = bytes_of(list_[place].type) == 8;
  const auto shuffle = [&](uint8_t of_eight, uint8_t of_four) {  // how instructions number the elements
    if (wide) vpermilpd(out, out, of_eight);
    else vpermilps(out, out, of_four);
  };
  if (pairing == Pairing::first) shuffle(0x00, 0xa0);
  else if (pairing == Pairing::second) shuffle(0xff, 0xf5);
  else shuffle(0x55, 0xb1);
}

/// A register of the value's own, to be written.
template <class Vector> Vector LoopWriter<Vector>::new_vector(size_t place, int part) {
  Home& home = homes_[place];
  if (home.reg[part] < 0) {
    home.reg[part] = take(vectors_, 0, vector_count - 1);
    vectors_.owner[static_cast<size_t>(home.reg[part])] = static_cast<int>(place);
  }
  if (!home.pinned) vectors_.locked[static_cast<size_t>(home.reg[part])] = true;
  return Vector(home.reg[part]);
}

template <class Vector> Vector LoopWriter<Vector>::vector_of(size_t place, int part) {
  Home& home = homes_[place];
  if (home.reg[part] >= 0) {
    vectors_.locked[static_cast<size_t>(home.reg[part])] = true;
    return Vector(home.reg[part]);
  }
  const Vector out = new_vector(place, part);
  const Instruction& made = list_[place];
  if (home.stands) vmovups(out, ptr[rsp + home.stack + part * vector_bytes]);
  else if (made.primitive == Primitive::input) load_input(place, part);
  else broadcast_literal(place, out);
  return out;
}

/// Whether it is the lesser or greater of a number, which is no NaN, and a Float: what the instruction for it gives.
template <class Vector> bool LoopWriter<Vector>::is_extreme_of_number(const Instruction& made) const {
  if (made.primitive != Primitive::minimum && made.primitive != Primitive::maximum) return false;
  const Instruction& first = list_[made.operands[0]];
  if (first.primitive != Primitive::literal) return false;
  if (first.type == ScalarType::float64) return !std::isnan(std::bit_cast<double>(first.immediate));
  return first.type == ScalarType::float32 && !std::isnan(std::bit_cast<float>(static_cast<int32_t>(first.immediate)));
}

/// x < y ? x : y, or with >.
template <class Vector>
void LoopWriter<Vector>::extreme_float(bool least, ScalarType type, const Vector& out, const Vector& x,
                                       const Operand& y) {
  if (is_wide(type)) least ? vminpd(out, x, y) : vmaxpd(out, x, y);
  else least ? vminps(out, x, y) : vmaxps(out, x, y);
}

/// The bits of a literal in one element, and how many bytes it has.
template <class Vector> std::pair<uint64_t, int> LoopWriter<Vector>::literal_bits(size_t place) const {
  const Instruction& made = list_[place];
  if (made.type == ScalarType::boolean) return {made.immediate ? ~uint64_t{0} : 0, 4};
  return {static_cast<uint64_t>(made.immediate), bytes_of(made.type)};
}

template <class Vector> void LoopWriter<Vector>::broadcast_literal(size_t place, const Vector& out) {
  const auto [bits, bytes] = literal_bits(place);
  const Label& label = constant(bits, bytes);
  if (bytes == 8) vbroadcastsd(out, ptr[rip + label]);
  else vbroadcastss(out, ptr[rip + label]);
}

/// The value as a second operand, which may stand in memory.
template <class Vector> typename LoopWriter<Vector>::Source LoopWriter<Vector>::source_of(size_t place, int part) {
  const Home& home = homes_[place];
  const Instruction& made = list_[place];
  if (home.reg[part] >= 0) return {vector_of(place, part), {}};
  if (home.stands) return {Vector(0), ptr[rsp + home.stack + part * vector_bytes]};
  if (made.primitive == Primitive::literal) {
    const auto [bits, bytes] = literal_bits(place);
    return {Vector(0), splat_bits(bits, bytes)};
  }
  const bool last = next_use(place) > list_.size() && made.type != ScalarType::boolean;
  const bool may_stay = last && !masked_ && home.level == Level::element && made.primitive == Primitive::input;
  if (may_stay) {
    const LoopInput& input = text_.inputs[static_cast<size_t>(made.immediate)];
    const bool stands = input.packing == Packing::none && input.pairing == Pairing::none;
    if (stands) return {Vector(0), element(input_memory(place), made.type, part)};
  }
  return {vector_of(place, part), {}};
}

/// A register for the present instruction alone.
template <class Vector> Vector LoopWriter<Vector>::spare() {
  const int reg = take(vectors_, 0, vector_count - 1);
  return Vector(reg);
}

/// Behind the code.
template <class Vector> const Label& LoopWriter<Vector>::constant(uint64_t bits, int bytes) {
  return constants_[{bytes == 4 ? bits & 0xffffffffu : bits, bytes}];
}

/// The number in all elements.
template <class Vector> Address LoopWriter<Vector>::splat(double value, ScalarType type) {
  auto bits = static_cast<uint64_t>(static_cast<int64_t>(value));
  if (type == ScalarType::float32) bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (type == ScalarType::float64) bits = std::bit_cast<uint64_t>(value);
  return splat_bits(bits, bytes_of(type));
}

template class LoopWriter<Xbyak::Zmm>;
template class LoopWriter<Xbyak::Ymm>;

}  // namespace rosin::cpu

#endif
