// Gather of the columns of an embedding's weight, under the name of the layer: messages about indices show it.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// weight (out, in), indices (shape...) in [0, in) -> (out, shape...).
Array embedding(const Array& weight, const Array& indices);
Array embedding_bag(const Array& weight, const Array& indices);

}  // namespace rosin
