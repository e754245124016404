// The instructions of each primitive; what they must mean stands in scalar/compute.hpp.
#if defined(ROSIN_HAVE_XBYAK) && defined(__x86_64__)
#include <limits>

#include "cpu/machine_narrow.hpp"

namespace rosin::cpu {
namespace {

using namespace Xbyak;

constexpr int half_elements = 8;
constexpr int masks_of_half = 3;

bool is_wide_integer(ScalarType type) { return is_wide(type) && !is_float(type); }
Xmm low(const Ymm& reg) { return Xmm(reg.getIdx()); }

/// There are no instructions between floats and integers of 8 bytes, nor of unsigned ones.
bool converts(ScalarType from, ScalarType to) {
  if (from == ScalarType::boolean || to == ScalarType::boolean || is_float(from) == is_float(to)) return true;
  return is_float(from) ? to == ScalarType::int32 : from == ScalarType::int32;
}

}  // namespace

NarrowWriter::NarrowWriter(const OrderedText& text, void* memory, size_t bytes) : LoopWriter(text, memory, bytes) {
  write();
  L(numbers_);
  for (uint32_t i = 0; i < half_elements; ++i) dd(i);
}

bool NarrowWriter::knows(const ScalarCode& code, const Instruction& made) {
  if (made.quick != Quick::none) return false;
  const int arity = info(made.primitive).arity;
  const ScalarType type = arity > 0 ? code.list[made.operands[arity - 1]].type : made.type;  // select: of the values
  switch (made.primitive) {
    case Primitive::divide: return is_float(type) || type == ScalarType::int32;
    case Primitive::convert: return converts(type, made.type);
    case Primitive::less:
    case Primitive::less_equal: return type != ScalarType::boolean && type != ScalarType::uint64;
    case Primitive::multiply:
    case Primitive::minimum:
    case Primitive::maximum:
    case Primitive::absolute:
    case Primitive::shift_right: return !is_wide_integer(type);
    default: return true;
  }
}

bool NarrowWriter::combines_with(Primitive primitive, ScalarType type) {
  if (type == ScalarType::boolean) return false;
  if (primitive == Primitive::add) return true;
  return !is_wide_integer(type) &&
         (primitive == Primitive::multiply || primitive == Primitive::minimum || primitive == Primitive::maximum);
}

Address NarrowWriter::splat_bits(uint64_t bits, int bytes) { return ptr[rip + constant(bits, bytes)]; }

/// The masks of the last turn are the same for all rows: of each half, for 4 bytes, then for 8 bytes. Element i of one
/// is i < elements.
void NarrowWriter::begin_rows() {
  last_masks_ = new_stack(halves * masks_of_half * vector_bytes);
  for (int half = 0; half < halves; ++half) {
    const int at = last_masks_ + half * masks_of_half * vector_bytes;
    const Ymm mask = spare(), part = spare();
    mov(eax, edx);
    and_(eax, turn_elements - 1);
    sub(eax, half * half_elements);
    vmovd(low(mask), eax);
    vpbroadcastd(mask, low(mask));
    vpcmpgtd(mask, mask, ptr[rip + numbers_]);
    vmovups(ptr[rsp + at], mask);
    vpmovsxdq(part, low(mask));
    vmovups(ptr[rsp + at + vector_bytes], part);
    vextracti128(low(part), mask, 1);
    vpmovsxdq(part, low(part));
    vmovups(ptr[rsp + at + 2 * vector_bytes], part);
    unlock();
  }
}

Ymm NarrowWriter::last_mask(ScalarType type, int part) {
  const Ymm mask = spare();
  const int number = half_ * masks_of_half + (is_wide(type) ? 1 + part : 0);
  vmovups(mask, ptr[rsp + last_masks_ + number * vector_bytes]);
  return mask;
}

void NarrowWriter::leap_unless_any(size_t place, bool chosen, const Label& end) {
  Ymm taken = vector_of(place, 0);
  if (masked_) {
    const Ymm last = last_mask(ScalarType::float32, 0);
    if (chosen) vandps(last, taken, last);
    else vandnps(last, taken, last);
    taken = last;
  }
  vmovmskps(eax, taken);
  if (chosen || masked_) test(eax, eax);
  else xor_(eax, (1 << half_elements) - 1);
  jz(end, T_NEAR);
}

void NarrowWriter::load_each(size_t place, int part) {
  const ScalarType type = list_[place].type;
  const Packing packing = text_.inputs[static_cast<size_t>(list_[place].immediate)].packing;
  if (packing != Packing::none) return load_packed(place, packing);
  if (type == ScalarType::boolean) return load_bool(place);
  const Ymm out(homes_[place].reg[part]);
  const Address from = element(input_memory(place), type, part);
  if (!masked_) vmovups(out, from);
  else if (is_wide(type)) vmaskmovpd(out, last_mask(type, part), from);
  else vmaskmovps(out, last_mask(type, part), from);
}

void NarrowWriter::load_bool(size_t place) {
  const Ymm out(homes_[place].reg[0]), zero = spare();
  const Address from = element(input_memory(place), ScalarType::boolean, 0);
  if (!masked_) {
    vpmovzxbd(out, from);
  } else {
    Label read;
    vpxor(low(out), low(out), low(out));
    for (int i = 0; i < half_elements; ++i) {
      cmp(r8d, half_ * half_elements + i);
      jle(read, T_NEAR);
      vpinsrb(low(out), low(out), byte[from.getRegExp() + i], static_cast<uint8_t>(i));
    }
    L(read);
    vpmovzxbd(out, low(out));
  }
  vpxor(zero, zero, zero);
  vpcmpgtd(out, out, zero);
}

void NarrowWriter::store_bool(const LoopOutput& output, size_t number) {
  const Ymm value = vector_of(output.place, 0), bytes = spare();
  vextracti128(low(bytes), value, 1);
  vpackssdw(low(bytes), low(value), low(bytes));
  vpacksswb(low(bytes), low(bytes), low(bytes));
  vpabsb(low(bytes), low(bytes));
  const Address to = element(number, ScalarType::boolean, 0);
  if (!masked_) return vmovq(qword[to.getRegExp()], low(bytes));
  Label written;
  for (int i = 0; i < half_elements; ++i) {
    cmp(r8d, half_ * half_elements + i);
    jle(written, T_NEAR);
    vpextrb(byte[to.getRegExp() + i], low(bytes), static_cast<uint8_t>(i));
  }
  L(written);
}

void NarrowWriter::unpack(Packing packing, const Ymm& out, const Operand& packed) {
  if (packing == Packing::half) return vcvtph2ps(out, packed);
  if (packing == Packing::byte) return vpmovzxbd(out, packed);
  if (packing == Packing::signed_byte) return vpmovsxbd(out, packed);
  if (packing == Packing::signed_word) return vpmovsxwd(out, packed);
  vpmovzxwd(out, packed);
  if (packing == Packing::bfloat) vpslld(out, out, bfloat_shift);
}

void NarrowWriter::load_packed(size_t place, Packing packing) {
  const Ymm out(homes_[place].reg[0]);
  const Address from = packed_element(input_memory(place), packing);
  if (!masked_) return unpack(packing, out, from);
  Label read;
  vpxor(low(out), low(out), low(out));
  for (int i = 0; i < half_elements; ++i) {
    cmp(r8d, half_ * half_elements + i);
    jle(read, T_NEAR);
    const auto number = static_cast<uint8_t>(i);
    if (bytes_of(packing) == 1) vpinsrb(low(out), low(out), byte[from.getRegExp() + i], number);
    else vpinsrw(low(out), low(out), word[from.getRegExp() + 2 * i], number);
  }
  L(read);
  unpack(packing, out, low(out));
}

/// x rounded to BFloat16, which are the upper halves; the lower ones are anything. NaN stays one, and is quiet.
Ymm NarrowWriter::bfloat_bits(const Ymm& x) {
  const Ymm bits = spare(), mask = spare(), quiet = spare();
  vpsrld(bits, x, bfloat_shift);
  vpand(bits, bits, splat_bits(1, 4));
  vpaddd(bits, bits, splat_bits(0x7fff, 4));
  vpaddd(bits, bits, x);
  vcmpps(mask, x, x, unordered);
  vpor(quiet, x, splat_bits(0x400000, 4));
  vblendvps(bits, bits, quiet, mask);
  return bits;
}

void NarrowWriter::round(Packing packing, const Ymm& out, const Ymm& x) {
  if (packing == Packing::half) {
    vcvtps2ph(low(out), x, to_nearest_even);
    return vcvtph2ps(out, low(out));
  }
  if (is_signed(packing)) {
    vpslld(out, x, sign_shift(packing));
    return vpsrad(out, out, sign_shift(packing));
  }
  if (is_integer(packing)) return vpand(out, x, splat_bits(low_bits(packing), 4));
  vpand(out, bfloat_bits(x), splat_bits(0xffff0000, 4));
}

void NarrowWriter::store_packed(const LoopOutput& output, size_t number) {
  const Ymm value = vector_of(output.place, 0), packed = spare();
  if (output.packing == Packing::half) {
    vcvtps2ph(low(packed), value, to_nearest_even);
  } else if (is_integer(output.packing)) {
    const Ymm bits = spare();
    vpand(bits, value, splat_bits(low_bits(output.packing), 4));
    vextracti128(low(packed), bits, 1);
    vpackusdw(low(packed), low(bits), low(packed));
    if (bytes_of(output.packing) == 1) vpackuswb(low(packed), low(packed), low(packed));
  } else {
    const Ymm bits = output.fits ? spare() : bfloat_bits(value);
    vpsrld(bits, output.fits ? value : bits, bfloat_shift);
    vextracti128(low(packed), bits, 1);
    vpackusdw(low(packed), low(bits), low(packed));
  }
  const Address to = packed_element(number, output.packing);
  const bool bytes = bytes_of(output.packing) == 1;
  if (!masked_ && bytes) return vmovq(qword[to.getRegExp()], low(packed));
  if (!masked_) return vmovdqu(xword[to.getRegExp()], low(packed));
  Label written;
  for (int i = 0; i < half_elements; ++i) {
    const auto at = static_cast<uint8_t>(i);
    cmp(r8d, half_ * half_elements + i);
    jle(written, T_NEAR);
    if (bytes) vpextrb(byte[to.getRegExp() + i], low(packed), at);
    else vpextrw(word[to.getRegExp() + 2 * i], low(packed), at);
  }
  L(written);
}

void NarrowWriter::store(const LoopOutput& output, size_t number) {
  if (output.packing != Packing::none) return store_packed(output, number);
  const ScalarType type = list_[output.place].type;
  if (type == ScalarType::boolean) return store_bool(output, number);
  for (int part = 0; part < homes_[output.place].parts; ++part) {
    const Ymm value = vector_of(output.place, part);
    const Address to = element(number, type, part);
    if (!masked_ && output.streams) vmovntps(to, value);
    else if (!masked_) vmovups(to, value);
    else if (is_wide(type)) vmaskmovpd(to, last_mask(type, part), value);
    else vmaskmovps(to, last_mask(type, part), value);
  }
}

void NarrowWriter::keep_sum(ScalarType type, int part, const Ymm& sum, const Ymm& next) {
  const Ymm mask = last_mask(type, part);
  if (is_wide(type)) vblendvpd(sum, sum, next, mask);
  else vblendvps(sum, sum, next, mask);
}

void NarrowWriter::compute(size_t place) {
  const Instruction& made = list_[place];
  const bool plain = made.primitive == Primitive::input || made.primitive == Primitive::literal;
  if (made.type == ScalarType::boolean && !plain) return compute_bool(place);
  if (made.primitive == Primitive::convert) return convert(place);
  for (int part = 0; part < homes_[place].parts; ++part) compute_vector(place, part);
}

void NarrowWriter::compute_bool(size_t place) {
  const Instruction& made = list_[place];
  const auto operand = [&](int i) { return vector_of(made.operands[i], 0); };
  const ScalarType type = list_[made.operands[0]].type;
  switch (made.primitive) {
    case Primitive::logical_not: {
      const Ymm x = operand(0);
      return vpxor(new_vector(place, 0), x, splat_bits(~uint64_t{0}, 4));
    }
    case Primitive::logical_and: {
      const Ymm x = operand(0), y = operand(1);
      return vpand(new_vector(place, 0), x, y);
    }
    case Primitive::logical_or: {
      const Ymm x = operand(0), y = operand(1);
      return vpor(new_vector(place, 0), x, y);
    }
    case Primitive::select: {
      const Ymm mask = operand(0), yes = operand(1), no = operand(2);
      return vblendvps(new_vector(place, 0), no, yes, mask);
    }
    default: break;
  }
  if (type != ScalarType::boolean) return compare(made.primitive, place);
  const Ymm x = operand(0);
  if (made.primitive == Primitive::convert) return vmovaps(new_vector(place, 0), x);
  const Ymm y = operand(1), out = new_vector(place, 0);
  vpxor(out, x, y);
  if (made.primitive == Primitive::equal) vpxor(out, out, splat_bits(~uint64_t{0}, 4));
}

/// Of two values that are not Bool; a conversion to Bool compares with zero.
void NarrowWriter::compare(Primitive what, size_t place) {
  const Instruction& made = list_[place];
  const ScalarType type = list_[made.operands[0]].type;
  const bool converts = what == Primitive::convert;
  const Ymm out = new_vector(place, 0), high = is_wide(type) ? spare() : out;
  for (int part = 0; part < (is_wide(type) ? 2 : 1); ++part) {
    const Ymm x = vector_of(made.operands[0], part), y = converts ? spare() : vector_of(made.operands[1], part);
    if (converts) vpxor(y, y, y);
    compare_part(converts ? Primitive::not_equal : what, type, part == 0 ? out : high, x, y);
  }
  if (is_wide(type)) pack_masks(out, out, high);
}

void NarrowWriter::compare_part(Primitive what, ScalarType type, const Ymm& out, const Ymm& x, const Ymm& y) {
  const bool wide = is_wide(type);
  if (is_float(type)) {
    const FloatComparison code = float_comparison(what);
    return wide ? vcmppd(out, x, y, code) : vcmpps(out, x, y, code);
  }
  const auto invert = [&] { vpxor(out, out, splat_bits(~uint64_t{0}, 4)); };
  if (what == Primitive::equal || what == Primitive::not_equal) {
    wide ? vpcmpeqq(out, x, y) : vpcmpeqd(out, x, y);
    if (what == Primitive::not_equal) invert();
    return;
  }
  const bool less = what == Primitive::less;  // x < y is y > x; x <= y is not x > y
  if (is_signed(type)) {
    const Ymm &greater = less ? y : x, &other = less ? x : y;
    wide ? vpcmpgtq(out, greater, other) : vpcmpgtd(out, greater, other);
    if (!less) invert();
    return;
  }
  const Ymm& bound = less ? y : x;  // min(x, y) is x where x <= y; it is y where not x < y
  const Ymm least = spare();
  vpminud(least, x, y);
  vpcmpeqd(out, least, bound);
  if (less) invert();
}

/// Two vectors of masks of 8 bytes as one of masks of 4 bytes.
void NarrowWriter::pack_masks(const Ymm& out, const Ymm& first, const Ymm& second) {
  vshufps(out, first, second, 0x88);
  vpermq(out, out, 0xd8);
}

/// A Bool as a mask of elements of the type.
Ymm NarrowWriter::expanded(size_t place, ScalarType type, int part) {
  const Ymm mask = vector_of(place, 0);
  if (!is_wide(type)) return mask;
  const Ymm out = spare();
  if (part == 0) {
    vpmovsxdq(out, low(mask));
  } else {
    vextracti128(low(out), mask, 1);
    vpmovsxdq(out, low(out));
  }
  return out;
}

void NarrowWriter::compute_vector(size_t place, int part) {
  const Instruction& made = list_[place];
  const ScalarType type = made.type;
  switch (made.primitive) {
    case Primitive::input:
      if (homes_[place].reg[part] >= 0 && !homes_[place].pinned) return;
      new_vector(place, part);
      return load_input(place, part);
    case Primitive::literal: return broadcast_literal(place, new_vector(place, part));
    case Primitive::select: {
      const Ymm mask = expanded(made.operands[0], type, part), no = vector_of(made.operands[2], part);
      const Source yes = source_of(made.operands[1], part);
      if (is_wide(type)) return vblendvpd(new_vector(place, part), no, yes, mask);
      return vblendvps(new_vector(place, part), no, yes, mask);
    }
    case Primitive::fma: {
      const Ymm x = vector_of(made.operands[0], part), y = vector_of(made.operands[1], part);
      const Source z = source_of(made.operands[2], part);
      const Ymm out = new_vector(place, part);
      vmovaps(out, x);
      if (is_wide(type)) return vfmadd213pd(out, y, z);
      return vfmadd213ps(out, y, z);
    }
    case Primitive::shift_left:
    case Primitive::shift_right:
    case Primitive::shift_right_zero: return shift(place, part);
    case Primitive::reinterpret: {
      const Ymm x = vector_of(made.operands[0], part);
      return vmovaps(new_vector(place, part), x);
    }
    case Primitive::divide:
      if (!is_float(type)) return divide_integers(place);
      break;
    default: break;
  }
  const Ymm x = vector_of(made.operands[0], part);
  if (info(made.primitive).arity == 1) return unary(made.primitive, type, new_vector(place, part), x);
  const Ymm out = new_vector(place, part);
  const Source y = source_of(made.operands[1], part);
  if (is_extreme_of_number(made)) return extreme_float(made.primitive == Primitive::minimum, type, out, x, y);
  binary(made.primitive, type, out, x, y);
}

/// Of Int32, by Float64, whose quotients are never rounded to a whole number that they do not reach.
void NarrowWriter::divide_integers(size_t place) {
  const Instruction& made = list_[place];
  const Ymm x = vector_of(made.operands[0], 0), y = vector_of(made.operands[1], 0), out = new_vector(place, 0);
  const Ymm high = spare(), a = spare(), b = spare();
  const auto divide = [&](const Xmm& to, const Xmm& dividend, const Xmm& divisor) {
    vcvtdq2pd(a, dividend);
    vcvtdq2pd(b, divisor);
    vdivpd(a, a, b);
    vcvttpd2dq(to, a);
  };
  divide(low(out), low(x), low(y));
  vextracti128(low(a), x, 1);
  vextracti128(low(b), y, 1);
  divide(low(high), low(a), low(b));
  vinserti128(out, out, low(high), 1);
  vpxor(a, a, a);
  vpcmpeqd(a, a, y);
  vpandn(out, a, out);
}

/// x < y || x != x ? x : y, or with >.
void NarrowWriter::extreme(bool least, ScalarType type, const Ymm& out, const Ymm& x, const Operand& y) {
  switch (type) {
    case ScalarType::int32: return least ? vpminsd(out, x, y) : vpmaxsd(out, x, y);
    case ScalarType::uint32: return least ? vpminud(out, x, y) : vpmaxud(out, x, y);
    default: break;
  }
  const Ymm mask = spare(), chosen = spare();
  extreme_float(least, type, chosen, x, y);
  if (is_wide(type)) {
    vcmppd(mask, x, x, unordered);
    return vblendvpd(out, chosen, x, mask);
  }
  vcmpps(mask, x, x, unordered);
  vblendvps(out, chosen, x, mask);
}

void NarrowWriter::binary(Primitive what, ScalarType type, const Ymm& out, const Ymm& x, const Operand& y) {
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
      return vpmulld(out, x, y);
    case Primitive::divide: return wide ? vdivpd(out, x, y) : vdivps(out, x, y);
    case Primitive::minimum: return extreme(true, type, out, x, y);
    case Primitive::maximum: return extreme(false, type, out, x, y);
    case Primitive::bit_and: return vpand(out, x, y);
    case Primitive::bit_or: return vpor(out, x, y);
    default: return vpxor(out, x, y);
  }
}

