// Gather, scatter, one-hot and sorting against NumPy and PyTorch (tests/oracles/index.txt), and what they refuse.
#include <rosin/index.hpp>

#include <gtest/gtest.h>

#include <rosin/create.hpp>
#include <rosin/error.hpp>
#include <rosin/movement.hpp>
#include <rosin/random.hpp>
#include <rosin/sort.hpp>
#include <rosin/stats.hpp>

#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::dim_of;
using oracles::is_set;
using oracles::OracleCase;
using Arrays = std::vector<Array>;

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

/// target (inner, places) with updates (inner, n) added in their order, one number after another.
template <class T>
std::vector<T> added(std::vector<T> target, const std::vector<int32_t>& at, const std::vector<T>& u) {
  const size_t inner = u.size() / at.size();
  const auto places = static_cast<int64_t>(target.size() / inner);
  for (size_t k = 0; k < at.size(); ++k) {
    const auto row = static_cast<size_t>(at[k] < 0 ? at[k] + places : at[k]);
    for (size_t i = 0; i < inner; ++i)
      target[row * inner + i] = static_cast<T>(target[row * inner + i] + u[k * inner + i]);
  }
  return target;
}

/// Negative indices too; updates of their own, and one number that is all of them. `shape` but for its last dim.
template <class T> void compare_sums(std::vector<int64_t> shape, int64_t places, int64_t n) {
  Rng rng(3);
  const DType type = dtype_of<T>;
  const auto with = [&](int64_t last) {
    std::vector<int64_t> sizes = shape;
    sizes.push_back(last);
    return Shape(sizes);
  };
  const Array at = randint(rng, -places, places, {n}), target = cast(randint(rng, 0, 100, with(places)), type);
  for (const Array& updates : {cast(randint(rng, 0, 100, with(n)), type), full(with(n), 3, type)}) {
    const auto wanted = added(target.to_vector<T>(), at.to_vector<int32_t>(), updates.to_vector<T>());
    for (const int threads : {1, 2, 3, 7}) {
      set_num_threads(threads);
      EXPECT_EQ(scatter_add(target, at, updates).template to_vector<T>(), wanted)
          << to_string(type) << ", " << places << " places, " << n << " updates, " << threads << " threads";
    }
    set_num_threads(0);
  }
}

TEST(Index, UpdatesAreAddedToFewPlacesAndToMany) {
  for (const auto& [places, n] : std::initializer_list<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 32}, {3, 95}, {3, 96}, {3, 97}, {40, 100003}, {2000, 70001}}) {
    compare_sums<int64_t>({}, places, n);
    compare_sums<int32_t>({}, places, n);
    compare_sums<uint8_t>({}, places, n);  // wraps around
    compare_sums<int8_t>({}, places, n);
    compare_sums<float>({}, places, n);
  }
  for (const int64_t inner : {3, 64, 70}) {
    compare_sums<float>({inner}, 50, 300);
    compare_sums<int32_t>({inner}, 5, 300);
    compare_sums<double>({inner}, 4000, 500);  // cut by rows
  }
  EXPECT_EQ(scatter_add(zeros({3}, Int64), Array({0}, {1}), ones({1}, Int64)).to_vector<int64_t>(),
            (std::vector<int64_t>{1, 0, 0}));
  EXPECT_EQ(scatter_add(Array({1, 2}, {2}), zeros({0}, Int32), zeros({0}, Int32)).to_vector<int32_t>(),
            (std::vector<int32_t>{1, 2}));
}

TEST(Index, OneNumberIsAllUpdatesOfIndicesOfAnyShape) {
  const Array one = full({1, 1}, 2.0f), at({1, 4, 2}, {3});
  for (const DType type : {Float32, Float64, Float16, Int32, UInt8}) {
    for (const Shape& shape : {Shape{3}, Shape{1, 3}, Shape{3, 1}, Shape{1, 3, 1}}) {
      const Array updates = expand(reshape(cast(one, type), Shape{1}), Shape{3});  // looks at one element
      const Array wanted({0, 2, 2, 0, 2}, {5}), places = reshape(at, shape);
      EXPECT_TRUE(all(scatter_add(zeros({5}, type), places, reshape(updates, shape)) == wanted).item<bool>());
      const Array turned = expand(reshape(cast(one, type), shape.rank() == 3 ? Shape{1, 1, 1} : Shape{1, 1}),
                                  shape.rank() == 1 ? Shape{3, 1} : shape);
      EXPECT_TRUE(all(scatter_add(zeros({5}, type), reshape(at, turned.shape()), turned) == wanted).item<bool>())
          << to_string(type) << " " << to_string(shape);
    }
  }
  for (const Array& target : {full({1, 5}, 7.0f), expand(full({1, 1}, 7.0f), {1, 5})}) {
    const Array wanted({7, 9, 9, 7, 9}, {1, 5});
    EXPECT_TRUE(all(scatter_add(target, at, expand(one, {1, 3})) == wanted).item<bool>());
    EXPECT_TRUE(all(scatter(target, at, full({1, 3}, 9.0f)) == wanted).item<bool>());
    EXPECT_TRUE(all(scatter_max(target, at, full({1, 3}, 9.0f)) == wanted).item<bool>());
  }
  const auto loss = [&](const Array& x) { return sum(mean(gather(exp(x), reshape(at, {1, 3}), 0), 1) * one); };
  const std::vector<float> slope = gradient(loss, zeros({5})).to_vector();
  for (size_t i = 0; i < 5; ++i) EXPECT_FLOAT_EQ(slope[i], i == 0 || i == 3 ? 0 : 2.0f / 3) << i;
}

TEST(Index, OneWrongIndexAmongManyIsFound) {
  std::vector<int32_t> at(100000, 1);
  at[77777] = 3;
  EXPECT_EQ(message(scatter_add(zeros({3}, Int32), Array(at, {100000}), ones({100000}, Int32))),
            "scatter_add: an index must lie in its dim of 3 elements; got 3; indices count from 0, negative ones from "
            "the end");
  at[77777] = -4;
  EXPECT_NE(message(gather(zeros({3}), Array(at, {100000}))), "no error");
  const std::vector<int64_t> far = {0, int64_t{1} << 32, 1};
  EXPECT_NE(message(gather(zeros({3}), Array(far, {3}))), "no error");
  EXPECT_NE(message(gather(zeros({3}), cast(Array({0, -1}, {2}), UInt32))), "no error");
  EXPECT_EQ(gather(Array({1, 2, 3}, {3}), Array({-1, 0, -3}, {3})).to_vector<int>(), (std::vector<int>{3, 1, 1}));
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
