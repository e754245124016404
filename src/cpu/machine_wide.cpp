// AVX-512: the instructions of each primitive, whose meaning stands in scalar/compute.hpp; masks.
#if defined(ROSIN_HAVE_XBYAK) && defined(__x86_64__)
#include <algorithm>
#include <limits>

#include "cpu/machine_wide.hpp"

namespace rosin::cpu {
namespace {

using namespace Xbyak;

constexpr uint32_t quiet_nan = 0x7fc00000;          // of Float32
constexpr int first_mask = 1, last_mask = 4;        // of Bools; 5 is for a moment, 6 and 7 are those of the last turn
const Opmask last_turn[] = {Opmask(7), Opmask(6)};  // of elements 0..15 (or 0..7), of elements 8..15

enum Comparison : uint8_t { equal = 0, less = 1, less_equal = 2, not_equal = 4 };  // of integers

bool converts(ScalarType from, ScalarType to) {
  return !is_float(from) || is_float(to) || to == ScalarType::boolean || is_signed(to);
}

}  // namespace

/// Products of 64-bit integers are left to the compiled loops: circular functions have one that does without most of
/// their work where all angles are small.
bool WideWriter::knows(const ScalarCode& code, const Instruction& made) {
  if (made.quick != Quick::none) return false;
  const int arity = info(made.primitive).arity;
  const ScalarType type = arity > 0 ? code.list[made.operands[arity - 1]].type : made.type;  // select: of the values
  const bool boolean = type == ScalarType::boolean;
  switch (made.primitive) {
    case Primitive::divide:
    case Primitive::multiply: return is_float(type) || !is_wide(type);
    case Primitive::convert: return converts(type, made.type);
    case Primitive::less:
    case Primitive::less_equal: return !boolean;
    default: return true;
  }
}

bool WideWriter::combines_with(Primitive primitive, ScalarType type) {
  if (type == ScalarType::boolean) return false;
  return primitive == Primitive::add || primitive == Primitive::multiply || primitive == Primitive::minimum ||
         primitive == Primitive::maximum;
}

void WideWriter::begin_last_turn() {
  mov(eax, -1);
  bzhi(eax, eax, r8d);
  kmovw(last_turn[0], eax);
  kshiftrw(last_turn[1], last_turn[0], 8);
}

void WideWriter::load_each(size_t place, int part) {
  const Packing packing = text_.inputs[static_cast<size_t>(list_[place].immediate)].packing;
  if (packing != Packing::none) return load_packed(place, packing);
  const ScalarType type = list_[place].type;
  const Zmm out(homes_[place].reg[part]);
  const Address from = element(input_memory(place), type, part);
  if (!masked_) vmovups(out, from);
  else if (bytes_of(type) == 8) vmovupd(out | last_turn[part] | T_z, from);
  else vmovups(out | last_turn[part] | T_z, from);
}

/// The least or greatest Float32 of a row. A mask tells whether a lane has met NaN: comparing the sum with itself would
/// let each turn wait for the one before. Masks are free where no value is a Bool.
void WideWriter::watch_sum(const LoopOutput& output, size_t number) {
  const bool extreme = output.combines == Primitive::minimum || output.combines == Primitive::maximum;
  if (!extreme || list_[output.place].type != ScalarType::float32) return;
  const bool has_bools =
      std::any_of(list_.begin(), list_.end(), [](const Instruction& made) { return made.type == ScalarType::boolean; });
  const int reg = last_mask - static_cast<int>(watched_.size());
  if (has_bools || reg < first_mask) return;
  const Opmask ordered = watched_.emplace(number, Opmask(reg)).first->second;
  kxnorw(ordered, ordered, ordered);
}

bool WideWriter::accumulates_watched(const LoopOutput& output, size_t number) {
  const auto known = watched_.find(number);
  if (known == watched_.end()) return false;
  const Opmask ordered = known->second;
  const Zmm sum = sum_of(number, 0, 0), value = vector_of(output.place, 0);
  extreme_float(output.combines == Primitive::minimum, ScalarType::float32, masked_ ? sum | last_turn[0] : sum, sum,
                value);
  vcmpps(masked_ ? k5 | last_turn[0] : k5, value, value, unordered);
  kandnw(ordered, k5, ordered);
  return true;
}

/// NaN, where a lane has met it.
void WideWriter::end_watched(size_t number) {
  const Opmask ordered = watched_.at(number);
  Label end;
  kortestw(ordered, ordered);
  jc(end);
  vbroadcastss(sum_of(number, 0, 0), ptr[rip + constant(quiet_nan, 4)]);
  L(end);
}

void WideWriter::leap_unless_any(size_t place, bool chosen, const Label& end) {
  const Opmask mask = mask_of(place);
  if (chosen) kmovw(k5, mask);
  else knotw(k5, mask);
  if (masked_) kandw(k5, k5, last_turn[0]);
  kortestw(k5, k5);
  jz(end, T_NEAR);
}

void WideWriter::keep_sum(ScalarType type, int part, const Zmm& sum, const Zmm& next) {
  if (bytes_of(type) == 8) vmovapd(sum | last_turn[part], next);
  else vmovaps(sum | last_turn[part], next);
}

Address WideWriter::splat_bits(uint64_t bits, int bytes) { return ptr_b[rip + constant(bits, bytes)]; }

void WideWriter::unpack(Packing packing, const Zmm& out, const Operand& packed) {
  if (packing == Packing::half) return vcvtph2ps(out, packed);
  if (packing == Packing::byte) return vpmovzxbd(out, packed);
  if (packing == Packing::signed_byte) return vpmovsxbd(out, packed);
  if (packing == Packing::signed_word) return vpmovsxwd(out, packed);
  const Zmm whole(out.getIdx());
  vpmovzxwd(out, packed);
  if (packing == Packing::bfloat) vpslld(whole, whole, bfloat_shift);
}

void WideWriter::load_packed(size_t place, Packing packing) {
  const Zmm out(homes_[place].reg[0]);
  unpack(packing, masked_ ? out | last_turn[0] | T_z : out, packed_element(input_memory(place), packing));
}

Zmm WideWriter::bfloat_bits(const Zmm& x) {
  const Zmm bits = spare();
  write_rounding(*this, bits, x, k5, {splat_bits(1, 4), splat_bits(0x7fff, 4), splat_bits(0x400000, 4)});
  return bits;
}

void WideWriter::round(Packing packing, const Zmm& out, const Zmm& x) {
  if (packing == Packing::bfloat) return vpandd(out, bfloat_bits(x), splat_bits(0xffff0000, 4));
  if (is_signed(packing)) {
    vpslld(out, x, sign_shift(packing));
    return vpsrad(out, out, sign_shift(packing));
  }
  if (is_integer(packing)) return vpandd(out, x, splat_bits(low_bits(packing), 4));
  const Ymm packed(out.getIdx());
  vcvtps2ph(packed, x, to_nearest_even);
  vcvtph2ps(out, packed);
}

void WideWriter::store_packed(const LoopOutput& output, size_t number) {
  const Zmm value = vector_of(output.place, 0);
  const Address all = packed_element(number, output.packing), to = masked_ ? all | last_turn[0] : all;
  if (output.packing == Packing::half) return vcvtps2ph(to, value, to_nearest_even);
  if (bytes_of(output.packing) == 1) return vpmovdb(to, value);
  if (is_integer(output.packing)) return vpmovdw(to, value);
  const Zmm bits = output.fits ? spare() : bfloat_bits(value);
  vpsrld(bits, output.fits ? value : bits, bfloat_shift);
  vpmovdw(to, bits);
}

void WideWriter::store(const LoopOutput& output, size_t number) {
  if (output.packing != Packing::none) return store_packed(output, number);
  const ScalarType type = list_[output.place].type;
  if (type == ScalarType::boolean) {
    const Xmm bytes(spare().getIdx());
    vpmovm2b(bytes, mask_of(output.place));
    vpabsb(bytes, bytes);
    const Address to = element(number, type, 0);
    if (masked_) vmovdqu8(to | last_turn[0], bytes);
    else vmovdqu8(to, bytes);
    return;
  }
  for (int part = 0; part < homes_[output.place].parts; ++part) {
    const Zmm value = vector_of(output.place, part);
    const Address to = element(number, type, part);
    if (!masked_ && output.streams) vmovntps(to, value);
    else if (!masked_) vmovups(to, value);
    else if (bytes_of(type) == 8) vmovupd(to | last_turn[part], value);
    else vmovups(to | last_turn[part], value);
  }
}

void WideWriter::load_mask_input(size_t place) {
  const size_t memory = input_memory(place);
  const Opmask out(homes_[place].reg[0]);
  const Reads reads = text_.inputs[static_cast<size_t>(list_[place].immediate)].reads;
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

Opmask WideWriter::new_mask(size_t place) {
  Home& home = homes_[place];
  if (home.reg[0] < 0) {
    home.reg[0] = take(masks_, first_mask, last_mask);
    masks_.owner[static_cast<size_t>(home.reg[0])] = static_cast<int>(place);
  }
  masks_.locked[static_cast<size_t>(home.reg[0])] = true;
  return Opmask(home.reg[0]);
}

Opmask WideWriter::mask_of(size_t place) {
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
Opmask WideWriter::mask_of(size_t place, ScalarType of, int part) {
  const Opmask all = mask_of(place);
  if (part == 0 || bytes_of(of) != 8) return all;
  kshiftrw(k5, all, 8);
  return k5;
}

void WideWriter::compute(size_t place) {
  const Instruction& made = list_[place];
  if (made.type == ScalarType::boolean) return compute_mask(place);
  if (made.primitive == Primitive::convert) return convert(place);
  for (int part = 0; part < homes_[place].parts; ++part) compute_vector(place, part);
}

void WideWriter::compute_mask(size_t place) {
  const Instruction& made = list_[place];
  switch (made.primitive) {
    case Primitive::input: {
      if (homes_[place].reg[0] >= 0) return;
      new_mask(place);
      return load_mask_input(place);
    }
    case Primitive::literal: mask_of(place); return;
    case Primitive::convert: return to_mask(place);
    case Primitive::less:
    case Primitive::less_equal:
    case Primitive::equal:
    case Primitive::not_equal: return compare(place);
    case Primitive::logical_not: {
      const Opmask x = mask_of(made.operands[0]);
      return knotw(new_mask(place), x);
    }
    case Primitive::select: {
      const Opmask mask = mask_of(made.operands[0]), x = mask_of(made.operands[1]), y = mask_of(made.operands[2]);
      const Opmask out = new_mask(place);
      kandw(k5, mask, x);
      kandnw(out, mask, y);
      return korw(out, out, k5);
    }
    default: break;
  }
  const Opmask x = mask_of(made.operands[0]), y = mask_of(made.operands[1]), out = new_mask(place);
  if (made.primitive == Primitive::logical_and) kandw(out, x, y);
  else korw(out, x, y);
}

void WideWriter::compare_vectors(Primitive what, ScalarType type, const Opmask& out, const Zmm& x, const Operand& y) {
  if (is_float(type)) {
    const FloatComparison code = float_comparison(what);
    if (is_wide(type)) vcmppd(out, x, y, code);
    else vcmpps(out, x, y, code);
    return;
  }
  const uint8_t code = what == Primitive::less         ? less
                       : what == Primitive::less_equal ? less_equal
                       : what == Primitive::equal      ? equal
                                                       : not_equal;
  if (type == ScalarType::int32) vpcmpd(out, x, y, code);
  else if (type == ScalarType::uint32) vpcmpud(out, x, y, code);
  else if (type == ScalarType::int64) vpcmpq(out, x, y, code);
  else vpcmpuq(out, x, y, code);
}

void WideWriter::compare(size_t place) {
  const Instruction& made = list_[place];
  const ScalarType type = list_[made.operands[0]].type;
  if (type == ScalarType::boolean) {
    const Opmask x = mask_of(made.operands[0]), y = mask_of(made.operands[1]), out = new_mask(place);
    if (made.primitive == Primitive::equal) kxnorw(out, x, y);
    else kxorw(out, x, y);
    return;
  }
  const Opmask out = new_mask(place);
  for (int part = 0; part < (is_wide(type) ? 2 : 1); ++part) {
    const Zmm x = vector_of(made.operands[0], part);
    const Source y = source_of(made.operands[1], part);
    compare_vectors(made.primitive, type, part == 0 ? out : k5, x, y);
  }
  if (is_wide(type)) kunpckbw(out, k5, out);
}

/// Bool: not equal to zero.
void WideWriter::to_mask(size_t place) {
  const Instruction& made = list_[place];
  const ScalarType type = list_[made.operands[0]].type;
  if (type == ScalarType::boolean) {
    const Opmask x = mask_of(made.operands[0]);
    return kmovw(new_mask(place), x);
  }
  const Opmask out = new_mask(place);
  for (int part = 0; part < (is_wide(type) ? 2 : 1); ++part) {
    const Zmm x = vector_of(made.operands[0], part);
    compare_vectors(Primitive::not_equal, type, part == 0 ? out : k5, x, splat(0, type));
  }
  if (is_wide(type)) kunpckbw(out, k5, out);
}

void WideWriter::compute_vector(size_t place, int part) {
  const Instruction& made = list_[place];
  const ScalarType type = made.type;
  switch (made.primitive) {
    case Primitive::input:
      if (homes_[place].reg[part] >= 0 && !homes_[place].pinned) return;
      new_vector(place, part);
      return load_input(place, part);
    case Primitive::literal: return broadcast_literal(place, new_vector(place, part));
    case Primitive::select: {
      const Opmask mask = mask_of(made.operands[0], type, part);
      const Zmm no = vector_of(made.operands[2], part);
      const Source yes = source_of(made.operands[1], part);
      if (is_wide(type)) vblendmpd(new_vector(place, part) | mask, no, yes);
      else vblendmps(new_vector(place, part) | mask, no, yes);
      return;
    }
    case Primitive::fma: {
      const Zmm x = vector_of(made.operands[0], part), y = vector_of(made.operands[1], part);
      const Source z = source_of(made.operands[2], part);
      const Zmm out = new_vector(place, part);
      vmovaps(out, x);
      if (is_wide(type)) return vfmadd213pd(out, y, z);
      return vfmadd213ps(out, y, z);
    }
    case Primitive::shift_left:
    case Primitive::shift_right:
    case Primitive::shift_right_zero: return shift(place, part);
    case Primitive::reinterpret: {
      const Zmm x = vector_of(made.operands[0], part);
      vmovaps(new_vector(place, part), x);
      return;
    }
    case Primitive::divide:
      if (!is_float(type)) return divide_integers(place);
      break;
    default: break;
  }
  const Zmm x = vector_of(made.operands[0], part);
  if (info(made.primitive).arity == 1) return unary(made.primitive, type, new_vector(place, part), x);
  const Zmm out = new_vector(place, part);
  const Source y = source_of(made.operands[1], part);
  if (is_extreme_of_number(made)) return extreme_float(made.primitive == Primitive::minimum, type, out, x, y);
  binary(made.primitive, type, out, x, y);
}

/// Of 32 bits, by Float64, whose quotients are never rounded to a whole number that they do not reach.
void WideWriter::divide_integers(size_t place) {
  const Instruction& made = list_[place];
  const Zmm x = vector_of(made.operands[0], 0), y = vector_of(made.operands[1], 0), out = new_vector(place, 0);
  const Zmm high = spare(), a = spare(), b = spare();
  const bool with_sign = is_signed(made.type);
  const auto divide = [&](const Ymm& to, const Ymm& dividend, const Ymm& divisor) {
    with_sign ? vcvtdq2pd(a, dividend) : vcvtudq2pd(a, dividend);
    with_sign ? vcvtdq2pd(b, divisor) : vcvtudq2pd(b, divisor);
    vdivpd(a, a, b);
    with_sign ? vcvttpd2dq(to, a) : vcvttpd2udq(to, a);
  };
  divide(Ymm(out.getIdx()), Ymm(x.getIdx()), Ymm(y.getIdx()));
  vextracti64x4(Ymm(a.getIdx()), x, 1);
  vextracti64x4(Ymm(b.getIdx()), y, 1);
  divide(Ymm(high.getIdx()), Ymm(a.getIdx()), Ymm(b.getIdx()));
  vinserti64x4(out, out, Ymm(high.getIdx()), 1);
  vptestmd(k5, y, y);
  vmovdqa32(out | k5 | T_z, out);
}

/// x < y || x != x ? x : y, or with >.
void WideWriter::extreme(bool least, ScalarType type, const Zmm& out, const Zmm& x, const Operand& y) {
  const bool same = out.getIdx() == x.getIdx();
  switch (type) {
    case ScalarType::int32: return least ? vpminsd(out, x, y) : vpmaxsd(out, x, y);
    case ScalarType::uint32: return least ? vpminud(out, x, y) : vpmaxud(out, x, y);
    case ScalarType::int64: return least ? vpminsq(out, x, y) : vpmaxsq(out, x, y);
    case ScalarType::uint64: return least ? vpminuq(out, x, y) : vpmaxuq(out, x, y);
    default: break;
  }
  if (is_wide(type)) vcmppd(k5, x, x, unordered);
  else vcmpps(k5, x, x, unordered);
  const Zmm kept = same ? spare() : x;
  if (same) vmovaps(kept, x);
  extreme_float(least, type, out, x, y);
  if (is_wide(type)) vmovapd(out | k5, kept);
  else vmovaps(out | k5, kept);
}

void WideWriter::binary(Primitive what, ScalarType type, const Zmm& out, const Zmm& x, const Operand& y) {
  const bool wide = is_wide(type), real = is_float(type);
  switch (what) {
    case Primitive::add:
      if (real) return wide ? vaddpd(out, x, y) : vaddps(out, x, y);
      return wide ? vpaddq(out, x, y) : vpaddd(out, x, y);
    case Primitive::subtract:
      if (real) return wide ? vsubpd(out, x, y) : vsubps(out, x, y);
      return wide ? vpsubq(out, x, y) : vpsubd(out, x, y);
    case Primitive::multiply:
      if (real) return wide ? vmulpd(out, x, y) : vmulps(out, x, y);
      return wide ? vpmullq(out, x, y) : vpmulld(out, x, y);
    case Primitive::divide: return wide ? vdivpd(out, x, y) : vdivps(out, x, y);
    case Primitive::minimum: return extreme(true, type, out, x, y);
    case Primitive::maximum: return extreme(false, type, out, x, y);
    case Primitive::bit_and: return wide ? vpandq(out, x, y) : vpandd(out, x, y);
    case Primitive::bit_or: return wide ? vporq(out, x, y) : vpord(out, x, y);
    default: return wide ? vpxorq(out, x, y) : vpxord(out, x, y);
  }
}

void WideWriter::unary(Primitive what, ScalarType type, const Zmm& out, const Zmm& x) {
  const bool wide = is_wide(type);
  const auto sign = [&] { return ptr_b[rip + constant(uint64_t{1} << (wide ? 63 : 31), wide ? 8 : 4)]; };
  const auto others = [&] { return ptr_b[rip + constant((uint64_t{1} << (wide ? 63 : 31)) - 1, wide ? 8 : 4)]; };
  const auto round = [&](uint8_t how) { wide ? vrndscalepd(out, x, how) : vrndscaleps(out, x, how); };
  constexpr uint8_t quiet = 8;
  switch (what) {
    case Primitive::negate:
      if (is_float(type)) return wide ? vpxorq(out, x, sign()) : vpxord(out, x, sign());
      vpxord(out, out, out);
      return wide ? vpsubq(out, out, x) : vpsubd(out, out, x);
    case Primitive::absolute:
      if (is_float(type)) return wide ? vpandq(out, x, others()) : vpandd(out, x, others());
      if (!is_signed(type)) return vmovaps(out, x);
      return wide ? vpabsq(out, x) : vpabsd(out, x);
    case Primitive::floor: return round(quiet | 1);
    case Primitive::ceil: return round(quiet | 2);
    case Primitive::trunc: return round(quiet | 3);
    case Primitive::round_even: return round(quiet | 0);
    default: return wide ? vsqrtpd(out, x) : vsqrtps(out, x);
  }
}

void WideWriter::shift(size_t place, int part) {
  const Instruction& made = list_[place];
  const bool wide = is_wide(made.type), left = made.primitive == Primitive::shift_left;
  const bool copies = made.primitive == Primitive::shift_right && is_signed(made.type);
  const Zmm x = vector_of(made.operands[0], part);
  const Instruction& count = list_[made.operands[1]];
  if (count.primitive == Primitive::literal) {
    const Zmm out = new_vector(place, part);
    const auto bits = static_cast<uint8_t>(count.immediate & (wide ? 63 : 31));
    if (left) return wide ? vpsllq(out, x, bits) : vpslld(out, x, bits);
    if (copies) return wide ? vpsraq(out, x, bits) : vpsrad(out, x, bits);
    return wide ? vpsrlq(out, x, bits) : vpsrld(out, x, bits);
  }
  const Zmm y = vector_of(made.operands[1], part), bits = spare(), out = new_vector(place, part);
  if (wide) vpandq(bits, y, splat(63, made.type));
  else vpandd(bits, y, splat(31, made.type));
  if (left) return wide ? vpsllvq(out, x, bits) : vpsllvd(out, x, bits);
  if (copies) return wide ? vpsravq(out, x, bits) : vpsravd(out, x, bits);
  return wide ? vpsrlvq(out, x, bits) : vpsrlvd(out, x, bits);
}

void WideWriter::convert(size_t place) {
  const Instruction& made = list_[place];
  const ScalarType from = list_[made.operands[0]].type, to = made.type;
  if (is_wide(from) != is_wide(to) && from != ScalarType::boolean) return change_width(place);
  for (int part = 0; part < homes_[place].parts; ++part) {
    if (from == ScalarType::boolean) {
      const Opmask mask = mask_of(made.operands[0], to, part);
      const Zmm out = new_vector(place, part);
      vpxord(out, out, out);
      if (is_wide(to)) vblendmpd(out | mask, out, splat(1, to));
      else vblendmps(out | mask, out, splat(1, to));
      continue;
    }
    const Zmm x = vector_of(made.operands[0], part), out = new_vector(place, part);
    if (rounding_of(made) != Packing::none) round(rounding_of(made), out, x);
    else convert_part(from, to, out, x);
  }
}

/// Between types of one width.
void WideWriter::convert_part(ScalarType from, ScalarType to, const Zmm& out, const Zmm& x) {
  if (is_float(from) && !is_float(to)) return to_integer(from, out, x);
  if (is_float(from) == is_float(to)) return vmovaps(out, x);
  if (is_wide(to)) return is_signed(from) ? vcvtqq2pd(out, x) : vcvtuqq2pd(out, x);
  return is_signed(from) ? vcvtdq2ps(out, x) : vcvtudq2ps(out, x);
}

/// Toward zero; what lies above goes to the highest number, what lies below to the lowest (the instruction does that),
/// NaN to 0. Between types of one width.
void WideWriter::to_integer(ScalarType from, const Zmm& out, const Zmm& x) {
  if (is_wide(from)) {
    vcvttpd2qq(out, x);
    vcmppd(k5, x, splat(0x1p63, from), not_below);
    vpblendmq(out | k5, out, ptr_b[rip + constant(std::numeric_limits<int64_t>::max(), 8)]);
    vcmppd(k5, x, x, unordered);
    vpxorq(out | k5, out, out);
    return;
  }
  vcvttps2dq(out, x);
  vcmpps(k5, x, splat(0x1p31, from), not_below);
  vpblendmd(out | k5, out, ptr_b[rip + constant(std::numeric_limits<int32_t>::max(), 4)]);
  vcmpps(k5, x, x, unordered);
  vpxord(out | k5, out, out);
}

/// Between 4 and 8 bytes: one vector register and two.
void WideWriter::change_width(size_t place) {
  const Instruction& made = list_[place];
  const ScalarType from = list_[made.operands[0]].type, to = made.type;
  const size_t x = made.operands[0];
  if (is_wide(to)) {
    const Zmm all = vector_of(x, 0);
    for (int part = 0; part < 2; ++part) {
      const Zmm out = new_vector(place, part);
      const Ymm half(part == 0 ? all.getIdx() : out.getIdx());
      if (part == 1) vextracti64x4(half, all, 1);
      widen(from, to, out, half);
    }
    return;
  }
  const Zmm out = new_vector(place, 0), high = spare();
  for (int part = 0; part < 2; ++part) {
    narrow(from, to, Ymm(part == 0 ? out.getIdx() : high.getIdx()), vector_of(x, part));
  }
  vinserti64x4(out, out, Ymm(high.getIdx()), 1);
}

void WideWriter::widen(ScalarType from, ScalarType to, const Zmm& out, const Ymm& x) {
  if (is_float(from)) {
    vcvtps2pd(out, x);
    if (!is_float(to)) {
      const Zmm wide = spare();
      vmovapd(wide, out);
      to_integer(ScalarType::float64, out, wide);
    }
    return;
  }
  if (is_float(to)) return is_signed(from) ? vcvtdq2pd(out, x) : vcvtudq2pd(out, x);
  return is_signed(from) ? vpmovsxdq(out, x) : vpmovzxdq(out, x);
}

void WideWriter::narrow(ScalarType from, ScalarType to, const Ymm& out, const Zmm& x) {
  if (!is_float(from)) {
    if (!is_float(to)) return vpmovqd(out, x);
    return is_signed(from) ? vcvtqq2ps(out, x) : vcvtuqq2ps(out, x);
  }
  if (is_float(to)) return vcvtpd2ps(out, x);
  const Zmm bounded = spare();  // of Int32: what lies outside goes to the bounds before, exactly
  vminpd(bounded, x, splat(std::numeric_limits<int32_t>::max(), from));
  vmaxpd(bounded, bounded, splat(std::numeric_limits<int32_t>::min(), from));
  vcmppd(k5, x, x, unordered);
  vpxorq(bounded | k5, bounded, bounded);
  vcvttpd2dq(out, bounded);
}

}  // namespace rosin::cpu

#endif
