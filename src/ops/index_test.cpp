// Gather, scatter, one-hot and sorting against NumPy and PyTorch (tests/oracles/index.txt), and what they refuse.
#include <rosin/index.hpp>

#include <gtest/gtest.h>

#include <rosin/create.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>
#include <rosin/sort.hpp>

#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::dim_of;
using oracles::OracleCase;
using Arrays = std::vector<Array>;

bool is_set(const OracleCase& entry, const std::string& key) { return entry.number(key, 0) != 0; }

Arrays chosen(const OracleCase& e, const Array& x) {
  const TopK top = topk(x, e.integers("k")[0], dim_of(e), is_set(e, "largest"));
  return {top.values, top.indices};
}

TEST(Index, OperandsMayBeNumbers) {
  const Array x({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(gather(x, 2, 1).to_vector<int>(), (std::vector<int>{5, 6}));
  EXPECT_EQ(gather(x, -1, 0).shape(), Shape{3});
  EXPECT_EQ(scatter(Array({1, 2, 3}, {3}), 1, 9).to_vector<int>(), (std::vector<int>{1, 9, 3}));
  EXPECT_EQ(scatter_add(Array({1, 2, 3}, {3}), 1, 9).to_vector<int>(), (std::vector<int>{1, 11, 3}));
  EXPECT_EQ(onehot(1, 3).to_vector<int>(), (std::vector<int>{0, 1, 0}));
}

TEST(Index, AgreesWithNumPyAndPyTorch) {
  oracles::run_oracles(
      "index.txt",
      {{"gather", [](const OracleCase& e, const Arrays& x) { return Arrays{gather(x[0], x[1], dim_of(e))}; }},
       {"scatter", [](const OracleCase& e, const Arrays& x) { return Arrays{scatter(x[0], x[1], x[2], dim_of(e))}; }},
       {"scatter_add",
        [](const OracleCase& e, const Arrays& x) { return Arrays{scatter_add(x[0], x[1], x[2], dim_of(e))}; }},
       {"take_along", [](const OracleCase& e, const Arrays& x) { return Arrays{take_along(x[0], x[1], dim_of(e))}; }},
       {"onehot", [](const OracleCase& e, const Arrays& x) { return Arrays{onehot(x[0], e.integers("classes")[0])}; }},
       {"onecold", [](const OracleCase&, const Arrays& x) { return Arrays{onecold(x[0])}; }},
       {"sort",
        [](const OracleCase& e, const Arrays& x) { return Arrays{sort(x[0], dim_of(e), is_set(e, "descending"))}; }},
       {"argsort",
        [](const OracleCase& e, const Arrays& x) { return Arrays{argsort(x[0], dim_of(e), is_set(e, "descending"))}; }},
       {"topk", [](const OracleCase& e, const Arrays& x) { return chosen(e, x[0]); }}});
}

std::string message(const Array& x) {
  try {
    eval(x);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Index, AnIndexOutsideItsDimIsFoundWhenTheValueIsRead) {
  const Array x = zeros({2, 10});
  EXPECT_EQ(
      message(gather(x, Array({3, 12}, {2}))),
      "gather: an index must lie in its dim of 10 elements; got 12; indices count from 0, negative ones from the end");
  EXPECT_EQ(message(onehot(Array({1, 4}, {2}), 4)), "onehot: a label must be in [0, 4); got 4; labels count from 0");
}

TEST(Index, FloatsAreNoIndices) { EXPECT_THROW(gather(zeros({2, 3}), zeros({2})), Error); }

TEST(Sort, TheFirstOfManyAreTheBeginningOfTheWholeOrder) {
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i * 7919 % 263));
  const Array x(values, {1000});
  const std::vector<int32_t> all_places = argsort(x, 0, true).to_vector<int32_t>();
  const std::vector<int32_t> first = topk(x, 50).indices.to_vector<int32_t>();
  EXPECT_EQ(first, std::vector<int32_t>(all_places.begin(), all_places.begin() + 50));
}

}  // namespace
}  // namespace rosin
