// Columns from fields: types are guessed while values are read (csv.hpp). A column that turns out to be text is read in
// a second pass. Read first: csv_text.hpp; read next: table.cpp.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <unordered_map>

#include <rosin/csv.hpp>
#include <rosin/error.hpp>

#include "base/input_file.hpp"
#include "data/csv_text.hpp"
#include "platform/decimals.hpp"

namespace rosin {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::argument, "read_csv: " + message); }

/// The fields that stand for no value.
class MissingFields {
 public:
  explicit MissingFields(const std::vector<std::string>& fields) : fields_(fields) {
    for (const std::string& field : fields) {
      if (field.empty()) continue;
      first_[static_cast<unsigned char>(field.front())] = true;
      last_[static_cast<unsigned char>(field.back())] = true;
    }
  }
  bool have(std::string_view field) const noexcept {
    const bool may = field.empty() || (first_[static_cast<unsigned char>(field.front())] &&
                                       last_[static_cast<unsigned char>(field.back())]);
    return may && std::find(fields_.begin(), fields_.end(), field) != fields_.end();
  }

 private:
  const std::vector<std::string>& fields_;
  std::array<bool, 256> first_{};
  std::array<bool, 256> last_{};
};

/// Without spaces around it and without a plus sign.
std::string_view number_of(std::string_view field) noexcept {
  const auto is_space = [](char byte) { return byte == ' ' || byte == '\t'; };
  while (!field.empty() && is_space(field.front())) field.remove_prefix(1);
  while (!field.empty() && is_space(field.back())) field.remove_suffix(1);
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.remove_prefix(1);
  return field;
}

bool read_integer(std::string_view field, int64_t& value) noexcept {
  const std::string_view number = number_of(field);
  const auto [end, trouble] = std::from_chars(number.data(), number.data() + number.size(), value);
  return trouble == std::errc() && end == number.data() + number.size();
}

bool read_float(std::string_view field, double& value) {
  const std::string_view number = number_of(field);
  const auto [end, trouble] = platform::read_decimal(number.data(), number.data() + number.size(), value);
  if (end != number.data() + number.size() || trouble == std::errc::invalid_argument) return false;
  if (trouble == std::errc::result_out_of_range) value = std::strtod(std::string(number).c_str(), nullptr);  // inf or 0
  return true;
}

bool read_boolean(std::string_view field, int64_t& value) noexcept {
  for (const char* text : {"true", "True", "TRUE"}) {
    if (field == text) return value = 1, true;
  }
  value = 0;
  return field == "false" || field == "False" || field == "FALSE";
}

const char* name_of(ColumnType type) {
  constexpr const char* names[] = {"a whole number of 64 bits", "a number", "true or false", "text"};
  return names[static_cast<int>(type)];
}

/// A column while it is read.
struct Growing {
  TableColumn column;
  bool decided = false;  // its type
  bool stated = false;   // by the options
  bool is_text = false;  // it must be read again
  std::deque<std::string> texts;
  std::unordered_map<std::string_view, int32_t> codes;

  void add_missing() {
    column.missing.push_back(1);
    if (column.type == ColumnType::text) column.codes.push_back(-1);
    else if (column.type == ColumnType::float64) column.floats.push_back(std::nan(""));
    else column.integers.push_back(0);
  }

  /// False: the field is no such value.
  bool add(std::string_view field) {
    if (!decided) decide(field);
    if (!add_value(field) && (stated || !widen(field))) return false;
    column.missing.push_back(0);
    return true;
  }

  void start_again_as_text() {
    column = {std::move(column.name), ColumnType::text, {}, {}, {}, {}, {}};
    is_text = false;
    decided = true;
  }

 private:
  bool add_value(std::string_view field) {
    int64_t integer = 0;
    double number = 0;
    switch (column.type) {
      case ColumnType::int64:
        if (!read_integer(field, integer)) return false;
        column.integers.push_back(integer);
        return true;
      case ColumnType::float64:
        if (!read_float(field, number)) return false;
        column.floats.push_back(number);
        return true;
      case ColumnType::boolean:
        if (!read_boolean(field, integer)) return false;
        column.integers.push_back(integer);
        return true;
      case ColumnType::text: add_text(field); return true;
    }
    return false;
  }

  void add_text(std::string_view field) {
    auto found = codes.find(field);
    if (found == codes.end()) {
      texts.emplace_back(field);
      found = codes.emplace(texts.back(), static_cast<int32_t>(codes.size())).first;
    }
    column.codes.push_back(found->second);
  }

  /// By the first value; all before it are missing.
  void decide(std::string_view field) {
    int64_t integer = 0;
    double number = 0;
    decided = true;
    if (read_integer(field, integer)) column.type = ColumnType::int64;
    else if (read_boolean(field, integer)) column.type = ColumnType::boolean;
    else column.type = ColumnType::float64;
    if (column.type != ColumnType::float64) {
      column.integers.assign(column.floats.size(), 0);
      column.floats = {};
    } else if (!read_float(field, number)) {
      is_text = true;
    }
  }

