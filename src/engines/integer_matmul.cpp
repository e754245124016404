// See integer_matmul.hpp. Read after plain_matmul.cpp, which is the same without blocks.
#include "engines/integer_matmul.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <rosin/error.hpp>

#include "engines/cuts.hpp"
#include "engines/plain.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {
namespace {

constexpr int64_t block_steps = 256;  // of k
constexpr int tile_columns = 4;

/// Where the part of a product begins, and how far its elements are from each other.
template <class T> struct Operands {
  const T* a;
  const T* b;
  T* c;
  int64_t a_row, a_step, b_step, b_column, ldc;
};

/// Whether a number of 64 bits is one of 32 bits: sums of Int32 are made in Int64.
template <class T> constexpr bool is_narrow(T x) {
  if constexpr (std::is_same_v<T, int64_t>) return x == static_cast<int32_t>(x);
  else return false;
}
using AddNarrow = void (*)(const uint64_t* panel, const Operands<int64_t>& o, int64_t count, int64_t steps);

/// A panel of A: so many rows as two vectors hold, widened to the type of sums. Vectors are as long as the processor's:
/// of longer ones the sums of a tile would not stay in its registers.
template <class T, int bytes> struct Tile {
  using S = typename Sum<T>::type;
  typedef S Vector __attribute__((vector_size(bytes)));
  static constexpr int64_t lanes = bytes / static_cast<int64_t>(sizeof(S));
  static constexpr int64_t rows = 2 * lanes;

  /// Rows [0, count) of `steps` columns; the rows below are zero. Whether all numbers are of 32 bits.
  [[gnu::always_inline]] static inline bool pack(S* panel, const Operands<T>& o, int64_t count, int64_t steps) {
    if (count < rows) std::memset(panel, 0, static_cast<size_t>(rows * steps) * sizeof(S));
    bool narrow = true;
    for (int64_t k = 0; k < steps; ++k) {
      const T* column = o.a + k * o.a_step;
      for (int64_t i = 0; i < count; ++i) {
        panel[k * rows + i] = static_cast<S>(column[i * o.a_row]);
        narrow &= is_narrow(column[i * o.a_row]);
      }
    }
    return narrow;
  }

  [[gnu::always_inline]] static inline bool has_narrow_b(const Operands<T>& o, int64_t n, int64_t k) {
    bool narrow = true;
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t step = 0; step < k; ++step) narrow &= is_narrow(o.b[j * o.b_column + step * o.b_step]);
    }
    return narrow;
  }

  /// C += panel * B for `count` rows and so many columns.
  template <int columns>
  [[gnu::always_inline]] static inline void add(const S* panel, const Operands<T>& o, int64_t count, int64_t steps) {
    Vector sums[columns][2] = {};
    const T* b = o.b;
    for (int64_t k = 0; k < steps; ++k, b += o.b_step, panel += rows) {
      Vector first, second;
      std::memcpy(&first, panel, sizeof(Vector));
      std::memcpy(&second, panel + lanes, sizeof(Vector));
#pragma GCC unroll 4
      for (int j = 0; j < columns; ++j) {
        const S factor = static_cast<S>(b[j * o.b_column]);
        sums[j][0] += first * factor;
        sums[j][1] += second * factor;
      }
    }
    for (int j = 0; j < columns; ++j) {
      S column[rows];
      std::memcpy(column, sums[j], sizeof column);
      T* out = o.c + j * o.ldc;
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(static_cast<S>(out[i]) + column[i]);
    }
  }

  /// C, of m x n elements, += A * B. `add_narrow`, unless null, adds four columns of products of numbers of 32 bits.
  [[gnu::always_inline]] static inline void multiply(const Operands<T>& part, int64_t m, int64_t n, int64_t k,
                                                     AddNarrow add_narrow = nullptr) {
    alignas(64) S panel[rows * block_steps];
    const bool narrow_b = add_narrow && has_narrow_b(part, n, k);
    for (int64_t step = 0; step < k; step += block_steps) {
      const int64_t steps = std::min(block_steps, k - step);
      for (int64_t row = 0; row < m; row += rows) {
        const int64_t count = std::min(rows, m - row);
        Operands<T> o = part;
        o.a += row * o.a_row + step * o.a_step;
        o.b += step * o.b_step;
        o.c += row;
        const bool narrow = pack(panel, o, count, steps) && narrow_b;
        int64_t j = 0;
        for (; j + tile_columns <= n;
             j += tile_columns, o.b += tile_columns * o.b_column, o.c += tile_columns * o.ldc) {
          if constexpr (std::is_same_v<T, int64_t>) {
            if (narrow) {
              add_narrow(panel, o, count, steps);
              continue;
            }
          }
          add<tile_columns>(panel, o, count, steps);
        }
        for (; j < n; ++j, o.b += o.b_column, o.c += o.ldc) add<1>(panel, o, count, steps);
      }
    }
  }
};

template <class T> using Multiply = void (*)(const Operands<T>& part, int64_t m, int64_t n, int64_t k);

