// Calls that multiply padding: oneDNN fills windows at the border, and odd channels of BFloat16, with zeros, and zero
// times what is not finite is NaN. Read after vendor.hpp; next vendor.cpp.
#pragma once

#include <memory>

#include "engines/vendor.hpp"

namespace rosin::engines {

/// Elements of operands, or of the result, by which a call knows that values which are not finite came. 0: not looked
/// at. (An Inf or NaN that is a factor of any product leaves no finite sum: a small result stands for its operands.)
struct Watched {
  int64_t first = 0, second = 0, result = 0;
};

/// `fast`, and where it is not sure, or a watched element is not finite, `exact` after it, by one thread. `type`: of
/// all elements.
std::unique_ptr<VendorCall> checked(std::unique_ptr<VendorCall> fast, std::unique_ptr<VendorCall> exact, DType type,
                                    const Watched& watched);

}  // namespace rosin::engines
