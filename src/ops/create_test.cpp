// Arrays made from nothing.
#include <rosin/create.hpp>

#include <gtest/gtest.h>

#include <rosin/error.hpp>

namespace rosin {
namespace {

TEST(Create, ConstantsHaveShapeTypeAndValue) {
  EXPECT_EQ(zeros({2, 2}).to_vector(), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(ones({2}, Float64).dtype(), Float64);
  EXPECT_EQ(full({3}, 2.5).to_vector(), (std::vector<float>{2.5f, 2.5f, 2.5f}));
  EXPECT_EQ(full({2}, 7).dtype(), Int32);
  EXPECT_EQ(full_like(ones({2}, Float64), 3).to_vector<double>(), (std::vector<double>{3, 3}));
  EXPECT_EQ(zeros({0, 4}).count(), 0);
}

TEST(Create, RangesAreHalfOpen) {
  EXPECT_EQ(arange(4).to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(arange(5, 0, -2).to_vector<int32_t>(), (std::vector<int32_t>{5, 3, 1}));
  EXPECT_EQ(arange(int64_t{1} << 40, (int64_t{1} << 40) + 2).dtype(), Int64);
  EXPECT_EQ(arange(0.0, 1.0, 0.25).to_vector(), (std::vector<float>{0, 0.25f, 0.5f, 0.75f}));
  EXPECT_THROW(arange(0, 3, 0), Error);
}

TEST(Create, LinearSpacesIncludeBothEnds) {
  EXPECT_EQ(linspace(-1, 1, 5).to_vector(), (std::vector<float>{-1, -0.5f, 0, 0.5f, 1}));
  EXPECT_EQ(linspace(2, 9, 1).to_vector(), (std::vector<float>{2}));
}

TEST(Create, IdentityMayBeRectangular) {
  EXPECT_EQ(eye(2, 3).to_vector(), (std::vector<float>{1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(eye(2, Int32).dtype(), Int32);
}

}  // namespace
}  // namespace rosin
