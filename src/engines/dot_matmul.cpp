// Matmul by sums along memory: few rows or few columns, each many steps long. What does not lie along the steps is
// copied, which pays for the smaller operand alone. Read after tile_kernel.hpp; the kernel is dot_body.hpp.
#include <algorithm>

#include "engines/converted.hpp"
#include "engines/cuts.hpp"
#include "engines/epilogue.hpp"
#include "engines/gather_rows.hpp"
#include "engines/tile.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {

namespace {

constexpr int64_t most_few = 16;  // lines of the smaller operand

template <class T> class DotMatmul final : public VendorCall {
 public:
  explicit DotMatmul(const MatmulSpec& spec)
      : spec_(spec), cut_(cut_matmul(spec, thousands)), copies_a_(!spec.a_transposed), copies_b_(spec.b_transposed),
        a_elements_(copies_a_ ? spec.m * spec.k : 0), b_elements_(copies_b_ ? spec.n * spec.k : 0) {
    chunks_ = cut_.chunks();
    workspace_bytes_ = static_cast<size_t>((a_elements_ + b_elements_) * spec.batch) * sizeof(T);
    has_begin_ = workspace_bytes_ > 0;
  }

  const char* engine() const noexcept override { return "tile"; }

  std::optional<MatmulPart> part_of(int64_t chunk) const override { return cut_.part(chunk); }

  void begin(const VendorBuffers& buffers) const override {
    for (int64_t item = 0; item < spec_.batch; ++item) {
      T* copy = copy_of(item, buffers);
      if (copies_a_) gather_columns(a_of(item, buffers), spec_.lda, copy, spec_.m);
      if (copies_b_) gather_columns(b_of(item, buffers), spec_.ldb, copy + a_elements_, spec_.n);
    }
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void*) const override {
    const MatmulPart part = cut_.part(chunk);
    DotProduct<T> product;
    product.a_row = copies_a_ ? spec_.k : spec_.lda;
    product.b_column = copies_b_ ? spec_.k : spec_.ldb;
    product.c_column = spec_.ldc;
    product.rows = part.last_row - part.first_row;
    product.columns = part.last_column - part.first_column;
    product.steps = spec_.k;
    product.accumulate = spec_.accumulate;
    product.relu = spec_.epilogue.activation == Activation::relu;
    if (spec_.epilogue.bias) product.bias = static_cast<const T*>(buffers.third) + part.first_row;
    for (int64_t item = part.first_item; item < part.last_item; ++item) {
      const T* copy = copy_of(item, buffers);
      product.a = (copies_a_ ? copy : a_of(item, buffers)) + part.first_row * product.a_row;
      product.b = (copies_b_ ? copy + a_elements_ : b_of(item, buffers)) + part.first_column * product.b_column;
      product.c = static_cast<T*>(buffers.result) + item * spec_.c_batch_stride + part.first_row +
                  part.first_column * spec_.ldc;
      tile_kernels().of<T>().dots(product);
    }
  }

 private:
  static constexpr int64_t thousands = sizeof(T) == 4 ? 50 : 25;  // of multiply-adds in a microsecond

  T* copy_of(int64_t item, const VendorBuffers& buffers) const {
    return static_cast<T*>(buffers.workspace) + item * (a_elements_ + b_elements_);
  }
  const T* a_of(int64_t item, const VendorBuffers& buffers) const {
    return static_cast<const T*>(buffers.first) + item * spec_.a_batch_stride;
  }
  const T* b_of(int64_t item, const VendorBuffers& buffers) const {
    return static_cast<const T*>(buffers.second) + item * spec_.b_batch_stride;
  }

  /// Elements (line, step) at line + step * distance, with the steps side by side.
  void gather_columns(const T* from, int64_t distance, T* to, int64_t lines) const {
    gather_rows(from, distance, to, spec_.k, spec_.k, lines);
  }

  MatmulSpec spec_;
  MatmulCut cut_;
  bool copies_a_, copies_b_;
  int64_t a_elements_, b_elements_;  // of the copies of an item
};

/// The same of halves, whose sums are of Float32: the smaller operand is widened once, the larger one as it is read.
template <class H> class HalfDotMatmul final : public VendorCall {
 public:
  explicit HalfDotMatmul(const MatmulSpec& spec)
      : spec_(spec), cut_(cut_matmul(spec, thousands)), by_columns_(!spec.a_transposed || spec.m < spec.n),
        few_(by_columns_ ? spec.m : spec.n) {
    if (spec.b_transposed) by_columns_ = false, few_ = spec.n;
    chunks_ = cut_.chunks();
    workspace_bytes_ = static_cast<size_t>(spec.batch * few_ * spec.k) * sizeof(float);
    scratch_bytes_ = static_cast<size_t>(together * few_) * sizeof(float);
    has_begin_ = true;
  }

  const char* engine() const noexcept override { return "tile"; }
  std::optional<MatmulPart> part_of(int64_t chunk) const override { return cut_.part(chunk); }

  void begin(const VendorBuffers& buffers) const override {
    const auto* from = static_cast<const H*>(by_columns_ ? buffers.first : buffers.second);
    for (int64_t item = 0; item < spec_.batch; ++item) {
      const int64_t stride = by_columns_ ? spec_.a_batch_stride : spec_.b_batch_stride;
      widen_few(from + item * stride, few_of(item, buffers));
    }
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const MatmulPart part = cut_.part(chunk);
    auto* sums = static_cast<float*>(scratch);
    for (int64_t item = part.first_item; item < part.last_item; ++item) {
      H* c = static_cast<H*>(buffers.result) + item * spec_.c_batch_stride;
      if (by_columns_) {
        const H* b =
            static_cast<const H*>(buffers.second) + item * spec_.b_batch_stride + part.first_column * spec_.ldb;
        run_lines(part.last_column - part.first_column, part.last_row - part.first_row, b,
                  few_of(item, buffers) + part.first_row * spec_.k, sums,
                  c + part.first_row + part.first_column * spec_.ldc);
      } else {
        const H* a = static_cast<const H*>(buffers.first) + item * spec_.a_batch_stride + part.first_row * spec_.lda;
        run_lines(part.last_row - part.first_row, part.last_column - part.first_column, a,
                  few_of(item, buffers) + part.first_column * spec_.k, sums,
                  c + part.first_row + part.first_column * spec_.ldc);
      }
    }
  }

 private:
  static constexpr int64_t thousands = 50;  // of multiply-adds in a microsecond
  static constexpr int64_t together = 64;   // lines of the larger operand whose sums are narrowed at once

  float* few_of(int64_t item, const VendorBuffers& buffers) const {
    return static_cast<float*>(buffers.workspace) + item * few_ * spec_.k;
  }

  /// The smaller operand's lines with their steps side by side.
  void widen_few(const H* from, float* to) const {
    const bool along = by_columns_ ? spec_.a_transposed : !spec_.b_transposed;
    const int64_t distance = by_columns_ ? spec_.lda : spec_.ldb;
    for (int64_t line = 0; along && line < few_; ++line) {
      widen(spec_.type, from + line * distance, to + line * spec_.k, spec_.k);
    }
    if (along) return;
    if (few_ == 1 && distance == 1) return widen(spec_.type, from, to, spec_.k);
    for (int64_t step = 0; step < spec_.k; ++step) {
      float values[most_few];
      widen(spec_.type, from + step * distance, values, few_);
      for (int64_t line = 0; line < few_; ++line) to[line * spec_.k + step] = values[line];
    }
  }

  /// Lines of the larger operand by few of the other, whose sums become elements of C: element (line, other) stands at
  /// line * c_line + other * c_few.
  void run_lines(int64_t lines, int64_t few, const H* large, const float* widened, float* sums, H* c) const {
    const int64_t distance = by_columns_ ? spec_.ldb : spec_.lda;
    const int64_t c_line = by_columns_ ? spec_.ldc : 1, c_few = by_columns_ ? 1 : spec_.ldc;
    for (int64_t line = 0; line < lines; line += together) {
      const int64_t here = std::min(together, lines - line);
      tile_kernels().of<H>().dots({.a = large + line * distance,
                                   .a_row = distance,
                                   .b = widened,
                                   .b_column = spec_.k,
                                   .c = sums,
                                   .c_column = here,
                                   .rows = here,
                                   .columns = few,
                                   .steps = spec_.k});
      for (int64_t other = 0; other < few; ++other) {
        H* to = c + line * c_line + other * c_few;
        if (c_line == 1) narrow(spec_.type, sums + other * here, to, here);
        for (int64_t i = 0; c_line != 1 && i < here; ++i) to[i * c_line] = H(sums[other * here + i]);
      }
    }
  }

  MatmulSpec spec_;
  MatmulCut cut_;
  bool by_columns_;  // the larger operand is B
  int64_t few_;      // lines of the smaller one
};

/// Rows that leave most lanes of a tile empty. Measured on Zen 5, by 10000 columns: from so many steps on, with AVX-512
/// 0.3 (of one row) to 0.9 of the time of tiles, with its AVX2 0.4 to 1.0; of more rows 1.1 to 1.6.
bool has_few_rows(const MatmulSpec& spec) {
  const bool widest = tile_kernels().vector_bytes == 64;
  const int64_t lanes = tile_kernels().vector_bytes / static_cast<int64_t>(size_of(spec.type));
  return spec.m <= (widest ? lanes * 5 / 8 : lanes / 2) && spec.k >= (widest ? 14 : 28) * spec.m;
}

}  // namespace

