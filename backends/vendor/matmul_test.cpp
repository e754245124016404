// How descriptions of products become what the vendors' libraries are told. See matmul.hpp.
#include "vendor/matmul.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <tuple>
#include <vector>

#include "common/failure.hpp"

namespace rosin::vendor {
namespace {

rosin_call_array array(int32_t role, std::initializer_list<int64_t> sizes, std::initializer_list<int64_t> strides) {
  rosin_call_array made{role, ROSIN_FLOAT32, static_cast<int32_t>(sizes.size()), {}, {}};
  std::copy(sizes.begin(), sizes.end(), made.sizes);
  std::copy(strides.begin(), strides.end(), made.strides);
  return made;
}

Product product(const std::vector<rosin_call_array>& arrays) {
  rosin_call_description call{};
  call.size = sizeof call;
  call.kind = ROSIN_CALL_MATMUL;
  call.arrays = arrays.data();
  call.array_count = static_cast<uint32_t>(arrays.size());
  return product_of(call);
}

/// The status with which a product is refused.
rosin_status refusal(const std::vector<rosin_call_array>& arrays) {
  try {
    product(arrays);
  } catch (const plugin::Failure& failure) {
    return failure.status;
  }
  return ROSIN_OK;
}

using Stored = std::tuple<int64_t, int64_t, int64_t, int64_t, bool>;
Stored stored(const StoredMatrix& m) { return {m.rows, m.columns, m.leading, m.batch_stride, m.transposed}; }

TEST(VendorMatmul, ReadsMatricesByColumnsAndByRows) {
  const Product p = product({array(ROSIN_ROLE_LEFT, {3, 4}, {9, 1}), array(ROSIN_ROLE_RIGHT, {4, 5}, {1, 6}),
                             array(ROSIN_ROLE_OUTPUT, {3, 5}, {1, 3})});
  EXPECT_EQ(stored(p.left), Stored(4, 3, 9, 0, true));
  EXPECT_EQ(stored(p.right), Stored(4, 5, 6, 0, false));
  EXPECT_EQ(stored(p.result), Stored(3, 5, 3, 0, false));
  EXPECT_EQ(p.batch, 1);
  ASSERT_EQ(p.parts.size(), 1u);
  EXPECT_EQ(p.bytes, (std::vector<uint64_t>{4 * (2 * 9 + 3 + 1), 4 * (3 + 4 * 6 + 1), 60}));
  EXPECT_EQ(p.alignment, 64u);
}

TEST(VendorMatmul, JoinsBatchesThatLieOneBehindTheOther) {
  const Product p = product({array(ROSIN_ROLE_LEFT, {3, 4, 2, 5}, {1, 3, 12, 24}),
                             array(ROSIN_ROLE_RIGHT, {4, 6, 2, 5}, {1, 4, 24, 48}),
                             array(ROSIN_ROLE_OUTPUT, {3, 6, 2, 5}, {1, 3, 18, 36})});
  EXPECT_EQ(p.batch, 10);
  EXPECT_EQ(p.left.batch_stride, 12);
  EXPECT_EQ(p.right.batch_stride, 24);
  EXPECT_EQ(p.result.batch_stride, 18);
  EXPECT_EQ(p.parts.size(), 1u);
}

TEST(VendorMatmul, MakesColumnsOfTheBatchesOfOneMatrix) {
  const Product p = product({array(ROSIN_ROLE_LEFT, {3, 4}, {1, 3}), array(ROSIN_ROLE_RIGHT, {4, 6, 2}, {1, 4, 24}),
                             array(ROSIN_ROLE_OUTPUT, {3, 6, 2}, {1, 3, 18})});
  EXPECT_EQ(p.batch, 1);
  EXPECT_EQ(stored(p.right), Stored(4, 12, 4, 0, false));
  EXPECT_EQ(stored(p.result), Stored(3, 12, 3, 0, false));
}

TEST(VendorMatmul, SplitsBatchesThatLieOtherwise) {
  // Along the third dim the left one stays, along the fourth the right one.
  const Product p =
      product({array(ROSIN_ROLE_LEFT, {2, 2, 1, 3}, {1, 2, 0, 4}), array(ROSIN_ROLE_RIGHT, {2, 3, 4, 1}, {3, 1, 8, 0}),
               array(ROSIN_ROLE_OUTPUT, {2, 3, 4, 3}, {1, 2, 6, 24})});
  EXPECT_EQ(p.batch, 4);
  EXPECT_EQ(p.left.batch_stride, 0);
  EXPECT_EQ(p.right.batch_stride, 8);
  ASSERT_EQ(p.parts.size(), 3u);
  EXPECT_EQ(p.parts[2].left, 8);
  EXPECT_EQ(p.parts[2].right, 0);
  EXPECT_EQ(p.parts[2].result, 48);
  EXPECT_EQ(p.alignment, 16u);  // of 4 elements
}

TEST(VendorMatmul, RefusesWhatHasGapsBothWays) {
  const auto right = array(ROSIN_ROLE_RIGHT, {4, 5}, {1, 4}), made = array(ROSIN_ROLE_OUTPUT, {3, 5}, {1, 3});
  EXPECT_EQ(refusal({array(ROSIN_ROLE_LEFT, {3, 4}, {2, 6}), right, made}), ROSIN_UNSUPPORTED);
  EXPECT_EQ(refusal({array(ROSIN_ROLE_LEFT, {3, 4}, {0, 1}), right, made}), ROSIN_UNSUPPORTED);
  EXPECT_EQ(refusal({array(ROSIN_ROLE_LEFT, {3, 4}, {-1, 3}), right, made}), ROSIN_UNSUPPORTED);
  EXPECT_EQ(refusal({array(ROSIN_ROLE_LEFT, {3, 4}, {1, 3}), right, array(ROSIN_ROLE_OUTPUT, {3, 5}, {5, 1})}),
            ROSIN_UNSUPPORTED);
  EXPECT_EQ(refusal({array(ROSIN_ROLE_LEFT, {3, 4}, {1, 3}), right, made}), ROSIN_OK);
}

TEST(VendorMatmul, RefusesSizesThatDoNotFit) {
  EXPECT_EQ(refusal({array(ROSIN_ROLE_LEFT, {3, 4}, {1, 3}), array(ROSIN_ROLE_RIGHT, {5, 5}, {1, 5}),
                     array(ROSIN_ROLE_OUTPUT, {3, 5}, {1, 3})}),
            ROSIN_INVALID);
  EXPECT_EQ(refusal({array(ROSIN_ROLE_LEFT, {3, 4, 2}, {1, 3, 12}), array(ROSIN_ROLE_RIGHT, {4, 5, 3}, {1, 4, 20}),
                     array(ROSIN_ROLE_OUTPUT, {3, 5, 3}, {1, 3, 15})}),
            ROSIN_INVALID);
}

}  // namespace
}  // namespace rosin::vendor
