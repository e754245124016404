// Edits by candidates: each way to change the text is tried, and the first that reads back as the same document but for
// the one key is taken. So no form of TOML has to be recognised here to be safe. The one file that sees toml++.
//
// toml++ 3.3 takes a letter beyond ASCII outside of strings for impossible (__builtin_unreachable in its test for
// blanks). It is given ASCII alone: in `ascii` form a byte beyond ASCII is ~ and two digits, as is ~ itself. That may
// stand where such letters may, in strings and comments, and nowhere else.
#include "devices/toml_text.hpp"

#include <rosin/error.hpp>

#include "devices/toml_bounds.hpp"

#ifdef ROSIN_HAVE_TOML

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <utility>

// toml++ asserts what a file may break ("[=" does), or with NDEBUG assumes it, and then finds the error all the same.
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace rosin {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view digits = "0123456789ABCDEF";

/// All but the byte order mark.
std::string to_ascii(std::string_view text) {
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  std::string ascii;
  ascii.reserve(text.size());
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x80 && c != '~') ascii.push_back(c);
    else ascii.append({'~', digits[code / 16], digits[code % 16]});
  }
  return ascii;
}

std::string from_ascii(std::string_view ascii) {
  std::string text;
  text.reserve(ascii.size());
  for (size_t at = 0; at < ascii.size(); ++at) {
    const size_t high = at + 2 < ascii.size() ? digits.find(ascii[at + 1]) : digits.npos;
    const size_t low = at + 2 < ascii.size() ? digits.find(ascii[at + 2]) : digits.npos;
    const bool escaped = ascii[at] == '~' && high != digits.npos && low != digits.npos;
    text.push_back(escaped ? static_cast<char>(high * 16 + low) : ascii[at]);
    if (escaped) at += 2;
  }
  return text;
}

[[noreturn]] void fail(const std::string& path, long line, const std::string& what) {
  throw Error(ErrorKind::argument, "preferences: " + path + ":" + std::to_string(line) + ": " + what);
}

void check_bounds(const std::string& path, std::string_view text) {
  if (text.size() > most_toml_bytes) {
    fail(path, 1,
         "a preference file has at most " + std::to_string(most_toml_bytes) + " bytes; this one has " +
             std::to_string(text.size()) + "; shorten it or remove it");
  }
  if (const std::optional<long> line = too_deep_line(text)) {
    fail(path, *line,
         "tables and lists may stand at most " + std::to_string(most_toml_levels) +
             " deep; the line has more; shorten it or remove the file");
  }
}

toml::table parse(const std::string& path, std::string_view ascii) {
  check_bounds(path, ascii);
  toml::parse_result result = toml::parse(ascii);
  if (result) return std::move(result).table();
  const toml::parse_error& error = result.error();
  fail(path, error.source().begin.line,
       "not valid TOML; " + std::string(error.description()) + "; correct the line or remove the file");
}

std::string type_name(const toml::node& node) {
  std::ostringstream name;
  name << node.type();
  return name.str();
}

TomlEntry entry(std::string_view table, std::string_view key, const toml::node& node) {
  const int line = static_cast<int>(node.source().begin.line);
  TomlEntry made{from_ascii(table), from_ascii(key), type_name(node), {}, line};
  if (const auto* text = node.as_string()) made.text = from_ascii(text->get());
  if (const auto* flag = node.as_boolean()) made.text = flag->get() ? "true" : "false";
  return made;
}

// --- Places in the text, which is in ASCII form. ---

/// The byte at a place of toml++, which counts lines and columns from 1.
size_t byte_at(std::string_view text, const toml::source_position& place) {
  size_t at = 0;
  for (auto line = place.line; line > 1 && at < text.size(); --line)
    at = std::min(text.find('\n', at), text.size()) + 1;
  return std::min(at + place.column - 1, text.size());
}

size_t start_of_line(std::string_view text, size_t at) {
  const size_t newline = at == 0 ? text.npos : text.rfind('\n', at - 1);
  return newline == text.npos ? 0 : newline + 1;
}

/// The byte after the line's end, or the end of the text.
size_t start_of_next_line(std::string_view text, size_t at) {
  const size_t newline = text.find('\n', at);
  return newline == text.npos ? text.size() : newline + 1;
}

size_t after_blanks(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(" \t", at), text.size());
}

std::string_view line_end_of(std::string_view text) {
  const size_t newline = text.find('\n');
  return newline != text.npos && newline > 0 && text[newline - 1] == '\r' ? "\r\n" : "\n";
}

// --- Edits. ---

/// Bytes [begin, end) become `text`.
struct Edit {
  size_t begin, end;
  std::string text;
};

std::string edited(const Edit& edit, std::string_view text) {
  std::string changed(text.substr(0, edit.begin));
  return changed.append(edit.text).append(text.substr(edit.end));
}

std::string quoted_text(std::string_view value) {
  std::string text("\"");
  for (const char c : value) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') text.append({'\\', c});
    else if (code < 0x20 || code == 0x7F) text.append("\\u00").append({digits[code / 16], digits[code % 16]});
    else text.push_back(c);
  }
  return text.append("\"");
}

