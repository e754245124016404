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

/// Memory of the device, checked at each access.
template <class T> class Global {
 public:
  explicit Global(u64 address) : address_(address), block_(fake_item.find(address)) {}

  class Place {
   public:
    Place(const Global& of, u64 at) : of_(of), at_(at) {}
    operator T() const {
      of_.reads(at_);
      return *reinterpret_cast<const T*>(at_);
    }
    T operator=(T value) const {
      of_.writes(at_);
      return *reinterpret_cast<T*>(at_) = value;
    }

   private:
    const Global& of_;
    u64 at_;
  };
  template <class I> Place operator[](I i) const { return {*this, address_ + static_cast<u64>(i) * sizeof(T)}; }

 private:
  void inside(u64 at) const {
    if (at < block_.begin || at + sizeof(T) > block_.end) fault("an access beyond a block of memory");
    if (at % sizeof(T) != 0) fault("a misaligned access");
  }
  void reads(u64 at) const {
    inside(at);
    if (!fake_item.checks) return;
    u32& writer = block_.writers[at - block_.begin];
    if (writer >= fake_item.first && writer != fake_item.number)
      fault("a read of what another item of the launch wrote");
    u32* readers = block_.readers + 2 * (at - block_.begin);
    if (readers[0] == fake_item.number) return;
    readers[1] = readers[0];
    readers[0] = fake_item.number;
  }
  void writes(u64 at) const {
    inside(at);
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

/// Shared memory of the block that runs: blocks run one after another.
template <class T, int n> class Shared {
 public:
  class Place {
   public:
    Place(Shared& of, int at) : of_(of), at_(at) {}
    operator T() const {
      of_.reads(at_);
      return of_.values_[at_];
    }
    T operator=(T value) const {
      of_.writes(at_);
      return of_.values_[at_] = value;
    }

   private:
    Shared& of_;
    int at_;
  };
  template <class I> Place operator[](I i) {
    if (i < 0 || i >= n) fault("an access beyond a shared array");
    return {*this, static_cast<int>(i)};
  }

 private:
  struct Touch {
    u32 phase = 0, item = 0;
    bool by_others(u32 mine) const { return phase == fake_item.phase && item != mine; }
  };
  void reads(int at) {
    if (!fake_item.checks) return;
    if (written_[at].by_others(fake_item.item))
      fault("a read of shared memory that another item writes in the same phase");
    Touch& read = read_[at];
    const bool several = read.phase == fake_item.phase && read.item != fake_item.item;
    read = {fake_item.phase, several ? 0xFFFFFFFFu : fake_item.item};
  }
  void writes(int at) {
    if (!fake_item.checks) return;
    if (written_[at].by_others(fake_item.item)) fault("two items write one word of shared memory in the same phase");
    if (read_[at].by_others(fake_item.item))
      fault("a write of shared memory that another item reads in the same phase");
    written_[at] = {fake_item.phase, fake_item.item};
  }

  T values_[n] = {};
  Touch written_[n], read_[n];
};

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
inline void ptx_ex2_approx_ftz_f32(float& y, float x) { y = exp2f(x); }
inline void ptx_rcp_approx_ftz_f32(float& y, float x) { y = 1 / x; }
inline void ptx_cvt_rn_f16_f32(unsigned short& y, float x) { y = float_to_half(x); }

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

inline void __syncthreads() { fake_item.barrier(); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(items)
