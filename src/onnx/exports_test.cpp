// The table of exports names ops of the registry, and what it leaves out is known.
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "graph/op.hpp"
#include "onnx/exports.hpp"

namespace rosin::onnx {
namespace {

TEST(OnnxExports, RowsAreOpsOfTheRegistry) {
  for (const Export& row : all_exports()) EXPECT_NE(find_op(row.op), nullptr) << row.op;
  EXPECT_EQ(find_export("no such op"), nullptr);
}

/// Whoever adds an op that a model may record adds its row, or its name here.
TEST(OnnxExports, ElementwiseOpsWithoutARowAreKnown) {
  const std::set<std::string_view> known{"copysign",
                                         "digamma",
                                         "erfc",
                                         "erfinv",
                                         "gelu_slope",
                                         "hypot",
                                         "i0",
                                         "i0e",
                                         "i1",
                                         "i1e",
                                         "lgamma",
                                         "logit_entropy",
                                         "moved_by_root",
                                         "relu_slope",
                                         "running_mean",
                                         "running_square",
                                         "scaled_by_root",
                                         "sigmoid_slope",
                                         "signbit",
                                         "tanh_slope",
                                         "trigamma"};
  for (const Op* op : registry()) {
    if (op->kind != Kind::elementwise || op->name.starts_with("test_") || known.contains(op->name)) continue;
    EXPECT_NE(find_export(op->name), nullptr) << op->name;
  }
  for (const std::string_view name : known) EXPECT_EQ(find_export(name), nullptr) << name;
}

}  // namespace
}  // namespace rosin::onnx
