// The frame of a loop's code: what is found out beforehand, rows, turns, what is written at their ends.
#if defined(ROSIN_HAVE_XBYAK) && defined(__x86_64__)
#include "cpu/machine_writer.hpp"

#include <algorithm>
#include <numeric>

namespace rosin::cpu {
namespace {

using namespace Xbyak;

using util::rbx, util::rbp, util::r12, util::r13, util::r14, util::r15;
const Reg64 saved[] = {rbx, rbp, r12, r13, r14, r15};

}  // namespace

template <class Vector>
LoopWriter<Vector>::LoopWriter(const OrderedText& ordered, void* memory, size_t bytes)
    : CodeGenerator(bytes, memory), text_(ordered.text), list_(text_.code.list), homes_(list_.size()),
      rare_(ordered.rare) {
  for (Bank* bank : {&vectors_, &masks_}) {
    bank->owner.fill(Bank::nobody);
    bank->locked.fill(false);
  }
}

template <class Vector> void LoopWriter<Vector>::write() {
  find_levels();
  find_uses();
  reserve_registers();
  enter();
  write_level(Level::once);
  forget_all();
  write_rows();
  leave();
  write_constants();
}

template <class Vector> void LoopWriter<Vector>::find_levels() {
  for (size_t place = 0; place < list_.size(); ++place) {
    const Instruction& made = list_[place];
    Home& home = homes_[place];
    home.parts = made.type == ScalarType::boolean ? !has_masks : bytes_of(made.type) == 8 ? 2 : 1;
    if (made.primitive == Primitive::input) {
      const Reads reads = text_.inputs[static_cast<size_t>(made.immediate)].reads;
      home.level = reads == Reads::each ? Level::element : reads == Reads::row ? Level::row : Level::once;
    }
    for (int i = 0; i < info(made.primitive).arity; ++i) {
      home.level = std::max(home.level, homes_[made.operands[i]].level);
    }
  }
}

template <class Vector> void LoopWriter<Vector>::find_uses() {
  for (size_t place = 0; place < list_.size(); ++place) {
    for (int i = 0; i < info(list_[place].primitive).arity; ++i) {
      std::vector<size_t>& uses = homes_[list_[place].operands[i]].uses;
      if (uses.empty() || uses.back() != place) uses.push_back(place);
    }
  }
  for (const LoopOutput& output : text_.outputs) {
    Home& home = homes_[output.place];
    home.written = true;
    if (is_late(output) && (home.uses.empty() || home.uses.back() != list_.size())) home.uses.push_back(list_.size());
  }
}

/// Vector registers that the values of a turn need at once.
template <class Vector> int LoopWriter<Vector>::most_alive() const {
  std::vector<int> change(list_.size() + 2, 0);
  for (size_t place = 0; place < list_.size(); ++place) {
    const Home& home = homes_[place];
    if (home.level != Level::element || home.uses.empty()) continue;
    const bool input = list_[place].primitive == Primitive::input;
    change[input ? home.uses.front() : place] += home.parts;
    change[home.uses.back() + 1] -= home.parts;
  }
  int alive = 0, most = 0;
  for (const int step : change) most = std::max(most, alive += step);
  return most;
}

/// Sums have registers of their own, and so have the values from outside the loop that it reads most often.
template <class Vector> void LoopWriter<Vector>::reserve_registers() {
  constexpr int at_hand = has_masks ? 8 : 7;  // registers that an instruction may need beside those of living values
  int next = vector_count;
  const auto reserve = [&] {
    vectors_.owner[static_cast<size_t>(--next)] = Bank::reserved;
    return next;
  };
  for (const LoopOutput& output : text_.outputs) {
    std::array<int, 4> sum{-1, -1, -1, -1};
    for (int half = 0; output.combines && half < halves; ++half) {
      for (int part = 0; part < homes_[output.place].parts; ++part) {
        sum[static_cast<size_t>(2 * half + part)] = reserve();
      }
    }
    sums_.push_back(sum);
  }
  std::vector<std::pair<int64_t, size_t>> wanted;  // by how often the turn reads them, most often first
  for (size_t place = 0; place < list_.size(); ++place) {
    const Home& home = homes_[place];
    const auto uses = std::count_if(home.uses.begin(), home.uses.end(), [&](size_t use) {
      return use >= list_.size() || homes_[use].level == Level::element;
    });
    if (home.level != Level::element && home.parts > 0 && uses > 0) wanted.emplace_back(-uses, place);
  }
  std::sort(wanted.begin(), wanted.end());
  int room = next - most_alive() - at_hand;
  for (const auto& [uses, place] : wanted) {
    Home& home = homes_[place];
    if (home.parts > room) continue;
    room -= home.parts;
    home.pinned = true;
    for (int part = 0; part < home.parts; ++part) home.reg[part] = reserve();
  }
}

/// rdi: the list of pointers, rsi: the row, rdx: elements of a row, rcx: the element, r8: the end of whole turns.
template <class Vector> void LoopWriter<Vector>::enter() {
  for (const Reg64& reg : saved) push(reg);
  mov(rbp, rsp);
  and_(rsp, -64);
  sub(rsp, 0x7fffffff);  // put right by leave()
  frame_at_ = getSize() - 4;
  mov(qword[rsp], rsi);
  load_pointers();
}

template <class Vector> void LoopWriter<Vector>::leave() {
  leaves_at_ = getSize();
  mov(rsp, rbp);
  for (size_t i = std::size(saved); i-- > 0;) pop(saved[i]);
  vzeroupper();
  const auto& outputs = text_.outputs;
  if (std::any_of(outputs.begin(), outputs.end(), [](const LoopOutput& output) { return output.streams; })) sfence();
  ret();
  rewrite(frame_at_, static_cast<uint64_t>(frame_), 4);
}

/// What enter() and leave() do, in DWARF's words: each register that is saved stands below those before it.
std::vector<unsigned char> call_frame(size_t leaves_at) {
  constexpr unsigned char advance = 0x40, offset = 0x80, restore = 0xc0;  // and a number
  constexpr unsigned char advance_far = 0x04, define_frame = 0x0c, define_frame_offset = 0x0e;
  constexpr unsigned char numbers[] = {3, 6, 12, 13, 14, 15}, push_bytes[] = {1, 1, 2, 2, 2, 2};  // of `saved`
  constexpr unsigned char base_pointer = 6, stack_pointer = 7, move_bytes = 3, count = std::size(numbers);
  std::vector<unsigned char> frame;
  const auto put = [&](auto... bytes) { (frame.push_back(static_cast<unsigned char>(bytes)), ...); };
  size_t entered = move_bytes;
  for (int i = 0; i < count; ++i) {
    put(advance | push_bytes[i], define_frame_offset, 8 * (i + 2), offset | numbers[i], i + 2);
    entered += push_bytes[i];
  }
  put(advance | move_bytes, define_frame, base_pointer, 8 * (count + 1));
  const size_t gone = leaves_at + move_bytes + 4 * 2 + 1 - entered;  // up to where rbp is the caller's
  put(advance_far, gone, gone >> 8, gone >> 16, gone >> 24, define_frame, stack_pointer, 2 * 8);
  for (int i = 1; i < count; ++i) put(restore | numbers[i]);
  put(advance | 1, define_frame_offset, 8, restore | numbers[0]);
  return frame;
}

template <class Vector> void LoopWriter<Vector>::write_constants() {
  align(8);
  for (auto& [constant, label] : constants_) {
    L(label);
    for (int at = 0; at < (has_masks ? constant.second : vector_bytes); at += constant.second) {
      if (constant.second == 8) dq(constant.first);
      else dd(static_cast<uint32_t>(constant.first));
    }
  }
}

/// Computes the values of one level in their order. Those from outside the loop wait for it in a register or on the
/// stack.
template <class Vector> void LoopWriter<Vector>::write_level(Level level) {
  auto rare = level == Level::element ? rare_.begin() : rare_.end();
  for (now_ = 0; now_ < list_.size(); ++now_) {
    if (leap_ && now_ == leap_->code->end) end_rare();
    if (rare != rare_.end() && now_ == rare->first) begin_rare(*rare++);
    Home& home = homes_[now_];
    if (home.level != level || (home.uses.empty() && !home.written)) continue;
    const Primitive what = list_[now_].primitive;
    if (what == Primitive::literal && !home.pinned) continue;
    if (what == Primitive::input && level == Level::element && !home.written) continue;  // loaded where it is read
    compute(now_);
    if (level == Level::element) write_outputs(now_, false);
    else if (!home.pinned) keep(now_);
    unlock();
    end_use(now_);
  }
}

/// Where the choice is the same for many elements there is nothing to leap over.
template <class Vector> void LoopWriter<Vector>::begin_rare(const RareCode& rare) {
  if (homes_[rare.condition].level != Level::element || homes_[rare.end - 1].level != Level::element) return;
  leap_.emplace().code = &rare;
  leap_unless_any(rare.condition, rare.chosen, leap_->end);
  unlock();
  leap_->homes = homes_;
}

template <class Vector> void LoopWriter<Vector>::write_rows() {
  Label row, turn, last, end, done;
  xor_(esi, esi);
  xor_(ecx, ecx);
  begin_rows();
  L(row);
  cmp(rsi, qword[rsp]);
  jge(done, T_NEAR);
  write_level(Level::row);
  forget_all();
  for (size_t i = 0; i < text_.outputs.size(); ++i) begin_sum(text_.outputs[i], i);
  mov(r8, rdx);
  and_(r8, -turn_elements);
  add(r8, rcx);
  jmp(last, T_NEAR);
  align(32);
  L(turn);
  write_turn();
  add(rcx, turn_elements);
  L(last);
  cmp(rcx, r8);
  jl(turn, T_NEAR);
  mov(r8d, edx);
  and_(r8d, turn_elements - 1);
  jz(end, T_NEAR);
  masked_ = true;
  write_last_turn();
  masked_ = false;
  add(rcx, r8);
  L(end);
  for (size_t i = 0; i < text_.outputs.size(); ++i) combine_lanes(text_.outputs[i], i);
  leap_gaps();
  inc(rsi);
  jmp(row, T_NEAR);
  L(done);
}

template <class Vector> void LoopWriter<Vector>::write_turn() {
  for (half_ = 0; half_ < halves; ++half_) write_half();
  half_ = 0;
}

/// The turn under a mask: its second half where there is something in it.
template <class Vector> void LoopWriter<Vector>::write_last_turn() {
  Label done;
  for (half_ = 0; half_ < halves; ++half_) {
    if (half_ == 1) {
      cmp(r8d, turn_elements / halves);
      jle(done, T_NEAR);
    }
    begin_last_turn();
    write_half();
  }
  L(done);
  half_ = 0;
}

template <class Vector> void LoopWriter<Vector>::write_half() {
  write_level(Level::element);
  for (size_t place = 0; place < list_.size(); ++place) {
    now_ = list_.size() - 1;
    write_outputs(place, true);
    unlock();
  }
  forget_all();
}

/// Whether it is written when all else of the turn is done.
template <class Vector> bool LoopWriter<Vector>::is_late(const LoopOutput& output) const {
  return output.shares || homes_[output.place].level != Level::element;
}

template <class Vector> void LoopWriter<Vector>::write_outputs(size_t place, bool late) {
  if (!homes_[place].written) return;
  for (size_t i = 0; i < text_.outputs.size(); ++i) {
    const LoopOutput& output = text_.outputs[i];
    if (output.place != place || is_late(output) != late) continue;
    if (output.combines) accumulate(output, i);
    else store(output, i);
  }
}

template <class Vector> void LoopWriter<Vector>::begin_sum(const LoopOutput& output, size_t number) {
  const ScalarType type = list_[output.place].type;
  if (!output.combines) return;
  for (int half = 0; half < halves; ++half) {
    for (int part = 0; part < homes_[output.place].parts; ++part) {
      const Vector sum = sum_of(number, half, part);
      const Label& bits = constant(static_cast<uint64_t>(output.neutral), bytes_of(type));
      if (bytes_of(type) == 8) vbroadcastsd(sum, ptr[rip + bits]);
      else vbroadcastss(sum, ptr[rip + bits]);
    }
  }
  watch_sum(output, number);
}

/// sum = combine(sum, value); behind the end of the row it stays as it is.
template <class Vector> void LoopWriter<Vector>::accumulate(const LoopOutput& output, size_t number) {
  const ScalarType type = list_[output.place].type;
  if (accumulates_watched(output, number)) return;
  for (int part = 0; part < homes_[output.place].parts; ++part) {
    const Vector sum = sum_of(number, half_, part);
    const Vector value = vector_of(output.place, part);
    if (!masked_) {
      binary(*output.combines, type, sum, sum, value);
      continue;
    }
    const Vector next = spare();
    binary(*output.combines, type, next, sum, value);
    keep_sum(type, part, sum, next);
  }
}

/// Joins the sixteen lanes as a tree, the last half of them with the first, and writes the row's result.
template <class Vector> void LoopWriter<Vector>::combine_lanes(const LoopOutput& output, size_t number) {
  if (!output.combines) return;
  const ScalarType type = list_[output.place].type;
  const bool wide = bytes_of(type) == 8;
  const Vector sum = sum_of(number, 0, 0), half = spare();
  const auto join = [&](const Vector& into, const Vector& other) {
    if (watches(number)) extreme_float(output.combines == Primitive::minimum, type, into, into, other);
    else binary(*output.combines, type, into, into, other);
  };
  for (int part = 0; halves == 2 && part < homes_[output.place].parts; ++part) {
    join(sum_of(number, 0, part), sum_of(number, 1, part));
  }
  if (wide) join(sum, sum_of(number, 0, 1));
  if constexpr (has_masks) {
    vextracti64x4(Ymm(half.getIdx()), sum, 1);
    join(sum, half);
    vextracti32x4(Xmm(half.getIdx()), sum, 1);
  } else {
    vextracti128(Xmm(half.getIdx()), sum, 1);
  }
  join(sum, half);
  vpshufd(half, sum, 0x0e);
  join(sum, half);
  if (!wide) {
    vpshufd(half, sum, 0x01);
    join(sum, half);
  }
  if (watches(number)) end_watched(number);
  const Address to = ptr[pointer(number) + rsi * bytes_of(type)];
  if (wide) vmovsd(to, Xmm(sum.getIdx()));
  else vmovss(to, Xmm(sum.getIdx()));
  unlock();
}

/// Inputs whose rows stand apart: to the next row.
template <class Vector> void LoopWriter<Vector>::leap_gaps() {
  size_t gap = text_.outputs.size() + text_.inputs.size();
  for (size_t i = 0; i < text_.inputs.size(); ++i) {
    if (text_.inputs[i].gaps) leap(text_.outputs.size() + i, gap++);
  }
}

template class LoopWriter<Xbyak::Zmm>;
template class LoopWriter<Xbyak::Ymm>;

}  // namespace rosin::cpu

#endif
