// What the writers of convolutions have in common: code for registers of 16 Float32 (AVX-512) or of 8 (AVX2), of which
// the last one of a row may be wanted in part. Read first: written_loop.hpp.
#pragma once

#include <cstdint>

#include <xbyak/xbyak.h>

namespace rosin::cpu {

class VectorCode : public Xbyak::CodeGenerator {
 protected:
  static constexpr int64_t element_bytes = sizeof(float);

  /// `block`: Float32 in a register. `last_lanes`: of a last register that are wanted; 0: all.
  VectorCode(int64_t block, int64_t last_lanes, void* memory, size_t bytes)
      : CodeGenerator(bytes, memory), block_(block), last_lanes_(last_lanes) {}

  bool is_wide() const { return block_ == 16; }
  int64_t vector_bytes() const { return block_ * element_bytes; }
  Xbyak::Xmm vector(int64_t number) const {
    if (is_wide()) return Xbyak::Zmm(static_cast<int>(number));
    return Xbyak::Ymm(static_cast<int>(number));
  }
  void clear(const Xbyak::Xmm& x) {
    if (is_wide()) vpxord(x, x, x);
    else vxorps(x, x, x);
  }
  void permute(const Xbyak::Xmm& x, const Xbyak::Xmm& places) {
    if (is_wide()) vpermps(Xbyak::Zmm(x.getIdx()), Xbyak::Zmm(places.getIdx()), Xbyak::Zmm(x.getIdx()));
    else vpermps(Xbyak::Ymm(x.getIdx()), Xbyak::Ymm(places.getIdx()), Xbyak::Ymm(x.getIdx()));
  }

  /// So many Float32 behind a pointer; and the pointer goes on by as many.
  Xbyak::Address at(const Xbyak::Reg64& first, int64_t place) {
    return ptr[first + static_cast<size_t>(place * element_bytes)];
  }
  void go_on(const Xbyak::Reg64& pointer, int64_t places) {
    if (places != 0) add(pointer, static_cast<uint32_t>(places * element_bytes));
  }

  /// Which lanes of a part are wanted: AVX-512 has a mask for it, AVX2 keeps one in its last register.
  bool has_part() const { return last_lanes_ != 0; }
  Xbyak::Opmask mask() const { return Xbyak::Opmask(1); }
  Xbyak::Xmm mask_register() const { return vector(15); }
  void prepare_mask() {
    if (!has_part()) return;
    if (is_wide()) {
      mov(Xbyak::util::eax, (1u << last_lanes_) - 1);
      kmovw(mask(), Xbyak::util::eax);
    } else {
      vmovups(mask_register(), ptr[Xbyak::util::rip + mask_at_]);
    }
  }
  /// Behind the code.
  void write_mask() {
    align(4);
    L(mask_at_);
    for (int64_t i = 0; !is_wide() && has_part() && i < block_; ++i) dd(i < last_lanes_ ? 0xffffffff : 0);
  }
  /// A register, or the wanted lanes of a part, the others of which are 0.
  void load(const Xbyak::Xmm& to, const Xbyak::Address& from, bool part) {
    if (!part) vmovups(to, from);
    else if (is_wide()) vmovups(to | mask() | Xbyak::util::T_z, from);
    else vmaskmovps(to, mask_register(), from);
  }
  void store(const Xbyak::Address& to, const Xbyak::Xmm& from, bool part) {
    if (!part) vmovups(to, from);
    else if (is_wide()) vmovups(to | mask(), from);
    else vmaskmovps(to, mask_register(), from);
  }

 private:
  int64_t block_, last_lanes_;
  Xbyak::Label mask_at_;
};

}  // namespace rosin::cpu
