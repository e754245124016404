// Orders of elements, against the place that the sizes give each element.
#include "io/row_major.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace rosin {
namespace {

/// Element i of a row-major array of these sizes is this one in column-major order.
int64_t column_major_place(int64_t i, const Shape& shape) {
  int64_t place = 0;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    int64_t stride = 1;
    for (int before = 0; before < d; ++before) stride *= shape[before];
    place += i % shape[d] * stride;
    i /= shape[d];
  }
  return place;
}

template <size_t width> void expect_turned(const Shape& shape) {
  using Element = std::array<unsigned char, width>;
  const auto count = static_cast<size_t>(shape.count());
  std::vector<Element> rows(count), columns(count), back(count);
  for (size_t i = 0; i < count; ++i) {
    for (size_t b = 0; b < width; ++b) rows[i][b] = static_cast<unsigned char>(i * 131 + i / 251 + b);
  }
  from_row_major(columns.data(), rows.data(), shape, width);
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(column_major_place(static_cast<int64_t>(i), shape));
    ASSERT_EQ(columns[at], rows[i]) << to_string(shape) << ", width " << width << ", element " << i;
  }
  to_row_major(back.data(), columns.data(), shape, width);
  EXPECT_EQ(back, rows) << to_string(shape) << ", width " << width;
}

TEST(RowMajor, EveryElementComesToItsPlaceAndBack) {
  // Less and more than the squares and blocks in which elements are moved, and exactly those.
  for (const Shape& shape : {Shape{7}, Shape{3, 5}, Shape{16, 16}, Shape{128, 256}, Shape{131, 261}, Shape{1, 40},
                             Shape{17, 9, 33}, Shape{4, 65, 3, 70}, Shape{0, 3}, Shape{500, 2}}) {
    expect_turned<1>(shape);
    expect_turned<2>(shape);
    expect_turned<4>(shape);
    expect_turned<8>(shape);
    expect_turned<16>(shape);
  }
}

}  // namespace
}  // namespace rosin
