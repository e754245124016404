// Reads vocab.json and merges.txt (bpe_files.hpp). The JSON is an object of names and whole numbers; nothing else is
// taken, so a small reader does, which knows the line and the column.
#include "data/bpe_files.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include <rosin/error.hpp>

#include "base/input_file.hpp"
#include "data/unicode_classes.hpp"

namespace rosin {

void refuse_text_file(const char* op, const std::string& path, const std::string& place, const std::string& what) {
  throw Error(ErrorKind::io, std::string(op) + ": " + path + ":" + place + ": " + what);
}

namespace {

constexpr uint64_t largest_file = uint64_t{1} << 31;

std::string read_text(const std::string& path) {
  const std::vector<uint8_t> bytes = read_whole_file(path, largest_file);
  return std::string(bytes.begin(), bytes.end());
}

/// Goes through the text of a vocabulary.
class VocabularyText {
 public:
  VocabularyText(const std::string& path, const std::string& text) : path_(path), text_(text) {}

  std::vector<std::string> names() {
    expect('{', "the file must be an object of names and numbers");
    if (next() == '}') refuse("the vocabulary is empty");
    do {
      read_entry();
    } while (next() == ',' && ++at_ > 0);
    expect('}', "a ',' or '}' must follow an entry");
    if (next() != '\0' || at_ != text_.size()) refuse("nothing may follow the object");
    return in_order();
  }

 private:
  struct Entry {
    std::string name;
    uint64_t number;
    size_t place;
  };

  [[noreturn]] void refuse(const std::string& what) const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size()));
    const auto line = 1 + std::count(text_.begin(), end, '\n');
    const size_t before = at_ == 0 ? std::string::npos : text_.rfind('\n', at_ - 1);
    const size_t column = before == std::string::npos ? at_ + 1 : at_ - before;
    refuse_text_file("BpeTokenizer", path_, std::to_string(line) + ":" + std::to_string(column), what);
  }
  /// The next character that is no white space, '\0' at the end.
  char next() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void expect(char wanted, const char* rule) {
    if (next() != wanted || at_ >= text_.size()) refuse(rule);
    ++at_;
  }

  void read_entry() {
    Entry entry;
    next();
    entry.place = at_;
    entry.name = read_name();
    expect(':', "a ':' must follow a name");
    next();
    const char* const first = text_.data() + at_;
    const char* const last = text_.data() + text_.size();
    const auto [end, trouble] = std::from_chars(first, last, entry.number);
    if (trouble != std::errc() || (*first == '0' && end - first > 1)) refuse("a token must be a whole number");
    if (end != last && (*end == '.' || *end == 'e' || *end == 'E')) refuse("a token must be a whole number");
    at_ += static_cast<size_t>(end - first);
    entries_.push_back(std::move(entry));
  }

  std::string read_name() {
    expect('"', "a name must stand in '\"'");
    std::string name;
    for (;;) {
      if (at_ >= text_.size()) refuse("a name has no end");
      const CodePoint point = code_point_at(text_, at_);
      if (!point.valid) refuse("the file must be UTF-8");
      if (point.value < 0x20) refuse("a control character in a name must be escaped");
      if (point.value == '"') break;
      if (point.value == '\\') {
        read_escape(name);
        continue;
      }
      name.append(text_, at_, point.bytes);
      at_ += point.bytes;
    }
    ++at_;
    return name;
  }

  void read_escape(std::string& name) {
    constexpr std::string_view marks = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    const char mark = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (const size_t which = marks.find(mark); mark != '\0' && which != std::string_view::npos) {
      name.push_back(meant[which]);
      at_ += 2;
      return;
    }
    uint32_t value = read_unit();
    if (value >= 0xd800 && value < 0xdc00) {
      const uint32_t low = read_unit();
      if (low < 0xdc00 || low >= 0xe000) refuse("half of a pair of surrogates stands alone");
      value = 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00);
    } else if (value >= 0xdc00 && value < 0xe000) {
      refuse("half of a pair of surrogates stands alone");
    }
    append_code_point(name, value);
  }

  /// \uXXXX.
  uint32_t read_unit() {
    uint32_t value = 0;
    const bool is_one = text_.size() - at_ >= 6 && text_[at_] == '\\' && text_[at_ + 1] == 'u';
    const char* const first = text_.data() + at_ + 2;
    if (!is_one || std::from_chars(first, first + 4, value, 16).ptr != first + 4) refuse("no such escape");
    at_ += 6;
    return value;
  }

  std::vector<std::string> in_order() {
    std::vector<std::string> names(entries_.size());
    std::vector<bool> taken(entries_.size());
    std::unordered_map<std::string_view, size_t> seen;
    for (const Entry& entry : entries_) {
      at_ = entry.place;
      if (!seen.emplace(entry.name, 0).second) refuse("the name '" + entry.name + "' came before");
      if (entry.number >= entries_.size() || taken[static_cast<size_t>(entry.number)]) {
        refuse("tokens must be 0 ... " + std::to_string(entries_.size() - 1) + " once each; got " +
               std::to_string(entry.number) + (entry.number < entries_.size() ? " again" : ""));
      }
      taken[static_cast<size_t>(entry.number)] = true;
    }
    for (Entry& entry : entries_) names[static_cast<size_t>(entry.number)] = entry.name;
    return names;
  }

  const std::string& path_;
  const std::string& text_;
  size_t at_ = 0;
  std::vector<Entry> entries_;
};

/// Bytes that are visible characters of Latin-1 stand for themselves, the others for 256, 257, ... in order.
constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173 && byte <= 255);
}

/// The byte for which a character stands, -1: none.
int byte_of_character(uint32_t value) {
  if (value < 256) return stands_for_itself(value) ? static_cast<int>(value) : -1;
  uint32_t hidden = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (!stands_for_itself(byte) && hidden++ == value) return static_cast<int>(byte);
  }
  return -1;
}

}  // namespace

std::string bytes_of_name(std::string_view name) {
  std::string bytes;
  for (size_t at = 0; at < name.size();) {
    const CodePoint point = code_point_at(name, at);
    const int byte = point.valid ? byte_of_character(point.value) : -1;
    if (byte < 0) return std::string(name);
    bytes.push_back(static_cast<char>(byte));
    at += point.bytes;
  }
  return bytes;
}

std::vector<std::string> read_token_names(const std::string& path) {
  const std::string text = read_text(path);
  return VocabularyText(path, text).names();
}

std::vector<MergeLine> read_merge_lines(const std::string& path) {
  const std::string text = read_text(path);
  std::vector<MergeLine> lines;
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number == 1 && line.starts_with("#version")) continue;
    if (line.empty() && at >= text.size()) break;
    const size_t space = line.find(' ');
    if (space == 0 || space == std::string_view::npos || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos) {
      refuse_text_file("BpeTokenizer", path, std::to_string(number),
                       "a line must be two names with a space between; got '" + std::string(line.substr(0, 80)) + "'");
    }
    lines.push_back({std::string(line.substr(0, space)), std::string(line.substr(space + 1)), number});
  }
  return lines;
}

}  // namespace rosin
