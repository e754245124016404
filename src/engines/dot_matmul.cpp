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

/// The same of halves, whose sums are of Float32: lines of the larger operand are widened a few at a time, so that they
/// stay in the first cache and memory is read once.
class HalfDotMatmul final : public VendorCall {
 public:
  explicit HalfDotMatmul(const MatmulSpec& spec)
      : spec_(spec), cut_(cut_matmul(spec, thousands)), by_columns_(!spec.a_transposed || spec.m < spec.n),
        few_(by_columns_ ? spec.m : spec.n) {
    if (spec.b_transposed) by_columns_ = false, few_ = spec.n;
    chunks_ = cut_.chunks();
    workspace_bytes_ = static_cast<size_t>(spec.batch * few_ * spec.k) * sizeof(float);
    scratch_bytes_ = static_cast<size_t>(together * (spec.k + few_)) * sizeof(float);
    has_begin_ = true;
  }

  const char* engine() const noexcept override { return "tile"; }
  std::optional<MatmulPart> part_of(int64_t chunk) const override { return cut_.part(chunk); }

  void begin(const VendorBuffers& buffers) const override {
    const auto* from = static_cast<const uint16_t*>(by_columns_ ? buffers.first : buffers.second);
    for (int64_t item = 0; item < spec_.batch; ++item) {
      const int64_t stride = by_columns_ ? spec_.a_batch_stride : spec_.b_batch_stride;
      widen_few(from + item * stride, few_of(item, buffers));
    }
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const MatmulPart part = cut_.part(chunk);
    const auto* large = static_cast<const uint16_t*>(by_columns_ ? buffers.second : buffers.first);
    const int64_t stride = by_columns_ ? spec_.b_batch_stride : spec_.a_batch_stride;
    const int64_t first = by_columns_ ? part.first_column : part.first_row;
    const int64_t last = by_columns_ ? part.last_column : part.last_row;
    for (int64_t item = part.first_item; item < part.last_item; ++item) {
      auto* c = static_cast<uint16_t*>(buffers.result) + item * spec_.c_batch_stride;
      for (int64_t line = first; line < last; line += together) {
        const int64_t lines = std::min(together, last - line);
        run_lines(part, line, lines, large + item * stride, few_of(item, buffers), static_cast<float*>(scratch), c);
      }
    }
  }

 private:
  static constexpr int64_t thousands = 50;  // of multiply-adds in a microsecond
  static constexpr int64_t together = 4;    // lines

  float* few_of(int64_t item, const VendorBuffers& buffers) const {
    return static_cast<float*>(buffers.workspace) + item * few_ * spec_.k;
  }

  /// The smaller operand's lines with their steps side by side.
  void widen_few(const uint16_t* from, float* to) const {
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

  /// Some lines of the larger operand by the chunk's lines of the smaller one.
  void run_lines(const MatmulPart& part, int64_t line, int64_t lines, const uint16_t* large, const float* few,
                 float* room, uint16_t* c) const {
    const int64_t distance = by_columns_ ? spec_.ldb : spec_.lda;
    for (int64_t i = 0; i < lines; ++i) {
      widen(spec_.type, large + (line + i) * distance, room + i * spec_.k, spec_.k);
    }
    float* sums = room + together * spec_.k;
    const int64_t first_few = by_columns_ ? part.first_row : part.first_column;
    few += first_few * spec_.k;
    DotProduct<float> product;
    product.a = by_columns_ ? few : room;
    product.b = by_columns_ ? room : few;
    product.a_row = product.b_column = product.steps = spec_.k;
    product.rows = by_columns_ ? part.last_row - part.first_row : lines;
    product.columns = by_columns_ ? lines : part.last_column - part.first_column;
    product.c = sums;
    product.c_column = product.rows;
    tile_kernels().floats.dots(product);
    c += by_columns_ ? first_few + line * spec_.ldc : line + first_few * spec_.ldc;
    if (spec_.ldc == product.rows) return narrow(spec_.type, sums, c, product.rows * product.columns);
    for (int64_t column = 0; column < product.columns; ++column) {
      narrow(spec_.type, sums + column * product.rows, c + column * spec_.ldc, product.rows);
    }
  }

  MatmulSpec spec_;
  MatmulCut cut_;
  bool by_columns_;  // the larger operand is B
  int64_t few_;      // lines of the smaller one
};

}  // namespace

/// Measured on AVX-512 (Zen 5): tiles of few rows leave lanes empty, and those of a transposed A are copied first.
bool dots_pay(const MatmulSpec& spec) {
  constexpr int64_t few = most_few, few_to_copy = 10, many_steps = 128;
  if (spec.k < many_steps) return false;
  if (!spec.a_transposed) return !spec.b_transposed && spec.m <= few_to_copy && spec.n > few_to_copy;
  return spec.b_transposed ? spec.n <= few_to_copy : std::min(spec.m, spec.n) <= few;
}

std::unique_ptr<VendorCall> prepare_dot_matmul(const MatmulSpec& spec) {
  return with_epilogue(spec, true, [](const MatmulSpec& inner) -> std::unique_ptr<VendorCall> {
    if (size_of(inner.type) == 2) return std::make_unique<HalfDotMatmul>(inner);
    if (inner.type == DType::Float64) return std::make_unique<DotMatmul<double>>(inner);
    return std::make_unique<DotMatmul<float>>(inner);
  });
}

}  // namespace rosin::engines
