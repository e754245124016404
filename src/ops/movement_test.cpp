// Movements against NumPy (tests/oracles/movement.txt), and what they refuse.
#include <rosin/movement.hpp>

#include <gtest/gtest.h>

#include <rosin/create.hpp>
#include <rosin/error.hpp>

#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::dim_of;
using oracles::ints;
using oracles::OracleCase;
using Arrays = std::vector<Array>;

// range0=START,STOP,STEP range1=...
Array sliced(const OracleCase& entry, const Array& x) {
  Array result = x;
  for (int d = 0; entry.has("range" + std::to_string(d)); ++d) {
    std::vector<int64_t> range;
    std::istringstream text(entry.attributes.at("range" + std::to_string(d)));
    for (std::string word; std::getline(text, word, ',');) range.push_back(std::strtoll(word.c_str(), nullptr, 10));
    result = slice(result, d, range[0], range[1], range[2]);
  }
  return result;
}

std::vector<int64_t> sizes_of(const OracleCase& entry) {
  return entry.attributes.at("shape") == "scalar" ? std::vector<int64_t>{} : entry.integers("shape");
}

Array padded(const OracleCase& entry, const Array& x) {
  const auto low = entry.integers("low"), high = entry.integers("high");
  Array result = x;
  for (size_t d = 0; d < low.size(); ++d) {
    result = pad(result, static_cast<int>(d), low[d], high[d], entry.number("value", 0));
  }
  return result;
}

TEST(Movement, AgreesWithNumPy) {
  oracles::run_oracles(
      "movement.txt",
      {{"reshape", [](const OracleCase& e, const Arrays& x) { return Arrays{reshape(x[0], sizes_of(e))}; }},
       {"permute", [](const OracleCase& e, const Arrays& x) { return Arrays{permute(x[0], ints(e, "dims"))}; }},
       {"transpose", [](const OracleCase&, const Arrays& x) { return Arrays{transpose(x[0])}; }},
       {"flip", [](const OracleCase& e, const Arrays& x) { return Arrays{flip(x[0], dim_of(e))}; }},
       {"flatten", [](const OracleCase&, const Arrays& x) { return Arrays{flatten(x[0])}; }},
       {"squeeze", [](const OracleCase& e,
                      const Arrays& x) { return Arrays{e.has("dim") ? squeeze(x[0], dim_of(e)) : squeeze(x[0])}; }},
       {"unsqueeze", [](const OracleCase& e, const Arrays& x) { return Arrays{unsqueeze(x[0], dim_of(e))}; }},
       {"expand", [](const OracleCase& e, const Arrays& x) { return Arrays{expand(x[0], Shape(sizes_of(e)))}; }},
       {"tile",
        [](const OracleCase& e, const Arrays& x) { return Arrays{tile(x[0], e.integers("times")[0], dim_of(e))}; }},
       {"repeat",
        [](const OracleCase& e, const Arrays& x) { return Arrays{repeat(x[0], e.integers("times")[0], dim_of(e))}; }},
       {"slice", [](const OracleCase& e, const Arrays& x) { return Arrays{sliced(e, x[0])}; }},
       {"pad", [](const OracleCase& e, const Arrays& x) { return Arrays{padded(e, x[0])}; }},
       {"concat", [](const OracleCase& e, const Arrays& x) { return Arrays{concat(x, dim_of(e))}; }},
       {"stack", [](const OracleCase& e, const Arrays& x) { return Arrays{stack(x, dim_of(e))}; }}});
}

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Movement, MoreThanFourArraysAreJoinedInOrder) {
  std::vector<Array> parts;
  for (int i = 0; i < 11; ++i)
    parts.push_back(Array({2.0f * static_cast<float>(i), 2.0f * static_cast<float>(i) + 1}, {2}));
  const std::vector<float> values = concat(parts, 0).to_vector();
  ASSERT_EQ(values.size(), 22u);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<float>(i));
}

