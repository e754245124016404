// Golden texts of one small kernel in each language, and what each kind of number looks like. That the texts mean what
// they should is tested where they run: tests/device_text.
#include "kernels/text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include <rosin/error.hpp>

#include "kernels/matrix_layout.hpp"

namespace rosin::kernels {
namespace {

/// out[i] = Float16(in[i] / 3) for the items below the count, by way of shared memory.
KernelCode small_kernel() {
  KernelWriter writer("small", 64, ScalarType::int32);
  const int in = writer.buffer(DType::Int32, {}), out = writer.buffer(DType::Float16, {});
  const Term at = writer.item();
  const int shared = writer.shared(ScalarType::int32, 64);
  writer.when(at < writer.number(0), [&] {
    writer.shared_store(shared, at, writer.load(in, at) / 3);
    writer.store(out, at, writer.convert(writer.shared_load(shared, at), ScalarType::float32));
  });
  writer.barrier();
  KernelCode code = writer.finish(1).code;
  code.name = "small";
  return code;
}

std::string text_of(Language language, const KernelCode& code) { return kernel_text(language, {&code, 1}); }

constexpr const char* divide = R"(i32 divide_i32(i32 x, i32 y) {
  const i32 quotient = x / (y == 0 || y == -1 ? 1 : y);
  return y == -1 ? (i32)(0 - (u32)x) : y == 0 ? 0 : quotient;
}
)";

std::string body(const std::string& item, const std::string& barrier) {
  return "  const i32 v0 = (i32)" + item + R"(;
  const i32 v1 = a0;
  const bool v2 = v0 < v1;
  if (v2) {
    const i32 v4 = (i32)p0[v0];
    const i32 v5 = 3;
    const i32 v6 = divide_i32(v4, v5);
    s0[v0] = v6;
    const i32 v8 = s0[v0];
    const f32 v9 = (f32)v8;
    p1[v0] = f16_of_f32(v9);
  }
  )" + barrier +
         "\n}\n";
}

TEST(KernelText, IsOpenCl) {
  EXPECT_EQ(text_of(Language::opencl, small_kernel()),
            std::string(R"(#pragma OPENCL FP_CONTRACT OFF
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef float f32;
static u16 f16_of_f32(f32 x) {
  u16 y;
  vstore_half_rte(x, 0, (half*)&y);
  return y;
}
static )") + divide +
                R"(
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void small()"
                R"(__global uchar* b0, ulong o0, __global uchar* b1, ulong o1, i32 a0) {
  __global i32* const p0 = (__global i32*)(b0 + o0);
  __global u16* const p1 = (__global u16*)(b1 + o1);
  __local i32 s0[64];
)" + body("get_local_id(0)", "barrier(CLK_LOCAL_MEM_FENCE);"));
}

TEST(KernelText, IsCuda) {
  EXPECT_EQ(text_of(Language::cuda, small_kernel()), std::string(R"(typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef float f32;
static __device__ __forceinline__ u16 f16_of_f32(f32 x) {
  u16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
static __device__ __forceinline__ )") + divide + R"(
extern "C" __global__ void __launch_bounds__(64) small(i32* p0, u16* p1, i32 a0) {
  __shared__ __align__(16) i32 s0[64];
)" + body("threadIdx.x", "__syncthreads();"));
}

TEST(KernelText, IsHip) {
  const std::string text = text_of(Language::hip, small_kernel());
  EXPECT_EQ(text, std::string(R"(#pragma clang fp contract(off)
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef float f32;
static __attribute__((device)) __attribute__((always_inline)) u16 f16_of_f32(f32 x) )"
                              R"({ return __builtin_bit_cast(u16, (_Float16)x); }
static __attribute__((device)) __attribute__((always_inline)) )") +
                      R"(void group_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
static __attribute__((device)) __attribute__((always_inline)) )" +
                      divide + R"(
extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(64, 64))) void small()" +
                      R"(i32* p0, u16* p1, i32 a0) {
  __attribute__((shared)) __attribute__((aligned(16))) i32 s0[64];
)" + body("__builtin_amdgcn_workitem_id_x()", "group_barrier();"));
}

