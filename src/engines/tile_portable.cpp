// The tile kernel for any processor, on sixteen-byte vectors of the compiler; and the choice among the kernels.
// Read after tile_body.hpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <rosin/error.hpp>

#include "base/instruction_set.hpp"
#include "engines/tile.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {

namespace {

constexpr int full_columns = 4, narrow_columns = 6;
constexpr int dot_rows = 1, dot_columns = 2;
constexpr int sweep_steps = 4;
constexpr int distance_columns = 4;
constexpr int filter_rows = 1;

/// Where the processor this is compiled for has fused multiply-adds (every aarch64) they give the bits of the other
/// kernels; elsewhere sums are rounded twice (multiply, then add), as without hardware they would be far slower.
constexpr bool may_ask = false;
[[maybe_unused]] constexpr bool asking_pays() { return false; }

template <class T> struct Vec {
  typedef T Register __attribute__((vector_size(16)));
  using Mask = int64_t;  // the number of lanes in use
  static constexpr int lanes = static_cast<int>(16 / sizeof(T));
  static Mask mask_of(int64_t count) { return count; }
  static Register load(const T* from, Mask count) { return lanes_of(from, count); }
  /// Halves: apart, since their bits are taken one by one.
  template <class H> [[gnu::noinline]] static Register load(const H* from, Mask count) { return lanes_of(from, count); }
  template <class E> static Register lanes_of(const E* from, Mask count) {
    Register value = {};
    for (int64_t lane = 0; lane < std::min<int64_t>(count, lanes); ++lane) value[lane] = static_cast<T>(from[lane]);
    return value;
  }
  static void store(T* to, Register value, Mask count) {
    for (int64_t lane = 0; lane < std::min<int64_t>(count, lanes); ++lane) to[lane] = value[lane];
  }
  template <class E> static Register load(const E* from) { return load(from, lanes); }
  static void store(T* to, Register value) { store(to, value, lanes); }
  static Register splat(const T* from) { return *from - Register{}; }
  static Register zero() { return Register{}; }
  static Register held(Register a) { return a; }
#if defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF)
  static Register fma(Register a, Register b, Register c) {
    for (int lane = 0; lane < lanes; ++lane) c[lane] = std::fma(a[lane], b[lane], c[lane]);
    return c;
  }
#else
  static Register fma(Register a, Register b, Register c) { return a * b + c; }
#endif
  static Register add(Register a, Register b) { return a + b; }
  static Register sub(Register a, Register b) { return a - b; }
  static Register mul(Register a, Register b) { return a * b; }
  static Register most(Register a, Register b) { return a > b ? a : b; }
  static Register root(Register a) {
    for (int lane = 0; lane < lanes; ++lane) a[lane] = std::sqrt(a[lane]);
    return a;
  }
  static bool all_between(Register a, T least, T end) {
    bool holds = true;
    for (int lane = 0; lane < lanes; ++lane) holds &= a[lane] >= least && a[lane] < end;
    return holds;
  }
  static Register power(Register a) {
    typedef uint32_t Words __attribute__((vector_size(16)));
    return (Register)((Words)a << 23);
  }
  /// Which lane is taken for each lane: none where it is less than 0.
  using Picks = const int32_t*;
  static Picks picks(const int32_t* lanes_taken) { return lanes_taken; }
  /// The lanes that are taken, 0 where none is.
  static Register picked(Register a, Picks which) {
    Register taken = {};
    for (int lane = 0; lane < lanes; ++lane) taken[lane] = which[lane] < 0 ? T(0) : a[which[lane]];
    return taken;
  }
  static Register larger(Register kept, Register value) { return ((value > kept) | (value != value)) ? value : kept; }
  static Register larger_number(Register kept, Register value) { return value > kept ? value : kept; }
  static auto not_numbers(Register a, Register b) { return (a != a) | (b != b); }
  template <class Flags> static Flags either(Flags a, Flags b) { return a | b; }
  template <class Flags> static bool any(Flags a) {
    bool any = false;
    for (int lane = 0; lane < lanes; ++lane) any |= a[lane] != 0;
    return any;
  }
  static Register where_equal(Register a, Register b, Register value) { return a == b ? value : Register{}; }
  static Register where_other(Register a, Register b, Register value) { return a == b ? Register{} : value; }
  static Register where_taken(Register a, Register b, Register value) {
    return ((a == b) | (a != a)) ? value : Register{};
  }
  static Register where_left(Register a, Register b, Register value) {
    return ((a == b) | (a != a)) ? Register{} : value;
  }
  static Register positive(Register a) { return a < Register{} ? Register{} : a; }
  static Register at_most(Register a, Register most) { return a > most ? most : a; }
};

#include "engines/attention_body.hpp"
#include "engines/distance_body.hpp"
#include "engines/dot_body.hpp"
#include "engines/epilogue_body.hpp"
#include "engines/fourier_body.hpp"
#include "engines/plane_body.hpp"
#include "engines/pool_body.hpp"
#include "engines/pull_body.hpp"
#include "engines/sweep_body.hpp"
#include "engines/tile_body.hpp"
#include "engines/weighed_body.hpp"
#include "engines/winograd_body.hpp"

#include "engines/kernel_table.hpp"

const TileKernels& choose_tile_kernels() {
#if defined(__x86_64__)
  const InstructionSet set = best_instruction_set();
  if (set == InstructionSet::widest) return wide_tile_kernels;
  if (set == InstructionSet::wide) return fma_tile_kernels;
#endif
  return portable_tile_kernels;
}

}  // namespace

constinit const TileKernels portable_tile_kernels = kernels_of("portable", 16);

void require_tile_type(DType type, const char* what) {
  if (type == DType::Float32 || type == DType::Float64) return;
  throw Error(ErrorKind::dtype, std::string(what) + ": the tile kernel computes Float32 and Float64; got " +
                                    to_string(type) + "; let the library choose the engine");
}

const TileKernels& tile_kernels() {
  static const TileKernels& chosen = choose_tile_kernels();
  return chosen;
}

const TileKernels& tile_kernels_for([[maybe_unused]] int64_t column_bytes) {
#if defined(__x86_64__)
  const bool wide = &tile_kernels() == &wide_tile_kernels;
  if (wide && column_bytes <= fma_tile_kernels.vector_bytes) return fma_tile_kernels;
#endif
  return tile_kernels();
}

}  // namespace rosin::engines
