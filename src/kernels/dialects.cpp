// The dialects; see dialects.hpp.
#include "kernels/dialects.hpp"

namespace rosin::kernels {
namespace {

constexpr Word opencl_types[] = {
    {"i8", "typedef char i8;"},    {"u8", "typedef uchar u8;"},
    {"i16", "typedef short i16;"}, {"u16", "typedef ushort u16;"},
    {"i32", "typedef int i32;"},   {"u32", "typedef uint u32;"},
    {"i64", "typedef long i64;"},  {"u64", "typedef ulong u64;"},
    {"f32", "typedef float f32;"}, {"f64", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\ntypedef double f64;"},
};

constexpr Word opencl_words[] = {
    {"words2", "typedef uint2 words2;"},
    {"words4", "typedef uint4 words4;"},
    {"shuffle_i32", R"(#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
$F i32 shuffle_i32(i32 x, i32 y) { return sub_group_shuffle(x, (uint)y); })"},
    {"as_i32", "$F i32 as_i32(f32 x) { return as_int(x); }"},
    {"as_f32", "$F f32 as_f32(i32 x) { return as_float(x); }"},
    {"as_i64", "$F i64 as_i64(f64 x) { return as_long(x); }"},
    {"as_f64", "$F f64 as_f64(i64 x) { return as_double(x); }"},
    // By address, since values of type half need cl_khr_fp16.
    {"f32_of_f16", "$F f32 f32_of_f16(u16 x) { return vload_half(0, (const half*)&x); }"},
    {"f16_of_f32", R"($F u16 f16_of_f32(f32 x) {
  u16 y;
  vstore_half_rte(x, 0, (half*)&y);
  return y;
})"},
    {"exp2_approximate", "$F f32 exp2_approximate(f32 x) { return exp2(x); }"},
    {"reciprocal_approximate", "$F f32 reciprocal_approximate(f32 x) { return 1.0f / x; }"},
    {"tanh_approximate", "$F f32 tanh_approximate(f32 x) { return tanh(x); }"},
};

// long has 32 bits on some systems.
constexpr Word cuda_types[] = {
    {"i8", "typedef signed char i8;"}, {"u8", "typedef unsigned char u8;"},
    {"i16", "typedef short i16;"},     {"u16", "typedef unsigned short u16;"},
    {"i32", "typedef int i32;"},       {"u32", "typedef unsigned int u32;"},
    {"i64", "typedef long long i64;"}, {"u64", "typedef unsigned long long u64;"},
    {"f32", "typedef float f32;"},     {"f64", "typedef double f64;"},
};

constexpr Word cuda_words[] = {
    {"words2", "typedef uint2 words2;"},
    {"words4", "typedef uint4 words4;"},
    {"floats4", "typedef float4 floats4;"},
    {"shuffle_i32", "$F i32 shuffle_i32(i32 x, i32 y) { return __shfl_sync(0xffffffffu, x, y); }"},
    {"as_i32", "$F i32 as_i32(f32 x) { return __float_as_int(x); }"},
    {"as_f32", "$F f32 as_f32(i32 x) { return __int_as_float(x); }"},
    {"as_i64", "$F i64 as_i64(f64 x) { return __double_as_longlong(x); }"},
    {"as_f64", "$F f64 as_f64(i64 x) { return __longlong_as_double(x); }"},
    // Half types need a header; these instructions exist on every device.
    {"f32_of_f16", R"($F f32 f32_of_f16(u16 x) {
  f32 y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
})"},
    {"f16_of_f32", R"($F u16 f16_of_f32(f32 x) {
  u16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
})"},
    // As the words of all, which older devices take: rounded to even, and any NaN stays one. (The instruction for a
    // single value is a slow one on sm_90.)
    {"b16_pair", R"($F u32 b16_pair(f32 x, f32 y) {
#if __CUDA_ARCH__ >= 800
  u32 all;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(all) : "f"(y), "f"(x));
  return all;
#else
  const u32 a = (u32)as_i32(x), b = (u32)as_i32(y);
  return (x != x ? a | 0x400000 : a + 0x7fff + ((a >> 16) & 1)) >> 16 |
         ((y != y ? b | 0x400000 : b + 0x7fff + ((b >> 16) & 1)) & 0xffff0000u);
#endif
})"},
    {"b16_of_f32", "$F u16 b16_of_f32(f32 x) { return (u16)b16_pair(x, 0.0f); }"},
    {"b16_rounded", "$F f32 b16_rounded(f32 x) { return as_f32((i32)b16_pair(0.0f, x)); }"},
    {"f16_pair", R"($F u32 f16_pair(f32 x, f32 y) {
#if __CUDA_ARCH__ >= 800
  u32 all;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(all) : "f"(y), "f"(x));
  return all;
