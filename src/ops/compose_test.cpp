// Composed functions against NumPy and PyTorch (tests/oracles/norm.txt, matmul.txt).
#include <rosin/compose.hpp>

#include <gtest/gtest.h>

#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::dim_of;
using oracles::dims_of;
using oracles::OracleCase;
using Arrays = std::vector<Array>;

TEST(Compose, RowFunctionsAgreeWithPyTorch) {
  oracles::run_oracles(
      "norm.txt",
      {{"softmax", [](const OracleCase& e, const Arrays& x) { return Arrays{softmax(x[0], dim_of(e))}; }},
       {"logsoftmax", [](const OracleCase& e, const Arrays& x) { return Arrays{logsoftmax(x[0], dim_of(e))}; }},
       {"normalise", [](const OracleCase& e, const Arrays& x) {
          return Arrays{normalise(x[0], dims_of(e), e.number("eps", 1e-5))};
        }}});
}

TEST(Compose, ProductsOfVectorsAndTrianglesAgreeWithNumPy) {
  oracles::run_oracles(
      "matmul.txt",
      {{"dot", [](const OracleCase&, const Arrays& x) { return Arrays{dot(x[0], x[1])}; }},
       {"outer", [](const OracleCase&, const Arrays& x) { return Arrays{outer(x[0], x[1])}; }},
       {"cosine_similarity",
        [](const OracleCase& e, const Arrays& x) { return Arrays{cosine_similarity(x[0], x[1], dim_of(e))}; }},
       {"tril", [](const OracleCase& e, const Arrays& x) { return Arrays{tril(x[0], e.integers("k")[0])}; }},
       {"triu", [](const OracleCase& e, const Arrays& x) { return Arrays{triu(x[0], e.integers("k")[0])}; }}});
}

}  // namespace
}  // namespace rosin