TEST(Movement, SingleIndicesDropTheirDims) {
  const Array x = reshape(arange(24), {2, 3, 4});
  EXPECT_EQ(index(x, {1, slice(), slice(0, 4, 2)}).to_vector<int32_t>(), (std::vector<int32_t>{1, 3, 5, 13, 15, 17}));
  EXPECT_EQ(index(x, {1, -1, -1}).item<int>(), 23);
  EXPECT_EQ(row(reshape(arange(6), {2, 3}), 1).to_vector<int32_t>(), (std::vector<int32_t>{1, 3, 5}));
  EXPECT_EQ(column(reshape(arange(6), {2, 3}), 1).to_vector<int32_t>(), (std::vector<int32_t>{2, 3}));
}

// NumPy: x = np.arange(24).reshape(4, 3, 2), whose axes are counted backwards; x[::2, :, 1], x[-1, -1, 1], x[:, 1:, 0].
TEST(Movement, AnArrayIsCalledWithRanges) {
  const Array x = reshape(arange(24), {2, 3, 4});
  using Values = std::vector<int32_t>;
  EXPECT_EQ(x(1, slice(), slice(0, 4, 2)).to_vector<int32_t>(), (Values{1, 3, 5, 13, 15, 17}));
  EXPECT_EQ(x(1, -1, -1).item<int>(), 23);
  EXPECT_EQ(x(0, slice(1, to_end)).to_vector<int32_t>(), (Values{2, 4, 8, 10, 14, 16, 20, 22}));
  EXPECT_EQ(x(1).shape(), (Shape{3, 4}));
  EXPECT_EQ(
      message([&] { x(slice(), 3); }),
      "select: the index must lie in dim 1 of 3 elements; got 3; indices count from 0, negative ones from the end");
  EXPECT_EQ(message([&] { x(0, 0, 0, 0); }),
            "index: there cannot be more ranges than dims; got 4 for shape (2, 3, 4); drop ranges or reshape");
  const auto cubes = [](const Array& a) { return sum(a(1, slice(1, 3)) * a(0, slice(0, 2)) * a(0, slice(0, 2))); };
  const Array g = gradient(cubes, reshape(cast(arange(6), Float32), {2, 3}));
  EXPECT_EQ(g.to_vector(), (std::vector<float>{0, 0, 20, 0, 0, 4}));
  const auto slope = [&](const Array& a) { return sum(square(gradient(cubes, a))); };
  const Array two = reshape(Array({1.f, 5.f, 2.f, 3.f, 4.f, 7.f}, {6}), {2, 3});
  EXPECT_EQ(gradient(slope, two)(0, 0).item<float>(), 76);  // of (2 * 3 a)^2 + a^4 at 1
}

TEST(Movement, ChunksAreEqualButForTheLast) {
  const std::vector<Array> parts = chunk(arange(10), 3);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].count(), 4);
  EXPECT_EQ(parts[2].to_vector<int32_t>(), (std::vector<int32_t>{8, 9}));
}

// Python: x = [0, 1, 2, 3, 4]; x[start:stop:step].
TEST(Movement, RangesEndWhereTheDimDoesAsInNumPy) {
  const Array x = arange(5);
  const auto part = [&](int64_t start, int64_t stop, int64_t step = 1) {
    return slice(x, 0, start, stop, step).to_vector<int32_t>();
  };
  using Values = std::vector<int32_t>;
  EXPECT_EQ(part(2, 9), (Values{2, 3, 4}));
  EXPECT_EQ(part(7, 9), Values{});
  EXPECT_EQ(part(-9, 2), (Values{0, 1}));
  EXPECT_EQ(part(-9, -7), Values{});
  EXPECT_EQ(part(9, 1, -1), (Values{4, 3, 2}));
  EXPECT_EQ(part(9, -9, -2), (Values{4, 2, 0}));
  EXPECT_EQ(part(-7, to_end, -1), Values{});
  EXPECT_EQ(part(1, 99, 99), Values{1});
  EXPECT_EQ(index(x, {slice(3, 100)}).to_vector<int32_t>(), (Values{3, 4}));
  const Array g =
      gradient([](const Array& v) { return sum(square(slice(v, 0, 1, 9, 2))); }, Array({1.f, 2.f, 3.f, 4.f}, {4}));
  EXPECT_EQ(g.to_vector(), (std::vector<float>{0, 4, 0, 8}));
}

