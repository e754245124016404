// Rows of elementwise functions. Read first: call.hpp.
#include <cmath>
#include <limits>
#include <numbers>

#include <rosin/rosin.hpp>

#include "call.hpp"

namespace rosin::opinfo {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Array other(Call& c) { return c.array(1, "other"); }

Array divided(Call& c) {
  const Array quotient = c.array(0) / other(c);
  const std::string mode = c.text(-1, "rounding_mode");
  return mode == "floor" ? floor_divide(c.array(0), other(c)) : mode == "trunc" ? trunc(quotient) : quotient;
}

Array with_alpha(Call& c, double sign) { return c.array(0) + sign * c.real(-1, "alpha", 1) * other(c); }

Array clamped(Call& c) {
  Array x = c.array(0);
  if (c.has(1, "min")) x = max(x, c.array(1, "min"));
  return c.has(2, "max") ? min(x, c.array(2, "max")) : x;
}

template <DType type> Array to(Call& c) { return cast(c.array(0), type); }

Array rounded(Call& c) {
  const double power = std::pow(10.0, static_cast<double>(c.integer(-1, "decimals", 0)));
  return round(c.array(0) * power) / power;
}

Array replaced_nan(Call& c) {
  NanOptions options{.nan = c.real(1, "nan", 0)};
  if (c.has(2, "posinf")) options.posinf = c.real(2, "posinf", 0);
  if (c.has(3, "neginf")) options.neginf = c.real(3, "neginf", 0);
  return nan_to_num(c.array(0), options);
}

CloseOptions bounds(Call& c) {
  return {
      .rtol = c.real(-1, "rtol", 1e-5), .atol = c.real(-1, "atol", 1e-8), .equal_nan = c.flag(-1, "equal_nan", false)};
}

Array polygammas(Call& c) { return polygamma(static_cast<int>(c.integer(1, "n", 0)), c.array(0)); }

const Table arithmetic(
    "elementwise",
    {
        {"abs", abs},
        {"neg", neg},
        {"positive", identity},
        {"sign", sign},
        {"sgn", sign},
        {"floor", floor},
        {"ceil", ceil},
        {"trunc", trunc},
        {"round", round},
        {"round/decimals_0", rounded},
        {"round/decimals_3", rounded},
        {"round/decimals_neg_3", rounded},
        {"frac", frac},
        {"add", [](Call& c) { return with_alpha(c, 1); }},
        {"sub", [](Call& c) { return with_alpha(c, -1); }},
        {"rsub", [](Call& c) { return other(c) - c.real(-1, "alpha", 1) * c.array(0); }},
        {"mul", mul},
        {"div/no_rounding_mode", divided},
        {"div/floor_rounding", divided},
        {"div/trunc_rounding", divided},
        {"true_divide", div},
        {"floor_divide", floor_divide},
        {"remainder", mod},
        {"fmod", fmod},
        {"__radd__", add},
        {"__rmul__", mul},
        {"__rsub__", [](Call& c) { return other(c) - c.array(0); }},
        {"__rdiv__", [](Call& c) { return other(c) / c.array(0); }},
        {"__rpow__", [](Call& c) { return pow(other(c), c.array(0)); }},
        {"__rmod__", [](Call& c) { return mod(other(c), c.array(0)); }},
        {"addcmul", [](Call& c) { return c.array(0) + c.real(-1, "value", 1) * c.array(1) * c.array(2); }},
        {"addcdiv", [](Call& c) { return c.array(0) + c.real(-1, "value", 1) * (c.array(1) / c.array(2)); }},
        {"lerp", [](Call& c) { return lerp(c.array(0), c.array(1, "end"), c.array(2, "weight")); }},
        {"maximum", max},
        {"minimum", min},
        {"max/binary", max},
        {"min/binary", min},
        {"clamp", clamped},
        {"clamp_min", [](Call& c) { return max(c.array(0), c.array(1, "min")); }},
        {"clamp_max", [](Call& c) { return min(c.array(0), c.array(1, "max")); }},
        {"square", square},
        {"reciprocal", reciprocal},
        {"pow", pow},
        {"float_power", [](Call& c) { return pow(cast(c.array(0), Float64), cast(c.array(1, "exponent"), Float64)); }},
        {"sqrt", sqrt},
        {"rsqrt", rsqrt},
        {"hypot", hypot},
        {"where", [](Call& c) { return where(c.array(1), c.array(0), c.array(2)); }},
        {"masked_fill", [](Call& c) { return where(c.array(1, "mask"), c.array(2, "value"), c.array(0)); }},
        {"nan_to_num", replaced_nan},
        {"copysign", copysign},
        {"signbit", signbit},
        {"heaviside", heaviside},
        {"ldexp", [](Call& c) { return c.array(0) * exp2(cast(other(c), c.array(0).dtype())); }},
    });

const Table functions("elementwise", {
                                         {"exp", exp},
                                         {"exp2", exp2},
                                         {"expm1", expm1},
                                         {"log", log},
                                         {"log2", log2},
                                         {"log10", log10},
                                         {"log1p", log1p},
                                         {"logaddexp", logaddexp},
                                         {"logaddexp2",
                                          [](Call& c) {
                                            constexpr double ln2 = std::numbers::ln2;
                                            return logaddexp(c.array(0) * ln2, other(c) * ln2) / ln2;
                                          }},
                                         {"sin", sin},
                                         {"cos", cos},
                                         {"tan", tan},
                                         {"asin", asin},
                                         {"acos", acos},
                                         {"atan", atan},
                                         {"atan2", atan2},
                                         {"sinh", sinh},
                                         {"cosh", cosh},
                                         {"tanh", tanh},
                                         {"asinh", asinh},
                                         {"acosh", acosh},
                                         {"atanh", atanh},
                                         {"sinc", sinc},
                                         {"deg2rad", deg2rad},
                                         {"rad2deg", rad2deg},
                                         {"i0", i0},
                                         {"special.i0e", i0e},
                                         {"special.i1", i1},
                                         {"special.i1e", i1e},
                                         {"erfc", erfc},
                                         {"erf", erf},
                                         {"erfinv", erfinv},
                                         {"lgamma", lgamma},
                                         {"digamma", digamma},
                                         {"polygamma/polygamma_n_0", polygammas},
                                         {"polygamma/polygamma_n_1", polygammas},
                                         {"polygamma/polygamma_n_2", polygammas},
                                         {"polygamma/polygamma_n_3", polygammas},
                                         {"polygamma/polygamma_n_4", polygammas},
                                         {"special.polygamma/special_polygamma_n_0", polygammas},
                                         {"sigmoid", sigmoid},
                                         {"logit", [](Call& c) { return logit(c.array(0), c.real(1, "eps", -1)); }},
                                         {"xlogy", xlogy},
                                         {"special.entr", entr},
                                         {"special.ndtr", ndtr},
                                     });

const Table comparisons(
    "elementwise",
    {
        {"eq", eq},
        {"ne", ne},
        {"lt", lt},
        {"le", le},
        {"gt", gt},
        {"ge", ge},
        {"logical_and", [](Call& c) { return logical_and(cast(c.array(0), Bool), cast(other(c), Bool)); }},
        {"logical_or", [](Call& c) { return logical_or(cast(c.array(0), Bool), cast(other(c), Bool)); }},
        {"logical_xor", [](Call& c) { return logical_xor(cast(c.array(0), Bool), cast(other(c), Bool)); }},
        {"logical_not", [](Call& c) { return logical_not(cast(c.array(0), Bool)); }},
        {"isnan", is_nan},
        {"isinf", is_inf},
        {"isfinite", is_finite},
        {"isneginf", [](Call& c) { return c.array(0) == -infinity; }},
        {"isposinf", [](Call& c) { return c.array(0) == infinity; }},
        {"isclose", [](Call& c) { return isclose(c.array(0), other(c), bounds(c)); }},
        {"allclose", [](Call& c) { return Array(allclose(c.array(0), other(c), bounds(c))); }},
        {"equal", [](Call& c) { return all(c.array(0) == other(c)); }},
        {"bitwise_and", bitwise_and},
        {"bitwise_or", bitwise_or},
        {"bitwise_xor", bitwise_xor},
        {"bitwise_not", bitwise_not},
        {"bitwise_left_shift", left_shift},
        {"bitwise_right_shift", right_shift},
        {"__rand__", bitwise_and},
        {"__ror__", bitwise_or},
        {"__rxor__", bitwise_xor},
    });

const Table conversions(
    "elementwise",
    {
        {"bool", to<Bool>},
        {"byte", to<UInt8>},
        {"char", to<Int8>},
        {"short", to<Int16>},
        {"int", to<Int32>},
        {"long", to<Int64>},
        {"half", to<Float16>},
        {"bfloat16", to<BFloat16>},
        {"float", to<Float32>},
        {"double", to<Float64>},
        {"cfloat", to<ComplexF32>},
        {"cdouble", to<ComplexF64>},
        {"real", real},
        {"imag", imag},
        {"conj", conj},
        {"conj_physical", conj},
        {"resolve_conj", identity},
        {"resolve_neg", identity},
        {"angle", angle},
        {"complex", complex},
        {"view_as_real", view_as_real},
        {"view_as_complex", view_as_complex},
        {"polar", [](Call& c) { return complex(c.array(0) * cos(c.array(1)), c.array(0) * sin(c.array(1))); }},
    });

}  // namespace
}  // namespace rosin::opinfo
