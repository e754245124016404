// What losses share: the check of sizes, y in the type of yhat, the way to one result.
#pragma once

#include <cstdint>

#include <rosin/loss.hpp>
#include <rosin/reduce.hpp>

namespace rosin {

enum class Numbers : uint8_t { real, complex_too };

/// Sizes are equal, missing last dims being 1; a C++ number fits everything. Complex numbers fit few losses.
void check_sizes(const char* loss, const Array& yhat, const Array& y, Numbers numbers = Numbers::real);

/// y in the type of yhat where it is Bool or integers, so that sums with numbers do not make it Float32.
Array labels_for(const Array& yhat, const Array& y);

inline Array aggregated(const Array& losses, const Aggregation& agg) {
  return agg.is_mean() ? mean(losses) : agg(losses);
}

}  // namespace rosin
