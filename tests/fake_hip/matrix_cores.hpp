// The matrix instructions of AMD's GPUs, D = A * B + C, of 16 rows and columns, as AMD's manuals of the instruction
// sets say which item (lane) of a wave has which elements: "CDNA3" 7.1, "RDNA3" 7.9, "RDNA4" 7.12, and AMD's Matrix
// Instruction Calculator. FAKE_GFX is the architecture in hexadecimal digits: 0x90a, 0x1100. An architecture has its
// own instructions alone. Behind kernel_prologue.hpp.
#pragma once

namespace fake {

template <class T, int count> struct LanesOf {
  typedef T Type __attribute__((vector_size(count * sizeof(T))));
};
template <class T, int count> using Lanes = typename LanesOf<T, count>::Type;

/// An operand or the result in registers: of each item, words of 32 bits.
struct Registers {
  const unsigned* words;

  unsigned word(int item, int number) const { return words[item * most_given + number]; }
};

/// Where an element of A or B is: A has it in this place for its row and k, B for its column and k.
struct ElementPlace {
  int item, word, half;
};

/// Both operands of the items of a wave of so many, which all must be there.
template <int wave, class V> void give(const V& a, const V& b, Registers& of_a, Registers& of_b) {
  if (fake_item.warp != wave) fault("a matrix instruction of waves of another size");
  constexpr int count = sizeof(V) / 4;
  static_assert(2 * count <= most_given);
  unsigned mine[2 * count];
  __builtin_memcpy(mine, &a, sizeof a);
  __builtin_memcpy(mine + count, &b, sizeof b);
  const unsigned* all = fake_item.exchange(mine, 2 * count);
  of_a = {all};
  of_b = {all + count};
}

/// What a multiplier takes: gfx90a counts halves below the normal ones as 0.
inline float taken_half(float x) { return FAKE_GFX == 0x90a && __builtin_fabsf(x) < 0x1p-14f ? 0 : x; }
inline float half_at(unsigned word, int half) { return taken_half(half_of(word, half)); }
inline float bfloat_at(unsigned word, int half) { return flushed(bfloat_of(word, half)); }
inline float float_at(unsigned word, int) { return __builtin_bit_cast(float, word); }

/// D of this item; row(n): the row of its number n. Its column is that of all instructions here.
template <int depth, class D, class Place, class Row, class Element>
D product(D c, Registers a, Registers b, Place place, Row row, Element element) {
  const int item = static_cast<int>(fake_item.item % fake_item.warp), column = item % 16;
  for (int n = 0; n < static_cast<int>(sizeof(D) / 4); ++n) {
    for (int k = 0; k < depth; ++k) {
      const ElementPlace left = place(row(item, n), k), right = place(column, k);
      c[n] += element(a.word(left.item, left.word), left.half) * element(b.word(right.item, right.word), right.half);
    }
  }
  return c;
}

#if FAKE_GFX < 0x1000
// V_MFMA_*_16X16X*: four groups of 16 items follow each other along k, and along the rows of D.
template <int depth, int halves, class V, class Element>
Lanes<float, 4> mfma(const V& a, const V& b, Lanes<float, 4> c, Element element) {
  Registers of_a, of_b;
  give<64>(a, b, of_a, of_b);
  constexpr int each = depth / 4;
  const auto place = [](int line, int k) {
    return ElementPlace{k / each * 16 + line, k % each / halves, k % each % halves};
  };
  return product<depth>(
      c, of_a, of_b, place, [](int item, int n) { return item / 16 * 4 + n; }, element);
}
inline void no_modifiers(int cbsz, int abid, int blgp) {
  if (cbsz != 0 || abid != 0 || blgp != 0) fault("a matrix instruction with modifiers");
}
#elif FAKE_GFX < 0x1200
// V_WMMA_*_16X16X16 of RDNA 3: items 16 to 31 have the operands of items 0 to 15 once more, and the odd rows of D.
template <class V, class Element> Lanes<float, 8> wmma(const V& a, const V& b, Lanes<float, 8> c, Element element) {
  Registers of_a, of_b;
  give<32>(a, b, of_a, of_b);
  for (int item = 0; item < 16; ++item) {
    for (int n = 0; n < 8; ++n) {
      if (of_a.word(item, n) != of_a.word(item + 16, n) || of_b.word(item, n) != of_b.word(item + 16, n)) {
        fault("both halves of a wave multiply different matrices");
      }
    }
  }
  const auto place = [](int line, int k) { return ElementPlace{line, k / 2, k % 2}; };
  return product<16>(
      c, of_a, of_b, place, [](int item, int n) { return 2 * n + item / 16; }, element);
}
#else
// V_WMMA_*_16X16X16 of RDNA 4: the halves of a wave take turns along k, by four elements; each has eight rows of D.
template <class V, class Element> Lanes<float, 8> wmma(const V& a, const V& b, Lanes<float, 8> c, Element element) {
  Registers of_a, of_b;
  give<32>(a, b, of_a, of_b);
  const auto place = [](int line, int k) { return ElementPlace{k / 4 % 2 * 16 + line, k / 8 * 2 + k % 4 / 2, k % 2}; };
  return product<16>(
      c, of_a, of_b, place, [](int item, int n) { return item / 16 * 8 + n; }, element);
}
#endif

}  // namespace fake

#if FAKE_GFX < 0x1000
inline Lanes<float, 4> __builtin_amdgcn_mfma_f32_16x16x16f16(Lanes<_Float16, 4> a, Lanes<_Float16, 4> b,
                                                             Lanes<float, 4> c, int cbsz, int abid, int blgp) {
  no_modifiers(cbsz, abid, blgp);
  return mfma<16, 2>(a, b, c, half_at);
}
inline Lanes<float, 4> __builtin_amdgcn_mfma_f32_16x16x4f32(float a, float b, Lanes<float, 4> c, int cbsz, int abid,
                                                            int blgp) {
  no_modifiers(cbsz, abid, blgp);
  return mfma<4, 1>(a, b, c, float_at);
}
#if FAKE_GFX == 0x908
inline Lanes<float, 4> __builtin_amdgcn_mfma_f32_16x16x8bf16(Lanes<short, 2> a, Lanes<short, 2> b, Lanes<float, 4> c,
                                                             int cbsz, int abid, int blgp) {
  no_modifiers(cbsz, abid, blgp);
  return mfma<8, 2>(a, b, c, bfloat_at);
}
#else
inline Lanes<float, 4> __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(Lanes<short, 4> a, Lanes<short, 4> b,
                                                                 Lanes<float, 4> c, int cbsz, int abid, int blgp) {
  no_modifiers(cbsz, abid, blgp);
  return mfma<16, 2>(a, b, c, bfloat_at);
}
#endif
#elif FAKE_GFX < 0x1200
inline Lanes<float, 8> __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(Lanes<_Float16, 16> a, Lanes<_Float16, 16> b,
                                                                  Lanes<float, 8> c) {
  return wmma(a, b, c, half_at);
}
inline Lanes<float, 8> __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(Lanes<short, 16> a, Lanes<short, 16> b,
                                                                   Lanes<float, 8> c) {
  return wmma(a, b, c, bfloat_at);
}
#else
inline Lanes<float, 8> __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(Lanes<_Float16, 8> a, Lanes<_Float16, 8> b,
                                                                        Lanes<float, 8> c) {
  return wmma(a, b, c, half_at);
}
inline Lanes<float, 8> __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(Lanes<short, 8> a, Lanes<short, 8> b,
                                                                         Lanes<float, 8> c) {
  return wmma(a, b, c, bfloat_at);
}
#endif