#else
  return (u32)f16_of_f32(x) | (u32)f16_of_f32(y) << 16;
#endif
})"},
    {"exp2_approximate", R"($F f32 exp2_approximate(f32 x) {
  f32 y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
})"},
    {"reciprocal_approximate", R"($F f32 reciprocal_approximate(f32 x) {
  f32 y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
})"},
    {"tanh_approximate", R"($F f32 tanh_approximate(f32 x) {
#if __CUDA_ARCH__ >= 750
  f32 y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1.0f - 2.0f * reciprocal_approximate(1.0f + exp2_approximate(x * 2.8853900817779268f));
#endif
})"},
    {"floats4_of", R"($F floats4 floats4_of(f32 x, f32 y, f32 z, f32 w) {
  floats4 all;
  all.x = x;
  all.y = y;
  all.z = z;
  all.w = w;
  return all;
})"},
    {"matrices_b16", R"($F floats4 matrices_b16(u32 a, u32 b, u32 c, u32 d, u32 e, u32 f, f32 x, f32 y, f32 z, f32 w) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(x), "+f"(y), "+f"(z), "+f"(w) : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
#endif
  return floats4_of(x, y, z, w);
})"},
    {"matrices_f16", R"($F floats4 matrices_f16(u32 a, u32 b, u32 c, u32 d, u32 e, u32 f, f32 x, f32 y, f32 z, f32 w) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(x), "+f"(y), "+f"(z), "+f"(w) : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
#endif
  return floats4_of(x, y, z, w);
})"},
    {"matrices_tf32",
     R"($F floats4 matrices_tf32(u32 a, u32 b, u32 c, u32 d, u32 e, u32 f, f32 x, f32 y, f32 z, f32 w) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(x), "+f"(y), "+f"(z), "+f"(w) : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
#endif
  return floats4_of(x, y, z, w);
})"},
    // The fences of one item are those of its block: barriers stand before and behind.
    {"arrives_last", R"($F bool arrives_last(i32* counters, i32 at, i32 count) {
  bool last = false;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&counters[at], 1) == count - 1;
    if (last) counters[at] = 0;
    __threadfence();
  }
  return __syncthreads_or(last);
})"},
};

