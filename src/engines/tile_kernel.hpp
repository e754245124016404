// The tile kernel: small products held in vector registers. Products below the size where oneDNN's call pays, all
// Float64 products, and convolutions with few channels are made of it; pooling and filters of planes use the same
// vectors. Read after vendor.hpp; next tile_body.hpp, dot_body.hpp, sweep_body.hpp, pool_body.hpp and plane_body.hpp
// (the kernels), tile_matmul.cpp, dot_matmul.cpp, sweep_matmul.cpp, tile_conv.cpp, pooling.cpp, plane_conv.cpp (who
// calls them), winograd_body.hpp and winograd.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include <rosin/half.hpp>

#include "engines/attention_block.hpp"
#include "engines/distance_tile.hpp"
#include "engines/fourier_lines.hpp"
#include "engines/plane_run.hpp"
#include "engines/weighed_rows.hpp"

namespace rosin::engines {

/// C(rows, columns) = [C +] sum over r < outer, j < inner of A(row; r, j) * B(r, j; column) [+ bias(row)] [max 0].
/// Each element is one running sum, r ascending and j ascending within r, so the result does not depend on tiles.
/// A's rows are contiguous; nothing beyond `rows` is read or written.
template <class T> struct TileProduct {
  const T* a = nullptr;  // element (row; r, j) is a[row + r * a_outer + j * a_inner]
  int64_t a_outer = 0, a_inner = 0;
  const T* b = nullptr;                // element (r, j; column) is b[b_offsets[r] + j * b_inner + column * b_column]
  const int64_t* b_offsets = nullptr;  // `outer` entries
  int64_t b_inner = 0, b_column = 0;
  T* c = nullptr;  // element (row, column) is c[row + column * c_column]
  int64_t c_column = 0;
  const T* bias = nullptr;  // `rows` entries, or null
  int64_t rows = 0, columns = 0, outer = 1, inner = 0;
  bool accumulate = false, relu = false;
  int64_t items = 1, a_item = 0, b_item = 0, c_item = 0;  // multiply_items: so many products, each so far behind
};

/// C(rows, columns) = [C +] sum over step < steps of A(row; step) * B(step; column) [+ bias(row)] [max 0], in the same
/// order, of panels: a step's rows of A stand side by side, filled up to whole vectors, and the next step's behind
/// them; so do its columns of B, filled up to those of a panel.
template <class T> struct PackedTile {
  const T *a = nullptr, *b = nullptr;
  int64_t a_step = 0;    // of an A that is read where it stands: a step from the next; 0: a panel
  int64_t b_column = 0;  // of a B whose columns stand along memory: their distance; 0: a panel
  T* c = nullptr;        // element (row, column) is c[row + column * c_column]
  int64_t c_column = 0;
  const T* next_c = nullptr;  // where the next product's C begins, or null
  const T* bias = nullptr;    // `rows` entries, or null
  int64_t rows = 0, columns = 0, steps = 0;
  bool accumulate = false, relu = false;
};

/// What a sum of elements of a type is kept in.
template <class A> using WideOf = std::conditional_t<sizeof(A) == sizeof(double), double, float>;

/// C(rows, columns) = [C +] sum over step < steps of A(row; step) * B(step; column) [+ bias(row)] [max 0], for sums
/// along memory. An element is the total of sixty-four bytes of partial sums, each of every so many steps in order.
template <class A, class B = A> struct DotProduct {
  using T = WideOf<A>;
  const A* a = nullptr;  // element (row; step) is a[row * a_row + step]
  int64_t a_row = 0;
  const B* b = nullptr;  // element (step; column) is b[column * b_column + step]
  int64_t b_column = 0;
  T* c = nullptr;  // element (row, column) is c[row + column * c_column]
  int64_t c_column = 0;
  const T* next_c = nullptr;  // where the next product's C begins, or null
  const T* bias = nullptr;    // `rows` entries, or null
  int64_t rows = 0, columns = 0, steps = 0;
  bool accumulate = false, relu = false;
};

constexpr int64_t most_swept = 2;  // columns of a Sweep

/// Sums(rows, columns) = sum over step < steps of A(row; step) * B(step; column), the steps in order, of few columns.
template <class A> struct Sweep {
  using Wide = WideOf<A>;
  const A* a = nullptr;  // element (row; step) is a[row + step * a_step]
  int64_t a_step = 0;
  const A* b = nullptr;  // element (step; column) is b[step * b_step + column * b_column]
  int64_t b_step = 0, b_column = 0;
  Wide* sums = nullptr;  // element (row, column) is sums[row + column * sums_column]
  int64_t sums_column = 0;
  int64_t rows = 0, columns = 0, steps = 0;  // at least one step, at most most_swept columns
};

/// A run of pooling windows side by side. Window i has its taps at x[offsets[t] + i * x_step + channel] and its output
/// at y[i * y_step + channel]; offsets are in the order of the window's scan. Steps are negative where gradients add up
/// from the last window on.
template <class T> struct PoolRun {
  const T* x = nullptr;
  int64_t x_step = 0, y_step = 0;
  const int64_t* offsets = nullptr;
  int64_t taps = 0, channels = 0, windows = 0;
  T* y = nullptr;         // written by the forward kernels, read by max_backward
  const T* dy = nullptr;  // as y
  T* dx = nullptr;        // as x
  bool overlaps = true;   // the backward kernels add to dx; where windows do not overlap they just write
  bool tiles = false;     // along a row each element has one window, and taps stand in the order of memory
  T share = T(1);         // of each tap in a mean
  T least = T(0);         // what every maximum is at least: -Inf, or for windows in the padding the lowest number
};

/// c[i] = (c[i] + bias[i] - center[i]) * factor[i] + shift[i] + residual[i], i < count, each step rounded, and 0 where
/// that is less, `most` where it is more (NaN and -0 stay).
template <class T> struct EpilogueRun {
  T* c = nullptr;
  const T* bias = nullptr;  // or null, as the other arrays
  const T* residual = nullptr;
  int64_t count = 0;
  bool relu = false;  // else what is less than 0 stays
  T most = std::numeric_limits<T>::infinity();
  const T* center = nullptr;
  const T* factor = nullptr;
  const T* shift = nullptr;
};

/// Kernels for one element type.
template <class T> struct TypedKernels {
  void (*multiply)(const TileProduct<T>&);
  void (*multiply_items)(const TileProduct<T>&);  // the same of a batch
  void (*dots)(const DotProduct<T>&);
  void (*sweep)(const Sweep<T>&);
  void (*max_forward)(const PoolRun<T>&);
  void (*max_backward)(const PoolRun<T>&);
  void (*mean_forward)(const PoolRun<T>&);
  void (*mean_backward)(const PoolRun<T>&);
  bool (*finite)(const T* x, int64_t count);  // whether no element is infinite or NaN
  void (*fourier)(const FourierLines<T>&);    // results have the same bits on every processor
  void (*copy_rows)(const CopiedRows<T>&);
  void (*give_gradients)(const GivenGradients<T>&);
  void (*pull_gradients)(const PulledGradients<T>&);
  void (*filter_plane)(const PlaneRun<T>&);
  void (*dot_planes)(const PlaneDots<T>&);
  void (*weigh_rows)(const WeighedRows<T>&);
  void (*weigh_lines)(const WeighedLines<T>&);
  void (*epilogue)(const EpilogueRun<T>&);
};

/// Products of halves with sums in float: the larger operand is read as it lies.
template <class H> struct HalfKernels {
  void (*dots)(const DotProduct<H, float>&);
  void (*sweep)(const Sweep<H>&);
};

/// What winograd.cpp does with one square of pixels, for all its channels: element c of pixel p is pixels[p][c]. `step`
/// is the distance of one of the 36 products' arrays from the next.
struct WinogradKernels {
  static constexpr int side = 4, window = side + 2;  // of a square of results, and of the image under it
  /// Row `row` of the 36 arrays of an image's square of 6x6 pixels.
  void (*image_row)(int row, const float* const* pixels, int64_t channels, float* out, int64_t step);
  /// Row `row` of the 36 arrays of a gradient's square of 4x4 pixels.
  void (*gradient_row)(int row, const float* const* pixels, int64_t channels, float* out, int64_t step);
  /// A result's square of 4x4 pixels, of 36 arrays of sums. Whether no element is infinite or NaN.
  bool (*result)(const float* sums, int64_t step, int64_t channels, float* const* pixels);
  /// Weights as 36 arrays, and 36 arrays of sums as their gradient: each tap's channels are `tap` from the last one's.
  void (*weights)(const float* taps, int64_t tap, int64_t channels, float* out, int64_t step);
  void (*weights_gradient)(const float* sums, int64_t step, int64_t channels, float* taps, int64_t tap);
};

/// Of packed panels: row vectors of one of A, columns of one of B, at most so many rows and columns at a time. All 0
/// where no processor has been found on which panels pay.
struct PackedKernels {
  int vectors = 0, columns = 0;
  void (*floats)(const PackedTile<float>&) = nullptr;
  void (*doubles)(const PackedTile<double>&) = nullptr;
};

/// Kernels for one kind of processor.
struct TileKernels {
  const char* name;
  int vector_bytes;
  int row_vectors;  // row vectors of one full tile: A panels of row_vectors * vector_bytes are used best
  TypedKernels<float> floats;
  TypedKernels<double> doubles;
  HalfKernels<Half> halves;
  HalfKernels<BFloat> bfloats;
  AttentionKernels<float> attention;
  WinogradKernels winograd;
  PackedKernels packed;
  bool (*distances)(const DistanceTile&);  // whether all are sure

  /// The kernels of an element type; of a half: HalfKernels.
  template <class T> const auto& of() const {
    if constexpr (std::is_same_v<T, Half>) return halves;
    else if constexpr (std::is_same_v<T, BFloat>) return bfloats;
    else if constexpr (std::is_same_v<T, float>) return floats;
    else return doubles;
  }
  template <class T> int64_t lanes() const { return vector_bytes / static_cast<int64_t>(sizeof(T)); }
};

/// The best kernels this processor can run; chosen once.
const TileKernels& tile_kernels();
/// The same for products whose columns have so many bytes: half a wide vector is slower than a whole narrow one. (All
/// kernels that fuse multiply and add give the same bits.)
const TileKernels& tile_kernels_for(int64_t column_bytes);

extern const TileKernels portable_tile_kernels;
#if defined(__x86_64__)
extern const TileKernels fma_tile_kernels;   // AVX2 and FMA
extern const TileKernels wide_tile_kernels;  // AVX-512
#endif

}  // namespace rosin::engines
