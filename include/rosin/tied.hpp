// Ties: one parameter in several places of a model.
#pragma once

#include <rosin/array.hpp>

namespace rosin {

/// Marks the array: all its copies inside one model are one parameter (one gradient, one state, saved once), as in
/// `decoder.weight = tied(encoder.weight);`. Equal handles without the mark are no tie. Error (argument) for nothing.
ROSIN_API Array tied(const Array& x);
ROSIN_API bool is_tied(const Array& x) noexcept;

}  // namespace rosin
