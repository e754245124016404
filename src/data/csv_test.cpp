// Tables from CSV, judged by pandas (tests/oracles/tables.txt).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <rosin/csv.hpp>

#include "../tests/error_testing.hpp"
#include "../tests/oracle_reader.hpp"
#include "io/real_files_testing.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;
using oracles::OracleArray;
using Rows = std::vector<double>;

class Csv : public ScratchFolder {
 protected:
  Table table(const std::string& text, const CsvOptions& options = {}) const {
    return read_csv(write("table.csv", text), options);
  }
  std::string refusal(const std::string& text, const CsvOptions& options = {}) const {
    return error_here([&] { table(text, options); });
  }
};

void expect_column(const Table& table, size_t place, char kind, const OracleArray& values, const OracleArray& gaps) {
  const TableColumn& column = table.columns()[place];
  const std::vector<int64_t> missing(column.missing.begin(), column.missing.end());
  EXPECT_EQ(missing, gaps.integers);
  if (kind == 't') {
    ASSERT_EQ(column.type, ColumnType::text);
    EXPECT_EQ(table.labels(column.name).indices.to_vector<int64_t>(), values.integers);
    return;
  }
  // pandas has no whole numbers with gaps; a column of them is Float64 there.
  const bool gap = std::find(missing.begin(), missing.end(), 1) != missing.end();
  if (column.type != ColumnType::int64 || !gap) {
    EXPECT_EQ(kind, "ifbt"[static_cast<int>(column.type)]);
  }
  const Rows got = table.array({column.name}, Float64).to_vector<double>();
  ASSERT_EQ(got.size(), values.values.size());
  for (size_t row = 0; row < got.size(); ++row) {
    if (std::isnan(values.values[row])) EXPECT_TRUE(std::isnan(got[row]));
    else EXPECT_EQ(got[row], values.values[row]);
  }
}

TEST_F(Csv, GivesWhatPandasGives) {
  int cases = 0;
  for (const auto& found : oracles::read_oracles(oracles::oracle_path("tables.txt"))) {
    SCOPED_TRACE("line " + std::to_string(found.line));
    std::string text;
    for (int64_t byte : found.inputs[0].integers) text.push_back(static_cast<char>(byte));
    const Table read = table(text, {.delimiter = static_cast<char>(std::stoi(found.attributes.at("separator"))),
                                    .header = found.attributes.at("header") == "1"});
    const std::string kinds = found.attributes.at("kinds");
    ASSERT_EQ(read.columns().size(), kinds.size());
    for (size_t c = 0; c < kinds.size(); ++c) {
      expect_column(read, c, kinds[c], found.outputs[2 * c], found.outputs[2 * c + 1]);
    }
    ++cases;
  }
  EXPECT_EQ(cases, 14);
}