TEST(KernelText, IsMetal) {
  EXPECT_EQ(
      text_of(Language::metal, small_kernel()),
      std::string(R"(#include <metal_stdlib>
using namespace metal;
#pragma clang fp contract(off)
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef float f32;
static inline u16 f16_of_f32(f32 x) { return as_type<ushort>(half(x)); }
static inline )") +
          divide +
          R"(
struct small_arguments {
  device i32* p0;
  device u16* p1;
  alignas(8) i32 a0;
};
[[max_total_threads_per_threadgroup(64)]] kernel void small(constant small_arguments& list [[buffer(0)]], )"
          R"(uint3 group_place [[threadgroup_position_in_grid]], uint item_place [[thread_index_in_threadgroup]]) {
  device i32* const p0 = list.p0;
  device u16* const p1 = list.p1;
  const i32 a0 = list.a0;
  threadgroup i32 s0[64];
)" + body("item_place", "threadgroup_barrier(mem_flags::mem_threadgroup);"));
}

TEST(KernelText, HasNoFloat64InMetal) {
  KernelWriter writer("wide", 1, ScalarType::int32);
  writer.store(writer.buffer(DType::Float64, {}), writer.index(0), writer.literal(ScalarType::float64, 1));
  const KernelCode code = writer.finish(1).code;
  EXPECT_NE(text_of(Language::opencl, code).find("#pragma OPENCL EXTENSION cl_khr_fp64 : enable"), std::string::npos);
  try {
    text_of(Language::metal, code);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::dtype);
    EXPECT_NE(std::string(error.what()).find("Metal has no 64-bit floats"), std::string::npos) << error.what();
  }
}

/// The text of a literal in OpenCL.
std::string literal_text(ScalarType type, int64_t bits) {
  KernelCode code{.name = "literal", .group = 1, .buffers = {}, .parameters = {}, .shared = {}, .instructions = {}};
  KernelInstruction& literal = code.instructions.emplace_back();
  literal.operation = static_cast<uint16_t>(Primitive::literal);
  literal.type = type;
  literal.immediate = bits;
  const std::string text = text_of(Language::opencl, code);
  const size_t from = text.find("v0 = ") + 5;
  return text.substr(from, text.find(';', from) - from);
}

TEST(KernelText, WritesNumbersExactly) {
  EXPECT_EQ(literal_text(ScalarType::boolean, 1), "true");
  EXPECT_EQ(literal_text(ScalarType::int32, -7), "-7");
  EXPECT_EQ(literal_text(ScalarType::int32, INT32_MIN), "-2147483647 - 1");
  EXPECT_EQ(literal_text(ScalarType::uint32, -1), "4294967295u");
  EXPECT_EQ(literal_text(ScalarType::int64, INT64_MIN), "-9223372036854775807 - 1");
  EXPECT_EQ(literal_text(ScalarType::uint64, -1), "18446744073709551615ul");
  EXPECT_EQ(literal_text(ScalarType::float32, 0x3dcccccd), "0x1.99999ap-4f");
  EXPECT_EQ(literal_text(ScalarType::float32, INT32_MIN), "-0x0p+0f");
  EXPECT_EQ(literal_text(ScalarType::float32, 0x7f800000), "as_f32(2139095040)");
  EXPECT_EQ(literal_text(ScalarType::float64, 0x3fb999999999999a), "0x1.999999999999ap-4");
}

TEST(KernelText, DefinesOnlyWhatItsKernelsUse) {
  KernelWriter writer("nothing", 1, ScalarType::int32);
  const std::string text = text_of(Language::cuda, writer.finish(1).code);
  EXPECT_EQ(text.find("typedef"), std::string::npos) << text;
  EXPECT_EQ(text.find("static"), std::string::npos) << text;
}

/// out[8 i + ...] = what another item of the warp has of in[8 i + ...], 16 bytes at a time; shared arrays of 40 bytes.
KernelCode wide_kernel() {
  KernelWriter writer("wide", 64, ScalarType::int32);
  const int in = writer.buffer(DType::Float32, {}), out = writer.buffer(DType::BFloat16, {});
  const Term at = writer.item();
  const int first = writer.shared(ScalarType::boolean, 3), second = writer.shared(ScalarType::float32, 6);
  std::vector<Term> values;
  for (const Term x : writer.load_vector(in, at * 8, 8, 16)) values.push_back(writer.shuffle(x, at));
  writer.shared_store(second, at, values[0]);
  writer.shared_store(first, at, values[0] < values[1]);
  writer.store_vector(out, at * 8, values, 16);
  KernelCode code = writer.finish(1).code;
  code.instructions.push_back(make_instruction(KernelOperation::read_only, ScalarType::int32, {}, in));
  return code;
}

void expect_contains(Language language, std::initializer_list<std::string_view> parts) {
  const KernelCode code = wide_kernel();
  const std::string text = kernel_text(language, {&code, 1}, 39);
  for (const std::string_view part : parts) EXPECT_NE(text.find(part), text.npos) << part << "\n" << text;
}

