// The plain definition of matmul: one running sum per element, k ascending. Read after vendor.hpp; next plain_conv.cpp.
#include <algorithm>

#include "engines/cuts.hpp"
#include "engines/integer_matmul.hpp"
#include "engines/plain.hpp"

namespace rosin::engines {

namespace {

constexpr int64_t row_block =
    64;  // sums kept at once; the inner loop over rows vectorises where A's rows are contiguous

template <class T>
void plain_block(const MatmulSpec& spec, int64_t first_row, int64_t column, const T* a, const T* b, const T* bias,
                 T* c) {
  using S = typename Sum<T>::type;
  const int64_t rows = std::min(row_block, spec.m - first_row);
  const int64_t a_row = spec.a_transposed ? spec.lda : 1, a_step = spec.a_transposed ? 1 : spec.lda;
  const int64_t b_step = spec.b_transposed ? spec.ldb : 1, b_column = spec.b_transposed ? 1 : spec.ldb;
  S sums[row_block] = {};
  for (int64_t step = 0; step < spec.k; ++step) {
    const S factor = static_cast<S>(b[step * b_step + column * b_column]);
    const T* operand = a + first_row * a_row + step * a_step;
    for (int64_t row = 0; row < rows; ++row) sums[row] += static_cast<S>(operand[row * a_row]) * factor;
  }
  T* result = c + first_row + column * spec.ldc;
  for (int64_t row = 0; row < rows; ++row) {
    S value = sums[row];
    if (spec.accumulate) value += static_cast<S>(result[row]);
    if (bias != nullptr) value += static_cast<S>(bias[first_row + row]);
    if (spec.epilogue.activation == Activation::relu && value < S(0)) value = S(0);
    result[row] = static_cast<T>(value);
  }
}

template <class T> class PlainMatmul final : public VendorCall {
 public:
  explicit PlainMatmul(const MatmulSpec& spec) : spec_(spec), cut_(cut_matmul(spec, 1)) { chunks_ = cut_.chunks(); }
  const char* engine() const noexcept override { return "plain"; }
  std::optional<MatmulPart> part_of(int64_t chunk) const override { return cut_.part(chunk); }
  void run_chunk(int64_t chunk, const VendorBuffers& buffers, void*) const override {
    const MatmulPart part = cut_.part(chunk);
    MatmulSpec spec = spec_;
    spec.m = part.last_row;
    const T* bias = spec_.epilogue.bias ? static_cast<const T*>(buffers.third) : nullptr;
    const int64_t a_offset = part.first_row * (spec.a_transposed ? spec.lda : 1);
    spec.m -= part.first_row;
    plain_matmul(spec, part.first_item, part.last_item, part.first_column, part.last_column,
                 static_cast<const T*>(buffers.first) + a_offset, static_cast<const T*>(buffers.second),
                 bias == nullptr ? nullptr : bias + part.first_row, static_cast<T*>(buffers.result) + part.first_row);
  }

 private:
  MatmulSpec spec_;
  MatmulCut cut_;
};

}  // namespace

template <class T>
void plain_matmul(const MatmulSpec& spec, int64_t first_item, int64_t last_item, int64_t first_column,
                  int64_t last_column, const T* a, const T* b, const T* bias, T* c) {
  for (int64_t item = first_item; item < last_item; ++item) {
    for (int64_t column = first_column; column < last_column; ++column) {
      for (int64_t row = 0; row < spec.m; row += row_block) {
        plain_block(spec, row, column, a + item * spec.a_batch_stride, b + item * spec.b_batch_stride, bias,
                    c + item * spec.c_batch_stride);
      }
    }
  }
}

template void plain_matmul<double>(const MatmulSpec&, int64_t, int64_t, int64_t, int64_t, const double*, const double*,
                                   const double*, double*);

std::unique_ptr<VendorCall> prepare_plain_matmul(const MatmulSpec& spec) {
  switch (spec.type) {
    case DType::Float32: return std::make_unique<PlainMatmul<float>>(spec);
    case DType::Float64: return std::make_unique<PlainMatmul<double>>(spec);
    case DType::BFloat16: return std::make_unique<PlainMatmul<BFloat>>(spec);
    case DType::Float16: return std::make_unique<PlainMatmul<Half>>(spec);
    default: return prepare_integer_matmul(spec);
  }
}

}  // namespace rosin::engines
