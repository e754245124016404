// The loss scale of a state, and how it takes part in a step. Read first: rosin/loss_scale.hpp. Read next: update.cpp.
#pragma once

#include <rosin/array.hpp>
#include <rosin/loss_scale.hpp>

namespace rosin {

struct StateTree;
class Step;

/// What a state holds of its scale: 0-d arrays, which are saved and moved with it.
struct LossScaleArrays {
  Array scale;    // Float32
  Array good;     // Int32: steps since it last changed
  Array skipped;  // Int32
};

struct StateLossScale {
  LossScaleArrays arrays;  // nothing: the state has no scale
  LossScaleOptions options;
  bool keeps_wide = false;

  explicit operator bool() const { return !arrays.scale.is_nothing(); }
  /// A leaf's gradient over the scale: in Float32, or in the type of the parameter where the rule wants that.
  Array unscaled(const Array& g) const;
  /// What the arrays are after a step that holds, or is skipped, as `ok` (Bool, 0-d) says.
  LossScaleArrays next(const Array& ok) const;
};

}  // namespace rosin
