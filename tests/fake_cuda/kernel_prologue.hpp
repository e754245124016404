// The vocabulary of CUDA kernels for the host's compiler; behind kernel_runtime.hpp. Buffers and shared arrays have
// become Global and Shared by then (see nvrtc.cpp).
#pragma once

extern "C" {
fake::Item fake_item;
float fabsf(float);
float floorf(float);
float ceilf(float);
float truncf(float);
float rintf(float);
float sqrtf(float);
float fmaf(float, float, float);
float exp2f(float);
float tanhf(float);
double fabs(double);
double floor(double);
double ceil(double);
double trunc(double);
double rint(double);
double sqrt(double);
double fma(double, double, double);
}

namespace fake {

[[noreturn]] inline void fault(const char* what) {
  fake_item.fault(what);
  __builtin_unreachable();
}

/// Memory of the device, checked at each access. `read_only`: a launch that says so writes nothing of what it reads
/// here.
template <class T, bool read_only = false> class Global {
 public:
  explicit Global(u64 address) : address_(address), block_(fake_item.find(address)) {}
  /// A pointer that may be one of several.
  Global(const Global<T, !read_only>& other) : address_(other.address_), block_(other.block_) {}

  /// One element, or several as a vector V.
  template <class V> class Place {
   public:
    Place(const Global& of, u64 at) : of_(of), at_(at) {}
    operator V() const {
      of_.inside(at_, sizeof(V));
      for (u64 at = at_; at < at_ + sizeof(V); at += sizeof(T)) of_.reads(at);
      return *reinterpret_cast<const V*>(at_);
    }
    V operator=(V value) const {
      static_assert(!read_only);
      of_.inside(at_, sizeof(V));
      for (u64 at = at_; at < at_ + sizeof(V); at += sizeof(T)) of_.writes(at);
      return *reinterpret_cast<V*>(at_) = value;
    }
    Place operator&() const { return *this; }
    /// One more, by who knows what it does: the value before.
    V counts() const {
      of_.inside(at_, sizeof(V));
      if (!fake_item.released) fault("a block arrives that has not fenced");
      fake_item.arriving = fake_item.arrived[fake_item.blocks] = at_;
      return (*reinterpret_cast<V*>(at_))++;
    }

   private:
    const Global& of_;
    u64 at_;
  };
  template <class I> Place<T> operator[](I i) const { return vector<T>(i); }
  template <class V, class I> Place<V> vector(I i) const { return {*this, address_ + static_cast<u64>(i) * sizeof(T)}; }

 private:
  friend class Global<T, !read_only>;

  void inside(u64 at, u64 bytes) const {
    if (at < block_.begin || at + bytes > block_.end) fault("an access beyond a block of memory");
    if (at % bytes != 0) fault("a misaligned access");
  }
  void reads(u64 at) const {
    if (!fake_item.checks) return;
    if (read_only) {
      if (block_.writers[at - block_.begin] >= fake_item.first)
        fault("a read of what the launch wrote and said it would not");
      block_.readers[2 * (at - block_.begin)] = block_.readers[2 * (at - block_.begin) + 1] = fake_item.nobody;
      return;
    }
    u32& writer = block_.writers[at - block_.begin];
    if (writer >= fake_item.first && writer != fake_item.number && !has_arrived(writer))
      fault("a read of what another item of the launch wrote");
    u32* readers = block_.readers + 2 * (at - block_.begin);
    if (readers[0] == fake_item.number) return;
    readers[1] = readers[0];
    readers[0] = fake_item.number;
  }
  /// Whether the writer's block had arrived where this item's block did later.
  static bool has_arrived(u32 writer) {
    const u32 block = (writer - fake_item.first) / fake_item.items;
    return fake_item.acquired != 0 && block <= fake_item.blocks && fake_item.arrived[block] == fake_item.acquired;
  }
  void writes(u64 at) const {
    if (block_.constant) fault("a write of memory that the launch has for reading alone");
    if (!fake_item.checks) return;
    u32& writer = block_.writers[at - block_.begin];
    const bool again = writer >= fake_item.first && writer != fake_item.number;
    // Words of 64 bits are where checks leave what they found: one of several finds stays.
    if (again && sizeof(T) != 8) fault("two items of a launch wrote one place");
    const u32* readers = block_.readers + 2 * (at - block_.begin);
    const u32 other = readers[0] == fake_item.number ? readers[1] : readers[0];
    if (other >= fake_item.first) fault("a write of what another item of the launch read");
    writer = fake_item.number;
  }

  u64 address_;
  Block block_;
};

/// Shared memory of the block that runs: blocks run one after another. `Store` says where the elements are.
template <class T, class Store> class SharedElements : public Store {
 public:
  using Store::Store;

  class Place {
   public:
    Place(SharedElements& of, int at) : of_(of), at_(at) {}
    operator T() const {
      of_.reads(at_);
      return of_.values()[at_];
    }
    T operator=(T value) const {
      of_.writes(at_);
      return of_.values()[at_] = value;
    }

   private:
    SharedElements& of_;
    int at_;
  };
  template <class I> Place operator[](I i) {
    if (i < 0 || i >= this->count()) fault("an access beyond a shared array");
    return {*this, static_cast<int>(i)};
  }

  /// Several elements as a vector V.
  template <class V> class Vector {
   public:
    Vector(SharedElements& of, int at) : of_(of), at_(at) {}
    operator V() const {
      for (int i = 0; i < count; ++i) of_.reads(at_ + i);
      V value;
      __builtin_memcpy(&value, of_.values() + at_, sizeof value);
      return value;
    }
    V operator=(V value) const {
      for (int i = 0; i < count; ++i) of_.writes(at_ + i);
      __builtin_memcpy(of_.values() + at_, &value, sizeof value);
      return value;
    }

    static constexpr int count = sizeof(V) / sizeof(T);

   private:
    SharedElements& of_;
    int at_;
  };
  template <class V, class I> Vector<V> vector(I i) {
    if (i < 0 || i + Vector<V>::count > this->count()) fault("an access beyond a shared array");
    if (i % Vector<V>::count != 0) fault("a misaligned access to shared memory");
    return {*this, static_cast<int>(i)};
  }

 private:
  static bool by_others(const Touch& touch) { return touch.phase == fake_item.phase && touch.item != fake_item.item; }
  void reads(int at) {
    if (!fake_item.checks) return;
    if (by_others(this->written(at))) fault("a read of shared memory that another item writes in the same phase");
    Touch& read = this->read(at);
    const bool several = by_others(read);
    read = {fake_item.phase, several ? 0xFFFFFFFFu : fake_item.item};
  }
  void writes(int at) {
    if (!fake_item.checks) return;
    if (by_others(this->written(at))) fault("two items write one word of shared memory in the same phase");
    if (by_others(this->read(at))) fault("a write of shared memory that another item reads in the same phase");
    this->written(at) = {fake_item.phase, fake_item.item};
  }
};

template <class T, int n> class OwnStore {
 public:
  T* values() { return values_; }
  long long count() const { return n; }
  Touch& written(int at) { return written_[at]; }
  Touch& read(int at) { return read_[at]; }

 private:
  T values_[n] = {};
  Touch written_[n], read_[n];
};
template <class T, int n> using Shared = SharedElements<T, OwnStore<T, n>>;

/// In the memory whose size the launch has named, from byte `offset` on.
template <class T, int offset> class LargeStore {
 public:
  T* values() { return reinterpret_cast<T*>(fake_item.large + offset); }
  long long count() const {
    return (static_cast<long long>(fake_item.large_bytes) - offset) / static_cast<int>(sizeof(T));
  }
  Touch& written(int at) { return fake_item.large_written[offset + at * static_cast<int>(sizeof(T))]; }
  Touch& read(int at) { return fake_item.large_read[offset + at * static_cast<int>(sizeof(T))]; }
};
template <class T, int offset> using LargeShared = SharedElements<T, LargeStore<T, offset>>;

inline float half_to_float(unsigned short x) {
  _Float16 half;
  __builtin_memcpy(&half, &x, 2);
  return static_cast<float>(half);
}
inline unsigned short float_to_half(float x) {
  const _Float16 half = static_cast<_Float16>(x);
  unsigned short bits;
  __builtin_memcpy(&bits, &half, 2);
  return bits;
}

// Instructions that the text writes in assembler: ptx_NAME(results, operands).
inline void ptx_cvt_f32_f16(float& y, unsigned short x) { y = half_to_float(x); }
// Those that are approximate are as wrong as PTX says that they may be; subnormal numbers are 0 where it says ftz.
inline float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x; }
inline float without_bits(float x, int count) {
  if (!(__builtin_fabsf(x) <= __FLT_MAX__)) return x;
  return __builtin_bit_cast(float, __builtin_bit_cast(unsigned, x) >> count << count);
}
inline void ptx_ex2_approx_ftz_f32(float& y, float x) { y = without_bits(flushed(exp2f(flushed(x))), 2); }
inline void ptx_rcp_approx_ftz_f32(float& y, float x) { y = without_bits(flushed(1 / flushed(x)), 1); }
inline void ptx_tanh_approx_f32(float& y, float x) { y = without_bits(tanhf(x), 13); }
inline void ptx_cvt_rn_f16_f32(unsigned short& y, float x) { y = float_to_half(x); }
inline void ptx_cvt_rn_f16x2_f32(unsigned& all, float high, float low) {
  all = static_cast<unsigned>(float_to_half(high)) << 16 | float_to_half(low);
}
inline unsigned short float_to_bfloat(float x) {
  const unsigned bits = __builtin_bit_cast(unsigned, x);
  return static_cast<unsigned short>(x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline void ptx_cvt_rn_bf16x2_f32(unsigned& all, float high, float low) {
  all = static_cast<unsigned>(float_to_bfloat(high)) << 16 | float_to_bfloat(low);
}

inline float bfloat_to_float(unsigned short x) { return __builtin_bit_cast(float, static_cast<unsigned>(x) << 16); }
/// Element `at` of those that a word of the operands of mma holds.
inline float bfloat_of(unsigned word, int at) { return bfloat_to_float(static_cast<unsigned short>(word >> 16 * at)); }
inline float half_of(unsigned word, int at) { return half_to_float(static_cast<unsigned short>(word >> 16 * at)); }
inline float tf32_of(unsigned word, int) { return __builtin_bit_cast(float, word & 0xffffe000u); }

/// mma.sync: every item has words of both operands, and gets 4 sums of the products of a row and a column, of which
/// `each` elements stand in a word. Where they lie: PTX ISA, Matrix Fragments for mma.m16n8k16 and mma.m16n8k8.
template <int each, class F>
void multiply_matrices(float* sums, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, F element) {
  const unsigned mine[] = {a, b, c, d, e, f};
  const unsigned* all = fake_item.exchange(mine, 6);
  const int lane = static_cast<int>(fake_item.item % 32);
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 8 * each; ++k) {
      const int half = k / (4 * each), owner = k / each % 4;
      const float x = element(all[(row % 8 * 4 + owner) * most_given + row / 8 + 2 * half], k % each);
      const float y = element(all[(column * 4 + owner) * most_given + 4 + half], k % each);
      sums[i] += x * y;
    }
  }
}
template <int each, class F>
void multiply_matrices(float& x, float& y, float& z, float& w, unsigned a, unsigned b, unsigned c, unsigned d,
                       unsigned e, unsigned f, F element) {
  float sums[] = {x, y, z, w};
  multiply_matrices<each>(sums, a, b, c, d, e, f, element);
  x = sums[0], y = sums[1], z = sums[2], w = sums[3];
}
#define FAKE_MATRICES float &x, float &y, float &z, float &w, u32 a, u32 b, u32 c, u32 d, u32 e, u32 f
inline void ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(FAKE_MATRICES) {
  multiply_matrices<2>(x, y, z, w, a, b, c, d, e, f, bfloat_of);
}
inline void ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(FAKE_MATRICES) {
  multiply_matrices<2>(x, y, z, w, a, b, c, d, e, f, half_of);
}
inline void ptx_mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32(FAKE_MATRICES) {
  multiply_matrices<1>(x, y, z, w, a, b, c, d, e, f, tf32_of);
}
#undef FAKE_MATRICES

}  // namespace fake

