// Gather of the columns of an embedding's weight, under the name of the layer: messages about indices show it. And the
// check of labels, which other ops then read without one.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// weight (out, in), indices (shape...) in [0, in) -> (out, shape...).
Array embedding(const Array& weight, const Array& indices);
Array embedding_bag(const Array& weight, const Array& indices);

/// (1, shape...) Bool, all true: the run fails where a label (shape...) is not in [0, classes).
Array are_labels(const Array& labels, int64_t classes);

}  // namespace rosin