constexpr Word hip_words[] = {
    {"words2", "typedef unsigned int words2 __attribute__((ext_vector_type(2)));"},
    {"words4", "typedef unsigned int words4 __attribute__((ext_vector_type(4)));"},
    {"shuffle_i32", "$F i32 shuffle_i32(i32 x, i32 y) { return __builtin_amdgcn_ds_bpermute(4 * y, x); }"},
    {"as_i32", "$F i32 as_i32(f32 x) { return __builtin_bit_cast(i32, x); }"},
    {"as_f32", "$F f32 as_f32(i32 x) { return __builtin_bit_cast(f32, x); }"},
    {"as_i64", "$F i64 as_i64(f64 x) { return __builtin_bit_cast(i64, x); }"},
    {"as_f64", "$F f64 as_f64(i64 x) { return __builtin_bit_cast(f64, x); }"},
    {"f32_of_f16", "$F f32 f32_of_f16(u16 x) { return (f32)__builtin_bit_cast(_Float16, x); }"},
    {"f16_of_f32", "$F u16 f16_of_f32(f32 x) { return __builtin_bit_cast(u16, (_Float16)x); }"},
    {"exp2_approximate", "$F f32 exp2_approximate(f32 x) { return __builtin_amdgcn_exp2f(x); }"},
    {"reciprocal_approximate", "$F f32 reciprocal_approximate(f32 x) { return __builtin_amdgcn_rcpf(x); }"},
    {"tanh_approximate", R"($F f32 tanh_approximate(f32 x) {
  return 1.0f - 2.0f * reciprocal_approximate(1.0f + exp2_approximate(x * 2.8853900817779268f));
})"},
    {"group_barrier", R"($F void group_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
})"},
    // The fences of one item are those of its group: barriers stand before and behind.
    {"arrives_last", R"($F bool arrives_last(i32* counters, i32 at, i32 count) {
  __attribute__((shared)) i32 found[1];
  group_barrier();
  if (__builtin_amdgcn_workitem_id_x() == 0) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
    const bool last = __hip_atomic_fetch_add(&counters[at], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == count - 1;
    if (last) counters[at] = 0;
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
    found[0] = last;
  }
  group_barrier();
  const bool last = found[0] != 0;
  group_barrier();
  return last;
})"},
    // Matrix units, by the words that an item has of each operand: 2, 8, 4 (matrix_layout.hpp).
    {"matrix_words2", "typedef u32 matrix_words2 __attribute__((vector_size(8)));"},
    {"matrix_words4", "typedef u32 matrix_words4 __attribute__((vector_size(16)));"},
    {"matrix_words8", "typedef u32 matrix_words8 __attribute__((vector_size(32)));"},
    {"halves4", "typedef _Float16 halves4 __attribute__((vector_size(8)));"},
    {"halves8", "typedef _Float16 halves8 __attribute__((vector_size(16)));"},
    {"halves16", "typedef _Float16 halves16 __attribute__((vector_size(32)));"},
    {"shorts2", "typedef short shorts2 __attribute__((vector_size(4)));"},
    {"shorts4", "typedef short shorts4 __attribute__((vector_size(8)));"},
    {"shorts8", "typedef short shorts8 __attribute__((vector_size(16)));"},
    {"shorts16", "typedef short shorts16 __attribute__((vector_size(32)));"},
    {"sums4", "typedef f32 sums4 __attribute__((vector_size(16)));"},
    {"sums8", "typedef f32 sums8 __attribute__((vector_size(32)));"},
    // The instruction of 8 elements, which gfx908 has, takes a word of each operand.
    {"mfma_matrices_b16",
     R"($F sums4 mfma_matrices_b16(u32 a0, u32 a1, u32 b0, u32 b1, f32 c0, f32 c1, f32 c2, f32 c3) {
  const sums4 sums = {c0, c1, c2, c3};
#ifdef __gfx908__
  const sums4 first = __builtin_amdgcn_mfma_f32_16x16x8bf16(
      __builtin_bit_cast(shorts2, a0), __builtin_bit_cast(shorts2, b0), sums, 0, 0, 0);
  return __builtin_amdgcn_mfma_f32_16x16x8bf16(
      __builtin_bit_cast(shorts2, a1), __builtin_bit_cast(shorts2, b1), first, 0, 0, 0);
#else
  const matrix_words2 left = {a0, a1}, right = {b0, b1};
  return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(
      __builtin_bit_cast(shorts4, left), __builtin_bit_cast(shorts4, right), sums, 0, 0, 0);
#endif
})"},
    {"mfma_matrices_f16",
     R"($F sums4 mfma_matrices_f16(u32 a0, u32 a1, u32 b0, u32 b1, f32 c0, f32 c1, f32 c2, f32 c3) {
  const matrix_words2 left = {a0, a1}, right = {b0, b1};
  const sums4 sums = {c0, c1, c2, c3};
  return __builtin_amdgcn_mfma_f32_16x16x16f16(
      __builtin_bit_cast(halves4, left), __builtin_bit_cast(halves4, right), sums, 0, 0, 0);
})"},
    {"mfma_matrices_f32",
     R"($F sums4 mfma_matrices_f32(u32 a0, u32 a1, u32 b0, u32 b1, f32 c0, f32 c1, f32 c2, f32 c3) {
  const sums4 sums = {c0, c1, c2, c3};
  const sums4 first = __builtin_amdgcn_mfma_f32_16x16x4f32(as_f32((i32)a0), as_f32((i32)b0), sums, 0, 0, 0);
  return __builtin_amdgcn_mfma_f32_16x16x4f32(as_f32((i32)a1), as_f32((i32)b1), first, 0, 0, 0);
})"},
    {"wmma11_matrices_b16",
     R"($F sums8 wmma11_matrices_b16(u32 a0, u32 a1, u32 a2, u32 a3, u32 a4, u32 a5, u32 a6, u32 a7,
                     u32 b0, u32 b1, u32 b2, u32 b3, u32 b4, u32 b5, u32 b6, u32 b7,
                     f32 c0, f32 c1, f32 c2, f32 c3, f32 c4, f32 c5, f32 c6, f32 c7) {
  const matrix_words8 left = {a0, a1, a2, a3, a4, a5, a6, a7}, right = {b0, b1, b2, b3, b4, b5, b6, b7};
  const sums8 sums = {c0, c1, c2, c3, c4, c5, c6, c7};
  return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(
      __builtin_bit_cast(shorts16, left), __builtin_bit_cast(shorts16, right), sums);
})"},
    {"wmma11_matrices_f16",
     R"($F sums8 wmma11_matrices_f16(u32 a0, u32 a1, u32 a2, u32 a3, u32 a4, u32 a5, u32 a6, u32 a7,
                     u32 b0, u32 b1, u32 b2, u32 b3, u32 b4, u32 b5, u32 b6, u32 b7,
                     f32 c0, f32 c1, f32 c2, f32 c3, f32 c4, f32 c5, f32 c6, f32 c7) {
  const matrix_words8 left = {a0, a1, a2, a3, a4, a5, a6, a7}, right = {b0, b1, b2, b3, b4, b5, b6, b7};
  const sums8 sums = {c0, c1, c2, c3, c4, c5, c6, c7};
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(
      __builtin_bit_cast(halves16, left), __builtin_bit_cast(halves16, right), sums);
})"},
    {"wmma12_matrices_b16",
     R"($F sums8 wmma12_matrices_b16(u32 a0, u32 a1, u32 a2, u32 a3,
                     u32 b0, u32 b1, u32 b2, u32 b3,
                     f32 c0, f32 c1, f32 c2, f32 c3, f32 c4, f32 c5, f32 c6, f32 c7) {
  const matrix_words4 left = {a0, a1, a2, a3}, right = {b0, b1, b2, b3};
  const sums8 sums = {c0, c1, c2, c3, c4, c5, c6, c7};
  return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(
      __builtin_bit_cast(shorts8, left), __builtin_bit_cast(shorts8, right), sums);
})"},
    {"wmma12_matrices_f16",
     R"($F sums8 wmma12_matrices_f16(u32 a0, u32 a1, u32 a2, u32 a3,
                     u32 b0, u32 b1, u32 b2, u32 b3,
                     f32 c0, f32 c1, f32 c2, f32 c3, f32 c4, f32 c5, f32 c6, f32 c7) {
  const matrix_words4 left = {a0, a1, a2, a3}, right = {b0, b1, b2, b3};
  const sums8 sums = {c0, c1, c2, c3, c4, c5, c6, c7};
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(
      __builtin_bit_cast(halves8, left), __builtin_bit_cast(halves8, right), sums);
})"},
};

