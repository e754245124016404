// From the description of a matmul to what a library (cuBLASLt, hipBLASLt) is told: matrices by columns with a distance
// between columns, one dim of batches, and a list of such products where that does not do. No library is called here.
// Read first: rosin/backend.h (Vendor calls). Read next: blas.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include <rosin/backend.h>

namespace rosin::vendor {

/// A matrix in memory: its columns without gaps, `leading` elements from one to the next. `transposed`: what is stored
/// is the transpose of what is meant; rows and columns are those stored.
struct StoredMatrix {
  int64_t rows = 0, columns = 0, leading = 0;
  int64_t batch_stride = 0;  // elements from one matrix of a batch to the next; 0: the same one
  bool transposed = false;
};

/// result = activation(left * right + residual + bias), `batch` times, for each part.
struct Product {
  /// Elements from where each array begins.
  struct Part {
    int64_t left = 0, right = 0, residual = 0, result = 0;
  };

  int32_t type = ROSIN_FLOAT32;
  int32_t compute = ROSIN_COMPUTE_EXACT;
  bool deterministic = false;
  rosin_epilogue epilogue{};
  bool accumulate = false;
  bool scaled = false;
  StoredMatrix left, right, residual, result;
  StoredMatrix auxiliary;  // relu's: its rows are bits
  int64_t batch = 1;
  std::vector<Part> parts;
  uint64_t alignment = 64;  // bytes that the places of all parts are multiples of
  // Which array of the call is which; -1: there is none.
  int left_at = -1, right_at = -1, residual_at = -1, auxiliary_at = -1, result_at = -1;
  int vector_at = -1;           // the bias, or its gradient
  std::vector<uint64_t> bytes;  // that each array of the call reaches over

  bool adds() const { return residual_at >= 0 || accumulate; }
};

/// Throws ROSIN_UNSUPPORTED unless the libraries have products like this one, whatever the sizes.
void check_matmul(const rosin_call_description& call);

/// The product of a call with sizes. Throws ROSIN_UNSUPPORTED where its matrices do not lie as the libraries read them.
Product product_of(const rosin_call_description& call);

uint64_t element_bytes(int32_t type);

}  // namespace rosin::vendor
