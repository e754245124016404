// What calls of cuDNN exchange, as its documentation gives it (cudnn_graph.h, cuDNN 9): descriptors, which get their
// attributes one by one and are then final; and functions of their own for recurrent layers (cudnn_adv.h).
// tests/cuda_headers_test.py compares it with the real headers where they are there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rosin::cuda::dnn {

using Handle = struct OpaqueDnnHandle*;
using Descriptor = struct OpaqueDnnDescriptor*;  // cudnnBackendDescriptor_t

/// cudnnStatus_t: the thousands say what kind of failure it is.
enum Status : int {
  success = 0,
  not_initialized = 1001,
  bad_parameter = 2000,
  not_supported = 3000,
  internal_error = 4000,
  host_allocation_failed = 4003,
  device_allocation_failed = 4004,
  execution_failed = 5000
};

/// cudnnDataType_t
enum class Type : int { float32 = 0, float64 = 1, float16 = 2, int32 = 4, bfloat16 = 9, boolean = 11 };

/// cudnnConvolutionMode_t
enum class ConvolutionMode : int { flipped = 0, cross_correlation = 1 };

/// cudnnPointwiseMode_t
enum class PointwiseMode : int {
  add = 0,
  multiply = 1,
  divide = 6,
  subtract = 9,
  exp = 13,
  log = 15,
  identity = 21,
  relu = 100,
  at_least = 303,
  index = 501,  // of an element along a dim
  select = 601
};

/// cudnnReduceTensorOp_t
enum class ReductionMode : int { add = 0, max = 3 };

/// cudnnNanPropagation_t
enum class NanPropagation : int { stays = 1 };

/// cudnnBackendDescriptorType_t
enum class Kind : int {
  pointwise = 0,
  convolution = 1,
  engine = 2,
  engine_configuration = 3,
  heuristics = 4,
  plan = 5,
  knob_choice = 7,
  forward = 10,
  backward_weights = 11,
  backward_data = 12,
  pointwise_operation = 13,
  graph = 15,
  variant_pack = 16,
  tensor = 17,
  matmul = 18,
  matmul_operation = 19,
  reduction = 21,
  reduction_operation = 22,
  reshape = 31,
  device_properties = 38,
  attention = 41,
  attention_backward = 43,
  band_mask = 44
};

/// cudnnBackendAttributeType_t
enum class ValueType : int {
  handle = 0,
  data_type = 1,
  boolean = 2,
  int64 = 3,
  float32 = 4,
  float64 = 5,
  pointer = 6,
  convolution_mode = 7,
  heuristic_mode = 8,
  knob_type = 9,
  nan_propagation = 10,
  numerical_note = 11,
  pointwise_mode = 14,
  descriptor = 15,
  reduction_mode = 18,
  text = 24
};