constexpr Word metal_types[] = {
    {"i8", "typedef char i8;"},     {"u8", "typedef uchar u8;"},   {"i16", "typedef short i16;"},
    {"u16", "typedef ushort u16;"}, {"i32", "typedef int i32;"},   {"u32", "typedef uint u32;"},
    {"i64", "typedef long i64;"},   {"u64", "typedef ulong u64;"}, {"f32", "typedef float f32;"},
};

constexpr Word metal_words[] = {
    {"words2", "typedef uint2 words2;"},
    {"words4", "typedef uint4 words4;"},
    {"shuffle_i32", "$F i32 shuffle_i32(i32 x, i32 y) { return simd_shuffle(x, (ushort)y); }"},
    {"as_i32", "$F i32 as_i32(f32 x) { return as_type<int>(x); }"},
    {"as_f32", "$F f32 as_f32(i32 x) { return as_type<float>(x); }"},
    {"f32_of_f16", "$F f32 f32_of_f16(u16 x) { return float(as_type<half>(x)); }"},
    {"f16_of_f32", "$F u16 f16_of_f32(f32 x) { return as_type<ushort>(half(x)); }"},
    {"exp2_approximate", "$F f32 exp2_approximate(f32 x) { return precise::exp2(x); }"},
    {"reciprocal_approximate", "$F f32 reciprocal_approximate(f32 x) { return fast::divide(1.0f, x); }"},
    {"tanh_approximate", R"($F f32 tanh_approximate(f32 x) {
  return 1.0f - 2.0f * reciprocal_approximate(1.0f + exp2_approximate(x * 2.8853900817779268f));
})"},
};

