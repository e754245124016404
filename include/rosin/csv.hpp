// Tables of named, typed columns, read from CSV. Read next: data.hpp (what arrays are as observations), text.hpp.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/export.hpp>

namespace rosin {

/// What the fields of a column are.
enum class ColumnType : uint8_t { int64, float64, boolean, text };

struct CsvOptions {
  char delimiter = ',';
  char quote = '"';
  bool header = true;                     // the first row names the columns; else they are "0", "1", ...
  std::vector<std::string> columns = {};  // those to read, in this order; empty: all of them
  std::vector<std::pair<std::string, ColumnType>> types = {};  // of columns that are not to be guessed
  // Fields that stand for a missing value; these are what pandas takes.
  std::vector<std::string> missing = {"",     "#N/A",   "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN",
                                      "-nan", "1.#IND", "1.#QNAN",  "<NA>", "N/A",     "NA",       "NULL",
                                      "NaN",  "None",   "n/a",      "nan",  "null"};
};

/// A column: one of the three vectors has a value for each row, as its type says.
struct TableColumn {
  std::string name;
  ColumnType type = ColumnType::float64;
  std::vector<int64_t> integers;        // int64; boolean: 0 or 1; 0 where missing
  std::vector<double> floats;           // float64; NaN where missing
  std::vector<int32_t> codes;           // text: which of `categories`; -1 where missing
  std::vector<std::string> categories;  // text: the different fields, in the order in which they first occur
  std::vector<uint8_t> missing;         // 1 where there is no value
};

/// A column as classes.
struct ColumnLabels {
  Array indices;                   // (rows) Int32, -1 where missing
  std::vector<std::string> names;  // of the classes, sorted: texts by bytes, whole numbers by value
};

/// Columns of one length.
class ROSIN_API Table {
 public:
  explicit Table(std::vector<TableColumn> columns) noexcept : columns_(std::move(columns)) {}

  int64_t rows() const noexcept { return columns_.empty() ? 0 : static_cast<int64_t>(columns_[0].missing.size()); }
  const std::vector<TableColumn>& columns() const noexcept { return columns_; }
  /// Error (argument): no such column; names the nearest.
  const TableColumn& operator[](std::string_view name) const;

  /// These columns as (columns, rows), a row an observation. A missing value becomes `missing`. Errors (argument): no
  /// such column; a column of text; with an integer type: a column of fractions, or a missing value where `missing` is
  /// no whole number.
  Array array(const std::vector<std::string>& names, DType type = Float32,
              double missing = std::numeric_limits<double>::quiet_NaN()) const;
  /// (columns, rows) Bool: where values are missing. Error (argument): no such column.
  Array mask(const std::vector<std::string>& names) const;
  /// Errors (argument): no such column, one of fractions.
  ColumnLabels labels(std::string_view name) const;

  static constexpr bool rosin_leaf = true;

 private:
  std::vector<TableColumn> columns_;
};

/// Reads a CSV file as RFC 4180 has it: fields in quotes may hold delimiters, ends of lines and doubled quotes; lines
/// end with LF, CRLF or CR; empty lines and a byte order mark are skipped. A column is Int64 where all its values are
/// whole numbers of 64 bits, Float64 where all are numbers (inf too), Bool where all are true, True, TRUE, false,
/// False, FALSE; else text. A column without any value is Float64. Numbers may have spaces around them.
/// Errors: io, which name the file with line and column (in bytes): rows of different lengths, a quote that does not
/// end, a field that is not of the stated type, two columns of one name; argument: no such column in the options.
ROSIN_API Table read_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace rosin