void NarrowWriter::unary(Primitive what, ScalarType type, const Ymm& out, const Ymm& x) {
  const bool wide = is_wide(type);
  const auto sign = [&] { return splat_bits(uint64_t{1} << (wide ? 63 : 31), wide ? 8 : 4); };
  const auto others = [&] { return splat_bits((uint64_t{1} << (wide ? 63 : 31)) - 1, wide ? 8 : 4); };
  const auto round = [&](uint8_t how) { wide ? vroundpd(out, x, how) : vroundps(out, x, how); };
  constexpr uint8_t quiet = 8;
  switch (what) {
    case Primitive::negate: {
      if (is_float(type)) return vpxor(out, x, sign());
      const Ymm zero = spare();
      vpxor(zero, zero, zero);
      return wide ? vpsubq(out, zero, x) : vpsubd(out, zero, x);
    }
    case Primitive::absolute:
      if (is_float(type)) return vpand(out, x, others());
      return is_signed(type) ? vpabsd(out, x) : vmovaps(out, x);
    case Primitive::floor: return round(quiet | 1);
    case Primitive::ceil: return round(quiet | 2);
    case Primitive::trunc: return round(quiet | 3);
    case Primitive::round_even: return round(quiet | 0);
    default: return wide ? vsqrtpd(out, x) : vsqrtps(out, x);
  }
}

