// Models under the names that PyTorch gives to the same layers. Read next: torch_names.cpp.
#pragma once

#include <string>
#include <vector>

#include <rosin/io.hpp>

#include "io/safetensors.hpp"

namespace rosin {

/// The arrays of a model as PyTorch would save them.
std::vector<OutgoingArray> to_torch(ModelView model);
/// Entries of a file of PyTorch under the model's own names, with values rearranged; entries that no place of the model
/// asks for keep their name, but for PyTorch's batch counters, which are left out.
std::vector<NamedArray> from_torch(ModelEdit model, const std::vector<NamedArray>& entries);

}  // namespace rosin
