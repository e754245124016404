// The op suite, values: every case of every oracle, in every layout of its inputs, as part of a larger program and one
// node at a time. Read first: op_suite.hpp. Read next: op_suite_gradient_test.cpp, op_suite_type_test.cpp.
#include <gtest/gtest.h>

#include <rosin/activation.hpp>

#include "op_suite.hpp"

namespace rosin::suite {
namespace {

/// Outputs of a case, each with one more op behind it where `consumed`.
Arrays outputs_of(const OpEntry& row, const OracleCase& entry, Layout layout, bool consumed) {
  Arrays outputs = row.call(entry, inputs_of(entry, layout));
  if (consumed) std::transform(outputs.begin(), outputs.end(), outputs.begin(), passed_on);
  return outputs;
}

void check_values(const OpEntry& row, const OracleCase& entry, const std::string& where) {
  for (const Layout layout : tested_layouts()) {
    if (compiles_there() && layout != Layout::tangled) continue;  // contiguous ones are those of check_fusion
    const bool consumed = layout != Layout::contiguous;
    const Arrays outputs = outputs_of(row, entry, layout, consumed);
    if (outputs.empty()) return;
    ASSERT_GE(outputs.size(), entry.outputs.size()) << where;
    for (size_t i = 0; i < entry.outputs.size(); ++i) {
      const std::string problem = difference(outputs[i], entry.outputs[i], tolerance_of(entry));
      EXPECT_EQ(problem, "") << where << ", " << name_of(layout);
    }
  }
}

void check_fusion(const OpEntry& row, const OracleCase& entry, const std::string& where) {
  for (const Layout layout : {Layout::pending, Layout::tangled, Layout::strided}) {
    if (compiles_there() && layout != Layout::tangled) continue;
    const int64_t calls_before = stats().library_calls;
    const Arrays fused = outputs_of(row, entry, layout, true);
    const Arrays alone = one_by_one([&] { return outputs_of(row, entry, layout, true); });
    ASSERT_EQ(fused.size(), alone.size()) << where;
    for (size_t i = 0; i < fused.size(); ++i) {
      EXPECT_EQ(library_difference(fused[i], alone[i], calls_before), "")
          << where << ", " << name_of(layout) << ", fused and alone";
    }
  }
}

class OpSuiteValues : public testing::TestWithParam<std::string> {};

TEST_P(OpSuiteValues, AgreeWithTheOraclesInEveryLayout) { for_each_case({GetParam()}, check_values); }

TEST_P(OpSuiteValues, AreTheSameBitsFusedAndAlone) { for_each_case({GetParam()}, check_fusion); }

INSTANTIATE_TEST_SUITE_P(Files, OpSuiteValues, testing::ValuesIn(op_oracle_files()),
                         [](const auto& file) { return file.param.substr(0, file.param.find('.')); });

/// x (leaf) with one more dim in front, of `size` equal places.
Array with_dim_in_front(const Array& x, int64_t size) {
  std::vector<int64_t> sizes = sizes_of(x);
  sizes.insert(sizes.begin(), size);
  return expand(unsqueeze(x, 0), Shape(std::span<const int64_t>(sizes)));
}

/// One operand is the same along a dim, the others vary: every element of that dim is a copy of the plain result.
TEST(OpSuiteBroadcast, ElementwiseOpsRepeatOperandsAlongMissingDims) {
  for_each_case({"elementwise.txt", "activations.txt"}, [](const OpEntry& row, const OracleCase& entry,
                                                           const std::string& where) {
    const Arrays leaves = inputs_of(entry);
    for (const int64_t size : {int64_t{1}, int64_t{3}, int64_t{0}}) {
      if (compiles_there() && size != 3) continue;
      for (size_t wide = 0; wide < (compiles_there() ? 1 : leaves.size()); ++wide) {
        Arrays inputs;
        for (size_t i = 0; i < leaves.size(); ++i) {
          const Array x = with_dim_in_front(leaves[i], i == wide ? size : 1);
          inputs.push_back(i == wide ? evaluated(passed_on(x)) : x);
        }
        const Arrays outputs = row.call(entry, inputs);
        ASSERT_EQ(outputs.size(), 1u) << where;
        ASSERT_EQ(outputs[0].size(0), size) << where;
        for (int64_t k = 0; k < size; ++k) {
          const std::string problem = difference(select(outputs[0], 0, k), entry.outputs[0], tolerance_of(entry));
          EXPECT_EQ(problem, "") << where << ", operand " << wide << " repeated " << size << " times, place " << k;
        }
      }
    }
  });
}

/// Elementwise ops on one element and on none.
TEST(OpSuiteBroadcast, ElementwiseOpsTakeArraysOfOneElementAndOfNone) {
  for_each_case({"elementwise.txt", "activations.txt"}, [](const OpEntry& row, const OracleCase& entry,
                                                           const std::string& where) {
    const Shape shape = oracles::shape_of(entry.inputs[0]);
    for (const OracleArray& input : entry.inputs) {
      if (input.shape != entry.inputs[0].shape || shape.count() == 0) return;
    }
    if (entry.has("exponents")) return;
    for (const int64_t stop : {0, 1}) {
      Arrays inputs;
      for (const Array& leaf : inputs_of(entry)) {
        Array x = leaf;
        for (int d = 0; d < shape.rank(); ++d) x = slice(x, d, 0, stop);
        inputs.push_back(x);
      }
      const Array got = row.call(entry, inputs)[0];
      ASSERT_EQ(got.count(), shape.rank() > 0 ? stop : 1) << where;
      if (got.count() == 0) {
        EXPECT_TRUE(oracles::values_of(got).empty());
        continue;
      }
      const double value = oracles::values_of(got)[0];
      EXPECT_TRUE(oracles::matches(entry.tolerance, entry.outputs[0].dtype, entry.outputs[0].values[0], value))
          << where << ": " << value << " for one element, want " << entry.outputs[0].values[0];
    }
  });
}

TEST(OpSuiteIdentity, IdentityIsTheSameHandle) {
  const Array x = ones({2});
  EXPECT_TRUE(same(identity(x), x));
}

TEST(OpSuiteIdentity, MakersTakeShapeAndTypeOfTheirModel) {
  const Array x = cast(ones({2, 3}), Float16);
  for (const Array& made : {zeros_like(x), ones_like(x)}) {
    EXPECT_EQ(made.shape(), x.shape());
    EXPECT_EQ(made.dtype(), Float16);
  }
  EXPECT_EQ(sum(zeros_like(x)).item(), 0);
  EXPECT_EQ(sum(ones_like(x)).item(), 6);
}

}  // namespace
}  // namespace rosin::suite