void NarrowWriter::shift(size_t place, int part) {
  const Instruction& made = list_[place];
  const bool wide = is_wide(made.type), left = made.primitive == Primitive::shift_left;
  const bool copies = made.primitive == Primitive::shift_right && is_signed(made.type);
  const Ymm x = vector_of(made.operands[0], part);
  const Instruction& count = list_[made.operands[1]];
  if (count.primitive == Primitive::literal) {
    const Ymm out = new_vector(place, part);
    const auto bits = static_cast<uint8_t>(count.immediate & (wide ? 63 : 31));
    if (left) return wide ? vpsllq(out, x, bits) : vpslld(out, x, bits);
    if (copies) return vpsrad(out, x, bits);
    return wide ? vpsrlq(out, x, bits) : vpsrld(out, x, bits);
  }
  const Ymm y = vector_of(made.operands[1], part), bits = spare(), out = new_vector(place, part);
  vpand(bits, y, splat(wide ? 63 : 31, made.type));
  if (left) return wide ? vpsllvq(out, x, bits) : vpsllvd(out, x, bits);
  if (copies) return vpsravd(out, x, bits);
  return wide ? vpsrlvq(out, x, bits) : vpsrlvd(out, x, bits);
}

void NarrowWriter::convert(size_t place) {
  const Instruction& made = list_[place];
  const ScalarType from = list_[made.operands[0]].type, to = made.type;
  if (is_wide(from) != is_wide(to) && from != ScalarType::boolean) return change_width(place);
  for (int part = 0; part < homes_[place].parts; ++part) {
    if (from == ScalarType::boolean) {
      const Ymm mask = expanded(made.operands[0], to, part);
      vpand(new_vector(place, part), mask, splat(1, to));
      continue;
    }
    const Ymm x = vector_of(made.operands[0], part), out = new_vector(place, part);
    if (rounding_of(made) != Packing::none) round(rounding_of(made), out, x);
    else convert_part(from, to, out, x);
  }
}

