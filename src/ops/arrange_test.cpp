// einsum and its relatives, diagonals, borders, roll, set, searching and counting: against NumPy and PyTorch
// (tests/oracles/arrange.txt), and what they say to wrong input.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <rosin/approx.hpp>
#include <rosin/complex.hpp>
#include <rosin/create.hpp>
#include <rosin/einsum.hpp>
#include <rosin/index.hpp>
#include <rosin/movement.hpp>
#include <rosin/search.hpp>

#include "../tests/layer_testing.hpp"
#include "../tests/op_oracles.hpp"

namespace rosin {
namespace {

using oracles::ints;
using oracles::OracleCase;
using Inputs = std::vector<Array>;

Inputs tensordot_of(const OracleCase& e, const Inputs& x) {
  if (e.has("dims")) return {tensordot(x[0], x[1], ints(e, "dims")[0])};
  return {tensordot(x[0], x[1], ints(e, "a"), ints(e, "b"))};
}

Inputs padded(const OracleCase& e, const Inputs& x) {
  const std::string& name = e.attributes.at("mode");
  const PadMode mode = name == "reflect"     ? PadMode::reflect
                       : name == "symmetric" ? PadMode::symmetric
                       : name == "repeat"    ? PadMode::repeat
                                             : PadMode::circular;
  const std::vector<int64_t> w = e.integers("widths");
  return {pad(x[0], {{w[0], w[1]}, {w[2], w[3]}}, mode)};
}

Inputs with_values(const OracleCase& e, const Inputs& x) {
  std::vector<Slice> ranges;
  for (int d = 0; d < 2; ++d) {
    const std::string dim = std::to_string(d);
    if (e.has("at" + dim)) ranges.push_back(e.integers("at" + dim)[0]);
    if (!e.has("range" + dim)) continue;
    const std::vector<int64_t> range = e.integers("range" + dim);
    ranges.push_back(slice(range[0], range[1], range[2]));
  }
  return {set(x[0], ranges, x[1])};
}

Inputs quantile_of(const OracleCase& e, const Inputs& x) {
  const double q = e.number("q", 0);
  if (!e.has("dims")) return {quantile(x[0], q)};
  return {quantile(x[0], q, oracles::dims_of(e))};
}

Inputs unique_of(const OracleCase&, const Inputs& x) {
  const Unique found = unique(x[0]);
  return {found.values, found.inverse, found.counts};
}

TEST(Arrange, AgreesWithNumPyAndPyTorch) {
  const auto number = [](const OracleCase& e, const char* key) { return e.integers(key)[0]; };
  oracles::run_oracles(
      "arrange.txt",
      {{"einsum", [](const OracleCase& e, const Inputs& x) { return Inputs{einsum(e.attributes.at("equation"), x)}; }},
       {"tensordot", tensordot_of},
       {"kron", [](const OracleCase&, const Inputs& x) { return Inputs{kron(x[0], x[1])}; }},
       {"diagonal", [=](const OracleCase& e, const Inputs& x) { return Inputs{diagonal(x[0], number(e, "k"))}; }},
       {"diagm", [=](const OracleCase& e, const Inputs& x) { return Inputs{diagm(x[0], number(e, "k"))}; }},
       {"trace", [](const OracleCase&, const Inputs& x) { return Inputs{trace(x[0])}; }},
       {"pad", padded},
       {"roll",
        [=](const OracleCase& e, const Inputs& x) {
          return Inputs{roll(x[0], number(e, "shift"), static_cast<int>(number(e, "dim")))};
        }},
       {"set", with_values},
       {"searchsorted", [=](const OracleCase& e,
                            const Inputs& x) { return Inputs{searchsorted(x[0], x[1], number(e, "right") != 0)}; }},
       {"bincount", [=](const OracleCase& e, const Inputs& x) { return Inputs{bincount(x[0], number(e, "classes"))}; }},
       {"weighted",
        [](const OracleCase&, const Inputs& x) {
          return Inputs{bincount(Array({0, 3, 1, 3, 5, 3, 2}, {7}), 7, x[0])};
        }},
       {"histogram",
        [=](const OracleCase& e, const Inputs& x) {
          return Inputs{histogram(x[0], number(e, "bins"), e.number("low", 0), e.number("high", 0))};
        }},
       {"quantile", quantile_of},
       {"unique", unique_of},
       {"masked_select", [](const OracleCase&, const Inputs& x) { return Inputs{masked_select(x[0], x[1])}; }}});
}

TEST(Einsum, HasSecondGradientsAndOtherTypes) {
  const auto f = [](const Array& a) { return einsum("ij,jk,ki->", {a, transpose(a), a * a}); };
  layer_testing::check_function_gradient([&](const Array& a) { return gradient(f, a); }, 0.5 * randn({3, 3}), "einsum");
  const Array whole = einsum("ij,jk->ik", {Array({1, 2, 3, 4}, {2, 2}), Array({1, 0, 0, 1}, {2, 2})});
  EXPECT_EQ(whole.dtype(), Int64) << "as matmul";
  EXPECT_EQ(einsum("ij,jk->ik", {ones({2, 0}), ones({0, 3})}).to_vector(), std::vector<float>(6, 0));
  EXPECT_EQ(einsum("ij->j", {ones({0, 2})}).to_vector(), std::vector<float>(2, 0));
  EXPECT_EQ(einsum(" i j , j -> i ", {ones({2, 3}), ones({3})}).to_vector(), std::vector<float>(2, 3));
  EXPECT_EQ(einsum("...ij,...j->...i", {ones({4, 2, 3}), ones({1, 3})}).shape(), (Shape{4, 2}));
}

TEST(Einsum, RefusesWhatMeansNothing) {
  const Array a = ones({2, 3});
  EXPECT_EQ(error_of([&] {
              einsum("ij,jk->ik", {a, a});
            }),
            "einsum: a letter stands for one size; got \"ij,jk->ik\" with sizes 3 and 2; name the dims differently");
  const std::string cure = "; write one letter for each dim, commas between operands, as in \"ij,jk->ik\"";
  EXPECT_EQ(error_of([&] { einsum("ij,jk->ik", {a}); }),
            "einsum: there is a term for each of 1 operands; got \"ij,jk->ik\"" + cure);
  EXPECT_EQ(error_of([&] { einsum("ijk->i", {a}); }),
            "einsum: a term has a letter for each dim of (2, 3); got \"ijk->i\"" + cure);
  EXPECT_EQ(error_of([&] { einsum("i->i", {a}); }),
            "einsum: a term has a letter for each dim of (2, 3); got \"i->i\"" + cure);
  EXPECT_EQ(error_of([&] { einsum("i1->i", {a}); }), "einsum: dims are named by letters; got \"i1->i\"" + cure);
  EXPECT_EQ(error_of([&] { einsum("ij->ik", {a}); }),
            "einsum: letters of the result stand in an operand; got \"ij->ik\"" + cure);
  EXPECT_EQ(error_of([&] { einsum("ij->ii", {a}); }), "einsum: the result has a letter once; got \"ij->ii\"" + cure);
  EXPECT_EQ(error_of([&] { einsum("ii", {a}); }),
            "einsum: a letter stands for one size; got \"ii\" with (2, 3); name the dims differently");
  error_of([&] { einsum("", {}); });
  error_of([&] { tensordot(a, a, 3); });
  error_of([&] { tensordot(a, a, {0}, {1}); });
  error_of([&] { diagonal(ones({3})); });
  error_of([&] { diagonal(a, 4); });
  error_of([&] { diagm(a); });
  error_of([&] { kron(ones({2}), a); });
}

TEST(Borders, RefuseMoreThanThereIsAndTakeEmptyArrays) {
  const Array x = ones({3, 2});
  EXPECT_EQ(error_of([&] {
              pad(x, {{3, 0}}, PadMode::reflect);
            }),
            "pad: there is enough to take beyond the border; got 3 of dim 0 of (3, 2); pad less, or with a number");
  EXPECT_EQ(pad(x, {{3, 3}}, PadMode::symmetric).shape(), (Shape{9, 2}));
  EXPECT_EQ(pad(x, {{9, 0}}, PadMode::repeat).shape(), (Shape{12, 2}));
  error_of([&] { pad(x, {{4, 0}}, PadMode::circular); });
  error_of([&] { pad(x, {{-1, 0}}, PadMode::repeat); });
  EXPECT_EQ(pad(zeros({0, 2}), {{0, 0}}, PadMode::repeat).shape(), (Shape{0, 2}));
  EXPECT_EQ(roll(zeros({0, 2}), 3).shape(), (Shape{0, 2}));
  EXPECT_EQ(roll(Array({1, 2, 3, 4}, {4}), 1).to_vector<int32_t>(), (std::vector<int32_t>{4, 1, 2, 3}));
}

/// Integers, and dims too large for tables of places, are put together of slices; floats are taken by tables.
TEST(Borders, OfTablesAndOfSlicesAreAlike) {
  const Array image = reshape(arange(60), {5, 4, 3}), line = arange(70000);
  const auto same = [](const Array& x, std::span<const std::pair<int64_t, int64_t>> widths, PadMode mode) {
    const Array wanted = pad(x, widths, mode);
    for (const DType type : {Float32, Float64, BFloat16, ComplexF32}) {
      if (type == BFloat16 && x.rank() == 1) continue;  // which has not all those numbers
      const Array y = pad(cast(x, type), widths, mode);
      EXPECT_EQ(y.dtype(), type);
      EXPECT_EQ(cast(is_complex(type) ? real(y) : y, Int64).to_vector<int64_t>(),
                cast(wanted, Int64).to_vector<int64_t>());
    }
  };
  for (const PadMode mode : {PadMode::reflect, PadMode::symmetric, PadMode::repeat, PadMode::circular}) {
    const std::pair<int64_t, int64_t> all[] = {{2, 3}, {1, 0}, {0, 2}}, gap[] = {{4, 0}, {0, 0}, {2, 1}},
                                      ends[] = {{3, 2}};
    same(image, all, mode);
    same(image, gap, mode);
    same(line, ends, mode);
  }
}

TEST(Set, TakesNumbersTypesAndEmptyRanges) {
  const Array x = zeros({2, 3});
  EXPECT_EQ(set(x, {slice(), 1}, 5).to_vector(), (std::vector<float>{0, 0, 5, 5, 0, 0}));
  EXPECT_EQ(set(x, {}, 2).to_vector(), std::vector<float>(6, 2));
  EXPECT_EQ(set(x, {slice(1, 1)}, 7).to_vector(), std::vector<float>(6, 0));
  EXPECT_EQ(set(cast(x, Int32), {0}, 3).dtype(), Int32);
  EXPECT_EQ(set(cast(x, Bool), {0}, true).dtype(), Bool);
  const Array nan = set(full({2}, std::nan("")), {1}, 1.0);
  EXPECT_TRUE(std::isnan(nan.to_vector()[0]));
  error_of([&] { set(x, {5}, 1); });
  EXPECT_TRUE(error_of([&] { set(x, {slice(0, 2)}, ones({4})); }).starts_with("set: sizes (4) and (2, 3)"));
  EXPECT_EQ(
      error_of([&] {
        set(x, {slice(0, 1)}, ones({2, 3}));
      }),
      "set: a value fits into the part that it replaces; got (2, 3) for (1, 3); reshape it, or take a larger part");
}

/// 1 where a part of the shape stands, else 0: what NumPy's x[ranges] = 1 makes of zeros, element by element.
std::vector<float> marked(const Shape& shape, std::span<const Slice> ranges) {
  std::vector<float> marks;
  for (int64_t i = 0; i < shape.count(); ++i) {
    bool inside = true;
    int64_t left = i;
    for (int d = 0; d < shape.rank(); left /= shape[d++]) {
      if (static_cast<size_t>(d) >= ranges.size()) continue;
      const Slice& range = ranges[static_cast<size_t>(d)];
      const int64_t at = left % shape[d], first = range.start < 0 ? range.start + shape[d] : range.start;
      if (range.single) inside = inside && at == first;
      else if (range.step > 0) inside = inside && at >= first && at < range.stop && (at - first) % range.step == 0;
      else inside = inside && at <= first && at > range.stop && (first - at) % -range.step == 0;
    }
    marks.push_back(inside);
  }
  return marks;
}

TEST(Set, FewPlacesOfAnyDimsAreWritten) {
  const Array x = rand({18, 9, 40, 3});
  const Slice all = slice();
  const std::vector<std::vector<Slice>> cases = {{all, all, 7},
                                                 {all, all, slice(3, 6)},
                                                 {all, 2, 7},
                                                 {all, 2, slice(30, 5, -9)},
                                                 {all, all, all, 1},
                                                 {all, slice(1, 2), slice(0, 1)},
                                                 {3},
                                                 {all, -1, -2, -3},
                                                 {4, 5, 6, 2},
                                                 {all, all, slice(39, 38, -1)},
                                                 {slice(0, 17), 2},
                                                 {all, all, slice(0, 40, 20), 0},
                                                 {slice(2, 3), 8, all, 1}};
  for (const std::vector<Slice>& ranges : cases) {
    const Array marks(marked(x.shape(), ranges), x.shape());
    const Array part = index(x, ranges), value = rand(part.shape());
    const Array made = set(x, ranges, value);
    EXPECT_EQ(index(made, ranges).to_vector(), value.to_vector());
    EXPECT_EQ((made * (1 - marks)).to_vector(), (x * (1 - marks)).to_vector());
    const Array weights = rand(x.shape());
    const auto loss = [&](const Array& whole, const Array& some) { return sum(set(whole, ranges, some) * weights); };
    const auto [by_x, by_value] = gradient(loss, x, value);
    EXPECT_EQ(by_x.to_vector(), (weights * (1 - marks)).to_vector());
    EXPECT_EQ(by_value.to_vector(), index(weights, ranges).to_vector());
    EXPECT_EQ(real(set(complex(x, -x), ranges, complex(value, value))).to_vector(), made.to_vector());
    const Array halves = set(cast(x, BFloat16), ranges, cast(value, BFloat16));
    EXPECT_EQ(cast(halves, Float32).to_vector(), cast(cast(made, BFloat16), Float32).to_vector());
  }
}

TEST(Meshgrid, VariesAlongItsOwnDim) {
  const std::vector<Array> grid = meshgrid({arange(2), arange(3)});
  EXPECT_EQ(grid[0].to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(grid[1].to_vector<int32_t>(), (std::vector<int32_t>{0, 0, 1, 1, 2, 2}));
  error_of([] { meshgrid({ones({2, 2})}); });
}

TEST(Search, MeetsNothingAndNaN) {
  EXPECT_EQ(nonzero(Array({0.0f, 2.0f, 0.0f, -1.0f}, {2, 2})).to_vector<int64_t>(), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(nonzero(zeros({3})).shape(), (Shape{0}));
  EXPECT_EQ(unique(zeros({0})).values.shape(), (Shape{0}));
  EXPECT_EQ(unique(Array({3, 3, 1}, {3})).values.to_vector<int32_t>(), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(searchsorted(zeros({0}), ones({2})).to_vector<int32_t>(), (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(bincount(Array({-1, 5, 1}, {3}), 3).to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 0}));
  EXPECT_EQ(bincount(zeros({0}, Int32), 2).to_vector<int64_t>(), (std::vector<int64_t>{0, 0}));
  EXPECT_TRUE(std::isnan(median(Array({1.0f, std::nanf(""), 2.0f}, {3})).item()));
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(median(Array({infinity, 1.0f, infinity, infinity}, {4})).item(), infinity);
  EXPECT_EQ(median(Array({1, 2, 3, 4}, {4})).item(), 2.5) << "of integers";
  EXPECT_EQ(median(ones({2, 4}), 1).shape(), (Shape{2, 1}));
  EXPECT_EQ(error_of([] { quantile(ones({3}), 1.5); }), "quantile: q lies in [0, 1]; got 1.500000; 0.5 is the median");
  error_of([] { median(zeros({0})); });
  error_of([] { masked_select(ones({2}), ones({2})); });
  error_of([] { masked_select(ones({2}), zeros({3}, Bool)); });
  error_of([] { bincount(ones({2}), 3); });
  error_of([] { histogram(ones({2}), 0, 0, 1); });
  error_of([] { searchsorted(ones({2, 2}), ones({1})); });
}

// More of it is compared with PyTorch in tests/opinfo.
TEST(Arrange, SlicesAreUniqueAlongADim) {
  const Array x({2, 1, 1, 5, 2, 1, 1, 4}, {2, 4});  // columns (2, 1), (1, 5), (2, 1), (1, 4)
  const Unique columns = unique(x, 1);
  EXPECT_EQ(columns.values.to_vector<int32_t>(), (std::vector<int32_t>{1, 4, 1, 5, 2, 1}));
  EXPECT_EQ(columns.inverse.to_vector<int32_t>(), (std::vector<int32_t>{2, 1, 2, 0}));
  EXPECT_EQ(columns.counts.to_vector<int64_t>(), (std::vector<int64_t>{1, 1, 2}));
  EXPECT_EQ(unique(zeros({3, 0}), 1).values.shape(), (Shape{3, 0}));
  EXPECT_EQ(unique(zeros({0, 3}), 1).values.shape(), (Shape{0, 1}));
  EXPECT_THROW(unique(x, 2), Error);
}

TEST(Arrange, QuantilesMayBeElements) {
  const Array x({0.0, 10.0, 20.0, 40.0}, {4});
  const auto at = [&](double q, Between between) { return quantile(x, q, between).item(); };
  EXPECT_EQ(at(0.5, Between::lower), 10);
  EXPECT_EQ(at(0.5, Between::higher), 20);
  EXPECT_EQ(at(0.9, Between::midpoint), 30);
  EXPECT_EQ(at(0.5, Between::nearest), 20);  // of two equally near ones that of even rank
  EXPECT_EQ(quantile(reshape(x, {2, 2}), 0.25, 0, Between::higher).to_vector<double>(), (std::vector<double>{10, 40}));
}

TEST(Arrange, ColumnsAreSearchedByThemselves) {
  const Array sorted({1, 3, 5, 2, 4, 6}, {3, 2}), values({3, 9, 3, 1}, {2, 2});
  EXPECT_EQ(searchsorted(sorted, values).to_vector<int32_t>(), (std::vector<int32_t>{1, 3, 1, 0}));
  EXPECT_EQ(searchsorted(sorted, values, true).to_vector<int32_t>(), (std::vector<int32_t>{2, 3, 1, 0}));
  EXPECT_THROW(searchsorted(sorted, zeros({2, 3})), Error);
}

}  // namespace
}  // namespace rosin