template <class T> void multiply(const Operands<T>& part, int64_t m, int64_t n, int64_t k) {
  Tile<T, 16>::multiply(part, m, n, k);
}
#ifdef __x86_64__
/// Of products whose factors have 32 bits each one instruction makes four; of 64 bits they take five.
[[gnu::target("avx2")]] void add_narrow(const uint64_t* panel, const Operands<int64_t>& o, int64_t count,
                                        int64_t steps) {
  constexpr int64_t rows = Tile<int64_t, 32>::rows;
  __m256i sums[tile_columns][2] = {};
  const int64_t* b = o.b;
  for (int64_t k = 0; k < steps; ++k, b += o.b_step, panel += rows) {
    const __m256i first = _mm256_load_si256(reinterpret_cast<const __m256i*>(panel));
    const __m256i second = _mm256_load_si256(reinterpret_cast<const __m256i*>(panel) + 1);
#pragma GCC unroll 4
    for (int j = 0; j < tile_columns; ++j) {
      const __m256i factor = _mm256_set1_epi64x(b[j * o.b_column]);
      sums[j][0] = _mm256_add_epi64(sums[j][0], _mm256_mul_epi32(first, factor));
      sums[j][1] = _mm256_add_epi64(sums[j][1], _mm256_mul_epi32(second, factor));
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < tile_columns; ++j) {
    alignas(32) uint64_t column[rows];
    _mm256_store_si256(reinterpret_cast<__m256i*>(column), sums[j][0]);
    _mm256_store_si256(reinterpret_cast<__m256i*>(column) + 1, sums[j][1]);
    int64_t* out = o.c + j * o.ldc;
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(static_cast<uint64_t>(out[i]) + column[i]);
  }
}

template <class T>
[[gnu::flatten, gnu::target("avx2")]] void multiply_wide(const Operands<T>& part, int64_t m, int64_t n, int64_t k) {
  if constexpr (std::is_same_v<T, int64_t>) Tile<T, 32>::multiply(part, m, n, k, add_narrow);
  else Tile<T, 32>::multiply(part, m, n, k);
}
template <class T>
[[gnu::flatten, gnu::target("avx512f,avx512vl,avx512bw,avx512dq")]] void multiply_widest(const Operands<T>& part,
                                                                                         int64_t m, int64_t n,
                                                                                         int64_t k) {
  Tile<T, 64>::multiply(part, m, n, k);
}
#endif

template <class T> Multiply<T> best_multiply() {
#ifdef __x86_64__
  if (&tile_kernels() == &wide_tile_kernels) return multiply_widest<T>;
  if (&tile_kernels() == &fma_tile_kernels) return multiply_wide<T>;
#endif
  return multiply<T>;
}

constexpr int64_t thousands_per_microsecond = 8;

template <class T> class IntegerMatmul final : public VendorCall {
 public:
  explicit IntegerMatmul(const MatmulSpec& spec) : spec_(spec), cut_(cut_matmul(spec, thousands_per_microsecond)) {
    chunks_ = cut_.chunks();
  }
  const char* engine() const noexcept override { return "plain"; }
  std::optional<MatmulPart> part_of(int64_t chunk) const override { return cut_.part(chunk); }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void*) const override {
    const MatmulPart part = cut_.part(chunk);
    const int64_t rows = part.last_row - part.first_row, columns = part.last_column - part.first_column;
    for (int64_t item = part.first_item; item < part.last_item; ++item) {
      const Operands<T> operands = at(buffers, item, part);
      start(buffers, operands, part.first_row, rows, columns);
      multiply_(operands, rows, columns, spec_.k);
    }
  }

 private:
  Operands<T> at(const VendorBuffers& buffers, int64_t item, const MatmulPart& part) const {
    Operands<T> o{};
    o.a_row = spec_.a_transposed ? spec_.lda : 1;
    o.a_step = spec_.a_transposed ? 1 : spec_.lda;
    o.b_step = spec_.b_transposed ? spec_.ldb : 1;
    o.b_column = spec_.b_transposed ? 1 : spec_.ldb;
    o.ldc = spec_.ldc;
    o.a = static_cast<const T*>(buffers.first) + item * spec_.a_batch_stride + part.first_row * o.a_row;
    o.b = static_cast<const T*>(buffers.second) + item * spec_.b_batch_stride + part.first_column * o.b_column;
    o.c = static_cast<T*>(buffers.result) + item * spec_.c_batch_stride + part.first_row + part.first_column * o.ldc;
    return o;
  }

  /// What the product is added to: C or nothing, and the bias.
  void start(const VendorBuffers& buffers, const Operands<T>& o, int64_t first_row, int64_t rows,
             int64_t columns) const {
    using S = typename Sum<T>::type;
    const T* bias = spec_.epilogue.bias ? static_cast<const T*>(buffers.third) + first_row : nullptr;
    for (int64_t j = 0; j < columns; ++j) {
      T* c = o.c + j * o.ldc;
      if (!spec_.accumulate) std::fill_n(c, rows, T{0});
      for (int64_t i = 0; bias && i < rows; ++i) c[i] = static_cast<T>(static_cast<S>(c[i]) + static_cast<S>(bias[i]));
    }
  }

  MatmulSpec spec_;
  MatmulCut cut_;
  Multiply<T> multiply_ = best_multiply<T>();
};

}  // namespace

std::unique_ptr<VendorCall> prepare_integer_matmul(const MatmulSpec& spec) {
  switch (spec.type) {
    case DType::Int8: return std::make_unique<IntegerMatmul<int8_t>>(spec);
    case DType::UInt8: return std::make_unique<IntegerMatmul<uint8_t>>(spec);
    case DType::Int16: return std::make_unique<IntegerMatmul<int16_t>>(spec);
    case DType::UInt16: return std::make_unique<IntegerMatmul<uint16_t>>(spec);
    case DType::Int32: return std::make_unique<IntegerMatmul<int32_t>>(spec);
    case DType::UInt32: return std::make_unique<IntegerMatmul<uint32_t>>(spec);
    case DType::Int64: return std::make_unique<IntegerMatmul<int64_t>>(spec);
    case DType::UInt64: return std::make_unique<IntegerMatmul<uint64_t>>(spec);
    default: break;
  }
  throw Error(ErrorKind::dtype, std::string("matmul: element type ") + to_string(spec.type) +
                                    " has no product; convert both operands, for example with f32(x)");
}

}  // namespace rosin::engines
