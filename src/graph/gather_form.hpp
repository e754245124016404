// The form of a gather beside those that GatherAttributes names.
#pragma once

#include <cstdint>

namespace rosin {

/// GatherAttributes::along of whole slices whose indices are known to lie in [0, size of the dim): no device has to be
/// asked afterwards whether they did.
inline constexpr int64_t slices_in_range = 2;

}  // namespace rosin
