// What the fields of Flux's layers are called: one table, for every version of Flux whose files are about. BSON.jl
// stores positions alone, Flux.state and JLD2 the names. Read next: flux_names.cpp (reading), flux_state.cpp (writing).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/julia_tree.hpp"

namespace rosin {

/// How a layer's fields are called there and here, in the order of its declaration; both are lists with spaces between.
/// "-": not kept here (functions, hyper-parameters); "*": its fields count as fields of the layer itself; "x.0": here a
/// list of one.
struct FluxLayer {
  const char* type;   // "Flux.Dense" without its module
  const char* flux;   // names in Flux
  const char* rosin;  // names here
  const char* mark;   // a field by which a named tuple is known to come from this layer, or "": none is needed, as
                      // names are the same
};

std::span<const FluxLayer> flux_layers() noexcept;

/// Name i of such a list; empty where it has fewer.
std::string_view listed_name(std::string_view list, uint32_t i) noexcept;
uint32_t listed_count(std::string_view list) noexcept;

/// The row of a structure by its type and number of fields, or of a named tuple by its names; null: no layer of Flux.
const FluxLayer* find_layer(const JuliaTree& tree, const JuliaValue& value);

/// The last step of a type's name: "Dense" of "Flux.Dense", and of types that Flux defines or once defined.
std::string_view flux_type(std::string_view type) noexcept;

}  // namespace rosin