/// cudnnBackendAttributeName_t
enum class Attribute : int {
  pointwise_mode = 0,
  pointwise_precision = 1,
  pointwise_nan = 2,
  pointwise_axis = 9,
  convolution_type = 100,
  convolution_mode = 101,
  convolution_dilations = 102,
  convolution_strides = 103,
  convolution_post_paddings = 104,
  convolution_pre_paddings = 105,
  convolution_spatial = 106,
  heuristics_mode = 200,
  heuristics_graph = 201,
  heuristics_results = 202,
  heuristics_device = 204,
  configuration_engine = 300,
  configuration_knobs = 302,
  plan_handle = 400,
  plan_configuration = 401,
  plan_workspace = 402,
  plan_text = 405,
  plan_device = 407,
  knob_type = 600,
  knob_value = 601,
  forward_alpha = 700,
  forward_beta = 701,
  forward_convolution = 702,
  forward_w = 703,
  forward_x = 704,
  forward_y = 705,
  data_alpha = 706,
  data_beta = 707,
  data_convolution = 708,
  data_w = 709,
  data_dx = 710,
  data_dy = 711,
  weights_alpha = 712,
  weights_beta = 713,
  weights_convolution = 714,
  weights_dw = 715,
  weights_x = 716,
  weights_dy = 717,
  operation_pointwise = 750,
  operation_x = 751,
  operation_b = 752,
  operation_y = 753,
  operation_t = 758,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_type = 901,
  tensor_dimensions = 902,
  tensor_strides = 903,
  tensor_id = 906,
  tensor_is_virtual = 907,
  tensor_by_value = 908,
  pack_ids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
  engine_index = 1301,
  engine_notes = 1303,
  matmul_type = 1500,
  matmul_a = 1520,
  matmul_b = 1521,
  matmul_c = 1522,
  matmul_how = 1523,
  reduction_mode = 1600,
  reduction_type = 1601,
  reduction_x = 1610,
  reduction_y = 1611,
  reduction_how = 1612,
  reshape_x = 2200,
  reshape_y = 2201,
  device_json = 2702,
  attention_q = 2800,
  attention_k = 2801,
  attention_v = 2802,
  attention_y = 2803,
  attention_state = 2804,
  attention_scale = 2805,
  attention_logits = 2811,  // a graph that makes others of them, from one array to another
  attention_logits_from = 2812,
  attention_logits_to = 2813,
  attention_back_q = 2851,
  attention_back_k = 2852,
  attention_back_v = 2853,
  attention_back_y = 2854,
  attention_back_state = 2855,
  attention_back_scale = 2856,
  attention_back_dq = 2859,
  attention_back_dk = 2860,
  attention_back_dv = 2861,
  attention_back_dy = 2862,
  attention_back_logits = 2867,
  attention_back_logits_from = 2868,
  attention_back_logits_to = 2869,
  band_x = 3000,
  band_other = 3005,
  band_y = 3006,
  band_comparison = 3007
};

/// cudnnBackendHeurMode_t
enum class HeuristicMode : int { finer = 1, fallback = 2, usual = 3 };

/// cudnnBackendNumericalNote_t: what an engine does to numbers
enum class Note : int {
  tensor_core = 0,  // TF32 for Float32
  narrower_operands = 1,
  narrower_sums = 2,
  fourier = 3,
  nondeterministic = 4,
  winograd = 5,
  winograd_4 = 6,
  winograd_6 = 7,
  winograd_13 = 8
};

/// cudnnRNNMode_t: numbered as rosin_cell, but for the order of its first two.
enum class RecurrentCell : int { relu = 0, tanh = 1, lstm = 2, gru = 3 };

/// cudnnRNNBiasMode_t: beside the input's weights alone.
constexpr int input_bias = 1;
/// cudnnRNNDataLayout_t: sequence after sequence, of one length with what pads them.
constexpr int batch_major = 2;
/// CUDNN_RNN_PADDED_IO_ENABLED
constexpr unsigned padded_io = 1;

/// cudnnForwardMode_t
enum class ForwardMode : int { inference = 0, training = 1 };

/// cudnnMathType_t
enum class MathType : int { usual = 0, tensor_cores = 1, fma = 3 };  // usual: TF32 too

using TensorDescriptor = struct OpaqueDnnTensor*;
using DropoutDescriptor = struct OpaqueDnnDropout*;
using RecurrentDescriptor = struct OpaqueDnnRecurrent*;
using SequenceDescriptor = struct OpaqueDnnSequence*;  // cudnnRNNDataDescriptor_t

