// How arrays of calls lie for MPSGraph, by hand.
#include "metal/graph_arrays.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "common/failure.hpp"

namespace rosin::metal {
namespace {

rosin_call_array array(Sizes sizes, Sizes strides, int32_t type = ROSIN_FLOAT32) {
  rosin_call_array made{ROSIN_ROLE_LEFT, type, static_cast<int32_t>(sizes.size()), {}, {}};
  std::copy(sizes.begin(), sizes.end(), made.sizes);
  std::copy(strides.begin(), strides.end(), made.strides);
  return made;
}

std::string why_not(const rosin_call_array& array) {
  try {
    packed(array);
  } catch (const plugin::Failure& failure) {
    EXPECT_EQ(failure.status, ROSIN_UNSUPPORTED);
    return failure.text;
  }
  return {};
}

TEST(GraphArrays, ColumnsAreRowsOfATensor) {
  const Packed made = packed(array({5, 3, 2}, {1, 5, 15}, ROSIN_BFLOAT16));
  EXPECT_EQ(made.type, data_bfloat16);
  EXPECT_EQ(made.bytes, 60u);
  EXPECT_EQ(made.sizes, (Sizes{2, 3, 5}));
  EXPECT_EQ(made.memory, made.sizes);
  EXPECT_EQ(made.turn, (Sizes{0, 1, 2}));
  EXPECT_EQ(made.turn_back, made.turn);
}

TEST(GraphArrays, OtherOrdersAreTurned) {
  // Stored by rows, in a batch: (batch, rows, columns) from the slowest; the tensor has (batch, columns, rows).
  const Packed rows = packed(array({5, 3, 2}, {3, 1, 15}));
  EXPECT_EQ(rows.memory, (Sizes{2, 5, 3}));
  EXPECT_EQ(rows.sizes, (Sizes{2, 3, 5}));
  EXPECT_EQ(rows.turn, (Sizes{0, 2, 1}));
  // An image, channels first: (x, y, channels, batch) of 4, 3, 2, 6.
  const Packed image = packed(array({4, 3, 2, 6}, {2, 8, 1, 24}));
  EXPECT_EQ(image.memory, (Sizes{6, 3, 4, 2}));
  EXPECT_EQ(image.sizes, (Sizes{6, 2, 3, 4}));
  EXPECT_EQ(image.turn, (Sizes{0, 3, 1, 2}));
  EXPECT_EQ(image.turn_back, (Sizes{0, 2, 3, 1}));
}

TEST(GraphArrays, DimsOfOneElementLieAnywhere) {
  const Packed made = packed(array({1, 4, 1, 2}, {77, 1, 0, 4}));
  EXPECT_EQ(made.memory, (Sizes{2, 1, 4, 1}));
  EXPECT_EQ(made.turn, (Sizes{0, 1, 2, 3}));
  const Packed turned = packed(array({4, 1, 2}, {2, 5, 1}));
  EXPECT_EQ(turned.memory, (Sizes{4, 2, 1}));
  EXPECT_EQ(turned.sizes, (Sizes{2, 1, 4}));
  EXPECT_EQ(turned.turn, (Sizes{1, 2, 0}));
}

TEST(GraphArrays, RefusesWhatGraphsDoNotTake) {
  EXPECT_EQ(why_not(array({3, 4}, {1, 4})), "MPSGraph: an array with gaps");
  EXPECT_EQ(why_not(array({3, 4}, {1, 0})), "MPSGraph: an array with gaps");
  EXPECT_EQ(why_not(array({3, 4}, {2, 6})), "MPSGraph: an array with gaps");
  EXPECT_EQ(why_not(array({3, 0}, {1, 3})), "MPSGraph: a size below 1");
  EXPECT_EQ(why_not(array({3}, {1}, ROSIN_FLOAT64)), "MPSGraph: no elements of this type");
  EXPECT_EQ(why_not(array({1 << 20, 1 << 12}, {1, 1 << 20})), "MPSGraph: more elements than an Int32 counts");
}

}  // namespace
}  // namespace rosin::metal
