// The test cases of the ONNX project (Debian's libonnx-testdata) through the importer, and the table of docs/onnx.md
// that says how many of them there are for each op.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <set>

#include "io/python_testing.hpp"
#include "io/real_files_testing.hpp"
#include "onnx/cases_testing.hpp"
#include "onnx/conversions.hpp"

namespace rosin {
namespace {

using namespace rosin::testing;

struct Summary {
  int right = 0, foreign = 0, lacking = 0;
  std::vector<std::string> wrong;
  std::set<std::string> lacks;                             // ops that are why a case is not run
  std::map<std::string, std::map<int64_t, int>> cases_of;  // of those that are right: op, version, count
};

/// Four cases hold one number where the model has an array of twelve, a fifth cuts numbers off where the format rounds,
/// and the model of a sixth lacks the epsilon that its numbers were made with.
bool is_broken(const std::string& name) {
  const std::string casts = "test_castlike_", bfloats = "BFLOAT16";
  const bool like = name.starts_with(casts) && name.find(bfloats) != std::string::npos;
  return like || name == "test_cast_FLOAT_to_BFLOAT16" || name == "test_adam_multiple";
}

void add(Summary& summary, const std::string& name, const CaseReport& report) {
  if (report.result == CaseResult::foreign_type || is_broken(name)) {
    ++summary.foreign;
  } else if (report.result == CaseResult::no_op) {
    ++summary.lacking;
    for (const auto& [op, version] : report.ops) {
      if (!onnx::find_conversion("", op, version)) summary.lacks.insert(op);
    }
  } else if (report.result == CaseResult::wrong) {
    summary.wrong.push_back(name + ": " + report.why);
  } else {
    ++summary.right;
    for (const auto& [op, version] : report.ops) ++summary.cases_of[op][version];
  }
}

Summary run_all(const fs::path& cases) {
  Summary summary;
  for (const fs::directory_entry& group : fs::directory_iterator(cases)) {
    if (!group.is_directory()) continue;
    for (const fs::directory_entry& folder : fs::directory_iterator(group)) {
      if (fs::exists(folder.path() / "model.onnx")) add(summary, folder.path().filename().string(), run_case(folder));
    }
  }
  return summary;
}

const Summary& summary() {
  static const Summary once = run_all(onnx_cases());
  return once;
}

/// The table's rows, as the page has them.
std::string table_text(const Summary& of) {
  std::map<std::string, std::pair<int64_t, int64_t>> versions;
  for (const onnx::Conversion& row : onnx::all_conversions()) {
    const auto at = versions.try_emplace(std::string(row.op), row.since, row.until).first;
    at->second.first = std::min(at->second.first, row.since);
    at->second.second = std::max(at->second.second, row.until);
  }
  std::string text;
  for (const auto& [op, range] : versions) {
    text += "| `" + op + "` | " + std::to_string(range.first) + "–" + std::to_string(range.second) + " | ";
    const auto found = of.cases_of.find(op);
    std::string counts;
    if (found != of.cases_of.end()) {
      for (const auto& [version, count] : found->second) {
        counts += (counts.empty() ? "" : ", ") + std::to_string(version) + ": " + std::to_string(count);
      }
    }
    text += (counts.empty() ? "none" : counts) + " |\n";
  }
  return text;
}

std::string sum_text(const Summary& of) {
  const int all = of.right + of.lacking + static_cast<int>(of.wrong.size());
  std::string lacks;
  for (const std::string& op : of.lacks) lacks += (lacks.empty() ? "`" : ", `") + op + "`";
  return "Of " + std::to_string(all) + " cases whose types rosin has, " + std::to_string(of.right) +
         " give what they must, none gives anything else, and " + std::to_string(of.lacking) +
         " are refused with the name of what is missing.\n" + "Ops that they lack: " + lacks + ".\n";
}

class OnnxCases : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(onnx_cases() / "node")) GTEST_SKIP() << "libonnx-testdata is not installed in " << onnx_cases();
  }
};

TEST_F(OnnxCases, NoneGivesAnythingWrong) {
  for (const std::string& why : summary().wrong) ADD_FAILURE() << why;
}

TEST_F(OnnxCases, NearlyAllWhoseTypesArraysHaveAreRight) {
  const Summary& of = summary();
  EXPECT_GE(of.right, 0.95 * (of.right + of.lacking + static_cast<double>(of.wrong.size())));
}

TEST_F(OnnxCases, ThePageHasTheirCounts) {
  std::ifstream file(std::string(ROSIN_SOURCE_DIR) + "/docs/onnx.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const std::string& text : {table_text(summary()), sum_text(summary())}) {
    EXPECT_TRUE(page.find(text) != std::string::npos) << "docs/onnx.md must have:\n" << text;
  }
}

class OnnxNewestCases : public ScratchFolder {};

/// All cases that the installed package of the project makes: its ops are newer than those of Debian's cases.
TEST_F(OnnxNewestCases, NearlyAllAreRightAndNoneIsWrong) {
  const std::string python = python_with("numpy, onnx, onnx.backend.test.case.node");
  if (python.empty()) GTEST_SKIP() << "no Python with onnx";
  const std::string script = std::string(ROSIN_SOURCE_DIR) + "/tests/onnx_newest_cases.py ";
  const std::string said = output_of(python + " -W ignore " + script + path("node"));
  ASSERT_FALSE(said.starts_with("failed")) << said;
  const Summary of = run_all(path(""));
  for (const std::string& why : of.wrong) ADD_FAILURE() << why;
  EXPECT_GE(of.right, 0.98 * (of.right + of.lacking)) << sum_text(of);
}

TEST(OnnxTable, IsInTheOrderOfNamesAndVersions) {
  const std::span<const onnx::Conversion> rows = onnx::all_conversions();
  for (size_t i = 1; i < rows.size(); ++i) {
    EXPECT_TRUE(rows[i - 1].op < rows[i].op || (rows[i - 1].op == rows[i].op && rows[i - 1].until < rows[i].since))
        << rows[i].op;
  }
}

}  // namespace
}  // namespace rosin