using namespace fake;

struct FakePlace {
  const unsigned& x;
  const unsigned& y;
  const unsigned& z;
};
static const unsigned fake_zero = 0;
static const FakePlace blockIdx{fake_item.block[0], fake_item.block[1], fake_item.block[2]};
static const FakePlace threadIdx{fake_item.item, fake_zero, fake_zero};

struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

inline void __syncthreads() { fake_item.barrier(); }
/// Of one item for its block, between barriers.
inline void __threadfence() {
  fake_item.released = true;
  if (fake_item.arriving != 0) fake_item.acquired = fake_item.arriving;
}
inline int atomicAdd(const Global<int>::Place<int>& counter, int) { return counter.counts(); }
inline int __syncthreads_or(int vote) {
  fake_item.votes |= vote;
  __syncthreads();
  const int any = fake_item.votes;
  __syncthreads();
  if (fake_item.item == 0) fake_item.votes = 0;
  __syncthreads();
  return any;
}
inline int __shfl_sync(unsigned mask, int value, int of) {
  if (mask != 0xffffffffu) fault("a shuffle of a part of a warp");
  const unsigned mine = static_cast<unsigned>(value), place = static_cast<unsigned>(of) & (fake_item.warp - 1);
  return static_cast<int>(fake_item.exchange(&mine, 1)[place * most_given]);
}
// Of HIP: v_exp_f32 and v_rcp_f32, which may be one ulp off.
inline float __builtin_amdgcn_exp2f(float x) { return without_bits(flushed(exp2f(flushed(x))), 1); }
inline float __builtin_amdgcn_rcpf(float x) { return without_bits(flushed(1 / flushed(x)), 1); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }

#ifdef FAKE_GFX
#include "../fake_hip/matrix_cores.hpp"
#endif

#define __global__
#define __device__
#define __forceinline__ inline
#define __align__(bytes)
#define __launch_bounds__(...)
