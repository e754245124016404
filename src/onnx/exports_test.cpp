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

/// Whoever adds an op that a function may record adds its row, or its name here: of ops of linear algebra, which the
/// format lacks as it does some special functions, and of those that are recorded in parts where a file is written.
TEST(OnnxExports, OpsWithoutARowAreKnown) {
  const std::set<std::string_view> known{"attention", "attention_gradient",
                                         "cholesky",  "cofactors",
                                         "eigh",      "inv",
                                         "leaf",      "lu",
                                         "pinv",      "qr",
                                         "scalar",    "slogdet",
                                         "solve",     "sequence_gradient",
                                         "recurrent", "recurrent_gradient",
                                         "svd",       "triangular_solve",
                                         "distances", "copysign",
                                         "erfc",      "i0",
                                         "i0e",       "i1",
                                         "i1e",       "signbit"};
  for (const Op* op : registry()) {
    if (!op->name.starts_with("test_") && !known.contains(op->name)) {
      EXPECT_NE(find_export(op->name), nullptr) << op->name;
    }
  }
  for (const std::string_view name : known) EXPECT_EQ(find_export(name), nullptr) << name;
}

}  // namespace
}  // namespace rosin::onnx
