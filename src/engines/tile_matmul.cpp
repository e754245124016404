// Matmul by the tile kernel: cuts k into blocks that stay in the cache, gathers the rows of a transposed A, splits a
// long k into partial sums when the result is too small to be cut, and computes the transpose of a product whose rows
// would fill vectors badly. Read after tile_kernel.hpp.
#include <algorithm>
#include <utility>

#include "engines/cuts.hpp"
#include "engines/epilogue.hpp"
#include "engines/gather_rows.hpp"
#include "engines/tile.hpp"
#include "engines/tile_kernel.hpp"

namespace rosin::engines {

namespace {

constexpr int64_t step_block = 256;      // steps of k per block: a panel of A and a tile of B stay in the first cache
constexpr int64_t column_block = 384;    // columns of B copied at a time: they stay in the second cache
constexpr int64_t packing_columns = 48;  // from here on copying a panel of A pays, where its columns lie far apart
constexpr int64_t packing_rows = 64;     // from here on copying a transposed B pays, where its rows lie far apart
constexpr int64_t pitch_unit = 16;       // elements; copied rows of B start at multiples of it
constexpr int64_t small_result = 4096;   // elements; such results are cut along k
constexpr int64_t long_sum = 2048;

template <class T> class TileMatmul final : public VendorCall {
 public:
  explicit TileMatmul(const MatmulSpec& spec)
      : spec_(spec), kernels_(tile_kernels_for(spec.m * int64_t{sizeof(T)})), cut_(cut_matmul(spec, thousands)) {
    panel_rows_ = kernels_.row_vectors * kernels_.lanes<T>();
    chunks_ = cut_.chunks();
    const int64_t wanted = worthwhile_chunks(microseconds_of(spec, thousands));
    if (chunks_ <= wanted / 2 && spec.batch == 1 && spec.m * spec.n <= small_result && spec.k >= long_sum) {
      step_cut_ = round_up((spec.k + wanted - 1) / wanted, 16);
      chunks_ = (spec.k + step_cut_ - 1) / step_cut_;
      workspace_bytes_ = static_cast<size_t>(chunks_ * spec.m * spec.n) * sizeof(T);
      has_finish_ = true;
    }
    plan_copies();
  }

  const char* engine() const noexcept override { return "tile"; }

  std::optional<MatmulPart> part_of(int64_t chunk) const override {
    if (has_finish_) return std::nullopt;
    return cut_.part(chunk);
  }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    const T* a = static_cast<const T*>(buffers.first);
    const T* b = static_cast<const T*>(buffers.second);
    if (has_finish_) {
      T* partial = static_cast<T*>(buffers.workspace) + chunk * spec_.m * spec_.n;
      Steps steps{chunk * step_cut_, std::min(spec_.k, (chunk + 1) * step_cut_), false, false};
      run_steps(steps, MatmulPart{0, 1, 0, spec_.n, 0, spec_.m}, a, b, nullptr, partial, spec_.m, scratch);
      return;
    }
    const MatmulPart part = cut_.part(chunk);
    const T* bias = spec_.epilogue.bias ? static_cast<const T*>(buffers.third) : nullptr;
    const Steps all{0, spec_.k, spec_.accumulate, spec_.epilogue.activation == Activation::relu};
    if (part.last_item - part.first_item > 1 && spec_.k > 0 && spec_.k <= step_block && !packs_a_ && !packs_b_) {
      return run_items(all, part, a, b, bias, static_cast<T*>(buffers.result));
    }
    for (int64_t item = part.first_item; item < part.last_item; ++item) {
      T* c = static_cast<T*>(buffers.result) + item * spec_.c_batch_stride;
      run_steps(all, part, a + item * spec_.a_batch_stride, b + item * spec_.b_batch_stride, bias, c, spec_.ldc,
                scratch);
    }
  }

  void finish(const VendorBuffers& buffers) const override {
    if (!has_finish_) return;
    const T* bias = spec_.epilogue.bias ? static_cast<const T*>(buffers.third) : nullptr;
    const T* partials = static_cast<const T*>(buffers.workspace);
    for (int64_t column = 0; column < spec_.n; ++column) {
      T* c = static_cast<T*>(buffers.result) + column * spec_.ldc;
      for (int64_t row = 0; row < spec_.m; ++row) {
        T sum = spec_.accumulate ? c[row] : T(0);
        for (int64_t chunk = 0; chunk < chunks_; ++chunk) sum += partials[(chunk * spec_.n + column) * spec_.m + row];
        if (bias != nullptr) sum += bias[row];
        c[row] = spec_.epilogue.activation == Activation::relu && sum < T(0) ? T(0) : sum;
      }
    }
  }

