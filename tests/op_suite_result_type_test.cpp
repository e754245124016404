// The op suite, result types: docs/types.md states what every public op gives for every type, or that it refuses; each
// statement is tried. Read first: op_suite.hpp, docs/types.md.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>

#include <rosin/error.hpp>

#include "op_suite.hpp"

namespace rosin::suite {
namespace {

constexpr DType real_types[] = {Bool,  UInt8,  Int8,    Int16,    UInt16,  Int32,  UInt32,
                                Int64, UInt64, Float16, BFloat16, Float32, Float64};

/// Words in backquotes.
std::vector<std::string> words_in(const std::string& text) {
  static const std::regex word("`([^`]+)`");
  std::vector<std::string> words;
  for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) words.push_back((*at)[1]);
  return words;
}

/// The cells of a row "| a | b |"; a bar in a cell has a backslash.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (size_t at = 2; at < line.size();) {
    const size_t end = std::min(line.find(" |", at), line.size());
    cells.push_back(std::regex_replace(line.substr(at, end - at), std::regex(R"(\\\|)"), "|"));
    at = end + 3;
  }
  return cells;
}

/// op -> type -> what the page says: "own", "–" or a type's name.
using Statements = std::map<std::string, std::map<std::string, std::string>>;

const Statements& statements() {
  static const Statements all = [] {
    Statements made;
    std::ifstream page(ROSIN_SOURCE_DIR "/docs/types.md");
    std::vector<std::string> head;
    for (std::string line; std::getline(page, line);) {
      if (line.rfind("| ops |", 0) == 0) head = cells_of(line);
      if (head.empty() || line.rfind("| `", 0) != 0) continue;
      const std::vector<std::string> cells = cells_of(line);
      for (const std::string& op : words_in(cells[0])) {
        EXPECT_FALSE(made.count(op)) << op << " stands twice";
        for (size_t column = 1; column < head.size(); ++column) {
          const std::vector<std::string> type = words_in(cells.at(column));
          for (const std::string& of : words_in(head[column])) made[op][of] = type.empty() ? cells[column] : type[0];
        }
      }
    }
    return made;
  }();
  return all;
}

/// A case that the row computes, one of ordinary values; null where the row has none.
const OracleCase* case_for(const OpEntry& row) {
  if (row.oracle.empty()) return nullptr;
  const OracleCase* found = nullptr;
  for (const std::string& file : op_oracle_files()) {
    if (file == "loss.txt") continue;  // losses are functions of functions
    for (const OracleCase& entry : cases_of(file)) {
      if (entry.op != row.oracle || entry.has("n") || entry.has("exponents")) continue;
      if (!has_types_there(entry) || (found && entry.dtype != "Float32")) continue;
      if (entry.has("hi") && entry.number("hi", 0) != std::floor(entry.number("hi", 0))) continue;  // of floats alone
      const Arrays inputs = inputs_of(entry);
      if (inputs[0].count() == 0 || row.call(entry, inputs).empty()) continue;
      found = &entry;
      if (entry.dtype == "Float32") return found;
    }
  }
  return found;
}

/// The name of the result's type, – for a refusal at the call, nothing where the row does not compute the case so; the
/// inputs of the case's own type are of `type`.
std::string result_type(const OpEntry& row, const OracleCase& entry, DType type) {
  Arrays inputs = inputs_of(entry);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (entry.inputs[i].dtype == entry.dtype) inputs[i] = evaluated(cast(real(inputs[i]), type));
  }
  try {
    const Arrays results = row.call(entry, inputs);
    if (results.empty()) return {};
    return results[0].dtype() == type ? "own" : to_string(results[0].dtype());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::dtype) << row.name << " of " << to_string(type) << ": " << error.what();
    EXPECT_NE(std::string(error.what()).find(to_string(type)), std::string::npos) << row.name << ": " << error.what();
    return "–";
  }
}

/// The words that only the first set has.
std::string only_in(const std::set<std::string>& some, const std::set<std::string>& others) {
  std::string words;
  for (const std::string& word : some) words += others.count(word) ? "" : word + " ";
  return words;
}

TEST(OpSuiteResultTypes, ThePageNamesEveryPublicOp) {
  std::set<std::string> named, listed, known;
  for (const auto& [op, types] : statements()) named.insert(op);
  for (const OpEntry& row : op_table()) {
    known.insert(std::string(row.name));
    if (case_for(row) != nullptr && row.name != "cast") listed.insert(std::string(row.name));
  }
  EXPECT_EQ(only_in(listed, named), "");
  EXPECT_EQ(only_in(named, known), "");
}

TEST(OpSuiteResultTypes, EveryOpGivesTheTypeThatThePageStates) {
  for (const OpEntry& row : op_table()) {
    const OracleCase* entry = case_for(row);
    if (entry == nullptr || row.name == "cast") continue;
    const auto stated = statements().find(std::string(row.name));
    if (stated == statements().end()) continue;  // the test above says so
    for (const DType type : real_types) {
      if (!has_type_there(type)) continue;
      const std::string want = stated->second.at(to_string(type));
      const std::string got = result_type(row, *entry, type);
      EXPECT_TRUE(got.empty() || got == want || (got == "own" && want == to_string(type)))
          << row.name << " of " << to_string(type) << " gives " << got << ", the page states " << want;
    }
  }
}

}  // namespace
}  // namespace rosin::suite
