// How sequences are computed: columns of the batch by themselves, so that no thread waits for another between steps;
// each keeps the packed weights in its cache. A block of columns goes through all steps: one product of tiles, then the
// gates, as loops over all elements of a gate. Sums do not depend on how the batch is cut.
// Read first: ops/sequence.hpp. Read next: sequence.cpp, sequence_gradient.cpp (the calls), sequence_loops.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/dispatch.hpp"
#include "engines/tile_kernel.hpp"
#include "graph/attributes.hpp"

namespace rosin::cpu {

/// A loop over the elements of gates: of several arrays to several, each contiguous; some do both.
using GateLoop = void (*)(int64_t count, float* const* out, const float* const* in);

/// For the best instruction set. All round as the ops do that a layer records step by step.
struct GateLoops {
  GateLoop add;            // out += in
  GateLoop multiply;       // out *= in
  GateLoop multiply_add;   // out += in0 in1
  GateLoop lstm_cell;      // (c'), (i, f, g, c)
  GateLoop mix;            // (h'), (z, n, h)
  GateLoop tanh_gradient;  // (ds), (dh, h'); relu_gradient the same
  GateLoop relu_gradient;
  GateLoop lstm_gradient;   // (di, df, dg, do, dc), (i, f, g, o, c, tanh(c'), dh); dc: of c', then of c
  GateLoop gru_gradient;    // (dr, dz, dn, dWh, dh), (r, z, Wh, n, h); dh: of h', then its part of h by itself
  GateLoop gruv3_mix;       // (dz, dn, dh), (z, n, h)
  GateLoop gruv3_gradient;  // (dr, dh), (r, h, d(r h))
  StripLoop sigmoid, tanh, relu;
};
const GateLoops& gate_loops();

/// A matrix (rows, inner) in panels of rows, as the tile kernel reads them best.
class Panels {
 public:
  Panels() = default;
  Panels(int64_t rows, int64_t inner)
      : kernels_(&engines::tile_kernels_for(rows * int64_t{sizeof(float)})), rows_(rows), inner_(inner),
        height_(kernels_->row_vectors * kernels_->lanes<float>()) {}

  int64_t floats() const { return (rows_ + height_ - 1) / height_ * height_ * inner_; }
  /// Element (row, j) is from[row * row_step + j * inner_step].
  void pack(const float* from, int64_t row_step, int64_t inner_step, float* to) const;
  /// c += the matrix times b (inner, columns), whose elements of a column lie side by side.
  void multiply(const float* packed, const float* b, int64_t b_column, int64_t columns, float* c,
                int64_t c_column) const;

 private:
  const engines::TileKernels* kernels_ = nullptr;
  int64_t rows_ = 0, inner_ = 0, height_ = 1;
};

/// Sizes of a sequence, and how its batch is cut.
struct SequenceSizes {
  SequenceAttributes how;
  int64_t out = 0, batch = 0, steps = 0;

  /// `shares`: (gates out, batch, steps).
  SequenceSizes(const SequenceAttributes& attributes, const Shape& shares)
      : how(attributes), out(shares[0] / share_gates()), batch(shares[1]), steps(shares[2]) {}

  int64_t share_gates() const {
    switch (how.cell) {
      case SequenceCell::tanh:
      case SequenceCell::relu: return 1;
      case SequenceCell::lstm: return 4;
      case SequenceCell::gru:
      case SequenceCell::gruv3: return 3;
    }
    return 1;
  }
  /// Gates whose values are kept: i, f, g, o; r, z, Wh of n, n; r, z, n.
  int64_t kept_gates() const {
    if (how.cell == SequenceCell::lstm || how.cell == SequenceCell::gru) return 4;
    return how.cell == SequenceCell::gruv3 ? 3 : 0;
  }
  bool is_lstm() const { return how.cell == SequenceCell::lstm; }

  /// The step that comes at place `i`, and where the states before and behind it stand.
  int64_t step_at(int64_t i) const { return how.reversed ? steps - 1 - i : i; }
  int64_t before(int64_t step) const { return how.reversed ? step + 1 : step; }
  int64_t behind(int64_t step) const { return how.reversed ? step : step + 1; }
  int64_t first() const { return how.reversed ? steps : 0; }

  /// Few columns waste what is read of the weights, many leave threads without work.
  Pieces columns() const { return {batch, std::clamp<int64_t>((batch + 1) / 2, 8, 16)}; }
};

/// Some columns of the batch: what a thread takes through all steps.
struct SequenceBlock {
  int64_t out, batch, first, columns;

  SequenceBlock(const SequenceSizes& sizes, int64_t chunk)
      : out(sizes.out), batch(sizes.batch), first(sizes.columns().first(chunk)),
        columns(sizes.columns().last(chunk) - first) {}

  /// Elements of one gate.
  int64_t count() const { return out * columns; }
  /// Of an array (rows, batch, n), the block's columns at n.
  template <class T> T* at(T* array, int64_t rows, int64_t n) const {
    return array ? array + (n * batch + first) * rows : nullptr;
  }
};

/// Rows of `from`, whose columns are so long, into contiguous columns of `to`.
inline void copy_rows(const float* from, int64_t from_column, float* to, int64_t rows, int64_t columns) {
  for (int64_t c = 0; c < columns; ++c) std::copy_n(from + c * from_column, rows, to + c * rows);
}

}  // namespace rosin::cpu