/// The functions for recurrent layers, by their names without the library's prefix. Other numbers, where they are not
/// named here, are 0 in all calls.
struct RecurrentFunctions {
  int (*tensor_create)(TensorDescriptor* tensor);
  int (*tensor_destroy)(TensorDescriptor tensor);
  int (*tensor_set)(TensorDescriptor tensor, Type type, int rank, const int* sizes, const int* strides);
  int (*dropout_create)(DropoutDescriptor* dropout);
  int (*dropout_destroy)(DropoutDescriptor dropout);
  int (*dropout_set)(DropoutDescriptor dropout, Handle handle, float probability, void* states, size_t bytes,
                     unsigned long long seed);
  int (*create)(RecurrentDescriptor* layer);
  int (*destroy)(RecurrentDescriptor layer);
  int (*set)(RecurrentDescriptor layer, int algorithm, RecurrentCell cell, int bias, int directions, int input,
             Type type, Type sums, MathType math, int32_t features, int32_t out, int32_t projected, int32_t layers,
             DropoutDescriptor dropout, uint32_t flags);
  int (*sequence_create)(SequenceDescriptor* sequences);
  int (*sequence_destroy)(SequenceDescriptor sequences);
  int (*sequence_set)(SequenceDescriptor sequences, Type type, int layout, int steps, int batch, int features,
                      const int* lengths, void* padding);
  int (*room)(Handle handle, RecurrentDescriptor layer, ForwardMode mode, SequenceDescriptor x, size_t* workspace,
              size_t* reserve);
  int (*weight_bytes)(Handle handle, RecurrentDescriptor layer, size_t* bytes);
  int (*weight_places)(Handle handle, RecurrentDescriptor layer, int32_t part, size_t bytes, const void* weights,
                       int32_t matrix, TensorDescriptor weight, void** weight_at, TensorDescriptor bias,
                       void** bias_at);
  int (*forward)(Handle handle, RecurrentDescriptor layer, ForwardMode mode, const int32_t* lengths,
                 SequenceDescriptor x_form, const void* x, SequenceDescriptor y_form, void* y, TensorDescriptor h_form,
                 const void* first_h, void* last_h, TensorDescriptor c_form, const void* first_c, void* last_c,
                 size_t weight_bytes, const void* weights, size_t workspace_bytes, void* workspace,
                 size_t reserve_bytes, void* reserve);
  int (*backward_data)(Handle handle, RecurrentDescriptor layer, const int32_t* lengths, SequenceDescriptor y_form,
                       const void* y, const void* dy, SequenceDescriptor x_form, void* dx, TensorDescriptor h_form,
                       const void* first_h, const void* last_dh, void* first_dh, TensorDescriptor c_form,
                       const void* first_c, const void* last_dc, void* first_dc, size_t weight_bytes,
                       const void* weights, size_t workspace_bytes, void* workspace, size_t reserve_bytes,
                       void* reserve);
  /// `adds`: cudnnWgradMode_t, 0: the gradient is added to what stands there.
  int (*backward_weights)(Handle handle, RecurrentDescriptor layer, int adds, const int32_t* lengths,
                          SequenceDescriptor x_form, const void* x, TensorDescriptor h_form, const void* first_h,
                          SequenceDescriptor y_form, const void* y, size_t weight_bytes, void* weight_gradient,
                          size_t workspace_bytes, void* workspace, size_t reserve_bytes, void* reserve);
};

/// libraryPropertyType
enum class Property : int { major = 0, minor = 1, patch = 2 };

/// The functions of the library, by their names without its prefix.
struct Functions {
  void (*last_error)(char* text, size_t bytes);
  int (*create)(Handle* handle);
  int (*destroy)(Handle handle);
  int (*set_stream)(Handle handle, void* stream);
  int (*descriptor_create)(Kind kind, Descriptor* descriptor);
  int (*descriptor_destroy)(Descriptor descriptor);
  int (*descriptor_finish)(Descriptor descriptor);
  int (*set)(Descriptor descriptor, Attribute which, ValueType type, int64_t count, const void* values);
  int (*get)(Descriptor descriptor, Attribute which, ValueType type, int64_t wanted, int64_t* count, void* values);
  int (*execute)(Handle handle, Descriptor plan, Descriptor pack);
};

}  // namespace rosin::cuda::dnn