 private:
  /// Copying costs more than strided reads but where these miss the cache or its pages (measured on AVX-512).
  void plan_copies() {
    const MatmulPart part = cut_.part(0);
    const int64_t columns = part.last_column - part.first_column, rows = part.last_row - part.first_row;
    const int64_t steps = std::min(step_block, spec_.k), element = sizeof(T);
    const bool far_columns = spec_.lda * element >= 3072 && columns >= packing_columns && spec_.k >= step_block;
    packs_a_ = spec_.a_transposed || far_columns;
    packs_b_ = spec_.b_transposed && spec_.ldb * element >= 1024 && rows >= packing_rows && spec_.k >= 64;
    if (packs_a_) b_at_ = panel_rows_ * steps;
    const int64_t b_block = packs_b_ ? steps * round_up(std::min(column_block, columns), pitch_unit) : 0;
    scratch_bytes_ = static_cast<size_t>(b_at_ + b_block) * sizeof(T);
  }

  /// Which steps of k, and how they meet the result.
  struct Steps {
    int64_t first, last;
    bool accumulate, relu;
  };

  void run_steps(const Steps& steps, const MatmulPart& part, const T* a, const T* b, const T* bias, T* c,
                 int64_t c_column, void* scratch) const {
    int64_t first = steps.first;
    do {  // once even where k is 0
      const int64_t last = std::min(steps.last, first + step_block);
      TileProduct<T> product;
      product.b_offsets = &no_offset;
      product.c_column = c_column;
      product.inner = last - first;
      product.accumulate = steps.accumulate || first != steps.first;
      product.relu = last == steps.last && steps.relu;
      const T* block_bias = last == steps.last ? bias : nullptr;
      const int64_t width = packs_b_ ? column_block : part.last_column - part.first_column;
      for (int64_t column = part.first_column; column < part.last_column; column += width) {
        product.columns = std::min(width, part.last_column - column);
        place_b(product, b + first * b_inner() + column * b_column(), static_cast<T*>(scratch) + b_at_);
        run_row_panels(product, part, first, a, block_bias, c + column * c_column, static_cast<T*>(scratch));
      }
      first = last;
    } while (first < steps.last);
  }

  /// Products whose operands stand as the kernel reads them, in one block of steps.
  void run_items(const Steps& steps, const MatmulPart& part, const T* a, const T* b, const T* bias, T* c) const {
    TileProduct<T> product;
    product.a = a + part.first_item * spec_.a_batch_stride + part.first_row;
    product.a_inner = spec_.lda;
    product.b = b + part.first_item * spec_.b_batch_stride + part.first_column * b_column();
    product.b_offsets = &no_offset;
    product.b_inner = b_inner();
    product.b_column = b_column();
    product.c = c + part.first_item * spec_.c_batch_stride + part.first_row + part.first_column * spec_.ldc;
    product.c_column = spec_.ldc;
    product.bias = bias == nullptr ? nullptr : bias + part.first_row;
    product.rows = part.last_row - part.first_row;
    product.columns = part.last_column - part.first_column;
    product.inner = spec_.k;
    product.accumulate = steps.accumulate;
    product.relu = steps.relu;
    product.items = part.last_item - part.first_item;
    product.a_item = spec_.a_batch_stride;
    product.b_item = spec_.b_batch_stride;
    product.c_item = spec_.c_batch_stride;
    kernels_.of<T>().multiply_items(product);
  }

  int64_t b_inner() const { return spec_.b_transposed ? spec_.ldb : 1; }
  int64_t b_column() const { return spec_.b_transposed ? 1 : spec_.ldb; }

  /// The product's block of B, which begins at `b`: where it stands, or copied with its rows close together.
  void place_b(TileProduct<T>& product, const T* b, T* copy) const {
    product.b = packs_b_ ? copy : b;
    product.b_inner = packs_b_ ? round_up(product.columns, pitch_unit) : b_inner();
    product.b_column = b_column();
    if (!packs_b_) return;
    for (int64_t step = 0; step < product.inner; ++step) {
      std::copy_n(b + step * spec_.ldb, product.columns, copy + step * product.b_inner);
    }
  }

  void run_row_panels(TileProduct<T>& product, const MatmulPart& part, int64_t first_step, const T* a, const T* bias,
                      T* c, T* scratch) const {
    const int64_t panel = packs_a_ ? panel_rows_ : part.last_row - part.first_row;
    for (int64_t row = part.first_row; row < part.last_row; row += panel) {
      product.rows = std::min(panel, part.last_row - row);
      if (packs_a_) {
        pack_panel(a, row, product.rows, first_step, product.inner, scratch);
        product.a = scratch;
        product.a_inner = panel_rows_;
      } else {
        product.a = a + row + first_step * spec_.lda;
        product.a_inner = spec_.lda;
      }
      product.bias = bias == nullptr ? nullptr : bias + row;
      product.c = c + row;
      kernels_.of<T>().multiply(product);
    }
  }