TEST(KernelText, HasVectorsAndTheirLanes) {
  EXPECT_EQ(wide_kernel().shared_bytes(), 40);
  const std::string_view stored = "words4_of(b16_pair(";
  expect_contains(Language::cuda, {"typedef uint4 words4;", "const words4 v3 = *(const words4*)(p0 + v2);", stored,
                                   "  *(words4*)(p1 + ", "words4_of(u32 x, u32 y, u32 z, u32 w)"});
  expect_contains(Language::opencl, {"const words4 v3 = *(__global const words4*)(p0 + v2);", stored});
  expect_contains(Language::hip, {"typedef unsigned int words4 __attribute__((ext_vector_type(4)));", stored});
  expect_contains(Language::metal, {"const words4 v3 = *(device const words4*)(p0 + v2);", stored});
}

TEST(KernelText, MarksWhatIsReadOnly) {
  expect_contains(Language::cuda, {"(const f32* __restrict__ p0, u16* p1) {"});
  expect_contains(Language::hip, {"(const f32* __restrict__ p0, u16* p1) {"});
  expect_contains(Language::opencl, {"__global const uchar* restrict b0, ulong o0, __global uchar* b1",
                                     "__global const f32* const p0 = (__global const f32*)(b0 + o0);"});
  expect_contains(Language::metal,
                  {"  device const f32* p0;\n  device u16* p1;\n", "device const f32* const p0 = list.p0;"});
}

TEST(KernelText, ExchangesWithinWarps) {
  expect_contains(Language::cuda, {"return __shfl_sync(0xffffffffu, x, y);", "= shuffle_f32(v4, v0);"});
  expect_contains(Language::hip, {"return __builtin_amdgcn_ds_bpermute(4 * y, x);"});
  expect_contains(Language::opencl, {"return sub_group_shuffle(x, (uint)y);"});
  expect_contains(Language::metal, {"return simd_shuffle(x, (ushort)y);"});
}

TEST(KernelText, MultipliesMatricesOfEightColumnsByCuda) {
  KernelWriter writer("matrices", 32, ScalarType::int32);
  const int out = writer.buffer(DType::Float32, {}), shared = writer.shared(ScalarType::uint32, 128);
  const Term at = writer.item(), zero = writer.literal(ScalarType::float32, 0), sum = writer.variable(zero);
  const Term pair = writer.pack(DType::Float16, zero, sum);
  const std::vector<Term> x = writer.shared_load_vector(shared, at * 4, 4);
  const std::array y{pair, x[0]};
  const std::array z{zero, zero, zero, sum};
  writer.shared_store_vector(shared, at * 4, std::array{x[1], pair});
  writer.store_vector(out, at * 4, writer.multiply_matrices(DType::BFloat16, x, y, z), 16);
  const std::string text = text_of(Language::cuda, writer.finish(1).code);
  for (const std::string_view part :
       {"__shared__ __align__(16) u32 s0[128];", "= *(const words4*)(s0 + v", "  *(words2*)(s0 + v",
        "const u32 v3 = f16_pair(v1, v2);", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}",
        "const floats4 v", ".w;\n"}) {
    EXPECT_NE(text.find(part), text.npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find("tf32"), text.npos);
}

TEST(KernelText, MultipliesSquareMatricesByHip) {
  for (const auto& [layout, name] : {std::pair{MatrixLayout::mfma, "mfma_f32_16x16x16f16("},
                                     std::pair{MatrixLayout::wmma11, "wmma_f32_16x16x16_f16_w32("},
                                     std::pair{MatrixLayout::wmma12, "wmma_f32_16x16x16_f16_w32_gfx12("}}) {
    const SquareLayout& square = square_layout(layout);
    KernelWriter writer("matrices", square.warp, ScalarType::int32);
    const int out = writer.buffer(DType::Float32, {});
    const Term zero = writer.literal(ScalarType::float32, 0);
    const std::vector<Term> words(static_cast<size_t>(square.words), writer.pack(DType::Float16, zero, zero));
    const std::vector<Term> sums(static_cast<size_t>(square.sums), zero);
    const std::vector<Term> got = writer.multiply_matrices(DType::Float16, words, words, sums);
    ASSERT_EQ(got.size(), sums.size());
    writer.store(out, writer.item(), got.back());
    const std::string text = text_of(Language::hip, writer.finish(1).code);
    const std::string last = "[" + std::to_string(square.sums - 1) + "];\n";
    for (const std::string& part : {"__builtin_amdgcn_" + std::string(name), last}) {
      EXPECT_NE(text.find(part), text.npos) << part << "\n" << text;
    }
  }
}