TEST_F(Csv, ColumnsBecomeArraysOfFeaturesAndObservations) {
  const Table read = table("a,name,b\n1,x,0.5\n2,y,\n3,x,2.5\n");
  const Array both = read.array({"b", "a"}, Float64, -1);
  EXPECT_EQ(both.shape(), (Shape{2, 3}));
  EXPECT_EQ(both.to_vector<double>(), (Rows{0.5, 1, -1, 2, 2.5, 3}));
  EXPECT_EQ(read.array({"a"}).dtype(), Float32);
  EXPECT_EQ(read.array({"a"}, Int32).to_vector<double>(), (Rows{1, 2, 3}));
  EXPECT_EQ(read.array({"a"}, Float16).dtype(), Float16);
  EXPECT_TRUE(std::isnan(read.array({"b"}).to_vector<double>()[1]));
  EXPECT_EQ(read.mask({"a", "b"}).to_vector<double>(), (Rows{0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(read.mask({"a"}).dtype(), Bool);
  EXPECT_EQ(read.rows(), 3);
}

TEST_F(Csv, LabelsAreSortedClasses) {
  const Table read = table("t,n,b\nz,10,true\na,9,false\n,NA,true\nz,10,true\n");
  EXPECT_EQ(read.labels("t").names, (std::vector<std::string>{"a", "z"}));
  EXPECT_EQ(read.labels("t").indices.to_vector<double>(), (Rows{1, 0, -1, 1}));
  EXPECT_EQ(read.labels("n").names, (std::vector<std::string>{"9", "10"}));
  EXPECT_EQ(read.labels("n").indices.to_vector<double>(), (Rows{1, 0, -1, 1}));
  EXPECT_EQ(read.labels("b").names, (std::vector<std::string>{"false", "true"}));
  EXPECT_EQ(read.labels("b").indices.to_vector<double>(), (Rows{1, 0, 1, 1}));
}

TEST_F(Csv, OptionsChooseColumnsTypesAndMissingFields) {
  const Table read = table("zip,x,y\n007,1,a\n010,-99,b\n",
                           {.columns = {"x", "zip"}, .types = {{"zip", ColumnType::text}}, .missing = {"-99"}});
  ASSERT_EQ(read.columns().size(), 2u);
  EXPECT_EQ(read.columns()[0].name, "x");
  EXPECT_EQ(read["zip"].categories, (std::vector<std::string>{"007", "010"}));
  EXPECT_EQ(read.mask({"x"}).to_vector<double>(), (Rows{0, 1}));
  EXPECT_EQ(table("a|b\n'1|2'|3\n", {.delimiter = '|', .quote = '\''})["a"].categories[0], "1|2");
  EXPECT_EQ(table("a,b\n").rows(), 0);
}

TEST_F(Csv, BrokenFilesAreRefusedWithThePlace) {
  EXPECT_EQ(refusal(""), "read_csv: DIR/table.csv:1:1: the file must have a row; it is empty");
  EXPECT_EQ(refusal("a,b\n1,2\n3\n"), "read_csv: DIR/table.csv:3:1: a row must have 2 fields; this one ends after 1");
  EXPECT_EQ(refusal("a,b\n1,2,3\n"), "read_csv: DIR/table.csv:2:3: a row must have 2 fields; this one has more");
  EXPECT_EQ(refusal("a\n\"x\ny"), "read_csv: DIR/table.csv:2:1: a quote must have its end; this one has none");
  EXPECT_EQ(refusal("a,b\n1,\"x\"y\n"),
            "read_csv: DIR/table.csv:2:6: after a closing quote there must be a delimiter or the end of the line");
  EXPECT_EQ(refusal("a,a\n1,2\n"), "read_csv: DIR/table.csv:1:3: two columns have the name 'a'");
  EXPECT_EQ(refusal("a,b\n\"u\nv\",1\nw,2.5\n", {.types = {{"b", ColumnType::int64}}}),
            "read_csv: DIR/table.csv:4:3: the column 'b' must hold a whole number of 64 bits; got '2.5'");
  EXPECT_EQ(refusal("a\n1\n", {.columns = {"c"}}), "read_csv: 'DIR/table.csv' has no column 'c'");
  EXPECT_EQ(refusal("a\n1\n", {.columns = {"a", "a"}}), "read_csv: the column 'a' is asked for twice");
  EXPECT_EQ(refusal("a\n", {.quote = ','}), "read_csv: the delimiter and the quote must differ and cannot end a line");
  EXPECT_NE(error_of([&] { read_csv(path("none.csv")); }, ErrorKind::io).find("none.csv"), std::string::npos);
}

TEST_F(Csv, ArraysThatCannotBeAreRefused) {
  const Table read = table("length,t,n\n0.5,x,1\n1.5,y,\n");
  const auto text_of = [&](auto f) { return error_of(f, ErrorKind::argument); };
  EXPECT_EQ(text_of([&] { read.array({"lenght"}); }), "Table: there is no column 'lenght'; did you mean 'length'?");
  EXPECT_EQ(text_of([&] { read.array({"t"}); }), "Table::array: the column 't' is text; take its labels");
  EXPECT_EQ(text_of([&] { read.array({"length"}, Int32); }),
            "Table::array: the column 'length' holds fractions, which Int32 cannot; ask for a float type");
  EXPECT_EQ(text_of([&] { read.array({"n"}, Int64); }),
            "Table::array: the column 'n' has no value in row 1, and Int64 has no NaN; say what stands for it, or ask "
            "for a float type");
  EXPECT_EQ(read.array({"n"}, Int64, 7).to_vector<double>(), (Rows{1, 7}));
  EXPECT_EQ(text_of([&] { read.labels("length"); }),
            "Table::labels: the column 'length' holds fractions, which are no classes");
}

}  // namespace
}  // namespace rosin