/// Measured on AVX-512 (Zen 5): tiles of few rows leave lanes empty, and those of a transposed A are copied first.
bool dots_pay(const MatmulSpec& spec) {
  constexpr int64_t few = most_few, few_to_copy = 10, many_steps = 128;
  if (size_of(spec.type) > 2 && !spec.b_transposed && spec.n > few_to_copy && has_few_rows(spec)) return true;
  if (spec.k < many_steps) return false;
  if (!spec.a_transposed) {
    return size_of(spec.type) == 2 && !spec.b_transposed && spec.m <= few_to_copy && spec.n > few_to_copy;
  }
  return spec.b_transposed ? spec.n <= few_to_copy : std::min(spec.m, spec.n) <= few;
}

std::unique_ptr<VendorCall> prepare_dot_matmul(const MatmulSpec& spec) {
  return with_epilogue(spec, true, [](const MatmulSpec& inner) -> std::unique_ptr<VendorCall> {
    switch (inner.type) {
      case DType::Float16: return std::make_unique<HalfDotMatmul<Half>>(inner);
      case DType::BFloat16: return std::make_unique<HalfDotMatmul<BFloat>>(inner);
      case DType::Float64: return std::make_unique<DotMatmul<double>>(inner);
      default: return std::make_unique<DotMatmul<float>>(inner);
    }
  });
}

}  // namespace rosin::engines
