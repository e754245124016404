// The form of a gather beside those that GatherAttributes names.
#pragma once

#include <cstdint>

namespace rosin {

/// GatherAttributes::along of whole slices whose indices are known to lie in [0, size of the dim): no device has to be
/// asked afterwards whether they did.
inline constexpr int64_t slices_in_range = 2;

/// Of a gather with one operand, labels: whether these are classes is looked at, and nothing else, where `classes` is
/// not 0. Else its result has an element for each class and label.
struct LabelAttributes {
  int64_t classes = 0;
};

}  // namespace rosin
