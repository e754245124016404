// The op suite, math modes: each op of floats in each mode within its bound. Read first: op_suite.hpp,
// rosin/math_mode.hpp.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "graph/math_mode_testing.hpp"
#include "op_suite.hpp"

namespace rosin::suite {
namespace {

bool is_half(const std::string& dtype) { return dtype == "Float16" || dtype == "BFloat16"; }

/// Ops that are made of tanh.
bool uses_tanh(const std::string& op) {
  static const std::set<std::string> ops = {"tanh", "tanhshrink", "lisht"};
  return ops.contains(op);
}

/// What a mode may cost beside the tolerance of the case; see rosin/math_mode.hpp.
oracles::OracleTolerance tolerance_in(const OracleCase& entry, MathMode mode) {
  oracles::OracleTolerance tolerance = tolerance_of(entry);
  const bool half = is_half(entry.dtype), is_quick = half || mode == MathMode::fast;
  const bool differs = is_quick && (entry.op == "div" || uses_tanh(entry.op));
  if (tolerance.exact && !differs) return tolerance;
  tolerance.exact = false;
  if (half) tolerance.ulp += 2;
  if (mode == MathMode::fast && entry.dtype == "Float32") {
    tolerance.ulp += 64;
    tolerance.atol += 0x1p-125;  // what is below 2^-126 may be 0
    if (uses_tanh(entry.op)) tolerance.atol += 0x1p-9, tolerance.rtol += 0x1p-10;
  }
  return tolerance;
}

/// Ops whose kernels differ from mode to mode; all of them where nothing is compiled.
bool is_tried(const OracleCase& entry) {
  static const std::set<std::string> differ = {"exp",     "tanh",    "sigmoid",   "gelu",     "div",  "rsqrt", "pow",
                                               "log",     "expm1",   "sin",       "softplus", "mish", "erf",   "log1p",
                                               "softmax", "logcosh", "logsumexp", "adam",     "lisht"};
  const bool floats = is_half(entry.dtype) || entry.dtype == "Float32" || entry.dtype == "Float64";
  if (!compiles_there()) return floats;
  return floats && entry.dtype != "Float16" && differ.contains(entry.op);
}

class OpSuiteModes : public testing::TestWithParam<MathMode> {};

TEST_P(OpSuiteModes, StayWithinTheirBounds) {
  if (!on_other_device()) GTEST_SKIP() << "the CPU has one mode";
  const MathMode mode = GetParam();
  size_t tried = 0;
  const auto check = [&](const OpEntry& row, const OracleCase& entry, const std::string& where) {
    // What is an ulp below the largest number may be beyond it.
    const bool largest = entry.has("samples") && entry.attributes.at("samples") == "edge";
    if (largest && mode == MathMode::fast) return;
    ++tried;
    const Arrays outputs = with(mode, [&] { return row.call(entry, inputs_of(entry)); });
    for (size_t i = 0; i < entry.outputs.size() && i < outputs.size(); ++i) {
      EXPECT_EQ(difference(outputs[i], entry.outputs[i], tolerance_in(entry, mode)), "") << where;
    }
  };
  for_each_case({"elementwise.txt", "activations.txt", "norm.txt", "reduce.txt", "loss.txt", "matmul.txt"}, check,
                [](const OpEntry&, const OracleCase& entry, const std::string&) { return is_tried(entry); });
  EXPECT_GT(tried, 20u);
}

INSTANTIATE_TEST_SUITE_P(Modes, OpSuiteModes, testing::Values(MathMode::standard, MathMode::fast),
                         [](const auto& mode) { return name_of(mode.param); });

}  // namespace
}  // namespace rosin::suite
