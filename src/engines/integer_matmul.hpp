// The product of integer matrices: blocks of A are widened and packed, tiles of C are kept in vectors.
#pragma once

#include <memory>

#include "engines/vendor.hpp"

namespace rosin::engines {

/// Integers of any size; sums wrap around, so that any order gives the same bits. Error (dtype) for other types.
std::unique_ptr<VendorCall> prepare_integer_matmul(const MatmulSpec& spec);

}  // namespace rosin::engines
