// What calls of cuBLASLt and of hipBLASLt exchange: their functions and descriptions are the same, the numbers that
// these hold are not. Each plug-in gives those of its library (cuda/blas_types.hpp, amdgpu/blas_types.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace rosin::vendor::blas {

using Handle = struct OpaqueHandle*;
using Operation = struct OpaqueOperation*;
using Layout = struct OpaqueLayout*;
using Preference = struct OpaquePreference*;

/// What is done with a product: bits of one number, `plain` where none is set. They are the same in both.
enum Epilogue : uint32_t {
  plain = 1,
  relu = 2,
  bias = 4,
  relu_gradient = 8,  // with `auxiliary`
  sums_of_result = 16,
  gelu = 32,
  gelu_gradient = 64,  // with `auxiliary`
  auxiliary = 128,
  sums_of_left = 256
};

constexpr int success = 0;

/// A library's number for what it has not.
constexpr int none = -1;

/// The numbers of one library.
struct Numbers {
  struct {
    int not_initialized, alloc_failed, invalid_value, arch_mismatch, not_supported, mapping_error, execution_failed,
        internal_error;
  } status;
  struct {
    int float32, float64, float16, bfloat16;
  } type;
  struct {
    int float32, fast_float16, fast_bfloat16, fast_tf32, float64;
  } compute;
  struct {
    int batch_count, batch_stride;
  } layout;
  struct {
    int transpose_a, transpose_b, epilogue, bias_pointer, bias_type, auxiliary_pointer, auxiliary_leading,
        auxiliary_batch_stride;
  } operation;
  struct {
    int workspace, reductions, alignments[4];  // of a, b, c, d
  } preference;
  uint32_t in_compute_type, any_reduction;  // where there is a preference for reductions
  int32_t transposed;
};

/// An algorithm: the library's own bytes, which are these at most.
struct Algorithm {
  uint64_t words[8] = {};
  bool operator==(const Algorithm&) const = default;
};

/// What a library says of an algorithm of so many words: these, and what stands behind them.
struct Facts {
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};
template <size_t count> struct Found {
  uint64_t words[count];
  Facts facts;
};

/// The functions of a library, by their names without its prefix. Numbers go as int, and what is found as Found.
struct Functions {
  int (*create)(Handle* handle);
  int (*destroy)(Handle handle);
  int (*operation_create)(Operation* operation, int compute, int scale);
  int (*operation_destroy)(Operation operation);
  int (*operation_set)(Operation operation, int which, const void* value, size_t bytes);
  int (*layout_create)(Layout* layout, int type, uint64_t rows, uint64_t columns, int64_t leading);
  int (*layout_destroy)(Layout layout);
  int (*layout_set)(Layout layout, int which, const void* value, size_t bytes);
  int (*preference_create)(Preference* preference);
  int (*preference_destroy)(Preference preference);
  int (*preference_set)(Preference preference, int which, const void* value, size_t bytes);
  int (*candidates)(Handle handle, Operation operation, Layout a, Layout b, Layout c, Layout d, Preference preference,
                    int wanted, void* found, int* count);
  int (*matmul)(Handle handle, Operation operation, const void* alpha, const void* a, Layout a_layout, const void* b,
                Layout b_layout, const void* beta, const void* c, Layout c_layout, void* d, Layout d_layout,
                const void* algorithm, void* workspace, size_t workspace_bytes, void* stream);
  // Null where the library has none: then an algorithm is known where it is among the candidates.
  int (*check)(Handle handle, Operation operation, Layout a, Layout b, Layout c, Layout d, const void* algorithm,
               void* checked);
  // Null where the library says it without a handle.
  int (*version)(Handle handle, int* version);
};

}  // namespace rosin::vendor::blas
