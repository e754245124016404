// Movements by name, places of several dims, and measures: the examples of NumPy's documentation. Tests of PyTorch run
// them too, with gradients (tests/opinfo).
#include <rosin/rearrange.hpp>

#include <gtest/gtest.h>

#include <cmath>

#include <rosin/approx.hpp>
#include <rosin/create.hpp>
#include <rosin/distributions.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/grad.hpp>
#include <rosin/measures.hpp>
#include <rosin/movement.hpp>
#include <rosin/search.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

using Values = std::vector<float>;

/// Two rows: 1 2, 3 4.
Array square_of_four() { return Array({1.f, 3.f, 2.f, 4.f}, {2, 2}); }

TEST(Rearrange, IsWhatNumpyShows) {
  const Array m = square_of_four(), v({1.f, 2.f, 4.f, 7.f, 0.f}, {5});
  EXPECT_EQ(rot90(m).to_vector(), (Values{2, 1, 4, 3}));
  EXPECT_EQ(rot90(m, -1).to_vector(), rot90(rot90(rot90(m))).to_vector());
  EXPECT_EQ(rot90(m, 2).to_vector(), (Values{4, 2, 3, 1}));
  EXPECT_EQ(diff(v).to_vector(), (Values{1, 2, 3, -7}));
  EXPECT_EQ(diff(v, 0, 2).to_vector(), (Values{1, 1, -10}));
  EXPECT_EQ(movedim(zeros({3, 4, 5}), 0, -1).shape(), (Shape{4, 5, 3}));
  EXPECT_EQ(repeat(m, Array({1, 2}, {2}), 0).to_vector(), (Values{1, 3, 3, 2, 4, 4}));
  EXPECT_EQ(block_diag({ones({1, 1}), m}).to_vector(), (Values{1, 0, 0, 0, 1, 3, 0, 2, 4}));
  EXPECT_EQ(unstack(m)[1].to_vector(), (Values{2, 4}));
  EXPECT_EQ(unstack(m, 0)[1].to_vector(), (Values{3, 4}));
  EXPECT_THROW(rot90(m, 1, 0, 0), Error);
  EXPECT_THROW(repeat(m, Array({1, -2}, {2}), 0), Error);
  EXPECT_THROW(repeat(m, Array({1}, {1}), 0), Error);
  EXPECT_THROW(block_diag({v}), Error);
}

TEST(Rearrange, PlacesOfSeveralDimsAreThoseOfNumpy) {
  const Array x = reshape(arange(0.0, 12.0, 1.0), {3, 4}), i({2, 0, -1}, {3}), j({0, 1, 3}, {3});
  EXPECT_EQ(gather_nd(x, {i, j}).to_vector(), (Values{2, 3, 11}));
  EXPECT_EQ(gather_nd(x, {i}).shape(), (Shape{3, 4}));
  EXPECT_EQ(scatter_nd(zeros({2, 2}), {Array({1, 1}, {2}), Array({0, 0}, {2})}, Array({5.f, 6.f}, {2})).to_vector(),
            (Values{0, 6, 0, 0}));
  EXPECT_EQ(scatter_nd_add(zeros({2, 2}), {Array({1, 1}, {2}), Array({0, 0}, {2})}, 2.f).to_vector(),
            (Values{0, 4, 0, 0}));
  const Array slope = gradient([&](const Array& a) { return sum(gather_nd(a, {i, i}) * 2); }, x);
  EXPECT_EQ(slope.to_vector(), (Values{2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 2}));
  EXPECT_THROW(gather_nd(x, {Array({3}, {1}), Array({0}, {1})}).to_vector(), Error);
  for (const DType type : {Int32, Int64, Int16, UInt8, UInt32}) {
    const Array rows = cast(Array({1, 2, 0}, {3}), type), columns = cast(Array({0, 3, 2}, {3}), type);
    EXPECT_EQ(gather_nd(x, {rows, columns}).to_vector(), (Values{1, 11, 6}));
    EXPECT_EQ(gather_nd(x, {rows, cast(columns, Int64)}).to_vector(), (Values{1, 11, 6}));
  }
  for (const int32_t far :
       {4, -5, 715827883, 1431655766, 2147483647, -2147483647}) {  // places of some would wrap around
    EXPECT_THROW(gather_nd(x, {Array({0}, {1}), Array({far}, {1})}).to_vector(), Error) << far;
    EXPECT_THROW(gather_nd(x, {Array({far}, {1}), Array({0}, {1})}).to_vector(), Error) << far;
  }
  EXPECT_THROW(gather_nd(x, {Array({0.5f}, {1})}), Error);
}

