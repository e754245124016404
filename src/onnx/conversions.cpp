// The table: what rosin does with each op of ONNX, by versions of the ops. A new op is a row here, and a function in
// the file of its family where it is more than one op of rosin. docs/onnx.md has what of it is checked, kept in step by
// tests. Read first: conversions.hpp.
#include "onnx/conversions.hpp"

#include <algorithm>

#include <rosin/activation.hpp>
#include <rosin/bits.hpp>
#include <rosin/elementwise.hpp>

#include "onnx/convert.hpp"

namespace rosin::onnx {
namespace {

constexpr int64_t now = newest_opset;

/// A set of inputs.
constexpr uint32_t inputs(std::initializer_list<int> list) {
  uint32_t set = 0;
  for (int input : list) set |= uint32_t{1} << input;
  return set;
}

Arrays itself(const NodeCall& call) { return {call[0]}; }

// In the order of names; of one name, in the order of versions.
constexpr Conversion table[] = {
    {"Abs", 1, now, unary<abs>},
    {"Acos", 7, now, unary<acos>},
    {"Acosh", 9, now, unary<acosh>},
    {"Add", 1, now, add_values},
    {"And", 1, now, and_values},
    {"ArgMax", 1, now, arg_max},
    {"ArgMin", 1, now, arg_min},
    {"Asin", 7, now, unary<asin>},
    {"Asinh", 9, now, unary<asinh>},
    {"Atan", 7, now, unary<atan>},
    {"Atanh", 9, now, unary<atanh>},
    {"Attention", 23, now, attention},
    {"AveragePool", 1, now, average_pool},
    {"BatchNormalization", 1, now, batch_norm, 0, inputs({3, 4})},
    {"Bernoulli", 15, now, bernoulli_value, 0, 0, true},
    {"BitShift", 11, now, shift_bits},
    {"BitwiseAnd", 18, now, bitwise_and_values},
    {"BitwiseNot", 18, now, unary<bitwise_not>},
    {"BitwiseOr", 18, now, bitwise_or_values},
    {"BitwiseXor", 18, now, bitwise_xor_values},
    {"BlackmanWindow", 17, now, blackman_window},
    {"Cast", 6, now, cast_value},
    {"CastLike", 15, now, cast_like},
    {"Ceil", 1, now, unary<ceil>},
    {"Celu", 12, now, celu_value},
    {"Clip", 1, now, clip, inputs({1, 2})},
    {"Compress", 9, now, compress},
    {"Concat", 1, now, concat_values},
    {"Constant", 1, now, constant_value},
    {"ConstantOfShape", 9, now, constant_of_shape},
    {"Conv", 1, now, conv_value},
    {"ConvInteger", 10, now, conv_integer},
    {"ConvTranspose", 1, now, conv_transpose_value},
    {"Cos", 7, now, unary<cos>},
    {"Cosh", 9, now, unary<cosh>},
    {"CumProd", 26, now, cumulative_product},
    {"CumSum", 11, now, cumulative_sum},
    {"DepthToSpace", 1, now, depth_to_space},
    {"DequantizeLinear", 10, now, dequantize, 0, inputs({1})},
    {"Det", 11, now, det},
    {"Div", 1, now, div_values},
    {"Dropout", 1, now, dropout, inputs({1}), 0, true},
    {"DynamicQuantizeLinear", 11, now, dynamic_quantize},
    {"Einsum", 12, now, einsum},
    {"Elu", 1, now, elu_value},
    {"Equal", 1, now, equal_values},
    {"Erf", 9, now, unary<erf>},
    {"Exp", 1, now, unary<exp>},
    {"Expand", 8, now, expand_value},
    {"EyeLike", 9, now, eye_like},
    {"Flatten", 1, now, flatten_value},
    {"Floor", 1, now, unary<floor>},
    {"GRU", 7, now, gru},
    {"Gather", 1, now, gather_value},
    {"GatherElements", 11, now, gather_elements},
    {"GatherND", 11, now, gather_nd},
    {"Gelu", 20, now, gelu_value},
    {"Gemm", 1, now, gemm},
    {"GlobalAveragePool", 1, now, global_average_pool},
    {"GlobalLpPool", 2, now, global_lp_pool},
    {"GlobalMaxPool", 1, now, global_max_pool},
    {"Greater", 1, now, greater_values},
    {"GreaterOrEqual", 12, now, greater_or_equal},
    {"GridSample", 16, now, grid_sample},
    {"GroupNormalization", 18, now, group_norm},
    {"HammingWindow", 17, now, hamming_window},
    {"HannWindow", 17, now, hann_window},
    {"HardSigmoid", 1, now, hardsigmoid_value},
    {"HardSwish", 14, now, unary<hardswish>},
    {"Hardmax", 1, 12, hardmax_flattened},
    {"Hardmax", 13, now, hardmax},
    {"Identity", 1, now, itself},
    {"If", 1, now, if_value},
    {"InstanceNormalization", 6, now, instance_norm},
    {"IsInf", 10, now, is_infinite},
    {"IsNaN", 9, now, unary<is_nan>},
    {"LRN", 1, now, lrn},
    {"LSTM", 7, now, lstm},
    {"LayerNormalization", 17, now, layer_norm},
    {"LeakyRelu", 1, now, leakyrelu_value},
    {"Less", 1, now, less_values},
    {"LessOrEqual", 12, now, less_or_equal},
    {"Log", 1, now, unary<log>},
    {"LogSoftmax", 1, 12, logsoftmax_flattened},
    {"LogSoftmax", 13, now, logsoftmax_value},
    {"Loop", 1, now, loop},
    {"LpNormalization", 1, now, lp_norm},
    {"LpPool", 2, now, lp_pool},
    {"MatMul", 1, now, matmul_value},
    {"MatMulInteger", 10, now, matmul_integer},
    {"Max", 1, now, max_values},
    {"MaxPool", 1, now, max_pool},
    {"MaxUnpool", 9, now, max_unpool},
    {"Mean", 1, now, mean_values},
    {"MeanVarianceNormalization", 9, now, mean_variance_norm},
    {"Min", 1, now, min_values},
    {"Mish", 18, now, unary<mish>},
    {"Mod", 10, now, remainder},
    {"Mul", 1, now, mul_values},
    {"Neg", 1, now, unary<neg>},
    {"NegativeLogLikelihoodLoss", 12, now, nll_loss, 0, inputs({2})},
    {"NonMaxSuppression", 10, now, non_max_suppression},
    {"NonZero", 9, now, non_zero},
    {"Not", 1, now, unary<logical_not>},
    {"OneHot", 9, now, one_hot, inputs({1, 2})},
    {"Or", 1, now, or_values},
    {"PRelu", 1, now, prelu},
    {"Pad", 1, now, pad_value, inputs({2})},
    {"Pow", 1, now, power, inputs({1})},
    {"QLinearConv", 10, now, qlinear_conv, 0, inputs({1, 4, 6})},
    {"QLinearMatMul", 10, now, qlinear_matmul, 0, inputs({1, 4, 6})},
    {"QuantizeLinear", 10, now, quantize, 0, inputs({1})},
    {"RMSNormalization", 23, now, rms_norm},
    {"RNN", 7, now, rnn},
    {"RandomNormal", 1, now, random_normal, 0, 0, true},
    {"RandomNormalLike", 1, now, random_normal_like, 0, 0, true},
    {"RandomUniform", 1, now, random_uniform, 0, 0, true},
    {"RandomUniformLike", 1, now, random_uniform_like, 0, 0, true},
    {"Range", 11, now, range_value},
    {"Reciprocal", 1, now, unary<reciprocal>},
    {"ReduceL1", 1, now, reduce_l1},
    {"ReduceL2", 1, now, reduce_l2},
    {"ReduceLogSum", 1, now, reduce_log_sum},
    {"ReduceLogSumExp", 1, now, reduce_log_sum_exp},
    {"ReduceMax", 1, now, reduce_max},
    {"ReduceMean", 1, now, reduce_mean},
    {"ReduceMin", 1, now, reduce_min},
    {"ReduceProd", 1, now, reduce_prod},
    {"ReduceSum", 1, now, reduce_sum},
    {"ReduceSumSquare", 1, now, reduce_sum_square},
    {"Relu", 1, now, unary<relu>},
    {"Reshape", 1, now, reshape_value},
    {"Resize", 10, now, resize, inputs({1, 2})},
    {"ReverseSequence", 10, now, reverse_sequence},
    {"RotaryEmbedding", 23, now, rotary_embedding},
    {"Round", 11, now, unary<round>},
    {"Scan", 9, now, scan},
    {"Scatter", 9, 10, scatter_elements},
    {"ScatterElements", 11, now, scatter_elements},
    {"ScatterND", 11, now, scatter_nd},
    {"Selu", 6, now, selu_value},
    {"Shape", 1, now, shape_of},
    {"Shrink", 9, now, shrink},
    {"Sigmoid", 1, now, unary<sigmoid>},
    {"Sign", 9, now, unary<sign>},
    {"Sin", 7, now, unary<sin>},
    {"Sinh", 9, now, unary<sinh>},
    {"Size", 1, now, size_value},
    {"Slice", 1, now, slice_value},
    {"Softmax", 1, 12, softmax_flattened},
    {"Softmax", 13, now, softmax_value},
    {"SoftmaxCrossEntropyLoss", 12, now, cross_entropy_loss, 0, inputs({2})},
    {"Softplus", 1, now, unary<softplus>},
    {"Softsign", 1, now, unary<softsign>},
    {"SpaceToDepth", 1, now, space_to_depth},
    {"Split", 1, now, split_value},
    {"Sqrt", 1, now, unary<sqrt>},
    {"Squeeze", 1, now, squeeze_value},
    {"Sub", 1, now, sub_values},
    {"Sum", 1, now, sum_values},
    {"Swish", 24, now, swish_value},
    {"Tan", 7, now, unary<tan>},
    {"Tanh", 1, now, unary<tanh>},
    {"TensorScatter", 24, now, tensor_scatter},
    {"ThresholdedRelu", 10, now, trelu_value},
    {"Tile", 1, now, tile_value},
    {"TopK", 1, now, top_k},
    {"Transpose", 1, now, transpose_value},
    {"Trilu", 14, now, trilu},
    {"Unique", 11, now, unique},
    {"Unsqueeze", 1, now, unsqueeze_value},
    {"Upsample", 1, 9, upsample, inputs({1})},
    {"Where", 9, now, where_value},
    {"Xor", 1, now, xor_values},
};

}  // namespace

std::span<const Conversion> all_conversions() { return table; }

const Conversion* find_conversion(std::string_view domain, std::string_view op, int64_t opset) {
  if (!domain.empty() && domain != "ai.onnx") return nullptr;
  const auto found = std::find_if(std::begin(table), std::end(table), [&](const Conversion& row) {
    return row.op == op && row.since <= opset && opset <= row.until;
  });
  return found == std::end(table) ? nullptr : found;
}

}  // namespace rosin::onnx
