// How machine code rounds to BFloat16. Only for sources that write code.
#pragma once

#include <cstdint>

#include <xbyak/xbyak.h>

namespace rosin::cpu {

constexpr uint8_t bfloat_shift = 16;  // from a BFloat16 to its Float32

/// The numbers that it reads, each in all lanes.
struct BFloatNumbers {
  Xbyak::Address one, below_half, quiet;  // 1, 0x7fff, 0x400000
};

/// x rounded to BFloat16, which are the upper halves of `bits`; the lower ones are anything. NaN stays one, and is
/// quiet. (The instruction for this takes the smallest numbers for 0.)
inline void write_rounding(Xbyak::CodeGenerator& code, const Xbyak::Zmm& bits, const Xbyak::Zmm& x,
                           const Xbyak::Opmask& nan, const BFloatNumbers& numbers) {
  code.vpsrld(bits, x, bfloat_shift);
  code.vpandd(bits, bits, numbers.one);
  code.vpaddd(bits, bits, numbers.below_half);
  code.vpaddd(bits, bits, x);
  code.vcmpunordps(nan, x, x);
  code.vpord(bits | nan, x, numbers.quiet);
}

}  // namespace rosin::cpu