TEST(Measures, AreWhatNumpyShows) {
  const float nan = std::nanf("");
  EXPECT_EQ(count_nonzero(Array({0, 3, 1, 0, 7, 2, 0, 19}, {2, 4})).item<int64_t>(), 5);
  EXPECT_EQ(nansum(Array({1.f, nan}, {2})).item(), 1);
  EXPECT_FLOAT_EQ(nanmean(Array({1.f, 3.f, nan, 4.f}, {2, 2})).item<float>(), 8.f / 3);
  EXPECT_EQ(nanmean(Array({1.f, 3.f, nan, 4.f}, {2, 2}), 0).to_vector(), (Values{2, 4}));
  EXPECT_EQ(cross(Array({1.f, 2.f, 3.f}, {3}), Array({4.f, 5.f, 6.f}, {3})).to_vector(), (Values{-3, 6, -3}));
  EXPECT_EQ(cdist(zeros({2, 1}), Array({3.f, 4.f, 0.f, 0.f}, {2, 2})).to_vector(), (Values{5, 0}));
  const Array x({0.f, 2.f, 1.f, 1.f, 2.f, 0.f}, {2, 3});
  EXPECT_EQ(cov(x).to_vector(), (Values{1, -1, -1, 1}));
  EXPECT_TRUE(allclose(corrcoef(x), Array({1.f, -1.f, -1.f, 1.f}, {2, 2})));
  const Array y({1.f, 2.f, 3.f}, {3});
  EXPECT_EQ(trapezoid(y).item(), 4);
  EXPECT_EQ(trapezoid(y, diff(Array({4.f, 6.f, 8.f}, {3}))).item(), 8);
  EXPECT_EQ(cumulative_trapezoid(y).to_vector(), (Values{1.5, 4}));
  EXPECT_EQ(isin(Array({0, 2, 4, 6}, {4}), Array({2, 1, 4}, {3})).to_vector(), (Values{0, 1, 1, 0}));
  EXPECT_EQ(isclose(Array({1e10, 1e-7}, {2}), Array({1.00001e10, 1e-8}, {2})).to_vector(), (Values{1, 0}));
  EXPECT_EQ(quantile(Array({1.f, 2.f, 4.f}, {3}), Array({0.f, 0.75f, 2.f}, {3})).to_vector<double>()[1], 3);
  EXPECT_EQ(rand_like(zeros({2, 3}, Float64)).dtype(), Float64);
  EXPECT_EQ(randn_like(zeros({2, 3})).shape(), (Shape{2, 3}));
  EXPECT_THROW(cov(y), Error);
}

TEST(Measures, DistancesAreThoseOfColumnsInEachItemOfABatch) {
  const Array a = sin(reshape(arange(24), {3, 4, 2}) * 1.3), b = cos(reshape(arange(30), {3, 5, 2}) * 0.7);
  for (const double p : {1.0, 2.0, 3.0}) {
    const Array found = cdist(a, b, p);
    ASSERT_EQ(found.shape(), Shape({4, 5, 2}));
    for (int64_t item = 0; item < 2; ++item) {
      for (int64_t i = 0; i < 4; ++i) {
        for (int64_t j = 0; j < 5; ++j) {
          double sum = 0;
          for (int64_t f = 0; f < 3; ++f) sum += std::pow(std::abs(a.item(f, i, item) - b.item(f, j, item)), p);
          EXPECT_NEAR(found.item(i, j, item), std::pow(sum, 1 / p), 1e-6);
        }
      }
    }
  }
}

}  // namespace
}  // namespace rosin
