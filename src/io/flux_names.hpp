// The arrays of a file of Julia under the names that rosin gives them, and the way from the places of a model to them.
// Read first: julia_tree.hpp, flux_layers.hpp. Read next: flux_names.cpp, julia_file.cpp (the user).
#pragma once

#include <string>
#include <vector>

#include <rosin/model.hpp>

#include "base/input_file.hpp"
#include "io/julia_tree.hpp"

namespace rosin {

/// What is done with an array on its way.
enum class FluxStorage : uint8_t {
  plain,
  turned,    // stored as the transpose of another
  deviation  // a standard deviation, of which the variance is wanted: Flux 0.6
};

/// An array or a number of a file, with its name here: "model.layers.0.weight".
struct FluxEntry {
  std::string name;
  uint32_t value;
  FluxStorage storage = FluxStorage::plain;
  double eps = 0;  // of a deviation: it contains this
};

/// All arrays and numbers below a value; those of Flux's layers by the layers' fields, those of other structures
/// whose names the file lacks by position. Hyper-parameters of layers are left out. Error (io): the file unfolds to
/// more than 2^20 of them.
std::vector<FluxEntry> list_entries(const JuliaTree& tree, uint32_t root, const std::string& path);

/// What belongs into each place of the model, under the place's name; then what is in the file only. Fields that have
/// no name in the file are found by position. The file's one entry stands for the root ("model_state"), and a list of
/// arrays for the parameters in Flux's order. An absent bias is nothing.
std::vector<NamedArray> entries_for(ModelEdit model, const JuliaTree& tree, const InputFile& file);

/// The array of an entry.
Array entry_array(const JuliaTree& tree, const FluxEntry& entry, const InputFile& file);

}  // namespace rosin
