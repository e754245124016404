// What a file of Julia holds, as a tree of values without their arrays' elements: BSON.jl and JLD2 are read into it.
// Objects that several places share are one value, so that ties stay; a value may contain itself.
// Read next: bson_values.cpp and jld2_values.cpp (who builds it), flux_names.hpp (what Flux's parts are called here).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <rosin/dtype.hpp>

namespace rosin {

enum class JuliaKind : uint8_t {
  nothing,
  boolean,
  integer,
  real,
  text,       // String
  symbol,     // Symbol
  array,      // numbers of one type
  list,       // Vector{Any}, and arrays of what are no numbers
  tuple,      // Tuple, SimpleVector
  named,      // NamedTuple, Dict with texts or symbols as keys, group: children with names
  structure,  // any other object; children have names where the file states them (JLD2)
  other       // types, modules, arrays of element types that rosin lacks
};

/// Numbers of one type, column-major as in Julia.
struct JuliaArray {
  DType type = DType::Float32;
  std::vector<int64_t> sizes;
  uint64_t place = 0;     // in the file
  uint64_t bytes = 0;     // of the elements
  uint64_t packed = 0;    // bytes in the file where they are compressed (deflate), else 0
  bool shuffled = false;  // compressed ones: byte i of all elements stands together
};

struct JuliaChild {
  uint32_t name;   // in texts, or JuliaTree::no_name
  uint32_t value;  // in values
};

struct JuliaValue {
  JuliaKind kind = JuliaKind::nothing;
  DType number = DType::Float64;  // of integer and real: as which it is stored
  uint32_t text = 0;              // in texts: content, type of a structure ("Flux.Dense"), what an `other` is
  uint32_t first = 0;             // in children
  uint32_t count = 0;
  uint32_t array = 0;  // in arrays
  int64_t integer = 0;
  double real = 0;
};

class JuliaTree {
 public:
  static constexpr uint32_t no_name = UINT32_MAX;
  /// More values than this are refused, whatever the file's size.
  static constexpr size_t most_values = size_t{1} << 22;

  std::vector<JuliaValue> values;
  std::vector<JuliaChild> children;
  std::vector<JuliaArray> arrays;
  uint32_t root = 0;

  uint32_t text_index(std::string_view text) {
    const auto found = text_places_.find(text);
    if (found != text_places_.end()) return found->second;
    const auto index = static_cast<uint32_t>(texts_.size());
    const auto made = text_places_.emplace(std::string(text), index).first;
    texts_.push_back(&made->first);
    return index;
  }
  const std::string& text(uint32_t index) const { return *texts_[index]; }
  const std::string& text_of(const JuliaValue& value) const { return text(value.text); }
  /// Child i of a value, 0-based.
  const JuliaChild& child(const JuliaValue& value, uint32_t i) const { return children[value.first + i]; }
  /// The child of that name; nothing where there is none.
  std::optional<uint32_t> named_child(const JuliaValue& value, std::string_view name) const {
    for (uint32_t i = 0; i < value.count; ++i) {
      const JuliaChild& each = child(value, i);
      if (each.name != no_name && text(each.name) == name) return each.value;
    }
    return std::nullopt;
  }

 private:
  std::map<std::string, uint32_t, std::less<>> text_places_;  // nodes of a map stay where they are
  std::vector<const std::string*> texts_;
};

/// The element type of that Julia name ("Float32"); nothing where rosin has none.
std::optional<DType> julia_type(std::string_view name) noexcept;
/// Julia's name of an element type, and the module in which it is defined.
struct JuliaTypeName {
  const char* module;
  const char* name;
};
JuliaTypeName julia_name(DType type) noexcept;

/// Product of the sizes times the bytes of an element; nothing where it overflows or a size is negative.
std::optional<uint64_t> julia_bytes(const std::vector<int64_t>& sizes, uint64_t width) noexcept;

/// Throws Error (io): `load: RULE; 'path' at byte PLACE: WHAT; CURE`.
[[noreturn]] void refuse_at(const std::string& path, uint64_t place, const std::string& rule, const std::string& what);

}  // namespace rosin