  void pack_panel(const T* a, int64_t row, int64_t rows, int64_t first_step, int64_t steps, T* scratch) const {
    if (spec_.a_transposed) {
      gather_rows(a + first_step + row * spec_.lda, spec_.lda, scratch, panel_rows_, rows, steps);
      return;
    }
    const T* from = a + row + first_step * spec_.lda;
    for (int64_t step = 0; step < steps; ++step) {
      std::copy_n(from + step * spec_.lda, rows, scratch + step * panel_rows_);
    }
  }

  static constexpr int64_t no_offset = 0;
  static constexpr int64_t thousands = sizeof(T) == 4 ? 50 : 25;  // of multiply-adds in a microsecond

  MatmulSpec spec_;
  const TileKernels& kernels_;
  MatmulCut cut_;
  int64_t panel_rows_ = 0;
  int64_t step_cut_ = 0;
  bool packs_a_ = false, packs_b_ = false;
  int64_t b_at_ = 0;  // of the copied B in scratch, in elements
};

/// C' = B'A', the same sums, where that takes fewer vectors; the product is then written out transposed.
template <class T> class TurnedMatmul final : public VendorCall {
 public:
  explicit TurnedMatmul(const MatmulSpec& spec) : spec_(spec), turned_(turned(spec)) {
    chunks_ = turned_.chunks();
    scratch_bytes_ = turned_.scratch_bytes_per_chunk();
    product_at_ = static_cast<size_t>(round_up(static_cast<int64_t>(turned_.workspace_bytes()), 64));
    workspace_bytes_ = product_at_ + static_cast<size_t>(spec.m * spec.n * spec.batch) * sizeof(T);
    has_finish_ = true;
  }

  /// Worth it where reading the operands so needs no copy, and the sums saved outweigh the transposition.
  static bool pays(const MatmulSpec& spec) {
    if (spec.a_transposed || !spec.b_transposed || spec.accumulate) return false;
    const int64_t lanes = tile_kernels().lanes<T>();
    const auto vectors = [&](int64_t rows) { return (rows + lanes - 1) / lanes; };
    const int64_t saved = vectors(spec.m) * spec.n - vectors(spec.n) * spec.m;
    return saved * spec.k >= 2 * spec.m * spec.n;
  }

  const char* engine() const noexcept override { return "tile"; }

  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void* scratch) const override {
    turned_.run_chunk(chunk, turned(buffers), scratch);
  }

  void finish(const VendorBuffers& buffers) const override {
    const VendorBuffers inner = turned(buffers);
    turned_.finish(inner);
    const T* product = static_cast<const T*>(inner.result);
    for (int64_t item = 0; item < spec_.batch; ++item) {
      T* c = static_cast<T*>(buffers.result) + item * spec_.c_batch_stride;
      gather_rows(product + item * spec_.m * spec_.n, spec_.n, c, spec_.ldc, spec_.m, spec_.n);
    }
  }

 private:
  static MatmulSpec turned(const MatmulSpec& spec) {
    MatmulSpec turned = spec;
    std::swap(turned.m, turned.n);
    std::swap(turned.lda, turned.ldb);
    std::swap(turned.a_batch_stride, turned.b_batch_stride);
    turned.ldc = spec.n;
    turned.c_batch_stride = spec.m * spec.n;
    return turned;
  }
  VendorBuffers turned(const VendorBuffers& buffers) const {
    return {buffers.second, buffers.first, nullptr, static_cast<unsigned char*>(buffers.workspace) + product_at_,
            buffers.workspace};
  }

  MatmulSpec spec_;
  TileMatmul<T> turned_;
  size_t product_at_ = 0;  // in the workspace
};

/// The same engine with and without an epilogue: so are the sums.
template <class T> std::unique_ptr<VendorCall> prepared(const MatmulSpec& spec) {
  const bool turned = TurnedMatmul<T>::pays(spec);
  return with_epilogue(spec, !turned, [turned](const MatmulSpec& inner) -> std::unique_ptr<VendorCall> {
    if (turned) return std::make_unique<TurnedMatmul<T>>(inner);
    return std::make_unique<TileMatmul<T>>(inner);
  });
}

}  // namespace

std::unique_ptr<VendorCall> prepare_tile_matmul(const MatmulSpec& spec) {
  require_tile_type(spec.type, "matmul");
  if (dots_pay(spec)) return prepare_dot_matmul(spec);
  if (sweep_pays(spec)) return prepare_sweep_matmul(spec);
  return spec.type == DType::Float64 ? prepared<double>(spec) : prepared<float>(spec);
}

}  // namespace rosin::engines
