// The tables EXPECTED.tsv of files of Julia: their paths in our trees, and their figures.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <rosin/array.hpp>

#include "io/julia_arrays.hpp"
#include "io/julia_tree.hpp"
#include "io/real_files_testing.hpp"

namespace rosin::testing {

/// Step i (from 1) of a value as the file stores it: fields of a structure, elements, key and value lists of a Dict.
inline std::optional<uint32_t> numbered_child(const JuliaTree& tree, uint32_t at, uint32_t number) {
  const JuliaValue& value = tree.values[at];
  if (number == 0 || number > value.count) return std::nullopt;
  return tree.child(value, number - 1).value;
}

/// "model.1.1(2).3": names, then .N for fields, (N) and [N] for elements, all from 1.
inline std::optional<uint32_t> find_by_table_path(const JuliaTree& tree, const std::string& path) {
  uint32_t at = tree.root;
  size_t next = 0;
  while (next < path.size()) {
    if (path[next] == '.' || path[next] == '(' || path[next] == '[') ++next;
    size_t end = path.find_first_of(".([])", next);
    if (end == std::string::npos) end = path.size();
    const std::string step = path.substr(next, end - next);
    next = end;
    while (next < path.size() && (path[next] == ')' || path[next] == ']')) ++next;
    const JuliaValue& value = tree.values[at];
    std::optional<uint32_t> found = tree.named_child(value, step);
    const bool number = !step.empty() && step.find_first_not_of("0123456789") == std::string::npos;
    // A dictionary with names: its second field is the list of its values.
    const bool values_of_dictionary = value.kind == JuliaKind::named && tree.text_of(value) == "Base.Dict";
    if (!found && values_of_dictionary && step == "2") continue;
    if (!found && number) found = numbered_child(tree, at, static_cast<uint32_t>(std::stoul(step)));
    if (!found) return std::nullopt;
    at = *found;
  }
  return at;
}

inline std::string table_type(DType type) {
  const char* names[dtype_count] = {"|b1", "|u1", "|i1",  "<i2", "<u2", "<i4", "<u4", "<i8",
                                    "<u8", "<f2", "bf16", "<f4", "<f8", "<c8", "<c16"};
  return names[static_cast<int>(type)];
}

/// Cells: file, path, type, sizes, sum, first, last.
inline void expect_like_table(const JuliaTree& tree, uint32_t at, const InputFile& file,
                              const std::vector<std::string>& row) {
  const Array x = array_of(tree, at, file);
  EXPECT_EQ(table_type(x.dtype()), row[2]);
  std::string sizes;
  for (int64_t size : x.shape()) sizes += (sizes.empty() ? "" : "x") + std::to_string(size);
  EXPECT_EQ(sizes.empty() ? "scalar" : sizes, row[3]);
  const std::vector<double> values = x.to_vector<double>();
  const auto number = [](const std::string& cell) {
    return cell == "False" ? 0.0 : cell == "True" ? 1.0 : std::stod(cell);
  };
  double sum = 0, size = 0;
  for (double value : values) {
    if (std::isnan(value)) continue;
    sum += value;
    size += std::abs(value);
  }
  EXPECT_NEAR(sum, number(row[4]), 1e-12 * (1 + size));
  ASSERT_FALSE(values.empty());
  EXPECT_EQ(values.front(), number(row[5]));
  EXPECT_EQ(values.back(), number(row[6]));
}

/// Reads the files of a table one by one with `read` and compares each row's array, less the rows where `skip` is true.
/// Gives how many rows the table has: 0 where the folder is missing.
template <class Read, class Skip> size_t expect_table_of_files(const std::string& folder, Read read, Skip skip) {
  const auto rows = table_rows(folder + "EXPECTED.tsv");
  std::string name;
  std::optional<InputFile> file;
  JuliaTree tree;
  for (const auto& row : rows) {
    if (name != row[0]) {
      name = row[0];
      file.emplace(folder + name, "load");
      tree = read(*file);
    }
    SCOPED_TRACE(name + " " + row[1]);
    const auto found = find_by_table_path(tree, row[1]);
    EXPECT_TRUE(found);
    if (found && !skip(row)) expect_like_table(tree, *found, *file, row);
  }
  return rows.size();
}

}  // namespace rosin::testing
