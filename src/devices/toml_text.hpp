// TOML as text: what stands directly in its tables, and a change of one key that leaves every other byte alone.
// Failures are Errors of kind argument that name file and line; a text beyond toml_bounds.hpp is one. Read next:
// toml_text.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rosin {

/// One key with its value.
struct TomlEntry {
  std::string table;  // "rosin" for [rosin]; empty for keys above all tables
  std::string key;
  std::string type;  // "string", "boolean", "integer", "table", ... in TOML's words
  std::string text;  // of a string: its characters; of a boolean: "true" or "false"; of others: empty
  int line;          // counts from 1
};

/// Whether this build reads TOML at all; without toml++ the functions below throw.
bool can_read_toml() noexcept;

/// Every key at the top and directly in a table at the top; what lies deeper is checked and left out. `path` is the
/// file's name for messages.
std::vector<TomlEntry> toml_entries(const std::string& path, std::string_view text);

/// What a key is set to.
using TomlValue = std::variant<std::string_view, bool>;

/// `text` with `key` of the table set or, without `value`, removed. The bytes that are replaced are those
/// of the value alone; a new key gets a line of its own below the table's header; a line is removed up to its comment.
/// The result was read again: it says what was asked for and else what `text` says. Error where the table's form (an
/// inline table, for one) does not allow that.
std::string with_toml_value(const std::string& path, std::string_view text, const std::string& table,
                            const std::string& key, std::optional<TomlValue> value);

}  // namespace rosin
