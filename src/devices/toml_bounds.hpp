// What is asked of a TOML text before it is parsed: the parser calls itself for each level, and tables are freed level
// by level, so that a deep text would take the whole stack. Read next: toml_text.hpp.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace rosin {

/// A preference file has at most so many bytes,
inline constexpr size_t most_toml_bytes = size_t{1} << 20;
/// and at most so many dots in a key, and brackets in one another.
inline constexpr int most_toml_levels = 16;

/// The first line, counted from 1, where a text is deeper than most_toml_levels; nothing where none is. Strings and
/// comments are passed over as TOML has them, up to the first error; what follows that no parser reads.
std::optional<long> too_deep_line(std::string_view text);

}  // namespace rosin
