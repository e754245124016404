// What calls of MIOpen exchange, as its documentation gives it (miopen.h, MIOpen 2.20 to 3.5): descriptors, and the
// functions of the immediate mode, which stand there once for each direction of a convolution.
// tests/hip_headers_test.py compares it with the real header where that is there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rosin::amdgpu::miopen {

using Handle = struct OpaqueMiopenHandle*;
using TensorDescriptor = struct OpaqueMiopenTensor*;
using ConvolutionDescriptor = struct OpaqueMiopenConvolution*;

/// miopenStatus_t
enum Status : int {
  success = 0,
  not_initialized = 1,
  invalid_value = 2,
  bad_parameter = 3,
  allocation_failed = 4,
  internal_error = 5,
  not_implemented = 6,
  unknown_error = 7,
  unsupported_operation = 8
};

/// miopenDataType_t
enum class Type : int { float16 = 0, float32 = 1, bfloat16 = 5 };

/// miopenTensorLayout_t: of images with two spatial dims, then with three.
enum class Layout : int { planes = 0, channels_first = 1, planes_of_three = 7, channels_first_of_three = 8 };

/// miopenConvolutionMode_t: a cross-correlation is called a convolution there, and a true one does not exist.
enum class Mode : int { cross_correlation = 0 };

/// miopenConvolutionAttrib_t. The first: on gfx90a, whose matrix units flush small numbers of Float16, operands are
/// rounded to BFloat16 instead: -1 in gradients, 1 always, 0 never.
enum class Attribute : int { float16_as_bfloat16 = 0, deterministic = 1 };

/// miopenConvAlgorithm_t
enum class Algorithm : int { product = 0, direct = 1, fourier = 2, winograd = 3, implicit_product = 5 };

/// miopenConvSolution_t: a way of computing. Its number is that of a solver, in every process with this MIOpen.
struct Solution {
  float milliseconds = 0;  // measured, or guessed
  size_t workspace = 0;
  uint64_t id = 0;
  Algorithm algorithm = Algorithm::product;
};

/// miopenConvAlgoPerf_t
struct Measured {
  Algorithm algorithm = Algorithm::product;
  float milliseconds = 0;
  size_t workspace = 0;
};

/// The functions of one direction. The last array is the result; before it stand w and x forward, dy and w by data, dy
/// and x by weights; only the forward `find` has x before w.
struct Direction {
  int (*solutions)(Handle handle, TensorDescriptor first, TensorDescriptor second, ConvolutionDescriptor how,
                   TensorDescriptor result, size_t most, size_t* count, Solution* all);
  int (*workspace)(Handle handle, TensorDescriptor first, TensorDescriptor second, ConvolutionDescriptor how,
                   TensorDescriptor result, uint64_t id, size_t* bytes);
  int (*compile)(Handle handle, TensorDescriptor first, TensorDescriptor second, ConvolutionDescriptor how,
                 TensorDescriptor result, uint64_t id);
  int (*run)(Handle handle, TensorDescriptor first_form, const void* first, TensorDescriptor second_form,
             const void* second, ConvolutionDescriptor how, TensorDescriptor result_form, void* result, void* workspace,
             size_t bytes, uint64_t id);
  /// Measures what the find mode says, and notes it in the user's database.
  int (*find)(Handle handle, TensorDescriptor first_form, const void* first, TensorDescriptor second_form,
              const void* second, ConvolutionDescriptor how, TensorDescriptor result_form, void* result, int most,
              int* count, Measured* all, void* workspace, size_t bytes, bool exhaustive);
};

/// The functions of the library, by their names without its prefix.
struct Functions {
  const char* (*error_text)(int status);
  int (*create)(Handle* handle);
  int (*destroy)(Handle handle);
  int (*set_stream)(Handle handle, void* stream);
  int (*tensor_create)(TensorDescriptor* tensor);
  int (*tensor_destroy)(TensorDescriptor tensor);
  int (*tensor_set)(TensorDescriptor tensor, Type type, Layout layout, const int* sizes, int rank);
  int (*convolution_create)(ConvolutionDescriptor* convolution);
  int (*convolution_destroy)(ConvolutionDescriptor convolution);
  int (*convolution_set)(ConvolutionDescriptor convolution, int spatial, const int* pads, const int* strides,
                         const int* dilations, Mode mode);
  int (*convolution_set_groups)(ConvolutionDescriptor convolution, int groups);
  int (*convolution_set_attribute)(ConvolutionDescriptor convolution, Attribute which, int value);
  Direction forward, data, weights;
};

}  // namespace rosin::amdgpu::miopen
