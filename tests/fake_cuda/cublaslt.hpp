// What the stand-in of cuBLASLt, and of hipBLASLt, remembers of its objects, and a product as it is computed. Read
// first: library_work.hpp, vendor/blas_types.hpp. Read next: cublaslt.cpp (the functions), product.cpp (numbers).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#ifdef FAKE_HIP
#include "amdgpu/blas_types.hpp"
#else
#include "cuda/blas_types.hpp"
#endif

namespace fake_blas {

#ifdef FAKE_HIP
namespace blas = rosin::amdgpu::blas;
#else
namespace blas = rosin::cuda::blas;
#endif

struct Handle {
  const void* context = nullptr;
};

struct Layout {
  blas::Type type = blas::Type::float32;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0, stride = 0;
  int32_t batch = 1;
  bool operator==(const Layout&) const = default;

  uint64_t element_bytes() const;
  /// Bytes from the first element of a batch to the end of the last.
  uint64_t reach() const;
};

struct Operation {
  blas::Compute compute = blas::Compute::float32;
  blas::Type scale = blas::Type::float32;
  bool transpose_a = false, transpose_b = false;
  uint32_t epilogue = blas::plain;
  uint64_t bias = 0;  // or where its gradient goes
  std::optional<blas::Type> bias_type;
  uint64_t auxiliary = 0;
  int64_t auxiliary_leading = 0, auxiliary_stride = 0;  // in bits for relu
};

struct Preference {
  uint64_t workspace = 0;
  bool adds_in_place = true;
#ifdef FAKE_HIP
  uint32_t alignment[4] = {1, 1, 1, 1};  // it asks for none beyond an element's
#else
  uint32_t alignment[4] = {256, 256, 256, 256};
#endif
};

/// Everything that one product needs, copied when it is given.
struct Product {
  Operation operation;
  Layout a, b, c, d;
  double alpha = 1, beta = 0;
  bool relu_keeps_nan = true;
  uint64_t a_at = 0, b_at = 0, c_at = 0, d_at = 0;
};

/// Element by element.
void compute(const Product& product);

}  // namespace fake_blas