/// A line at `at`, which is the start of a line or the end of the text.
Edit new_line(std::string_view text, size_t at, const std::string& line) {
  const std::string end(line_end_of(text));
  const bool unfinished = at > 0 && text[at - 1] != '\n';
  return {at, at, (unfinished ? end : "") + line + end};
}

std::vector<Edit> ways_to_set(std::string_view text, const toml::node* table, const toml::node* old,
                              const std::string& name, const std::string& key, const std::string& value) {
  if (old) return {{byte_at(text, old->source().begin), byte_at(text, old->source().end), value}};
  const std::string line = key + " = " + value;
  std::vector<Edit> ways;
  if (table) ways.push_back(new_line(text, start_of_next_line(text, byte_at(text, table->source().begin)), line));
  Edit section = new_line(text, text.size(), "[" + name + "]" + std::string(line_end_of(text)) + line);
  if (!text.empty()) section.text.insert(section.text.find('['), line_end_of(text));
  ways.push_back(std::move(section));
  ways.push_back(new_line(text, 0, name + "." + line));
  return ways;
}

/// The line goes; a comment behind the value stays.
std::vector<Edit> ways_to_remove(std::string_view text, const toml::node& old) {
  const size_t line = start_of_line(text, byte_at(text, old.source().begin));
  const size_t rest = after_blanks(text, byte_at(text, old.source().end));
  if (rest < text.size() && text[rest] == '#') return {{after_blanks(text, line), rest, {}}};
  if (rest < text.size() && text[rest] != '\n' && text[rest] != '\r') return {};
  return {{line, start_of_next_line(text, rest), {}}};
}

// --- What an edit must not change. ---

/// The document without the key, and without the table where nothing else is in it.
std::string rest_of(toml::table document, const std::string& name, const std::string& key) {
  if (toml::table* table = document[name].as_table()) {
    table->erase(key);
    if (table->empty()) document.erase(name);
  }
  std::ostringstream text;
  text << toml::toml_formatter(document);
  return text.str();
}

/// Whether the key has this value, in TOML's type, or is not there.
bool says(const toml::table& document, const std::string& name, const std::string& key,
          const std::optional<TomlValue>& value) {
  const auto node = document[name][key];
  if (!value) return !node;
  if (const bool* truth = std::get_if<bool>(&*value)) return node.value_exact<bool>() == *truth;
  return node.value<std::string>() == to_ascii(std::get<std::string_view>(*value));
}

std::string text_of(const TomlValue& value) {
  if (const bool* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  return quoted_text(to_ascii(std::get<std::string_view>(value)));
}

}  // namespace

bool can_read_toml() noexcept { return true; }

std::vector<TomlEntry> toml_entries(const std::string& path, std::string_view text) {
  const toml::table document = parse(path, to_ascii(text));
  std::vector<TomlEntry> entries;
  for (const auto& [name, node] : document) {
    const toml::table* table = node.as_table();
    if (!table) entries.push_back(entry({}, name.str(), node));
    else
      for (const auto& [key, value] : *table) entries.push_back(entry(name.str(), key.str(), value));
  }
  return entries;
}

std::string with_toml_value(const std::string& path, std::string_view text, const std::string& name,
                            const std::string& key, std::optional<TomlValue> value) {
  const std::string ascii = to_ascii(text);
  const toml::table document = parse(path, ascii);
  if (says(document, name, key, value)) return std::string(text);
  const toml::node* table = document.get(name);
  const toml::node* old = document[name][key].node();
  const std::vector<Edit> ways =
      value ? ways_to_set(ascii, table, old, name, key, text_of(*value)) : ways_to_remove(ascii, *old);
  const std::string rest = rest_of(document, name, key);
  for (const Edit& way : ways) {
    const std::string changed = edited(way, ascii);
    toml::parse_result result = toml::parse(changed);
    if (result && says(result.table(), name, key, value) && rest_of(std::move(result).table(), name, key) == rest) {
      return std::string(text.starts_with(byte_order_mark) ? byte_order_mark : "") + from_ascii(changed);
    }
  }
  const toml::node* place = old ? old : table;
  fail(path, place ? static_cast<long>(place->source().begin.line) : 1,
       key + " cannot be " + (value ? "set" : "removed") + " without touching other text; [" + name +
           "] is written as an inline table or the like; change the line by hand");
}

}  // namespace rosin

#else

namespace rosin {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw Error(ErrorKind::argument, "preferences: this build has no TOML reader; got " + path +
                                       "; install toml++ (Debian: libtomlplusplus-dev) and build rosin again");
}

}  // namespace

bool can_read_toml() noexcept { return false; }

std::vector<TomlEntry> toml_entries(const std::string& path, std::string_view) { fail(path); }

std::string with_toml_value(const std::string& path, std::string_view, const std::string&, const std::string&,
                            std::optional<TomlValue>) {
  fail(path);
}

}  // namespace rosin

#endif
