// Matmul by sums along memory: few rows or few columns, each many steps long. What does not lie along the steps is
// copied, which pays for the smaller operand alone. Read after tile_kernel.hpp; the kernel is dot_body.hpp.
#include <algorithm>

#include "engines/cuts.hpp"
#include "engines/epilogue.hpp"
#include "engines/gather_rows.hpp"
#include "engines/tile.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {

namespace {

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

}  // namespace

/// Measured on AVX-512 (Zen 5): tiles of few rows leave lanes empty, and those of a transposed A are copied first.
bool dots_pay(const MatmulSpec& spec) {
  constexpr int64_t few = 16, few_to_copy = 10, many_steps = 128;
  if (spec.k < many_steps) return false;
  if (!spec.a_transposed) return !spec.b_transposed && spec.m <= few_to_copy && spec.n > few_to_copy;
  return spec.b_transposed ? spec.n <= few_to_copy : std::min(spec.m, spec.n) <= few;
}

std::unique_ptr<VendorCall> prepare_dot_matmul(const MatmulSpec& spec) {
  return with_epilogue(spec, true, [](const MatmulSpec& inner) -> std::unique_ptr<VendorCall> {
    if (inner.type == DType::Float64) return std::make_unique<DotMatmul<double>>(inner);
    return std::make_unique<DotMatmul<float>>(inner);
  });
}

}  // namespace rosin::engines
