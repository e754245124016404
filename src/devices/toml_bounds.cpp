// See toml_bounds.hpp. One pass, without recursion.
#include "devices/toml_bounds.hpp"

#include <algorithm>

namespace rosin {
namespace {

/// The byte after a string that begins at `at` with `quote`; of an unfinished one the end of its line or of the text.
size_t after_string(std::string_view text, size_t at) {
  const char quote = text[at];
  const std::string_view three = quote == '"' ? "\"\"\"" : "'''";
  const bool many_lines = text.substr(at).starts_with(three);
  for (at += many_lines ? 3 : 1; at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"') ++at;
    else if (many_lines && text.substr(at).starts_with(three)) {
      const size_t past = std::min(text.find_first_not_of(quote, at), text.size());
      return std::min(at + 5, past);  // two more quotes may belong to the string
    } else if (!many_lines && text[at] == quote) return at + 1;
    else if (!many_lines && text[at] == '\n') return at;
  }
  return text.size();
}

}  // namespace

std::optional<long> too_deep_line(std::string_view text) {
  int brackets = 0, dots = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = after_string(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '[' || c == '{') ++brackets;
    if (c == ']' || c == '}') brackets = std::max(brackets - 1, 0);
    const bool is_between_keys = std::string_view("[]{},=\n").find(c) != std::string_view::npos;
    dots = is_between_keys ? 0 : dots + (c == '.');
    if (brackets > most_toml_levels || dots > most_toml_levels) {
      return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    }
    ++at;
  }
  return std::nullopt;
}

}  // namespace rosin