// The divisor is one where the result is another's, so that no divider of any device meets a case it may trap on.
// Bounds of conversions are exact floats: the lowest integer, and one above the highest.
constexpr Word words_of_all[] = {
    {"divide_i32", R"($F i32 divide_i32(i32 x, i32 y) {
  const i32 quotient = x / (y == 0 || y == -1 ? 1 : y);
  return y == -1 ? (i32)(0 - (u32)x) : y == 0 ? 0 : quotient;
})"},
    {"divide_u32", R"($F u32 divide_u32(u32 x, u32 y) {
  const u32 quotient = x / (y == 0 ? 1 : y);
  return y == 0 ? 0 : quotient;
})"},
    {"divide_i64", R"($F i64 divide_i64(i64 x, i64 y) {
  const i64 quotient = x / (y == 0 || y == -1 ? 1 : y);
  return y == -1 ? (i64)(0 - (u64)x) : y == 0 ? 0 : quotient;
})"},
    {"divide_u64", R"($F u64 divide_u64(u64 x, u64 y) {
  const u64 quotient = x / (y == 0 ? 1 : y);
  return y == 0 ? 0 : quotient;
})"},
    {"i32_of_f32", R"($F i32 i32_of_f32(f32 x) {
  const i32 inside = (i32)(x >= -0x1p+31f && x < 0x1p+31f ? x : 0.0f);
  return x >= 0x1p+31f ? 2147483647 : x < -0x1p+31f ? -2147483647 - 1 : inside;
})"},
    {"u32_of_f32", R"($F u32 u32_of_f32(f32 x) {
  const u32 inside = (u32)(x >= 0.0f && x < 0x1p+32f ? x : 0.0f);
  return x >= 0x1p+32f ? 4294967295u : inside;
})"},
    {"i64_of_f32", R"($F i64 i64_of_f32(f32 x) {
  const i64 inside = (i64)(x >= -0x1p+63f && x < 0x1p+63f ? x : 0.0f);
  return x >= 0x1p+63f ? 9223372036854775807 : x < -0x1p+63f ? -9223372036854775807 - 1 : inside;
})"},
    {"u64_of_f32", R"($F u64 u64_of_f32(f32 x) {
  const u64 inside = (u64)(x >= 0.0f && x < 0x1p+64f ? x : 0.0f);
  return x >= 0x1p+64f ? 18446744073709551615ul : inside;
})"},
    {"i32_of_f64", R"($F i32 i32_of_f64(f64 x) {
  const i32 inside = (i32)(x >= -0x1p+31 && x < 0x1p+31 ? x : 0.0);
  return x >= 0x1p+31 ? 2147483647 : x < -0x1p+31 ? -2147483647 - 1 : inside;
})"},
    {"u32_of_f64", R"($F u32 u32_of_f64(f64 x) {
  const u32 inside = (u32)(x >= 0.0 && x < 0x1p+32 ? x : 0.0);
  return x >= 0x1p+32 ? 4294967295u : inside;
})"},
    {"i64_of_f64", R"($F i64 i64_of_f64(f64 x) {
  const i64 inside = (i64)(x >= -0x1p+63 && x < 0x1p+63 ? x : 0.0);
  return x >= 0x1p+63 ? 9223372036854775807 : x < -0x1p+63 ? -9223372036854775807 - 1 : inside;
})"},
    {"u64_of_f64", R"($F u64 u64_of_f64(f64 x) {
  const u64 inside = (u64)(x >= 0.0 && x < 0x1p+64 ? x : 0.0);
  return x >= 0x1p+64 ? 18446744073709551615ul : inside;
})"},
    {"f32_of_b16", "$F f32 f32_of_b16(u16 x) { return as_f32((i32)((u32)x << 16)); }"},
    {"b16_of_f32", R"($F u16 b16_of_f32(f32 x) {
  const u32 bits = (u32)as_i32(x);
  return (u16)((x != x ? bits | 0x400000 : bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
})"},
    {"b16_rounded", "$F f32 b16_rounded(f32 x) { return f32_of_b16(b16_of_f32(x)); }"},
    {"b16_pair", "$F u32 b16_pair(f32 x, f32 y) { return (u32)b16_of_f32(x) | (u32)b16_of_f32(y) << 16; }"},
    {"f16_pair", "$F u32 f16_pair(f32 x, f32 y) { return (u32)f16_of_f32(x) | (u32)f16_of_f32(y) << 16; }"},
    {"words2_of", R"($F words2 words2_of(u32 x, u32 y) {
  words2 all;
  all.x = x;
  all.y = y;
  return all;
})"},
    {"words4_of", R"($F words4 words4_of(u32 x, u32 y, u32 z, u32 w) {
  words4 all;
  all.x = x;
  all.y = y;
  all.z = z;
  all.w = w;
  return all;
})"},
    {"shuffle_u32", "$F u32 shuffle_u32(u32 x, i32 y) { return (u32)shuffle_i32((i32)x, y); }"},
    {"shuffle_f32", "$F f32 shuffle_f32(f32 x, i32 y) { return as_f32(shuffle_i32(as_i32(x), y)); }"},
    {"shuffle_u64", R"($F u64 shuffle_u64(u64 x, i32 y) {
  const u64 low = (u64)(u32)shuffle_i32((i32)(u32)x, y), high = (u64)(u32)shuffle_i32((i32)(u32)(x >> 32), y);
  return high << 32 | low;
})"},
    {"shuffle_i64", "$F i64 shuffle_i64(i64 x, i32 y) { return (i64)shuffle_u64((u64)x, y); }"},
    {"shuffle_f64", "$F f64 shuffle_f64(f64 x, i32 y) { return as_f64(shuffle_i64(as_i64(x), y)); }"},
    {"multiply_high_i32", "$F i32 multiply_high_i32(i32 x, i32 y) { return (i32)(((i64)x * (i64)y) >> 32); }"},
    {"multiply_high_u32", "$F u32 multiply_high_u32(u32 x, u32 y) { return (u32)(((u64)x * (u64)y) >> 32); }"},
    // By halves of 32 bits; a negative factor counts as 2^64 more than it is.
    {"multiply_high_u64", R"($F u64 multiply_high_u64(u64 x, u64 y) {
  const u64 a = x >> 32, b = (u32)x, c = y >> 32, d = (u32)y;
  const u64 ad = a * d, bc = b * c, middle = ((b * d) >> 32) + (u32)ad + (u32)bc;
  return a * c + (ad >> 32) + (bc >> 32) + (middle >> 32);
})"},
    {"multiply_high_i64", R"($F i64 multiply_high_i64(i64 x, i64 y) {
  return (i64)(multiply_high_u64((u64)x, (u64)y) - (x < 0 ? (u64)y : 0) - (y < 0 ? (u64)x : 0));
})"},
};

}  // namespace