// NumPy: np.tile, np.repeat along each axis, np.flip, np.squeeze, np.pad; its last axis is dim 0 here.
TEST(Movement, RanksMayBeKnownAtRunTimeOnly) {
  const Array x = Array({1, 2, 3, 4, 5, 6}, {2, 3});
  using Values = std::vector<int32_t>;
  const std::vector<Slice> ranges = {1, slice(0, 2)};
  EXPECT_EQ(index(x, ranges).to_vector<int32_t>(), (Values{2, 4}));
  const std::vector<int> both = {0, -1};
  EXPECT_EQ(flip(x, both).to_vector<int32_t>(), (Values{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(flip(x, {1}).to_vector<int32_t>(), (Values{5, 6, 3, 4, 1, 2}));
  EXPECT_TRUE(same(flip(x, std::vector<int>{}), x));
  const std::vector<int64_t> times = {2, 1, 2};
  EXPECT_EQ(tile(Array({1, 2}, {2}), times).shape(), (Shape{4, 1, 2}));
  EXPECT_EQ(tile(Array({1, 2}, {2}), times).to_vector<int32_t>(), (Values{1, 2, 1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(repeat(Array({1, 2}, {2}), {2, 2}).to_vector<int32_t>(), (Values{1, 1, 2, 2, 1, 1, 2, 2}));
  const std::vector<std::pair<int64_t, int64_t>> widths = {{1, 0}, {0, 1}};
  EXPECT_EQ(pad(Array({1, 2}, {1, 2}), widths).to_vector<int32_t>(), (Values{0, 1, 0, 2, 0, 0}));
  EXPECT_EQ(squeeze(ones({1, 2, 1, 1}), std::vector<int>{0, -1}).shape(), (Shape{2, 1}));
  EXPECT_EQ(message([&] {
              squeeze(x, {0, 1});
            }),
            "squeeze: the dim must have size 1; got dim 1 of shape (2, 3); use select or reshape");
  EXPECT_EQ(message([&] {
              pad(Array({1}, {1}), {{0, 0}, {0, 0}});
            }),
            "pad: there cannot be more widths than dims; got 2 for shape (1); drop widths or add dims with reshape");
}

TEST(Movement, RefusalsNameWhatCameAndTheCure) {
  const Array x = zeros({2, 3});
  EXPECT_EQ(message([&] {
              reshape(x, {4, -1});
            }),
            "reshape: the number of elements must stay 6; got (2, 3) -> (4, -1); leave one size to be computed by "
            "writing -1");
  EXPECT_EQ(
      message([&] {
        permute(x, {0, 0});
      }),
      "permute: the order must name each dim once; got 2 dims for shape (2, 3); write e.g. permute(x, {1, 0, 2})");
  EXPECT_EQ(message([&] { slice(x, 1, 0, 4, 0); }),
            "slice: the step cannot be 0; got start 0, stop 4; use select for one element");
  EXPECT_EQ(
      message([&] {
        concat({x, zeros({3, 3})}, 1);
      }),
      "concat: all sizes but that of dim 1 must be equal; got (2, 3) and, as array 1, (3, 3); slice, pad or reshape "
      "before joining");
  EXPECT_EQ(message([&] {
              expand(x, {2, 6});
            }),
            "expand: sizes (2, 3) and (2, 6) do not broadcast; dims are aligned from "
            "the first, each pair must be equal or 1");
}

}  // namespace
}  // namespace rosin