/// Between types of one width.
void NarrowWriter::convert_part(ScalarType from, ScalarType to, const Ymm& out, const Ymm& x) {
  if (is_float(from) == is_float(to)) return vmovaps(out, x);
  if (is_float(to)) return vcvtdq2ps(out, x);
  to_integer(from, out, x);
}

/// Toward zero; what lies above goes to the highest number, what lies below to the lowest (the instruction does that),
/// NaN to 0.
void NarrowWriter::to_integer(ScalarType from, const Ymm& out, const Ymm& x) {
  const Ymm mask = spare(), whole = spare();
  vcvttps2dq(whole, x);
  vcmpps(mask, x, splat(0x1p31, from), not_below);
  vblendvps(whole, whole, splat_bits(std::numeric_limits<int32_t>::max(), 4), mask);
  vcmpps(mask, x, x, unordered);
  vpandn(out, mask, whole);
}

/// Between 4 and 8 bytes: one vector register and two.
void NarrowWriter::change_width(size_t place) {
  const Instruction& made = list_[place];
  const ScalarType from = list_[made.operands[0]].type, to = made.type;
  const size_t x = made.operands[0];
  if (is_wide(to)) {
    const Ymm all = vector_of(x, 0);
    for (int part = 0; part < 2; ++part) {
      const Ymm out = new_vector(place, part);
      const Xmm half = part == 0 ? low(all) : low(out);
      if (part == 1) vextracti128(half, all, 1);
      if (is_float(from)) vcvtps2pd(out, half);
      else if (is_float(to)) vcvtdq2pd(out, half);
      else if (is_signed(from)) vpmovsxdq(out, half);
      else vpmovzxdq(out, half);
    }
    return;
  }
  const Ymm out = new_vector(place, 0), high = spare();
  if (!is_float(from)) {
    const Ymm first = vector_of(x, 0), second = vector_of(x, 1);
    return pack_masks(out, first, second);
  }
  const Ymm bounded = spare(), mask = spare();
  for (int part = 0; part < 2; ++part) {
    const Ymm value = vector_of(x, part);
    const Xmm half = low(part == 0 ? out : high);
    if (is_float(to)) {
      vcvtpd2ps(half, value);
      continue;
    }
    // What lies outside goes to the bounds before, exactly.
    vminpd(bounded, value, splat(std::numeric_limits<int32_t>::max(), from));
    vmaxpd(bounded, bounded, splat(std::numeric_limits<int32_t>::min(), from));
    vcmppd(mask, value, value, unordered);
    vpandn(bounded, mask, bounded);
    vcvttpd2dq(half, bounded);
  }
  vinserti128(out, out, low(high), 1);
}

}  // namespace rosin::cpu

#endif
