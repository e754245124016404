// What the conversions share, and the names of those that the table does not spell out itself.
// Read first: node_call.hpp. Read next: conversions.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/layer.hpp>

#include "onnx/node_call.hpp"

namespace rosin::onnx {

/// x in the type; the same handle where it has it.
inline Array as(const Array& x, DType type) { return x.dtype() == type ? x : cast(x, type); }
/// An array on the CPU that follows what it meets: something that a conversion worked out.
Array worked_out(const std::vector<int64_t>& values, const Shape& shape);
Array worked_out(const std::vector<double>& values, const Shape& shape, DType type);
/// Sizes of x, dim 0 first.
std::vector<int64_t> sizes_of(const Array& x);
int64_t product(std::span<const int64_t> sizes);
/// The list in reverse: from the file's order of dims to that of arrays.
std::vector<int64_t> reversed(const std::vector<int64_t>& list);
/// x of n elements as the only wide dim `dim` of `rank`: (n) -> (1, n, 1).
Array along(const Array& x, int dim, int rank);
/// The element type that an attribute states. Error (dtype): arrays have no such elements.
DType stated_type(const NodeCall& call, int64_t number);
/// floor(x / y), y > 0.
inline int64_t floor_quotient(int64_t x, int64_t y) { return x >= 0 ? x / y : -((-x + y - 1) / y); }

template <Array (*f)(const Array&)> Arrays unary(const NodeCall& call) { return {f(call[0])}; }

using Convert = Arrays(const NodeCall& call);
// convert_elementwise.cpp
Convert add_values, sub_values, mul_values, div_values, equal_values, less_values, greater_values, less_or_equal,
    greater_or_equal, and_values, or_values, xor_values, power, remainder, max_values, min_values, sum_values,
    mean_values, cast_value, cast_like, bit_cast, clip, where_value, is_infinite, shift_bits, bitwise_and_values,
    bitwise_or_values, bitwise_xor_values;
// convert_activation.cpp
Convert elu_value, selu_value, leakyrelu_value, hardsigmoid_value, celu_value, trelu_value, prelu, shrink, gelu_value,
    swish_value, swiglu_value, softmax_value, softmax_flattened, logsoftmax_value, logsoftmax_flattened, hardmax,
    hardmax_flattened, dropout;
// convert_reduce.cpp
Convert reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod, reduce_l1, reduce_l2, reduce_log_sum,
    reduce_log_sum_exp, reduce_sum_square, arg_max, arg_min, cumulative_sum, cumulative_product, top_k;
// convert_movement.cpp
Convert constant_value, shape_of, size_value, reshape_value, flatten_value, squeeze_value, unsqueeze_value,
    transpose_value, concat_values, split_value, slice_value, expand_value, tile_value, pad_value, center_crop_pad,
    constant_of_shape, range_value, eye_like, trilu, depth_to_space, space_to_depth;
// convert_index.cpp
Convert gather_value, gather_elements, gather_nd, scatter_elements, scatter_nd, tensor_scatter, one_hot, compress,
    non_zero, reverse_sequence;
// convert_product.cpp
Convert matmul_value, gemm, matmul_integer, einsum, quantize, dequantize, dynamic_quantize, qlinear_matmul, det;
// convert_conv.cpp
Convert conv_value, conv_transpose_value, conv_integer, qlinear_conv, causal_conv, columns_to_image;
// convert_pool.cpp
Convert max_pool, average_pool, lp_pool, global_max_pool, global_average_pool, global_lp_pool;
// convert_norm.cpp
Convert batch_norm, instance_norm, layer_norm, group_norm, rms_norm, lrn, mean_variance_norm, lp_norm;
// convert_recurrent.cpp
Convert lstm, gru, rnn;
// convert_resize.cpp
Convert resize, upsample, grid_sample, affine_grid_value;
// convert_loss.cpp
Convert nll_loss, cross_entropy_loss;
// convert_create.cpp
Convert bernoulli_value, random_uniform, random_normal, random_uniform_like, random_normal_like, hann_window,
    hamming_window, blackman_window, mel_weights;
// convert_signal.cpp
Convert fourier, short_time_fourier;
// convert_detect.cpp
Convert deformed_conv, roi_align;
// convert_search.cpp
Convert unique, non_max_suppression, max_unpool;
// convert_attention.cpp
Convert attention, flex_attention, linear_attention, rotary_embedding;
// convert_training.cpp
Convert adagrad, adam, momentum;
// convert_control.cpp
Convert if_value, loop, scan;

}  // namespace rosin::onnx
