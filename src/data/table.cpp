// Columns as arrays (csv.hpp).
#include <algorithm>
#include <cmath>
#include <numeric>

#include <rosin/csv.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/host_vector.hpp>

#include "base/nearest.hpp"

namespace rosin {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorKind::argument, message); }

using Columns = std::vector<const TableColumn*>;

template <class T> T value_of(const TableColumn& column, size_t row) {
  return static_cast<T>(column.type == ColumnType::float64 ? column.floats[row]
                                                           : static_cast<double>(column.integers[row]));
}
template <> int64_t value_of<int64_t>(const TableColumn& column, size_t row) { return column.integers[row]; }

/// (columns, rows)
template <class T> Array side_by_side(const Columns& columns, int64_t rows, double missing) {
  const size_t width = columns.size();
  std::vector<T> values = detail::host_vector<T>("Table::array", static_cast<int64_t>(width) * rows);
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    for (size_t c = 0; c < width; ++c) {
      const TableColumn& column = *columns[c];
      values[row * width + c] = column.missing[row] ? static_cast<T>(missing) : value_of<T>(column, row);
    }
  }
  return Array(values, {static_cast<int64_t>(width), rows});
}

/// With an integer type nothing may be lost.
void check_whole(const Columns& columns, DType type, double missing) {
  const bool has_fill = missing == std::trunc(missing) && std::abs(missing) < 0x1p63;
  for (const TableColumn* column : columns) {
    if (column->type == ColumnType::float64) {
      refuse("Table::array: the column '" + column->name + "' holds fractions, which " + to_string(type) +
             " cannot; ask for a float type");
    }
    const auto first = std::find(column->missing.begin(), column->missing.end(), 1);
    if (first != column->missing.end() && !has_fill) {
      refuse("Table::array: the column '" + column->name + "' has no value in row " +
             std::to_string(first - column->missing.begin()) + ", and " + to_string(type) +
             " has no NaN; say what stands for it, or ask for a float type");
    }
  }
}

}  // namespace

const TableColumn& Table::operator[](std::string_view name) const {
  std::vector<std::string_view> names;
  for (const TableColumn& column : columns_) {
    if (column.name == name) return column;
    names.push_back(column.name);
  }
  const std::string_view nearest = nearest_name(name, names);
  refuse("Table: there is no column '" + std::string(name) + "'" +
         (nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?"));
}

Array Table::array(const std::vector<std::string>& names, DType type, double missing) const {
  Columns columns;
  for (const std::string& name : names) {
    columns.push_back(&(*this)[name]);
    if (columns.back()->type == ColumnType::text) {
      refuse("Table::array: the column '" + name + "' is text; take its labels");
    }
  }
  if (type == Float64) return side_by_side<double>(columns, rows(), missing);
  if (type == Float32) return side_by_side<float>(columns, rows(), missing);
  if (is_float(type)) return cast(side_by_side<float>(columns, rows(), missing), type);
  check_whole(columns, type, missing);
  const Array whole = side_by_side<int64_t>(columns, rows(), std::isnan(missing) ? 0 : missing);
  return type == Int64 ? whole : cast(whole, type);
}

Array Table::mask(const std::vector<std::string>& names) const {
  std::vector<uint8_t> values =
      detail::host_vector<uint8_t>("Table::mask", static_cast<int64_t>(names.size()) * rows());
  for (size_t c = 0; c < names.size(); ++c) {
    const TableColumn& column = (*this)[names[c]];
    for (size_t row = 0; row < column.missing.size(); ++row) values[row * names.size() + c] = column.missing[row];
  }
  return cast(Array(values, {static_cast<int64_t>(names.size()), rows()}), Bool);
}

ColumnLabels Table::labels(std::string_view name) const {
  const TableColumn& column = (*this)[name];
  ColumnLabels labels;
  std::vector<int32_t> indices(column.missing.size(), -1);
  if (column.type == ColumnType::float64) {
    refuse("Table::labels: the column '" + column.name + "' holds fractions, which are no classes");
  }
  if (column.type == ColumnType::text) {
    std::vector<size_t> order(column.categories.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return column.categories[a] < column.categories[b]; });
    std::vector<int32_t> places(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      places[order[i]] = static_cast<int32_t>(i);
      labels.names.push_back(column.categories[order[i]]);
    }
    for (size_t row = 0; row < indices.size(); ++row) {
      if (!column.missing[row]) indices[row] = places[static_cast<size_t>(column.codes[row])];
    }
  } else {
    std::vector<int64_t> values;
    for (size_t row = 0; row < indices.size(); ++row) {
      if (!column.missing[row]) values.push_back(column.integers[row]);
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    for (int64_t value : values) {
      labels.names.push_back(column.type == ColumnType::boolean ? (value ? "true" : "false") : std::to_string(value));
    }
    for (size_t row = 0; row < indices.size(); ++row) {
      const auto found = std::lower_bound(values.begin(), values.end(), column.integers[row]);
      if (!column.missing[row]) indices[row] = static_cast<int32_t>(found - values.begin());
    }
  }
  labels.indices = Array(indices, {rows()});
  return labels;
}

}  // namespace rosin
