// What the kernel of distances is given: a panel of some points and the columns of others. Read next:
// distance_body.hpp (the kernel), cpu/distances.cpp (who calls it).
#pragma once

#include <cstdint>

namespace rosin::engines {

/// c(row, column) = the Euclidean distance of point `row` of the panel from point `column`: row_vectors vectors of
/// rows, and up to most_columns columns.
struct DistanceTile {
  static constexpr int64_t most_columns = 12;

  const float* a = nullptr;  // element (feature; row) is a[feature * rows of the panel + row]
  const float* b = nullptr;  // element (feature; column) is b[column * features + feature]
  float* c = nullptr;        // element (row, column) is c[row + column * c_column]
  int64_t c_column = 0, columns = 0, features = 0;
};

/// From here to infinity the square of a distance has lost nothing that counts: neither by overflow nor by underflow.
inline constexpr float least_sure_distance = 0x1p-30f;

}  // namespace rosin::engines