  /// Whole numbers become floats where this one is.
  bool widen(std::string_view field) {
    double number = 0;
    if (column.type != ColumnType::int64 || !read_float(field, number)) return false;
    column.floats.resize(column.integers.size());
    for (size_t i = 0; i < column.integers.size(); ++i) {
      column.floats[i] = column.missing[i] ? std::nan("") : static_cast<double>(column.integers[i]);
    }
    column.floats.push_back(number);
    column.integers = {};
    column.type = ColumnType::float64;
    return true;
  }
};

/// Everything about one call.
class Reading {
 public:
  Reading(const std::string& path, std::string_view text, const CsvOptions& options)
      : path_(path), text_(text), options_(options), missing_(options.missing) {}

  Table table() {
    read_names();
    choose();
    read_rows();
    bool again = false;
    for (Growing*& growing : by_place_) {
      if (growing && growing->is_text) {
        growing->start_again_as_text();
        again = true;
      } else {
        growing = nullptr;
      }
    }
    if (again) read_rows();
    std::vector<TableColumn> columns;
    for (Growing& growing : growing_) {
      growing.column.categories.assign(growing.texts.begin(), growing.texts.end());
      columns.push_back(std::move(growing.column));
    }
    return Table(std::move(columns));
  }

 private:
  CsvText begin() const { return CsvText(path_, text_, options_.delimiter, options_.quote); }

  void read_names() {
    CsvText fields = begin();
    if (!fields.begins_row()) fields.refuse("the file must have a row; it is empty");
    do {
      const std::string_view field = fields.next();
      const std::string name = options_.header ? std::string(field) : std::to_string(names_.size());
      if (!places_.emplace(name, names_.size()).second) fields.refuse("two columns have the name '" + name + "'");
      names_.push_back(name);
    } while (!fields.is_last());
  }

  size_t place_of(const std::string& name) const {
    const auto found = places_.find(name);
    if (found == places_.end()) refuse("'" + path_ + "' has no column '" + name + "'");
    return found->second;
  }

  void choose() {
    by_place_.assign(names_.size(), nullptr);
    for (const std::string& name : options_.columns.empty() ? names_ : options_.columns) {
      Growing*& growing = by_place_[place_of(name)];
      if (growing) refuse("the column '" + name + "' is asked for twice");
      growing = &growing_.emplace_back();
      growing->column.name = name;
    }
    for (const auto& [name, type] : options_.types) {
      Growing* const growing = by_place_[place_of(name)];
      if (!growing) continue;
      growing->column.type = type;
      growing->decided = growing->stated = true;
    }
  }

  void read_rows() {
    CsvText fields = begin();
    if (options_.header) {
      fields.begins_row();
      do fields.next();
      while (!fields.is_last());
    }
    while (fields.begins_row()) {
      for (size_t place = 0; place < by_place_.size(); ++place) {
        const std::string_view field = fields.next();
        if (fields.is_last() != (place + 1 == by_place_.size())) refuse_length(fields, place + 1);
        Growing* const growing = by_place_[place];
        if (growing && !growing->is_text) add(*growing, field, fields);
      }
    }
  }

  void add(Growing& growing, std::string_view field, const CsvText& fields) const {
    if (missing_.have(field)) return growing.add_missing();
    if (growing.add(field)) return;
    if (!growing.stated) {
      growing.is_text = true;
      return;
    }
    fields.refuse("the column '" + growing.column.name + "' must hold " + name_of(growing.column.type) + "; got '" +
                  std::string(field.substr(0, 80)) + "'");
  }

  [[noreturn]] void refuse_length(const CsvText& fields, size_t got) const {
    fields.refuse("a row must have " + std::to_string(names_.size()) + " fields; this one " +
                  (fields.is_last() ? "ends after " + std::to_string(got) : "has more"));
  }

  const std::string& path_;
  std::string_view text_;
  const CsvOptions& options_;
  MissingFields missing_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> places_;
  std::deque<Growing> growing_;     // in the order of the table
  std::vector<Growing*> by_place_;  // in the order of the file; null: not read
};

void check(const CsvOptions& options) {
  const auto ends_line = [](char byte) { return byte == '\n' || byte == '\r'; };
  if (options.delimiter == options.quote || ends_line(options.delimiter) || ends_line(options.quote)) {
    refuse("the delimiter and the quote must differ and cannot end a line");
  }
}

}  // namespace

Table read_csv(const std::string& path, const CsvOptions& options) {
  check(options);
  const std::vector<uint8_t> bytes = read_whole_file(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return Reading(path, text, options).table();
}

}  // namespace rosin