const std::span<const Word> common_words = words_of_all;

const Dialect dialects[] = {
    {
        .name = "OpenCL",
        .prologue = "#pragma OPENCL FP_CONTRACT OFF\n",
        .kernel = "__kernel __attribute__((reqd_work_group_size($G, 1, 1))) void $N(",
        .many = "",
        .beside = "",
        .list = "",
        .buffer = "__global uchar* b$N, ulong o$N",
        .place = "__global $T* const p$N = (__global $T*)(b$N + o$N);",
        .read_only = "__global const uchar* restrict b$N, ulong o$N",
        .read_only_place = "__global const $T* const p$N = (__global const $T*)(b$N + o$N);",
        .pointer = "__global ",
        .parameter = "$T a$N",
        .parameter_place = "",
        .hidden = "",
        .shared = "__local $T s$N[$C];",
        .large = "",
        .large_shared = "",
        .function = "static",
        .barrier = "barrier(CLK_LOCAL_MEM_FENCE);",
        .group = {"get_group_id(0)", "get_group_id(1)", "get_group_id(2)"},
        .item = "get_local_id(0)",
        .math_prefix = "",
        .math_suffix = "",
        .types = opencl_types,
        .words = opencl_words,
    },
    {
        .name = "CUDA",
        .prologue = "",
        .kernel = "extern \"C\" __global__ void __launch_bounds__($G$A) $N(",
        .many = "",
        .beside = ", $B",
        .list = "",
        .buffer = "$T* p$N",
        .place = "",
        .read_only = "const $T* __restrict__ p$N",
        .read_only_place = "",
        .pointer = "",
        .parameter = "$T a$N",
        .parameter_place = "",
        .hidden = "",
        .shared = "__shared__ __align__(16) $T s$N[$C];",
        .large = "extern __shared__ __align__(16) unsigned char large_shared[];",
        .large_shared = "$T* const s$N = ($T*)(large_shared + $O);",
        .function = "static __device__ __forceinline__",
        .barrier = "__syncthreads();",
        .group = {"blockIdx.x", "blockIdx.y", "blockIdx.z"},
        .item = "threadIdx.x",
        .math_prefix = "",
        .math_suffix = "f",
        .types = cuda_types,
        .words = cuda_words,
    },
    {
        .name = "HIP",
        .prologue = "#pragma clang fp contract(off)\n",
        .kernel =
            "extern \"C\" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size($G, $G)))$A void $N(",
        .many = " __attribute__((target(\"no-packed-fp32-ops\")))",
        .beside = "",
        .list = "",
        .buffer = "$T* p$N",
        .place = "",
        .read_only = "const $T* __restrict__ p$N",
        .read_only_place = "",
        .pointer = "",
        .parameter = "$T a$N",
        .parameter_place = "",
        .hidden = "",
        .shared = "__attribute__((shared)) __attribute__((aligned(16))) $T s$N[$C];",
        .large = "extern __attribute__((shared)) __attribute__((aligned(16))) unsigned char large_shared[];",
        .large_shared = "$T* const s$N = ($T*)(large_shared + $O);",
        .function = "static __attribute__((device)) __attribute__((always_inline))",
        .barrier = "group_barrier();",
        .group = {"__builtin_amdgcn_workgroup_id_x()", "__builtin_amdgcn_workgroup_id_y()",
                  "__builtin_amdgcn_workgroup_id_z()"},
        .item = "__builtin_amdgcn_workitem_id_x()",
        .math_prefix = "__builtin_",
        .math_suffix = "f",
        .types = cuda_types,
        .words = hip_words,
    },
    {
        .name = "Metal",
        .prologue = "#include <metal_stdlib>\nusing namespace metal;\n#pragma clang fp contract(off)\n",
        .kernel = "[[max_total_threads_per_threadgroup($G)]] kernel void $N(constant $N_arguments& list [[buffer(0)]]",
        .many = "",
        .beside = "",
        .list = "struct $N_arguments {\n",
        .buffer = "  device $T* p$N;\n",
        .place = "device $T* const p$N = list.p$N;",
        .read_only = "  device const $T* p$N;\n",
        .read_only_place = "device const $T* const p$N = list.p$N;",
        .pointer = "device ",
        .parameter = "  alignas(8) $T a$N;\n",
        .parameter_place = "const $T a$N = list.a$N;",
        .hidden =
            ", uint3 group_place [[threadgroup_position_in_grid]], uint item_place [[thread_index_in_threadgroup]]",
        .shared = "threadgroup $T s$N[$C];",
        .large = "",
        .large_shared = "",
        .function = "static inline",
        .barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);",
        .group = {"group_place.x", "group_place.y", "group_place.z"},
        .item = "item_place",
        .math_prefix = "",
        .math_suffix = "",
        .types = metal_types,
        .words = metal_words,
    },
};

}  // namespace rosin::kernels