/// See text.cpp.
TEST(KernelText, KeepsManyVariablesOfAmdFromPairs) {
  for (const int count : {16, 64}) {
    KernelWriter writer("sums", 64, ScalarType::int32);
    const int out = writer.buffer(DType::Float32, {});
    std::vector<Term> sums;
    for (int i = 0; i < count; ++i) sums.push_back(writer.variable(writer.literal(ScalarType::float32, i)));
    for (const Term& sum : sums) writer.assign(sum, sum + sums[0]);
    writer.store(out, writer.item(), sums.back());
    const KernelCode code = writer.finish(1).code;
    const std::string kept = "(64, 64))) __attribute__((target(\"no-packed-fp32-ops\"))) void sums";
    EXPECT_EQ(text_of(Language::hip, code).find(kept) != std::string::npos, count == 64);
    EXPECT_EQ(text_of(Language::cuda, code).find("packed"), std::string::npos);
  }
}

TEST(KernelText, ChoosesBuffersByPointers) {
  KernelWriter writer("choice", 64, ScalarType::int32);
  const Term at = writer.item(), value = writer.literal(ScalarType::float32, 1);
  for (int i = 0; i < 2; ++i) writer.buffer(DType::Float32, {});
  writer.store(0, at, value);
  KernelCode code = writer.finish(1).code;
  for (const int64_t from : {1, 0}) {
    code.instructions.insert(code.instructions.begin() + (from == 1 ? 0 : 1),
                             make_instruction(KernelOperation::choose, ScalarType::int32, {}, from));
  }
  KernelInstruction& store = code.instructions.back();
  for (uint32_t& operand : store.operands) operand += 2;
  store.immediate = chosen_buffer;
  EXPECT_EQ(stored_buffers(code), (std::vector<char>{1, 1}));
  for (const auto& [language, pointer] : {std::pair{Language::cuda, "  f32* q0 = p1;\n  q0 = p0;\n"},
                                          std::pair{Language::opencl, "  __global f32* q0 = p1;\n  q0 = p0;\n"}}) {
    const std::string text = text_of(language, code);
    EXPECT_NE(text.find(pointer), text.npos) << text;
    EXPECT_NE(text.find("q0[v"), text.npos) << text;
  }
}

TEST(KernelText, CountsGroupsThatArrive) {
  KernelWriter writer("arrivals", 64, ScalarType::int64);
  const int counters = writer.buffer(DType::Int32, {}), out = writer.buffer(DType::Int32, {});
  const Term last = writer.arrive(counters, writer.index(3), writer.number(5));
  writer.when(last, [&] { writer.store(out, writer.index(0), writer.literal(ScalarType::int32, 1)); });
  const KernelCode code = writer.finish(5).code;
  EXPECT_EQ(stored_buffers(code), (std::vector<char>{1, 1}));
  const std::string cuda = text_of(Language::cuda, code), hip = text_of(Language::hip, code);
  EXPECT_NE(cuda.find("= arrives_last(p0, v"), cuda.npos) << cuda;
  EXPECT_NE(cuda.find("atomicAdd(&counters[at], 1) == count - 1;"), cuda.npos) << cuda;
  EXPECT_NE(hip.find("__hip_atomic_fetch_add(&counters[at], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)"), hip.npos)
      << hip;
}

TEST(KernelText, PutsLargeSharedArraysWhereTheLaunchSays) {
  expect_contains(Language::cuda,
                  {"extern __shared__ __align__(16) unsigned char large_shared[];",
                   "u8* const s0 = (u8*)(large_shared + 0);", "f32* const s1 = (f32*)(large_shared + 16);"});
  expect_contains(Language::hip,
                  {"extern __attribute__((shared)) __attribute__((aligned(16))) unsigned char large_shared[];"});
  expect_contains(Language::opencl, {"__local f32 s1[6];"});
  EXPECT_EQ(text_of(Language::cuda, wide_kernel()).find("extern __shared__"), std::string::npos);
}

TEST(KernelText, ReadsTheBoundsOfALoopOnce) {
  KernelWriter writer("loop", 1, ScalarType::int32);
  const Term from = writer.index(0), step = writer.index(1), end = writer.variable(writer.index(3));
  writer.loop(from, end, step, [&](Term i) { writer.assign(end, end + i); });
  writer.store(writer.buffer(DType::Int32, {}), from, end);
  const std::string text = text_of(Language::opencl, writer.finish(1).code);
  EXPECT_NE(text.find("for (i32 v4 = v0, end4 = v3, step4 = v1; v4 < end4; v4 += step4) {"), std::string::npos) << text;
}

}  // namespace
}  // namespace rosin::kernels
