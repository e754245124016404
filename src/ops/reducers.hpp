// The reducers of the library; see reducers.cpp. Read first: graph/reducer.hpp.
#pragma once

#include "graph/reducer.hpp"

namespace rosin {

extern const Reducer sum_reducer, product_reducer, maximum_reducer, minimum_reducer, any_reducer, all_reducer,
    logaddexp_reducer;

/// The neutral element as a C++ number of the type: what a reduction of no elements gives.
Array neutral_of(const Reducer& reducer, DType type);

}  // namespace rosin
