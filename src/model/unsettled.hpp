// What gradient calls have changed in a model since its last step: the next step confirms it or takes it back.
#pragma once

#include <vector>

#include <rosin/model.hpp>

namespace rosin {

struct Unsettled {
  std::vector<Buffer*> buffers;
  std::vector<Rng*> rngs;
};

namespace detail {

/// As list_arrays, and fills `unsettled` from the same walk.
void list_arrays(ModelEdit model, std::vector<ArrayPlace<Array*>>& places, Unsettled& unsettled);

}  // namespace detail

}  // namespace rosin
