// The attribute structs of ops that have parameters. They are plain data, compared byte by byte, at most 64 bytes,
// without padding (unused bytes are zero).
#pragma once

#include <cstdint>

#include <rosin/dtype.hpp>

namespace rosin {

/// How a movement op moves; what its attributes mean. Sizes of the result stand in the node.
enum class Movement : uint8_t {
  none,
  reshape,    // no attributes
  parts,      // no attributes: complex elements as a first dim of their two parts, or the way back
  broadcast,  // no attributes: size-1 dims (and missing last dims) are repeated
  permute,    // PermuteAttributes
  slice,      // SliceAttributes
  pad,        // PadAttributes; operand 1 is the 0-d value
  concat      // DimAttributes; any number of operands
};

struct PermuteAttributes {
  uint8_t from[8] = {};  // result dim d is operand dim from[d]
};

/// Elements start, start + step, ... of one dim; a negative step runs backwards. The count stands in the node's sizes.
struct SliceAttributes {
  int64_t dim = 0, start = 0, step = 1;
};

struct PadAttributes {
  int64_t dim = 0, low = 0, high = 0;
};

/// Which result of its operand, an op of several, a node is.
struct PartAttributes {
  int64_t number = 0;
};

/// Ops along one dim: scatter, concat.
struct DimAttributes {
  int64_t dim = 0;
};

/// Gather: whole slices in the order of the indices, or (along = 1) one index for each element of the result.
struct GatherAttributes {
  int64_t dim = 0;
  int64_t along = 0;
};

/// Reductions: bit d set = dim d is reduced; reduced dims keep size 1.
struct ReductionAttributes {
  uint64_t dims = 0;
};

/// Matmul: which operands are read as if their first two dims were exchanged.
struct MatmulAttributes {
  int32_t transposed[2] = {};
};

struct SortAttributes {
  int64_t dim = 0;
  int64_t descending = 0;
};

struct ScanAttributes {
  int64_t dim = 0;
  int64_t reversed = 0;
};

/// What a scan does along its dim, in order or, reversed, from the end.
enum class Scan : uint8_t {
  none,
  running,     // y[i] = combine(y[i - 1], x[i]) by the op's reducer, from its neutral element
  recurrence,  // (a, b): h[i] = a[i] * h[i - 1] + b[i], from h[0] = b[0]
  place        // Int32: where the first element stands that the op's reducer, which chooses one of its operands, gives
};

/// What a scatter does with its updates (the last operand).
enum class Scatter : uint8_t {
  none,
  write,     // (target, indices, updates): each takes the place of an element; the last one stays
  add,       // (target, indices, updates): in the order of the indices
  combine,   // the same, by the op's reducer
  add_along  // (indices, updates): onto zeros, one index for each update
};

/// What a random op draws; operands are the scalars key and offset (Int64), then low and high where they are used.
enum class Draw : uint8_t { none, bits, permutation };

/// Which contraction; lower and the devices know no other.
enum class Contraction : uint8_t {
  none,
  matmul,              // (m, k, batch...) x (k, n, batch...) -> (m, n, batch...); batch dims broadcast
  convolution,         // x (spatial..., in, batch), w (spatial..., in/groups, out) -> y
  convolution_data,    // dy, w -> dx; sizes of x in the node
  convolution_weights  // x, dy -> dw; sizes of w in the node
};

/// Which routine, of the CPU unless said otherwise; operands are matrices (m, n, batch...) whose batches are alike.
enum class Routine : uint8_t {
  none,
  cholesky,       // a -> lower factor; reads the lower triangle
  triangular,     // (t, b) -> x (TriangularAttributes)
  solve,          // (a, b) -> x (TriangularAttributes: transposed alone)
  inverse,        // a -> inverse
  lu,             // a -> both factors in one matrix, order of the rows (Int32)
  determinant,    // a -> determinant
  logarithm,      // a -> sign of the determinant, logarithm of its size
  cofactors,      // a -> the gradient of the determinant
  qr,             // a -> q, r, of min(m, n) columns and rows
  svd,            // a -> u, s, v transposed, of min(m, n) values
  eigh,           // a -> values, vectors; reads the lower triangle
  pseudoinverse,  // a -> pseudo-inverse (CutAttributes)
  fourier,        // (2, sizes...) -> (2, sizes...), parts of complex numbers (FourierAttributes)
  distances,      // (features, n), (features, m) -> (n, m), Float32
  sequence,       // all steps of a recurrent layer (SequenceAttributes); operands stand in ops/sequence.hpp
  sequence_gradient,
  recurrent,  // the same by a device's library (RecurrentAttributes); operands stand in ops/recurrent_call.hpp
  recurrent_gradient
};

struct TriangularAttributes {
  int16_t upper = 0, unit = 0, transposed = 0, unused = 0;
};

/// Singular values at most `relative` times the largest count as 0.
struct CutAttributes {
  double relative = 0;
};

/// The unscaled transform along dim `dim`, which counts the parts as dim 0.
struct FourierAttributes {
  int32_t dim = 1, inverse = 0;
};

/// Sequences (features, length, batch) of heads; which operands follow the first ones: bias, mask, and, where weights
/// are dropped, key and counter of the draw, C++ numbers.
struct AttentionAttributes {
  int32_t heads = 1, kv_heads = 1;
  int32_t causal = 0, has_bias = 0, has_mask = 0, is_dropped = 0;
  double scale = 1, kept = 1;  // of the logits; the share of the weights that is not dropped
};

/// How a recurrent layer comes from one step to the next.
enum class SequenceCell : uint8_t { tanh, relu, lstm, gru, gruv3 };

struct SequenceAttributes {
  SequenceCell cell = SequenceCell::tanh;
  uint8_t reversed = 0;    // the last step comes first
  uint8_t lengths = 0;     // the last operand says how many steps each sequence has
  uint8_t cell_slope = 0;  // of the gradient: the loss depends on the cells
  uint8_t unused[4] = {};
};

/// The gradient's operands end with the slopes of those results that have one.
struct RecurrentAttributes {
  SequenceCell cell = SequenceCell::tanh;
  uint8_t output_slope = 0, state_slope = 0, cell_slope = 0;
  uint8_t unused[4] = {};
};

/// Convolutions and pooling, up to three spatial dims (unused entries: stride 1, dilation 1, rest 0).
struct WindowAttributes {
  int32_t stride[3] = {1, 1, 1};
  int32_t dilation[3] = {1, 1, 1};
  int32_t pad_low[3] = {};
  int32_t pad_high[3] = {};
  int16_t window[3] = {};  // pooling: size of the window
  int16_t groups = 1;      // convolution
  int16_t flipped = 0;     // convolution: 1 = true convolution (the kernel is flipped), 0 = cross-correlation
  int16_t unused[3] = {};
};
static_assert(sizeof(WindowAttributes) == 64);

/// Which pooling. Backward forms: maximum_gradient(x, y, dy), mean_gradient(dy) with the sizes of x in the node;
/// maximum_pick(x, v): of v what stands where x has each window's first largest element (the adjoint in dy).
enum class Window : uint8_t { none, maximum, mean, maximum_gradient, mean_gradient, maximum_pick };

}  // namespace rosin
