// The table itself, and the test that registry, table, public headers and oracles name the same ops.
// Read first: op_table.hpp.
#include "op_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <sstream>

#include <rosin/activation.hpp>
#include <rosin/bits.hpp>
#include <rosin/complex.hpp>
#include <rosin/compose.hpp>
#include <rosin/conv.hpp>
#include <rosin/create.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/index.hpp>
#include <rosin/matmul.hpp>
#include <rosin/movement.hpp>
#include <rosin/pool.hpp>
#include <rosin/random.hpp>
#include <rosin/reduce.hpp>
#include <rosin/sort.hpp>
#include <rosin/special.hpp>

#include "graph/op.hpp"

namespace rosin::suite {
namespace {

using oracles::dim_of;
using oracles::dims_of;
using oracles::ints;
using oracles::is_set;
using oracles::place;
using oracles::reduction;
using oracles::running;

using Unary = Array (*)(const Array&);
using Binary = Array (*)(const Array&, const Array&);

OracleCall unary(Unary f) {
  return [f](const OracleCase&, const Arrays& x) { return Arrays{f(x[0])}; };
}
OracleCall binary(Binary f) {
  return [f](const OracleCase&, const Arrays& x) { return Arrays{f(x[0], x[1])}; };
}

/// (start, stop, step) of each dim: range0=START,STOP,STEP range1=...
std::vector<std::vector<int64_t>> ranges_of(const OracleCase& e) {
  std::vector<std::vector<int64_t>> ranges;
  while (e.has("range" + std::to_string(ranges.size())))
    ranges.push_back(e.integers("range" + std::to_string(ranges.size())));
  return ranges;
}

Shape target_shape(const OracleCase& e) {
  if (e.attributes.at("shape") == "scalar") return {};
  return Shape(std::span<const int64_t>(e.integers("shape")));
}

std::vector<OpEntry> arithmetic() {
  return {{"add", "add", binary(add)},
          {"sub", "sub", binary(sub)},
          {"mul", "mul", binary(mul)},
          {"div", "div", binary(div)},
          {"neg", "neg", unary(neg)},
          {"operator+", "add", [](const OracleCase&, const Arrays& x) { return Arrays{x[0] + x[1]}; }},
          {"operator-", "sub", [](const OracleCase&, const Arrays& x) { return Arrays{x[0] - x[1]}; }},
          {"operator*", "mul", [](const OracleCase&, const Arrays& x) { return Arrays{x[0] * x[1]}; }},
          {"operator/", "div", [](const OracleCase&, const Arrays& x) { return Arrays{x[0] / x[1]}; }},
          {"operator-", "neg", [](const OracleCase&, const Arrays& x) { return Arrays{-x[0]}; }},
          {"mod", "mod", binary(mod)},
          {"floor_divide", "floor_divide", binary(floor_divide)},
          {"abs", "abs", unary(abs)},
          {"sign", "sign", unary(sign)},
          {"floor", "floor", unary(floor)},
          {"ceil", "ceil", unary(ceil)},
          {"trunc", "trunc", unary(trunc)},
          {"round", "round", unary(round)},
          {"max", "max", binary(max)},
          {"min", "min", binary(min)},
          {"clamp", "clamp", [](const OracleCase& e, const Arrays& x) {
             return Arrays{clamp(x[0], e.number("lo", 0), e.number("hi", 0))};
           }}};
}

std::vector<OpEntry> comparisons() {
  return {{"eq", "eq", binary(eq)},
          {"ne", "ne", binary(ne)},
          {"lt", "lt", binary(lt)},
          {"le", "le", binary(le)},
          {"gt", "gt", binary(gt)},
          {"ge", "ge", binary(ge)},
          {"operator==", "eq", [](const OracleCase&, const Arrays& x) { return Arrays{x[0] == x[1]}; }},
          {"operator!=", "ne", [](const OracleCase&, const Arrays& x) { return Arrays{x[0] != x[1]}; }},
          {"operator<", "lt", [](const OracleCase&, const Arrays& x) { return Arrays{x[0] < x[1]}; }},
          {"operator<=", "le", [](const OracleCase&, const Arrays& x) { return Arrays{x[0] <= x[1]}; }},
          {"operator>", "gt", [](const OracleCase&, const Arrays& x) { return Arrays{x[0] > x[1]}; }},
          {"operator>=", "ge", [](const OracleCase&, const Arrays& x) { return Arrays{x[0] >= x[1]}; }},
          {"logical_and", "logical_and", binary(logical_and)},
          {"logical_or", "logical_or", binary(logical_or)},
          {"logical_xor", "logical_xor", binary(logical_xor)},
          {"logical_not", "logical_not", unary(logical_not)},
          {"operator&", "logical_and", [](const OracleCase&, const Arrays& x) { return Arrays{x[0] & x[1]}; }},
          {"operator|", "logical_or", [](const OracleCase&, const Arrays& x) { return Arrays{x[0] | x[1]}; }},
          {"operator^", "logical_xor", [](const OracleCase&, const Arrays& x) { return Arrays{x[0] ^ x[1]}; }},
          {"operator!", "logical_not", [](const OracleCase&, const Arrays& x) { return Arrays{!x[0]}; }},
          {"where", "where", [](const OracleCase&, const Arrays& x) { return Arrays{where(x[0], x[1], x[2])}; }},
          {"is_nan", "is_nan", unary(is_nan)},
          {"is_inf", "is_inf", unary(is_inf)},
          {"is_finite", "is_finite", unary(is_finite)},
          {"cast", "cast", [](const OracleCase& e, const Arrays& x) {
             return Arrays{cast(x[0], oracles::dtype_named(e.attributes.at("to")))};
           }}};
}

std::vector<OpEntry> bits() {
  return {{"bitwise_and", "bitwise_and", binary(bitwise_and)}, {"bitwise_or", "bitwise_or", binary(bitwise_or)},
          {"bitwise_xor", "bitwise_xor", binary(bitwise_xor)}, {"bitwise_not", "bitwise_not", unary(bitwise_not)},
          {"left_shift", "left_shift", binary(left_shift)},    {"right_shift", "right_shift", binary(right_shift)}};
}

/// The attribute `exponents` along the last dim of x.
Array exponents_for(const OracleCase& e, const Array& x) {
  std::vector<int64_t> sizes(static_cast<size_t>(x.rank()), 1);
  sizes.back() = -1;
  return reshape(there(Array(e.numbers("exponents"), {static_cast<int64_t>(e.numbers("exponents").size())})), sizes);
}

std::vector<OpEntry> complex_functions() {
  return {{"conj", "conj", unary(conj)},    {"real", "real", unary(real)}, {"imag", "imag", unary(imag)},
          {"angle", "angle", unary(angle)}, {"complex", "", nullptr},      {"view_as_real", "", nullptr},
          {"view_as_complex", "", nullptr}};
}

std::vector<OpEntry> functions() {
  return {{"square", "square", unary(square)},
          {"reciprocal", "reciprocal", unary(reciprocal)},
          {"pow", "pow",
           [](const OracleCase& e, const Arrays& x) {
             if (e.has("exponents")) return Arrays{pow(x[0], exponents_for(e, x[0]))};
             return Arrays{e.has("n") ? pow(x[0], e.integers("n")[0]) : pow(x[0], x[1])};
           }},
          {"sqrt", "sqrt", unary(sqrt)},
          {"rsqrt", "rsqrt", unary(rsqrt)},
          {"cbrt", "cbrt", unary(cbrt)},
          {"exp", "exp", unary(exp)},
          {"exp2", "exp2", unary(exp2)},
          {"expm1", "expm1", unary(expm1)},
          {"log", "log", unary(log)},
          {"log2", "log2", unary(log2)},
          {"log10", "log10", unary(log10)},
          {"log1p", "log1p", unary(log1p)},
          {"logaddexp", "logaddexp", binary(logaddexp)},
          {"sin", "sin", unary(sin)},
          {"cos", "cos", unary(cos)},
          {"tan", "tan", unary(tan)},
          {"asin", "asin", unary(asin)},
          {"acos", "acos", unary(acos)},
          {"atan", "atan", unary(atan)},
          {"atan2", "atan2", binary(atan2)},
          {"sinh", "sinh", unary(sinh)},
          {"cosh", "cosh", unary(cosh)},
          {"tanh", "tanh", unary(tanh)},
          {"asinh", "asinh", unary(asinh)},
          {"acosh", "acosh", unary(acosh)},
          {"atanh", "atanh", unary(atanh)},
          {"erf", "erf", unary(erf)},
          {"erfinv", "erfinv", unary(erfinv)},
          {"erfc", "erfc", unary(erfc)},
          {"i0", "i0", unary(i0)},
          {"i0e", "i0e", unary(i0e)},
          {"i1", "i1", unary(i1)},
          {"i1e", "i1e", unary(i1e)},
          {"hypot", "hypot", binary(hypot)},
          {"copysign", "copysign", binary(copysign)},
          {"signbit", "signbit", unary(signbit)},
          {"lgamma", "lgamma", unary(lgamma)},
          {"digamma", "digamma", unary(digamma)},
          {"trigamma", "trigamma", unary(trigamma)}};
}

std::vector<OpEntry> activations() {
  return {{"identity", "", nullptr},
          {"sigmoid", "sigmoid", unary(sigmoid)},
          {"hardsigmoid", "hardsigmoid", unary(hardsigmoid)},
          {"logsigmoid", "logsigmoid", unary(logsigmoid)},
          {"hardtanh", "hardtanh", unary(hardtanh)},
          {"relu", "relu", unary(relu)},
          {"leakyrelu", "leakyrelu", unary(leakyrelu)},
          {"relu6", "relu6", unary(relu6)},
          {"elu", "elu", unary(elu)},
          {"gelu", "gelu", unary(gelu)},
          {"gelu_sigmoid", "gelu_sigmoid", unary(gelu_sigmoid)},
          {"gelu_erf", "gelu_erf", unary(gelu_erf)},
          {"swish", "swish", unary(swish)},
          {"hardswish", "hardswish", unary(hardswish)},
          {"lisht", "lisht", unary(lisht)},
          {"selu", "selu", unary(selu)},
          {"celu", "celu", unary(celu)},
          {"trelu", "trelu", unary(trelu)},
          {"softsign", "softsign", unary(softsign)},
          {"softplus", "softplus", unary(softplus)},
          {"logcosh", "logcosh", unary(logcosh)},
          {"mish", "mish", unary(mish)},
          {"tanhshrink", "tanhshrink", unary(tanhshrink)},
          {"softshrink", "softshrink", unary(softshrink)}};
}

Arrays variance(const OracleCase& e, const Arrays& x) {
  const bool corrected = e.number("corrected", 1) != 0;
  return {e.has("dims") ? var(x[0], dims_of(e), corrected) : var(x[0], corrected)};
}

Arrays deviation(const OracleCase& e, const Arrays& x) {
  const bool corrected = e.number("corrected", 1) != 0;
  return {e.has("dims") ? stddev(x[0], dims_of(e), corrected) : stddev(x[0], corrected)};
}

Arrays length(const OracleCase& e, const Arrays& x) {
  const double p = e.number("p", 2);
  if (e.has("dims")) return {norm(x[0], dims_of(e), p)};
  if (p == 2) return {norm(x[0])};
  return {reshape(norm(reshape(x[0], {x[0].count()}), 0, p), Shape{})};
}

/// sum over dims, as the adjoint of broadcasting to x's shape: only where something is summed and dims are stated.
Arrays summed_to(const OracleCase& e, const Arrays& x) {
  if (!e.has("dims") || !is_float(x[0].dtype())) return {};
  const Shape shape = x[0].shape();
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  for (const int dim : ints(e, "dims")) sizes[static_cast<size_t>(dim < 0 ? dim + x[0].rank() : dim)] = 1;
  return {sum_to(x[0], Shape(std::span<const int64_t>(sizes)))};
}

std::vector<OpEntry> reductions() {
  return {{"sum", "sum", reduction(sum, sum)},
          {"sum_to", "sum", summed_to},
          {"prod", "prod", reduction(prod, prod)},
          {"mean", "mean", reduction(mean, mean)},
          {"maximum", "maximum", reduction(maximum, maximum)},
          {"minimum", "minimum", reduction(minimum, minimum)},
          {"any", "any", reduction(any, any)},
          {"all", "all", reduction(all, all)},
          {"argmax", "argmax", place(argmax, argmax)},
          {"argmin", "argmin", place(argmin, argmin)},
          {"var", "var", variance},
          {"stddev", "stddev", deviation},
          {"logsumexp", "logsumexp", reduction(logsumexp, logsumexp)},
          {"norm", "norm", length},
          {"cumsum", "cumsum", running(cumsum)},
          {"cumprod", "cumprod", running(cumprod)},
          {"cummax", "cummax", running(cummax)},
          {"cummin", "cummin", running(cummin)},
          {"logcumsumexp", "logcumsumexp", running(logcumsumexp)}};
}

Arrays sliced(const OracleCase& e, const Arrays& x) {
  Array result = x[0];
  const auto ranges = ranges_of(e);
  for (size_t d = 0; d < ranges.size(); ++d)
    result = slice(result, static_cast<int>(d), ranges[d][0], ranges[d][1], ranges[d][2]);
  return {result};
}

Arrays indexed(const OracleCase& e, const Arrays& x) {
  const auto ranges = ranges_of(e);
  const auto range = [&](size_t d) { return slice(ranges[d][0], ranges[d][1], ranges[d][2]); };
  if (ranges.size() == 1) return {index(x[0], {range(0)})};
  if (ranges.size() == 2) return {index(x[0], {range(0), range(1)})};
  if (ranges.size() == 3) return {index(x[0], {range(0), range(1), range(2)})};
  return {};
}

/// gather with one index after the other; `row`, `column` and `select` drop the dim that stack makes again.
Arrays gathered(const OracleCase& e, const Arrays& x, const std::function<Array(int, int64_t)>& pick) {
  if (x[1].rank() != 1 || x[1].count() == 0) return {};
  const int dim = dim_of(e) < 0 ? dim_of(e) + x[0].rank() : dim_of(e);
  Arrays picked;
  for (const int64_t at : x[1].to_vector<int64_t>()) picked.push_back(pick(dim, at));
  return {stack(picked, dim)};
}

Arrays selected(const OracleCase& e, const Arrays& x) {
  return gathered(e, x, [&](int dim, int64_t at) { return select(x[0], dim, at); });
}

/// Rows (which = 0) or columns (which = 1) of a matrix.
OracleCall line_of_matrix(int which) {
  return [which](const OracleCase& e, const Arrays& x) -> Arrays {
    if (x[0].rank() != 2 || (dim_of(e) + 2) % 2 != which) return {};
    return gathered(e, x, [&](int, int64_t at) { return which == 0 ? row(x[0], at) : column(x[0], at); });
  };
}

Arrays padded(const OracleCase& e, const Arrays& x) {
  const auto low = e.integers("low"), high = e.integers("high");
  Array result = x[0];
  for (size_t d = 0; d < low.size(); ++d)
    result = pad(result, static_cast<int>(d), low[d], high[d], e.number("value", 0));
  return {result};
}

std::vector<OpEntry> movements() {
  return {
      {"reshape", "reshape",
       [](const OracleCase& e, const Arrays& x) {
         if (e.attributes.at("shape") == "scalar") return Arrays{reshape(x[0], Shape{})};
         return Arrays{reshape(x[0], e.integers("shape"))};
       }},
      {"flatten", "flatten", unary(flatten)},
      {"permute", "permute",
       [](const OracleCase& e, const Arrays& x) { return Arrays{permute(x[0], ints(e, "dims"))}; }},
      {"transpose", "transpose", unary(transpose)},
      {"flip", "flip", [](const OracleCase& e, const Arrays& x) { return Arrays{flip(x[0], dim_of(e))}; }},
      {"expand", "expand", [](const OracleCase& e, const Arrays& x) { return Arrays{expand(x[0], target_shape(e))}; }},
      {"squeeze", "squeeze",
       [](const OracleCase& e, const Arrays& x) {
         return Arrays{e.has("dim") ? squeeze(x[0], dim_of(e)) : squeeze(x[0])};
       }},
      {"unsqueeze", "unsqueeze",
       [](const OracleCase& e, const Arrays& x) { return Arrays{unsqueeze(x[0], dim_of(e))}; }},
      {"slice", "slice", sliced},
      {"index", "slice", indexed},
      {"select", "gather", selected},
      {"row", "gather", line_of_matrix(0)},
      {"column", "gather", line_of_matrix(1)},
      {"pad", "pad", padded},
      {"concat", "concat", [](const OracleCase& e, const Arrays& x) { return Arrays{concat(x, dim_of(e))}; }},
      {"stack", "stack", [](const OracleCase& e, const Arrays& x) { return Arrays{stack(x, dim_of(e))}; }},
      {"repeat", "repeat",
       [](const OracleCase& e, const Arrays& x) { return Arrays{repeat(x[0], e.integers("times")[0], dim_of(e))}; }},
      {"tile", "tile",
       [](const OracleCase& e, const Arrays& x) { return Arrays{tile(x[0], e.integers("times")[0], dim_of(e))}; }}};
}

Arrays chosen(const OracleCase& e, const Arrays& x) {
  const TopK top = topk(x[0], e.integers("k")[0], dim_of(e), is_set(e, "largest"));
  return {top.values, top.indices};
}

OracleCall scattering(Array (*f)(const Array&, const Array&, const Array&, int)) {
  return [f](const OracleCase& e, const Arrays& x) { return Arrays{f(x[0], x[1], x[2], dim_of(e))}; };
}

std::vector<OpEntry> index_ops() {
  return {
      {"gather", "gather", [](const OracleCase& e, const Arrays& x) { return Arrays{gather(x[0], x[1], dim_of(e))}; }},
      {"scatter", "scatter",
       [](const OracleCase& e, const Arrays& x) { return Arrays{scatter(x[0], x[1], x[2], dim_of(e))}; }},
      {"scatter_add", "scatter_add",
       [](const OracleCase& e, const Arrays& x) { return Arrays{scatter_add(x[0], x[1], x[2], dim_of(e))}; }},
      {"scatter_mul", "scatter_mul", scattering(scatter_mul)},
      {"scatter_max", "scatter_max", scattering(scatter_max)},
      {"scatter_min", "scatter_min", scattering(scatter_min)},
      {"scatter_mean", "scatter_mean",
       [](const OracleCase& e, const Arrays& x) {
         return Arrays{scatter_mean(x[0], x[1], x[2], dim_of(e), is_set(e, "include"))};
       }},
      {"take_along", "take_along",
       [](const OracleCase& e, const Arrays& x) { return Arrays{take_along(x[0], x[1], dim_of(e))}; }},
      {"onehot", "onehot",
       [](const OracleCase& e, const Arrays& x) { return Arrays{onehot(x[0], e.integers("classes")[0])}; }},
      {"onecold", "onecold", unary(onecold)},
      {"sort", "sort",
       [](const OracleCase& e, const Arrays& x) { return Arrays{sort(x[0], dim_of(e), is_set(e, "descending"))}; }},
      {"argsort", "argsort",
       [](const OracleCase& e, const Arrays& x) { return Arrays{argsort(x[0], dim_of(e), is_set(e, "descending"))}; }},
      {"topk", "topk", chosen}};
}

Extents extents(const OracleCase& e, const std::string& key) {
  return Extents(std::span<const int64_t>(e.integers(key)));
}

OracleCall convolution(bool flipped) {
  return [flipped](const OracleCase& e, const Arrays& x) -> Arrays {
    if ((e.attributes.at("mode") == "convolution") != flipped) return {};
    const ConvOptions options{extents(e, "stride"), extents(e, "pad"), extents(e, "dilation"), e.integers("groups")[0]};
    return {flipped ? conv(x[0], x[1], options) : crosscor(x[0], x[1], options)};
  };
}

/// The layers of norm.txt, which are a normalise each, with scale and bias by feature, channel or group.
Array scaled(const Array& x, const Array& scale, const Array& bias, std::vector<int64_t> sizes) {
  return x * reshape(scale, sizes) + reshape(bias, sizes);
}

Arrays normalised_features(const OracleCase& e, const Arrays& x) {
  const std::vector<int> dims = {0, 1, 2};
  const Dims features(std::span<const int>(dims).first(static_cast<size_t>(x[1].rank())));
  return {normalise(x[0], features, e.number("eps", 0)) * x[1] + x[2]};
}

Arrays normalised_groups(const OracleCase& e, const Arrays& x) {
  const int64_t groups = e.integers("groups")[0];
  const Array parts = reshape(x[0], {x[0].size(0), x[0].size(1) / groups, groups, x[0].size(2)});
  return {scaled(reshape(normalise(parts, {0, 1}, e.number("eps", 0)), x[0].shape()), x[1], x[2], {1, -1})};
}

/// x, scale, bias, running mean, running variance -> y and, in training, the new statistics.
Arrays normalised_channels(const OracleCase& e, const Arrays& x) {
  std::vector<int> others;
  std::vector<int64_t> sizes(static_cast<size_t>(x[0].rank()), 1);
  for (int d = 0; d < x[0].rank(); ++d) {
    if (d != x[0].rank() - 2) others.push_back(d);
    else sizes[static_cast<size_t>(d)] = x[0].size(d);
  }
  const double eps = e.number("eps", 0), momentum = e.number("momentum", 0);
  if (!is_set(e, "training")) {
    return {scaled((x[0] - reshape(x[3], sizes)) / sqrt(reshape(x[4], sizes) + eps), x[1], x[2], sizes)};
  }
  const Dims dims = Dims(std::span<const int>(others));
  return {scaled(normalise(x[0], dims, eps), x[1], x[2], sizes),
          x[3] * (1 - momentum) + reshape(mean(x[0], dims), x[3].shape()) * momentum,
          x[4] * (1 - momentum) + reshape(var(x[0], dims, true), x[4].shape()) * momentum};
}

/// The cases are of flipped kernels; the other function is given them flipped once more.
OracleCall transposed_convolution(bool flipped) {
  return [flipped](const OracleCase& e, const Arrays& x) {
    const ConvOptions options{extents(e, "stride"), extents(e, "pad"), extents(e, "dilation"), e.integers("groups")[0]};
    Array kernels = x[1];
    for (int d = 0; !flipped && d + 2 < kernels.rank(); ++d) kernels = flip(kernels, d);
    const auto f = flipped ? conv_transpose : crosscor_transpose;
    return Arrays{f(x[0], kernels, options, extents(e, "outpad"))};
  };
}

std::vector<OpEntry> products_and_windows() {
  return {
      {"matmul", "matmul", binary(matmul)},
      {"dot", "dot", binary(dot)},
      {"outer", "outer", binary(outer)},
      {"cosine_similarity", "cosine_similarity",
       [](const OracleCase& e, const Arrays& x) { return Arrays{cosine_similarity(x[0], x[1], dim_of(e))}; }},
      {"tril", "tril", [](const OracleCase& e, const Arrays& x) { return Arrays{tril(x[0], e.integers("k")[0])}; }},
      {"triu", "triu", [](const OracleCase& e, const Arrays& x) { return Arrays{triu(x[0], e.integers("k")[0])}; }},
      {"conv", "conv", convolution(true)},
      {"crosscor", "conv", convolution(false)},
      {"conv_transpose", "conv_transpose", transposed_convolution(true)},
      {"crosscor_transpose", "conv_transpose", transposed_convolution(false)},
      {"maxpool", "maxpool",
       [](const OracleCase& e, const Arrays& x) {
         return Arrays{maxpool(x[0], extents(e, "window"), extents(e, "stride"), extents(e, "pad"))};
       }},
      {"meanpool", "meanpool",
       [](const OracleCase& e, const Arrays& x) {
         return Arrays{meanpool(x[0], extents(e, "window"), extents(e, "stride"), extents(e, "pad"))};
       }},
      {"adaptive_maxpool", "", nullptr},
      {"adaptive_meanpool", "", nullptr},
      {"global_maxpool", "", nullptr},
      {"global_meanpool", "", nullptr},
      {"softmax", "softmax", [](const OracleCase& e, const Arrays& x) { return Arrays{softmax(x[0], dim_of(e))}; }},
      {"logsoftmax", "logsoftmax",
       [](const OracleCase& e, const Arrays& x) { return Arrays{logsoftmax(x[0], dim_of(e))}; }},
      {"normalise", "normalise",
       [](const OracleCase& e, const Arrays& x) { return Arrays{normalise(x[0], dims_of(e), e.number("eps", 1e-5))}; }},
      {"normalise", "layernorm", normalised_features},
      {"normalise", "batchnorm", normalised_channels},
      {"normalise", "groupnorm", normalised_groups}};
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::filesystem::path source_folder = ROSIN_SOURCE_DIR;

/// Public headers whose functions are ops: x.hpp where src/ops or src/loss has x.cpp or x_part.cpp.
std::vector<std::string> op_headers() {
  std::set<std::string> headers;
  for (const char* room : {"src/ops", "src/loss"}) {
    for (const auto& file : std::filesystem::directory_iterator(source_folder / room)) {
      const std::string stem = file.path().stem().string();
      for (const std::string& name : {stem, stem.substr(0, stem.find('_'))}) {
        if (std::filesystem::exists(source_folder / "include/rosin" / (name + ".hpp"))) headers.insert(name + ".hpp");
      }
    }
  }
  headers.erase("dlpack.hpp");  // arrays of other libraries: foreign_memory_test.cpp
  return {headers.begin(), headers.end()};
}

/// Names of functions declared `ROSIN_API Array name(`, without those of the library itself.
std::set<std::string> declared_ops() {
  std::set<std::string> names;
  const std::regex declaration("^ROSIN_API (?:Array|TopK) ([a-z_0-9]+|operator[^(]+)\\(");
  for (const std::string& header : op_headers()) {
    std::istringstream lines(text_of(source_folder / "include/rosin" / header));
    bool for_library = false, in_detail = false;
    for (std::string line; std::getline(lines, line);) {
      in_detail = line == "namespace detail {" || (in_detail && line != "}  // namespace detail");
      if (line.empty()) for_library = false;
      if (line.rfind("///", 0) == 0) for_library = line.find("For the library") != std::string::npos;
      std::smatch found;
      if (!for_library && !in_detail && std::regex_search(line, found, declaration)) names.insert(found[1]);
    }
  }
  return names;
}

std::set<std::string> listed_ops() {
  std::set<std::string> names;
  for (const OpEntry& entry : op_table()) names.insert(std::string(entry.name));
  return names;
}

TEST(OpTable, NamesExactlyThePublicFunctions) { EXPECT_EQ(listed_ops(), declared_ops()); }

TEST(OpTable, EveryOracleOpHasARowAndEveryRowAnOracle) {
  std::set<std::string> known, used;
  for (const std::string& file : op_oracle_files()) {
    for (const OracleCase& entry : cases_of(file)) known.insert(entry.op);
  }
  for (const OpEntry& entry : op_table()) {
    if (!entry.oracle.empty()) used.insert(std::string(entry.oracle));
  }
  EXPECT_EQ(used, known);
}

TEST(OpTable, FunctionsWithoutOracleAreCalledByAUnitTest) {
  std::string tests;
  for (const char* room : {"src/ops", "src/loss", "src/nn", "tests"}) {
    for (const auto& file : std::filesystem::directory_iterator(source_folder / room)) {
      const std::string name = file.path().filename().string();
      if (name.ends_with("_test.cpp") && name != "op_table_test.cpp") tests += text_of(file.path());
    }
  }
  for (const OpEntry& entry : op_table()) {
    if (!entry.oracle.empty()) continue;
    EXPECT_TRUE(std::regex_search(tests, std::regex("\\b" + std::string(entry.name) + "\\("))) << entry.name;
  }
}

TEST(OpTable, RegisteredOpsHaveADocLineAndDifferentNames) {
  std::set<std::string_view> names;
  for (const Op* op : registry()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
    EXPECT_FALSE(op->doc.empty()) << op->name;
  }
}

}  // namespace

const std::vector<OpEntry>& op_table() {
  static const std::vector<OpEntry> table = [] {
    std::vector<OpEntry> all;
    for (const auto& family :
         {arithmetic(), comparisons(), bits(), functions(), complex_functions(), activations(), reductions(),
          movements(), index_ops(), products_and_windows(), loss_entries(), resample_entries(), untabled_entries()}) {
      all.insert(all.end(), family.begin(), family.end());
    }
    return all;
  }();
  return table;
}

const std::vector<std::string>& op_oracle_files() {
  static const std::vector<std::string> files = {
      "elementwise.txt", "activations.txt", "complex.txt", "reduce.txt", "movement.txt", "index.txt",   "matmul.txt",
      "conv.txt",        "norm.txt",        "loss.txt",    "bits.txt",   "special.txt",  "resample.txt"};
  return files;
}

const std::vector<OracleCase>& cases_of(const std::string& file) {
  static std::map<std::string, std::vector<OracleCase>> read;
  const auto found = read.find(file);
  if (found != read.end()) return found->second;
  return read[file] = oracles::read_oracles(oracles::oracle_path(file));
}

}  // namespace rosin::suite
