// The table of exports, by name of rosin's op. What is missing is named in one error when a function is saved.
#include "onnx/exports.hpp"

#include <algorithm>

namespace rosin::onnx {
namespace {

constexpr Export table[] = {
    {"Embedding", gather_out},
    {"EmbeddingBag", gather_out},
    {"abs", plain, "Abs"},
    {"acos", plain, "Acos"},
    {"add", plain, "Add"},
    {"all", any_out, "ReduceMin"},
    {"any", any_out, "ReduceMax"},
    {"argmax", place_out, "ArgMax"},
    {"argmin", place_out, "ArgMin"},
    {"argsort", sorted_places},
    {"argument", same_out},
    {"asin", plain, "Asin"},
    {"atan", plain, "Atan"},
    {"cast", cast_out},
    {"cbrt", cube_root},
    {"ceil", rounded_alike, "Ceil"},
    {"celu", celu_out},
    {"clamp", clamp_out},
    {"concat", concat_out},
    {"conv", conv_out},
    {"conv_data", conv_transpose_out},
    {"cos", plain, "Cos"},
    {"cosh", plain, "Cosh"},
    {"cumsum", running_sum_out},
    {"custom_gradient", same_out},
    {"div", plain, "Div"},
    {"elu", elu_out},
    {"eq", plain, "Equal"},
    {"erf", plain, "Erf"},
    {"exp", plain, "Exp"},
    {"exp2", power_of_two},
    {"expand", expand_out},
    {"expm1", exp_less_one},
    {"floor", rounded_alike, "Floor"},
    {"floor_divide", floored_quotient},
    {"gather", gather_out},
    {"gelu", gelu_out},
    {"gelu_erf", gelu_erf_out},
    {"gelu_sigmoid", gelu_sigmoid_out},
    {"hardsigmoid", hard_sigmoid_out},
    {"hardswish", plain, "HardSwish"},
    {"hardtanh", between_ones},
    {"is_finite", finite_out},
    {"is_inf", is_infinite_out},
    {"is_nan", is_nan_out},
    {"le", plain, "LessOrEqual"},
    {"leakyrelu", leaky_relu_out},
    {"lisht", tanh_times},
    {"log", plain, "Log"},
    {"log1p", log_of_more},
    {"log2", log_of_base_two},
    {"logcosh", log_cosh_out},
    {"logical_and", plain, "And"},
    {"logical_not", plain, "Not"},
    {"logical_or", plain, "Or"},
    {"logical_xor", plain, "Xor"},
    {"logsigmoid", log_sigmoid_out},
    {"logsoftmax", softmax_out, "LogSoftmax"},
    {"lt", plain, "Less"},
    {"masked_product", masked_product_out},
    {"matmul", matmul_out},
    {"max", plain, "Max"},
    {"maximum", extreme_out, "ReduceMax"},
    {"maxpool", max_pool_out},
    {"meanpool", mean_pool_out},
    {"min", plain, "Min"},
    {"minimum", extreme_out, "ReduceMin"},
    {"mish", mish_out},
    {"mod", modulo},
    {"mul", plain, "Mul"},
    {"ne", not_equal},
    {"neg", plain, "Neg"},
    {"onehot", onehot_out},
    {"pad", pad_out},
    {"peak", extreme_out, "ReduceMax"},
    {"permute", permute_out},
    {"pow", plain, "Pow"},
    {"prod", sum_out, "ReduceProd"},
    {"reciprocal", plain, "Reciprocal"},
    {"relu", plain, "Relu"},
    {"relu6", relu_to_six},
    {"reshape", reshape_out},
    {"round", rounded_alike, "Round"},
    {"rsqrt", root_below_one},
    {"selu", selu_out},
    {"sigmoid", plain, "Sigmoid"},
    {"sign", plain, "Sign"},
    {"sin", plain, "Sin"},
    {"sinh", plain, "Sinh"},
    {"slice", slice_out},
    {"softmax", softmax_out, "Softmax"},
    {"softplus", plain, "Softplus"},
    {"softshrink", soft_shrink},
    {"softsign", plain, "Softsign"},
    {"sqrt", plain, "Sqrt"},
    {"square", square_out},
    {"stop_gradient", same_out},
    {"sub", plain, "Sub"},
    {"sum", sum_out, "ReduceSum"},
    {"swish", swish_out},
    {"take_along", take_along_out},
    {"tan", plain, "Tan"},
    {"tanh", plain, "Tanh"},
    {"tanhshrink", tanh_shrink},
    {"transfer", same_out},
    {"trelu", relu_above},
    {"trunc", truncated},
    {"where", where_out},
};

constexpr bool is_in_order() {
  return std::is_sorted(std::begin(table), std::end(table),
                        [](const Export& a, const Export& b) { return a.op < b.op; });
}
static_assert(is_in_order(), "rows stand by name");

}  // namespace

const Export* find_export(std::string_view op) {
  const auto* row =
      std::lower_bound(std::begin(table), std::end(table), op,
                       [](const Export& candidate, std::string_view name) { return candidate.op < name; });
  return row == std::end(table) || row->op != op ? nullptr : row;
}

std::span<const Export> all_exports() { return table; }

}  // namespace rosin::onnx
